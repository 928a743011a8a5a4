"""What the ResourceClaims of pods ask of a node, and which members of a plan have taken devices."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from msgspec import Struct, field

from gangsched.core.objects.devices import Allocation, DeviceWishes
from gangsched.core.objects.offered_devices import ObjectKey
from gangsched.core.objects.shape import NodeTerm

OWN: ObjectKey = ("", "")
"""Stands for a claim that only one pod uses."""
NO_DEVICES = DeviceWishes(())
"""The wishes of a claim that has its devices already, and of which only a reservation is wanted."""


class Wish(Struct, frozen=True):
    """The wishes of one claim. `claim` is its key if several pods use it; these then get the same devices.

    `group` is the UID of the PodGroup for which it is reserved, empty if each member reserves it for itself.
    """

    wishes: DeviceWishes
    claim: ObjectKey = OWN
    group: str = ""


Wishes = tuple[Wish, ...]
"""The wishes of one member's claims."""


class Stay(Struct, eq=False):
    """A member that has taken devices on a row; `own`: some that no other member had settled before.

    `before` are the stays that chose again for it, as they were.
    """

    wishes: Wishes
    row: int
    allocations: tuple[Allocation, ...]
    own: bool = False
    before: list[tuple[Stay, tuple[Allocation, ...]]] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether it takes a device as a whole, of which there are only so many."""
        return any(device.exclusive for allocation in self.allocations for device in allocation.devices)


def by_kind(members: Sequence[Stay]) -> list[Stay]:
    """The members by row; those of a row that ask for the same next to each other."""
    kinds: dict[tuple[int, Wishes], list[Stay]] = {}
    for member in members:
        kinds.setdefault((member.row, member.wishes), []).append(member)
    return [member for alike in kinds.values() for member in alike]


def remove(stay: Stay, stays: list[Stay]) -> None:
    at = next(at for at in range(len(stays) - 1, -1, -1) if stays[at] is stay)
    del stays[at]


def taking(fresh: Sequence[Allocation]) -> bool:
    """Whether any device is taken, not only for admin access."""
    return any(not device.admin for allocation in fresh for device in allocation.devices)


def filled(settled: Sequence[Allocation | None], fresh: Sequence[Allocation]) -> tuple[Allocation, ...]:
    """What is settled, with the fresh allocations in the places that are open."""
    left = iter(fresh)
    return tuple(next(left) if known is None else known for known in settled)


@dataclasses.dataclass(frozen=True, slots=True)
class UsesDevices:
    """The affinities of the devices already allocated to a pod's claims, and the wishes of its other claims.

    `ready` is False if a claim is not ready. `claim`, the one that is not ready, and `claims`, the one behind each
    affinity, are those of a single pod of the class.
    """

    affinities: tuple[tuple[NodeTerm, ...], ...] = ()
    wishes: Wishes = ()
    ready: bool = True
    claim: str = dataclasses.field(default="", compare=False)
    claims: tuple[str, ...] = dataclasses.field(default=(), compare=False)

    def in_order(self) -> Sequence[object]:
        """The fields that matter to placement."""
        return self.ready, repr(self.affinities), repr(self.wishes)
