"""How many members a group asks for, in all and by role, and how many of them are missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from gangsched.core.objects.pod import Pod, role_of
from gangsched.core.objects.podgroup import GroupSpec
from gangsched.core.objects.record import Minima


class Need(Struct, frozen=True):
    """Number of members that must still be bound, in all and by role."""

    total: int
    roles: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.number > 0

    @property
    def number(self) -> int:
        """The smallest number of members that satisfies both."""
        return max(self.total, sum(self.roles.values()))

    def met_by(self, members: Sequence[Pod]) -> bool:
        """Whether these members are enough."""
        there = Counter(map(role_of, members))
        return len(members) >= self.number and all(there[role] >= number for role, number in self.roles.items())

    def beside(self, placed: Counter[str]) -> Need:
        """The remaining need if these members, counted by role, already have a node or a reservation."""
        return missing_of(Minima(self.total, tuple(self.roles.items())), placed)


def role_minima(spec: GroupSpec) -> dict[str, int]:
    """Each role's minimum."""
    return {role.name: role.min_member for role in spec.roles}


def minima(spec: GroupSpec) -> Minima:
    """The group's minimum and each role's."""
    return Minima(spec.minimum, tuple(sorted(role_minima(spec).items())))


def lowered(had: Minima, spec: GroupSpec) -> Minima:
    """The spec's minima, none of them larger than in `had`."""
    asked, roles = minima(spec), dict(had.roles)
    return Minima(
        min(asked.total, had.total),
        tuple((role, min(number, roles.get(role, 0))) for role, number in asked.roles),
    )


def missing_of(least: Minima, placed: Counter[str]) -> Need:
    """What is missing of these minima if these members, counted by role, are placed."""
    roles = {role: max(0, number - placed[role]) for role, number in least.roles}
    return Need(max(0, least.total - placed.total()), roles)
