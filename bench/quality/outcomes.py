"""The outcome of one instance: the admitted members, and the fragmentation of the remaining capacity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from bench.quality.instances import Gang, Instance
from gangsched.core.objects.shape import PODS

Placed = Mapping[tuple[str, str], Counter[str]]
"""The number of members on each node, by gang and role."""


@dataclass(frozen=True)
class Outcome:
    """The placed members. `numbers` counts them by gang and role."""

    instance: Instance
    placed: Placed

    @property
    def numbers(self) -> dict[tuple[str, str], int]:
        """The number of placed members of each gang and role."""
        return {which: found.total() for which, found in self.placed.items() if found}

    def of(self, gang: Gang) -> int:
        """The number of placed members of the gang."""
        return sum(self.numbers.get((gang.name, kind.role), 0) for kind in gang.kinds)

    @property
    def members(self) -> int:
        """The number of placed members."""
        return sum(self.numbers.values())

    @property
    def gangs(self) -> int:
        """The number of gangs with placed members."""
        return sum(self.of(gang) > 0 for gang in self.instance.gangs)

    @property
    def rank(self) -> tuple[int, ...]:
        """Sort key in the order of rule 6, higher is better: gang by gang, whole or not; then members."""
        found = [self.of(gang) for gang in self.instance.gangs]
        return (*(int(number > 0) for number in found), *found)

    def free(self) -> list[dict[str, int]]:
        """The free amounts of each node."""
        free = self.instance.free()
        for gang in self.instance.gangs:
            for kind in gang.kinds:
                for node, number in self.placed.get((gang.name, kind.role), {}).items():
                    for resource, amount in (*kind.size.items(), (PODS, 1)):
                        if amount:
                            free[node][resource] -= number * amount
        return list(free.values())

    def fragmentation(self) -> float:
        """One minus the mean of whole ÷ ideal over the sizes of members in the instance.

        `whole` is the number of members of the size that fit into the nodes' free capacity, node by node; `ideal` is
        the number that would fit if one node had all free capacity. Sizes whose ideal is 0 are left out; the result is
        0 if none is left.
        """
        free = self.free()
        shares = [whole(free, size) / ideal(free, size) for size in sizes(self.instance) if ideal(free, size)]
        return 1.0 - sum(shares) / len(shares) if shares else 0.0


def sizes(instance: Instance) -> list[Mapping[str, int]]:
    """The distinct sizes of members."""
    return list({tuple(kind.size.items()): kind.size for gang in instance.gangs for kind in gang.kinds}.values())


def whole(free: list[dict[str, int]], size: Mapping[str, int]) -> int:
    """The number of members of the size that fit, node by node."""
    return sum(_fitting(left, size) for left in free)


def ideal(free: list[dict[str, int]], size: Mapping[str, int]) -> int:
    """The number of members of the size that would fit if one node had all free capacity."""
    return _fitting({resource: sum(left.get(resource, 0) for left in free) for resource in size}, size)


def _fitting(left: Mapping[str, int], size: Mapping[str, int]) -> int:
    return min(left.get(resource, 0) // amount for resource, amount in size.items() if amount)
