"""How many members a group asks for, in all and by role, and how many of them are missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from gangsched.core.objects.pod import Pod, member_order, role_of
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


def with_resources(spec: GroupSpec, members: Sequence[Pod]) -> GroupSpec:
    """The spec with a minimum large enough that the members together request its `min_resources`.

    Members that do not exist yet are assumed to request as much as the largest existing one. A remainder smaller than
    the request of one such member adds no member.
    """
    if not spec.min_resources or not members:
        return spec
    number, left = 0, dict(spec.min_resources)
    for pod in sorted(members, key=member_order):
        if not left:
            break
        number += 1
        requests = dict(pod.shape.requests)
        left = {name: rest for name, amount in left.items() if (rest := amount - requests.get(name, 0)) > 0}
    largest: dict[str, int] = {}
    for pod in members:
        for name, amount in pod.shape.requests:
            largest[name] = max(amount, largest.get(name, 0))
    more = max((rest // largest[name] if name in largest else 1 for name, rest in left.items()), default=0)
    return replace(spec, min_member=max(spec.min_member, number + more))
