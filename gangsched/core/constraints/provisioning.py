"""Tracks where, and how many, volumes are provisioned for the claims of members placed on one snapshot.

A CSIStorageCapacity describes one segment of nodes. kube-scheduler accepts a node for a claim if the object of some
segment there is large enough for that claim alone. Here, volumes that gangsched has promised count too: each counts in
every segment of its node until it is provisioned.

Source: hasEnoughCapacity of k8s.io/kubernetes pkg/scheduler/framework/plugins/volumebinding/binder.go at v1.37.2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from gangsched.core.constraints.constraint import World
from gangsched.core.constraints.naming import NAMED, node_terms
from gangsched.core.constraints.node_affinity import NodeAffinity
from gangsched.core.constraints.pending import Pending
from gangsched.core.inventory import unbound
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.indexes import count
from gangsched.core.objects.prebindings import Prebinding, Taken
from gangsched.core.objects.quantity import format_bytes
from gangsched.core.objects.shape import NodeTerm
from gangsched.core.objects.volumes import StorageCapacity, Wanted

MANY = 1 << 40
"""Stands for no limit: more members than any gang has."""
_NO_LIMIT = 1 << 62
_MOST_PROMISED = 1 << 50
"""Upper limit, in bytes, for the size that a promised volume counts with, so that no sum overflows."""


class Segments:
    """The segments of one class; `rows_of` returns the rows, of `rows` in all, that match a selector."""

    def __init__(self, segments: Sequence[StorageCapacity], rows_of: Callable[[NodeTerm], IntArray], rows: int) -> None:
        nowhere = np.zeros(0, np.int64)
        inside = [rows_of(segment.topology) if segment.topology is not None else nowhere for segment in segments]
        self._published = segments
        self._size = rows
        # One element for each pair of a segment and one of its rows, in the order of rows.
        of_rows: IntArray = np.concatenate([nowhere, *inside])
        in_order = np.argsort(of_rows, kind="stable")
        self._row: IntArray = of_rows[in_order]
        self._segment: IntArray = np.repeat(np.arange(len(segments)), [len(part) for part in inside])[in_order]
        self._limit = np.array([min(segment.limit, _NO_LIMIT) for segment in segments], dtype=np.int64)
        sizes = [_NO_LIMIT if segment.capacity is None else min(segment.capacity, _NO_LIMIT) for segment in segments]
        self._capacity = np.array(sizes, dtype=np.int64)
        self._promised: IntArray = np.zeros(len(segments), dtype=np.int64)
        self._volumes: IntArray = np.zeros(len(segments), dtype=np.int64)

    def promise_all(self, rows: Sequence[int], sizes: Sequence[int]) -> None:
        """Count volumes of these sizes that are to be provisioned for these rows' nodes."""
        by_row, volumes = np.zeros((2, self._size), dtype=np.int64)
        np.add.at(by_row, list(rows), [min(size, _MOST_PROMISED) for size in sizes])
        np.add.at(volumes, list(rows), 1)
        np.add.at(self._promised, self._segment, by_row[self._row])
        np.add.at(self._volumes, self._segment, volumes[self._row])

    def promise(self, row: int, size: int, sign: int = 1) -> None:
        """Count a volume to be provisioned for the row's node (`sign` 1), or stop counting it (-1)."""
        segments = self._of(row)
        self._promised[segments] += sign * min(size, _MOST_PROMISED)
        self._volumes[segments] += sign

    def suffices(self, size: int) -> Mask:
        """By row, whether kube-scheduler would accept the node for a volume of this size."""
        return self._best(self._limit >= size) > 0

    def room(self, size: int, per_member: int) -> IntArray:
        """By row, how many members fit if each takes `per_member` bytes, among them a volume of `size` bytes."""
        size, per_member = min(size, _NO_LIMIT), min(per_member, _NO_LIMIT)
        left = self._capacity - self._promised
        more = np.maximum(left - size, 0) // max(per_member, 1)
        room = np.where((self._promised == 0) | (left >= size), 1 + more, 0)
        room = np.where((self._capacity == _NO_LIMIT) | (per_member == 0), MANY, room)
        return self._best(np.where(self._limit >= size, room, 0))

    def beside(self, rows: IntArray) -> IntArray:
        """The rows that share a segment with one of these rows."""
        segments = np.unique(self._segment[np.isin(self._row, rows)])
        return np.unique(self._row[np.isin(self._segment, segments)])

    def here(self, row: int) -> Hashable:
        """A digest of the storage left for the row: equal for rows with the same limits, capacities and promises."""
        segments = self._of(row)
        return np.concatenate((self._limit[segments], self._capacity[segments], self._promised[segments])).tobytes()

    def refusals(self, size: int, rows: IntArray) -> Iterator[tuple[str, Mask]]:
        """The storage left in the segments of the rows, in words, for a wanted volume of this size, and the rows."""
        inside = np.isin(self._row, rows)
        segments = np.unique(self._segment[inside]).tolist()
        covered = np.isin(rows, self._row)
        if not covered.all():
            yield f"no CSIStorageCapacity selects them; {format_bytes(size)} wanted", ~covered
        if len(segments) > NAMED:
            most = max(int(self._left(at)) for at in segments)
            text = f"{len(segments)} segments with at most {format_bytes(most)} left; {format_bytes(size)} wanted"
            yield text, covered
            return
        for at in segments:
            yield self._refusal(at, size), covered & np.isin(rows, self._row[self._segment == at])
            covered &= ~np.isin(rows, self._row[self._segment == at])

    def _refusal(self, at: int, size: int) -> str:
        number = int(self._volumes[at])
        promised = f" after {number} promised volume{'s' if number > 1 else ''}" if number else ""
        topology = self._published[at].topology
        where = node_terms([topology]) if topology is not None and topology.expressions[0].key else "all nodes"
        return f"{where}: {format_bytes(self._left(at))} left{promised}, {format_bytes(size)} wanted"

    def _left(self, at: int) -> int:
        """The size of the largest volume that fits into the segment."""
        if not self._promised[at]:
            return max(0, int(self._limit[at]))
        return max(0, min(int(self._limit[at]), int(self._capacity[at] - self._promised[at])))

    def _of(self, row: int) -> IntArray:
        """The segments of the row."""
        first, last = np.searchsorted(self._row, (row, row + 1))
        return self._segment[first:last]

    def _best(self, of_segment: IntArray | Mask) -> IntArray:
        """By row, the largest value among its segments; 0 for rows without a segment."""
        best: IntArray = np.zeros(self._size, dtype=np.int64)
        np.maximum.at(best, self._row, of_segment[self._segment].astype(np.int64))
        return best


class Provisioning:
    """The volumes that storage classes can provision, less those already promised."""

    def __init__(self, world: World, affinity: NodeAffinity, pending: Pending) -> None:
        self._world = world
        self._pending = pending
        self._affinity = affinity
        self._orders: Counter[tuple[str, int, int]] = Counter()
        self._segments: dict[str, Segments | None] = {}

    def makes(self, wanted: Wanted, rows: IntArray) -> Mask:
        """The rows on which the class provisions volumes, whether or not there is storage for them."""
        storage_class = self._world.volumes.storage_class(wanted.storage_class)
        mask: Mask = np.full(len(rows), storage_class is not None and storage_class.provisions, dtype=np.bool_)
        if storage_class is not None and storage_class.provisions and storage_class.topologies is not None:
            mask = self._affinity.among(storage_class.topologies, rows)
        return mask

    def room(self, wanted: Wanted, wants: Sequence[Wanted], rows: IntArray) -> IntArray:
        """The number of members with these wants, of which `wanted` is one, that each of the rows has storage for.

        A pod's own claims are judged one by one, as kube-scheduler does. A claim of several pods counts once.
        """
        room: IntArray = np.where(self.makes(wanted, rows), MANY, 0)
        # For a claim whose node gangsched has selected, the driver is at work and may have taken the storage already.
        if wanted.ours or not wanted.size:
            return room
        segments = self._of_class(wanted.storage_class)
        if segments is None:
            return room
        if wanted.selected:
            return np.where(segments.suffices(wanted.size)[rows], room, 0)
        if wanted.shared:
            return np.where(segments.room(wanted.size, wanted.size)[rows] > 0, room, 0)
        alike = (other for other in wants if other.storage_class == wanted.storage_class)
        per_member = sum(other.size for other in alike if not (other.selected or other.shared))
        return np.minimum(segments.room(wanted.size, per_member)[rows], room)

    def order(self, ordered: Iterable[Wanted], row: int, sign: int) -> None:
        """Add orders for volumes on the row's node (`sign` 1), or withdraw them (-1)."""
        for wanted in ordered:
            segments = self._of_class(wanted.storage_class)
            if segments is not None:
                segments.promise(row, wanted.size, sign)
                count(self._orders, (wanted.storage_class, row, wanted.size), sign)

    def segments_of(self, wants: Iterable[Wanted]) -> list[Segments]:
        """The segments of each class, without classes whose driver does not publish its capacity."""
        names = dict.fromkeys(wanted.storage_class for wanted in wants)
        return [segments for name in names if (segments := self._of_class(name)) is not None]

    def beside(self, wants: Iterable[Wanted], rows: IntArray) -> IntArray:
        """The rows whose storage may change after volumes were ordered on these rows."""
        # A class whose segments were never read has no orders.
        known = filter(None, map(self._segments.get, {wanted.storage_class for wanted in wants}))
        return np.unique(np.concatenate([np.zeros(0, np.int64), *(segments.beside(rows) for segments in known)]))

    def full(self, wants: Sequence[Wanted], rows: IntArray) -> Iterator[tuple[str, Mask]]:
        """The rows where only storage capacity is missing, each group with the class and the capacity that is left."""
        for wanted in wants:
            segments = self._of_class(wanted.storage_class)
            lacking = self.makes(wanted, rows) & (self.room(wanted, wants, rows) == 0)
            if segments is not None and lacking.any():
                for text, where in segments.refusals(wanted.size, rows[lacking]):
                    mask = lacking.copy()
                    mask[lacking] = where
                    yield f"{wanted.storage_class} ({text})", mask

    def state(self, wants: Iterable[Wanted]) -> Hashable:
        """A digest of the storage capacity for these claims and of the volumes promised from it."""
        volumes, promised = self._world.volumes, self._pending.by_taken
        names = dict.fromkeys(wanted.storage_class for wanted in wants)
        known = {name: listed for name in names if (listed := unbound.capacities(volumes, name)) is not None}
        return tuple((*listed, *unbound.promises(volumes, name, promised)) for name, listed in known.items())

    def recount(self, before: Mapping[Taken, Mapping[str, Prebinding]]) -> None:
        """The pre-bindings that promise storage were these `before`, and are others now."""
        rows = {name: row for row, name in enumerate(self._world.stock.names)}
        for name, segments in self._segments.items():
            if segments is not None:
                for promises, sign in ((before, -1), (self._pending.by_taken, 1)):
                    for node, size in unbound.promises(self._world.volumes, name, promises):
                        if node in rows:
                            segments.promise(rows[node], size, sign)

    def digest(self) -> Hashable:
        """A digest of the orders."""
        return frozenset(self._orders.items())

    def _of_class(self, storage_class: str) -> Segments | None:
        """The segments of the class, less what is promised; None if its driver does not publish its capacity."""
        if storage_class in self._segments:
            return self._segments[storage_class]
        volumes, names = self._world.volumes, self._world.stock.names
        capacities, segments = unbound.capacities(volumes, storage_class), None
        if capacities is not None:
            segments = Segments(capacities, self._affinity.rows, len(names))
            rows = {name: row for row, name in enumerate(names)}
            promised = unbound.promises(volumes, storage_class, self._pending.by_taken)
            orders = [(rows[node], size) for node, size in promised if node in rows]
            segments.promise_all([row for row, _ in orders], [size for _, size in orders])
        self._segments[storage_class] = segments
        return segments
