"""What came of one instance: who was admitted, and how whole the room is that is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from bench.quality.instances import Gang, Instance
from gangsched.core.objects.shape import PODS

Placed = Mapping[tuple[str, str], Counter[str]]
"""By gang and role, how many members each node has."""


@dataclass(frozen=True)
class Outcome:
    """The members that have a node. `numbers` are those of each gang and role."""

    instance: Instance
    placed: Placed

    @property
    def numbers(self) -> dict[tuple[str, str], int]:
        """How many members of each gang and role have a node."""
        return {which: found.total() for which, found in self.placed.items() if found}

    def of(self, gang: Gang) -> int:
        """How many members of the gang have a node."""
        return sum(self.numbers.get((gang.name, kind.role), 0) for kind in gang.kinds)

    @property
    def members(self) -> int:
        """How many members have a node."""
        return sum(self.numbers.values())

    @property
    def gangs(self) -> int:
        """How many gangs have members with a node."""
        return sum(self.of(gang) > 0 for gang in self.instance.gangs)

    @property
    def rank(self) -> tuple[int, ...]:
        """Which of two outcomes is better in the order of rule 6: gang by gang, whole or not; then members."""
        found = [self.of(gang) for gang in self.instance.gangs]
        return (*(int(number > 0) for number in found), *found)

    def free(self) -> list[dict[str, int]]:
        """What each node has left."""
        free = self.instance.free()
        for gang in self.instance.gangs:
            for kind in gang.kinds:
                for node, number in self.placed.get((gang.name, kind.role), {}).items():
                    for resource, amount in (*kind.size.items(), (PODS, 1)):
                        if amount:
                            free[node][resource] -= number * amount
        return list(free.values())

    def fragmentation(self) -> float:
        """One minus the mean, over the sizes of members in the instance, of whole ÷ ideal.

        `whole` is how many members of the size the nodes take, each for itself, with what they have left; `ideal` is
        how many one node would take that had all that is left. Sizes whose ideal is 0 are left out; 0 without any.
        """
        free = self.free()
        shares = [whole(free, size) / ideal(free, size) for size in sizes(self.instance) if ideal(free, size)]
        return 1.0 - sum(shares) / len(shares) if shares else 0.0


def sizes(instance: Instance) -> list[Mapping[str, int]]:
    """The sizes of members, each once."""
    return list({tuple(kind.size.items()): kind.size for gang in instance.gangs for kind in gang.kinds}.values())


def whole(free: list[dict[str, int]], size: Mapping[str, int]) -> int:
    """How many members of the size fit, node by node."""
    return sum(_fitting(left, size) for left in free)


def ideal(free: list[dict[str, int]], size: Mapping[str, int]) -> int:
    """How many members of the size would fit onto one node that had all this."""
    return _fitting({resource: sum(left.get(resource, 0) for left in free) for resource in size}, size)


def _fitting(left: Mapping[str, int], size: Mapping[str, int]) -> int:
    return min(left.get(resource, 0) // amount for resource, amount in size.items() if amount)
