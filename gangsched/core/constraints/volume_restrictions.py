"""VolumeRestrictions: only one pod uses a claim for a single pod, or on one node a disk that allows no second user.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/volumerestrictions. `Disk.names` defines which disks are the
same. A claim for a single pod (ReadWriteOncePod) matters only while several known pods name it, so that the members of
a gang with one claim each stay interchangeable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct

from gangsched.core.constraints.constraint import Constraint, Happening, Leavers, Member, Plan, Words, World
from gangsched.core.constraints.naming import disk as named
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.indexes import count, uncount
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.reasons import NodeReason
from gangsched.core.objects.shape import Disk
from gangsched.core.objects.volumes import StorageKey

_Use = tuple[str, str, bool]
"""(kind of disk, one of the disk's names, whether it is mounted read-only)"""

_ANY_NUMBER = 1 << 31
_NONE: Mapping[_Use, int] = {}


class Contested(Struct, frozen=True):
    """The single-pod claims of a pod that other known pods name too."""

    claims: tuple[StorageKey, ...]

    def in_order(self) -> Sequence[object]:
        """The claims."""
        return self.claims


class VolumeRestrictions(Constraint):
    """The filter of this name."""

    proves = True
    words = (
        Words(
            NodeReason.VOLUME_IN_USE,
            "closed while another pod uses {resource}",
            "the end of the pod that uses {resource}: {nodes} closed",
        ),
    )

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._users: dict[StorageKey, int] = {}
        self._disks: dict[int, Counter[_Use]] = {}

    def add(self, pod: Pod, row: int) -> None:
        """Count the pod as a user of its claims, and of its disks on the row."""
        for name in pod.volume_claims:
            key = (pod.namespace, name)
            self._users[key] = self._users.get(key, 0) + 1
        if pod.shape.disks:
            self._disks.setdefault(row, Counter()).update(_uses(pod.shape.disks))

    def remove(self, pod: Pod, row: int) -> None:
        """Stop counting the pod as a user of its claims and disks."""
        for name in pod.volume_claims:
            uncount(self._users, (pod.namespace, name))
        for use in _uses(pod.shape.disks):
            uncount(self._disks[row], use)
        if pod.shape.disks and not self._disks[row]:
            del self._disks[row]

    def opens_elsewhere(self, happening: Happening, pod: Pod | None = None) -> bool:
        """When the only user of a single-pod claim leaves, the claim is free on all nodes."""
        return happening is Happening.POD_LEFT and pod is not None and self._world.volumes.is_single(pod)

    def state(self) -> object:
        """The users by claim, and the disks by row."""
        return self._users, self._disks

    def plan(self, *, emptied: bool) -> Plan:
        """The users of claims and disks on a snapshot."""
        if emptied:
            return _UsesPlan(self._world, {}, {})
        users = {key: self._users[key] for key in self._world.volumes.contested if key in self._users}
        return _UsesPlan(self._world, users, self._disks)


class _UsesPlan(Plan):
    """The users of contested claims, and of disks by row. `_changed` holds the rows that differ from the cluster.

    It is `selective` if several pods name the same single-pod claim.
    """

    about = frozenset({Contested, "disks"})
    selective: bool = False

    def __init__(self, world: World, users: dict[StorageKey, int], disks: dict[int, Counter[_Use]]) -> None:
        self.selective = bool(world.volumes.contested)
        self._world = world
        self._users = users
        self._before = disks
        self._changed: dict[int, Counter[_Use]] = {}

    def sees(self, pod: Pod) -> Contested | None:
        """The contested claims that the pod names."""
        contested = self._world.volumes.contested
        claims = [(pod.namespace, name) for name in pod.volume_claims if (pod.namespace, name) in contested]
        return Contested(tuple(sorted(claims))) if claims else None

    def mask(self, member: Member, rows: IntArray) -> Mask | None:
        """All rows or none, because a claim in use anywhere is closed everywhere."""
        seen = member.sight(Contested)
        return None if seen is None else np.full(len(rows), self._users.keys().isdisjoint(seen.claims), dtype=np.bool_)

    def room(self, member: Member, rows: IntArray) -> IntArray | None:
        """One if a second member could not use the same claim or disk; zero where a disk is in use."""
        disks, contests = member.shape.disks, member.sight(Contested) is not None
        if not contests and not _named(disks):
            return None
        most = 1 if contests or _excludes(disks, disks) else _ANY_NUMBER
        return np.where(self._taken(disks, rows), 0, most)

    def take(self, member: Member, rows: IntArray, counts: IntArray) -> IntArray | None:
        """Count the members as users of their claims, and of their disks on these rows, or uncount them."""
        self._count_disks(member.shape.disks, zip(rows.tolist(), counts.tolist(), strict=True))
        seen = member.sight(Contested)
        if seen is None:
            return None
        for key in seen.claims:
            count(self._users, key, int(counts.sum()))
        return np.arange(len(self._world.stock.names))

    def refusals(self, member: Member, rows: IntArray) -> Iterator[tuple[str, str, Mask]]:
        """The claim that is in use, or each disk with the rows where it is in use."""
        seen = member.sight(Contested)
        used = [name for key in seen.claims if key in self._users for name in key[1:]] if seen is not None else ()
        if used:
            yield NodeReason.VOLUME_IN_USE, f"the PersistentVolumeClaim {used[0]}", np.ones(len(rows), dtype=np.bool_)
            return
        for disk in dict.fromkeys(member.shape.disks):
            if disk.names:
                yield NodeReason.VOLUME_IN_USE, named(disk), self._taken([disk], rows)

    def digest(self, rows: IntArray) -> Hashable:
        """A digest of the contested claims in use, and of the disks on these rows."""
        return frozenset(self._users), tuple(frozenset(self._on(row)) for row in rows.tolist())

    def couples(self, member: Member, other: Member) -> bool:
        """Whether they contest the same claim, so that placing one closes all rows to the other."""
        seen, also = member.sight(Contested), other.sight(Contested)
        return seen is not None and also is not None and not set(seen.claims).isdisjoint(also.claims)

    def excludes(self, member: Member, other: Member) -> bool:
        """Whether they share a disk that allows no second user."""
        return _excludes(member.shape.disks, other.shape.disks)

    def _taken(self, disks: Iterable[Disk], rows: IntArray) -> Mask:
        """The rows on which one of the disks is in use in a way that excludes another user."""
        taken: Mask = np.zeros(len(self._world.stock.names), dtype=np.bool_)
        if _named(disks):
            taken[[row for row in (*self._before, *self._changed) if _clashes(self._on(row), disks)]] = True
        return taken[rows]

    def _on(self, row: int) -> Mapping[_Use, int]:
        return self._changed[row] if row in self._changed else self._before.get(row, _NONE)

    def recount(self, leavers: Leavers, sign: int) -> IntArray | None:
        """Count these pods of the cluster again (1), or no longer (-1)."""
        everywhere = False
        for alike in leavers.alike:
            self._count_disks(alike.shape.disks, ((row, sign) for row in alike.rows.tolist()))
        for pod, _ in leavers.pods if self._world.volumes.contested else ():
            for key in ((pod.namespace, name) for name in pod.volume_claims):
                if key in self._world.volumes.contested:
                    count(self._users, key, sign)
                    everywhere = True
        return np.arange(len(self._world.stock.names)) if everywhere else None

    def _count_disks(self, disks: Iterable[Disk], numbers: Iterable[tuple[int, int]]) -> None:
        """Count the disks of so many pods on each row."""
        uses = list(_uses(disks))
        for row, number in numbers if uses else ():
            on = self._changed.setdefault(row, Counter(self._before.get(row, ())))
            for use in uses:
                count(on, use, number)


def _named(disks: Iterable[Disk]) -> bool:
    return any(disk.names for disk in disks)


def _uses(disks: Iterable[Disk]) -> Iterator[_Use]:
    for disk in disks:
        for name in disk.names:
            yield disk.kind, name, disk.read_only


def _clashes(on: Mapping[_Use, int], disks: Iterable[Disk]) -> bool:
    return any(
        (disk.kind, name, False) in on or (not disk.read_only and (disk.kind, name, True) in on)
        for disk in disks
        for name in disk.names
    )


def _excludes(disks: Iterable[Disk], others: Iterable[Disk]) -> bool:
    return _clashes(Counter(_uses(disks)), others)
