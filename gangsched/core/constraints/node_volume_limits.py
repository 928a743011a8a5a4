"""NodeVolumeLimits: a node attaches no more volumes of a CSI driver than its CSINode allows.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/nodevolumelimits/csi.go. A volume that several pods on a node
use counts once. One that is attached but unused counts too and, as in kube-scheduler, again for a pod that uses it.

Members with equally many volumes of their own are interchangeable; a volume that another known pod may use too is
identified by its name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct

from gangsched.core.constraints.constraint import Constraint, Leavers, Member, Plan, Words, World
from gangsched.core.constraints.naming import listed
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.indexes import count, uncount
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.reasons import NodeReason
from gangsched.core.objects.shape import Attachment, Disk
from gangsched.core.objects.volumes import StorageKey, keys_of

_NO_LIMIT = 1 << 31
"""The limit that stands for a driver without one on a node."""
_NOTHING: Mapping[Attachment, int] = {}
_NO_ATTACHMENTS: frozenset[Attachment] = frozenset()
_NONE: Mapping[int, int] = {}


class Attaches(Struct, frozen=True):
    """The volumes of a pod whose drivers some node limits: the number of its own by driver, and the shared ones."""

    own: tuple[tuple[str, int], ...]
    shared: tuple[Attachment, ...]

    def in_order(self) -> Sequence[object]:
        """The drivers and volumes, sorted."""
        return self.own, self.shared


class _Counted(Struct):
    """The attachment that a claim counts as, and the number of pods that use it by row."""

    attachment: Attachment | None
    rows: dict[int, int]


class NodeVolumeLimits(Constraint):
    """The filter of this name."""

    proves = True
    words = (
        Words(
            NodeReason.VOLUME_LIMIT,
            "where one more member would exceed the volume limit of {resource}",
            "the end of pods with volumes of that driver: {nodes} at the volume limit of {resource}",
        ),
    )

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._claims: dict[StorageKey, _Counted] = {}
        self._by_row: dict[int, dict[Attachment, int]] = {}
        self._numbers: dict[str, dict[int, int]] = {}
        self._attached: dict[int, frozenset[Attachment]] = {}

    def set_node(self, row: int, node: Node) -> None:
        """Count the volumes attached to the node, whether or not a pod uses them."""
        self._attach(row, frozenset(self._world.volumes.attached(node.name)))

    def remove_node(self, row: int) -> None:
        """Stop counting the volumes attached to the row's node."""
        self._attach(row, _NO_ATTACHMENTS)

    def add(self, pod: Pod, row: int) -> None:
        """Count the pod's volumes on the row."""
        for key in keys_of(pod) if pod.uses_claims else ():
            if (counted := self._claims.get(key)) is None:
                counted = self._claims[key] = _Counted(self._world.volumes.attachment(key), {})
            counted.rows[row] = counted.rows.get(row, 0) + 1
            self._count(row, counted.attachment, 1)
        for disk in pod.shape.disks:
            self._count(row, disk.attachment, 1)

    def remove(self, pod: Pod, row: int) -> None:
        """Stop counting the pod's volumes on the row."""
        for key in keys_of(pod) if pod.uses_claims else ():
            counted = self._claims[key]
            uncount(counted.rows, row)
            self._count(row, counted.attachment, -1)
            if not counted.rows:
                del self._claims[key]
        for disk in pod.shape.disks:
            self._count(row, disk.attachment, -1)

    def claims_changed(self, keys: Sequence[StorageKey]) -> None:
        """Update the attachments that these claims count as."""
        for key in keys:
            counted = self._claims.get(key)
            if counted is not None:
                attachment = self._world.volumes.attachment(key)
                for row, number in counted.rows.items():
                    self._count(row, counted.attachment, -number)
                    self._count(row, attachment, number)
                counted.attachment = attachment

    def state(self) -> object:
        """The claims, the attachments by row, their number by driver and row, and those that do not depend on pods."""
        return self._claims, self._by_row, self._numbers, self._attached

    def plan(self, *, emptied: bool) -> Plan:
        """The attachments of a snapshot."""
        if emptied:
            return _LimitsPlan(self._world, {}, {}, {})
        return _LimitsPlan(self._world, self._by_row, self._numbers, self._attached)

    def _attach(self, row: int, now: frozenset[Attachment]) -> None:
        before = self._attached.pop(row, _NO_ATTACHMENTS)
        used = self._by_row.get(row, _NOTHING)
        for attachment in before ^ now:
            if attachment not in used:
                self._number(row, attachment[0], 1 if attachment in now else -1)
        if now:
            self._attached[row] = now

    def _count(self, row: int, attachment: Attachment | None, number: int) -> None:
        if attachment is None:
            return
        used = self._by_row.setdefault(row, {})
        before = attachment in used
        count(used, attachment, number)
        if (attachment in used) != before and attachment not in self._attached.get(row, _NO_ATTACHMENTS):
            self._number(row, attachment[0], 1 if attachment in used else -1)
        if not used:
            del self._by_row[row]

    def _number(self, row: int, driver: str, number: int) -> None:
        """Add this number to the row's volumes of the driver."""
        rows = self._numbers.setdefault(driver, {})
        count(rows, row, number)
        if not rows:
            del self._numbers[driver]


class _LimitsPlan(Plan):
    """The attachments on one snapshot; `_left` is the number of volumes that each row may still attach by driver.

    `_members` counts the members that use a shared volume on a row, `_gone` the pods of the cluster that used a volume
    there and have left. `_asked` numbers the drivers for the search. It is `selective` if there are claims and nodes
    with limits.
    """

    about = frozenset({Attaches, "disks"})
    selective: bool = False

    def __init__(
        self,
        world: World,
        by_row: Mapping[int, Mapping[Attachment, int]],
        numbers: Mapping[str, Mapping[int, int]],
        attached: Mapping[int, frozenset[Attachment]],
    ) -> None:
        self.selective = bool(world.volumes.claims and world.volumes.limited)
        self._world = world
        self._by_row = by_row
        self._numbers = numbers
        self._attached = attached
        self._left: dict[str, IntArray] = {}
        self._asked: list[str] = []
        self._members: Counter[tuple[int, Attachment]] = Counter()
        self._gone: Counter[tuple[int, Attachment]] = Counter()

    def sees(self, pod: Pod) -> Attaches | None:
        """The volumes that the pod's claims attach; None if nodes limit none of them."""
        if not pod.uses_claims:
            return None
        volumes = self._world.volumes
        own: Counter[str] = Counter()
        shared: set[Attachment] = set()
        for key in keys_of(pod):
            attachment = volumes.attachment(key)
            if attachment is not None and attachment[0] in volumes.limited:
                if volumes.is_shared(key, attachment):
                    shared.add(attachment)
                else:
                    own[attachment[0]] += 1
        return Attaches(tuple(sorted(own.items())), tuple(sorted(shared))) if own or shared else None

    def room(self, member: Member, rows: IntArray) -> IntArray | None:
        """The number of members whose volumes each row can attach; shared volumes are attached once."""
        own, shared = self._of(member)
        if not own and not shared:
            return None
        room: IntArray = np.full(len(rows), _NO_LIMIT, dtype=np.int64)
        for driver in {*own, *(attachment[0] for attachment in shared)}:
            per_member = own.get(driver, 0)
            first = self._not_there([one for one in shared if one[0] == driver], rows)
            left = self._left_of(driver)[rows] - first
            most = left // per_member if per_member else np.where((left >= 0) | (first == 0), _NO_LIMIT, 0)
            room = np.minimum(room, np.maximum(most, 0))
        return room

    def take(self, member: Member, rows: IntArray, counts: IntArray) -> None:
        """Attach the members' volumes on these rows, or detach them where negative."""
        own, shared = self._of(member)
        for driver, per_member in own.items():
            self._left_of(driver)[rows] -= per_member * counts
        for attachment in shared:
            for row, number in zip(rows.tolist(), counts.tolist(), strict=True):
                self._count(self._members, row, attachment, number)

    def settle(self, leavers: Leavers) -> None:
        """The cluster counts the pods' volumes no more."""
        self._gone.subtract((row, attachment) for row, attachment in self._attached_by(leavers))

    def refusals(self, member: Member, rows: IntArray) -> Iterator[tuple[str, str, Mask]]:
        """For each driver with its limits, the rows where one more member exceeds them."""
        own, shared = self._of(member)
        for driver in sorted({*own, *(attachment[0] for attachment in shared)}):
            wanted = own.get(driver, 0) + self._not_there([one for one in shared if one[0] == driver], rows)
            where = (wanted > 0) & (wanted > self._left_of(driver)[rows])
            limits = list(map(str, sorted({self._limit(row, driver) for row in rows[where].tolist()})))
            yield NodeReason.VOLUME_LIMIT, f"{driver} ({listed(limits)})", where

    def digest(self, rows: IntArray) -> Hashable:
        """A digest of the volumes attached on these rows, and of how many more fit."""
        drivers = sorted(self._world.volumes.limited)
        if not drivers:
            return None
        inside = set(rows.tolist())
        used = tuple(frozenset(self._by_row.get(row, _NOTHING)) for row in rows.tolist())
        members = frozenset(item for item in self._members.items() if item[0][0] in inside)
        gone = frozenset(item for item in self._gone.items() if item[0][0] in inside)
        return used, members, gone, tuple(self._left_of(driver)[rows].tobytes() for driver in drivers)

    # For the exhaustive search

    def couples(self, member: Member, other: Member) -> bool:
        """Whether the member has a shared volume: then the first member on a row takes more of the limit than the next.

        The fixed amounts of the exhaustive search cannot express that.
        """
        return bool(self._of(member)[1]) and any(self._of(other))

    def amounts(self, member: Member) -> Mapping[int, int]:
        """The number of the member's own volumes by driver, as the driver's number in the search."""
        by_driver = {}
        for driver, number in self._of(member)[0].items():
            if driver not in self._asked:
                self._asked.append(driver)
            by_driver[self._asked.index(driver)] = number
        return by_driver

    def left(self, number: int, rows: IntArray) -> IntArray:
        """The number of volumes of the driver that each row may still attach."""
        left: IntArray = self._left_of(self._asked[number])[rows]
        return left

    # Inside

    def recount(self, leavers: Leavers, sign: int) -> None:
        """Attach the pods' volumes again (1), or detach those that only they use on their rows (-1)."""
        for row, attachment in self._attached_by(leavers):
            self._count(self._gone, row, attachment, -sign)

    def _attached_by(self, leavers: Leavers) -> Iterator[tuple[int, Attachment]]:
        """The volumes of limited drivers that these pods use, each with its row."""
        volumes = self._world.volumes
        for pod, row in leavers.pods if volumes.limited else ():
            claims = keys_of(pod) if pod.uses_claims else ()
            used = [volumes.attachment(key) for key in claims] + [disk.attachment for disk in pod.shape.disks]
            yield from ((row, attachment) for attachment in filter(None, used) if attachment[0] in volumes.limited)

    def _count(self, users: Counter[tuple[int, Attachment]], row: int, attachment: Attachment, number: int) -> None:
        """Count so many users of the volume on the row, among the members or the pods that have left."""
        left = self._left_of(attachment[0])
        before = self._attachments(row, attachment)
        count(users, (row, attachment), number)
        left[row] -= self._attachments(row, attachment) - before

    def _attachments(self, row: int, attachment: Attachment) -> int:
        """How often the volume counts on the row: one that is attached but unused again for a member that uses it."""
        staying = self._staying(row, attachment)
        attached = staying > 0 or attachment in self._attached.get(row, _NO_ATTACHMENTS)
        return attached + (self._members[row, attachment] > 0 and not staying)

    def _staying(self, row: int, attachment: Attachment) -> int:
        """The number of pods of the cluster that use the volume there and have not left."""
        return self._by_row.get(row, _NOTHING).get(attachment, 0) - self._gone[row, attachment]

    def _of(self, member: Member) -> tuple[dict[str, int], list[Attachment]]:
        """The volumes of the class with limited drivers: the number of its own by driver, and the shared ones."""
        seen = member.sight(Attaches)
        shared = [] if seen is None else list(seen.shared)
        limited = self._world.volumes.limited
        shared += [attachment for attachment in _attached(member.shape.disks) if attachment[0] in limited]
        return {} if seen is None else dict(seen.own), list(dict.fromkeys(shared))

    def _left_of(self, driver: str) -> IntArray:
        left = self._left.get(driver)
        if left is None:
            left = np.array([self._limit(row, driver) for row in range(len(self._world.stock.names))], dtype=np.int64)
            for row, number in self._numbers.get(driver, _NONE).items():
                left[row] -= number
            self._left[driver] = left
        return left

    def _limit(self, row: int, driver: str) -> int:
        return self._world.volumes.limits.get(self._world.stock.names[row], {}).get(driver, _NO_LIMIT)

    def _uses(self, row: int, attachment: Attachment) -> int:
        return self._staying(row, attachment) + self._members[row, attachment]

    def _not_there(self, shared: Sequence[Attachment], rows: IntArray) -> IntArray:
        """The number of these volumes that each row has not attached."""
        new = [sum(not self._uses(row, attachment) for attachment in shared) for row in rows.tolist()] if shared else 0
        return np.array(new, dtype=np.int64)


def _attached(disks: Sequence[Disk]) -> Iterator[Attachment]:
    return (disk.attachment for disk in disks if disk.attachment is not None)
