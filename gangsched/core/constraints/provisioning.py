"""Tracks where, and how many, volumes are provisioned for the claims of members placed on one snapshot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from gangsched.core.constraints.constraint import World
from gangsched.core.constraints.node_affinity import NodeAffinity
from gangsched.core.constraints.pending import Pending
from gangsched.core.constraints.segments import MANY, Segments
from gangsched.core.inventory import unbound
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.indexes import count
from gangsched.core.objects.prebindings import Prebinding, Taken
from gangsched.core.objects.volumes import Wanted


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
        found = self._world.volumes.storage_class(wanted.storage_class)
        mask: Mask = np.full(len(rows), found is not None and found.provisions, dtype=np.bool_)
        if found is not None and found.provisions and found.topologies is not None:
            mask = self._affinity.among(found.topologies, rows)
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
        each = sum(other.size for other in alike if not (other.selected or other.shared))
        return np.minimum(segments.room(wanted.size, each)[rows], room)

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
        known = [found for name in {each.storage_class for each in wants} if (found := self._segments.get(name))]
        return np.unique(np.concatenate([np.zeros(0, np.int64), *(each.beside(rows) for each in known)]))

    def full(self, wants: Sequence[Wanted], rows: IntArray) -> Iterator[tuple[str, Mask]]:
        """The rows where only storage capacity is missing, each group with the class and the capacity that is left."""
        for wanted in wants:
            segments = self._of_class(wanted.storage_class)
            lacking = self.makes(wanted, rows) & (self.room(wanted, wants, rows) == 0)
            if segments is not None and lacking.any():
                for text, where in segments.refusals(wanted.size, rows[lacking]):
                    there = lacking.copy()
                    there[lacking] = where
                    yield f"{wanted.storage_class} ({text})", there

    def state(self, wants: Iterable[Wanted]) -> Hashable:
        """A digest of the storage capacity for these claims and of the volumes promised from it."""
        volumes, promised = self._world.volumes, self._pending.by_taken
        found = {
            name: unbound.capacities(volumes, name) for name in dict.fromkeys(each.storage_class for each in wants)
        }
        known = {name: each for name, each in found.items() if each is not None}
        return tuple((*each, *unbound.promises(volumes, name, promised)) for name, each in known.items())

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
        found, segments = unbound.capacities(volumes, storage_class), None
        if found is not None:
            segments = Segments(found, self._affinity.rows, len(names))
            rows = {name: row for row, name in enumerate(names)}
            promised = unbound.promises(volumes, storage_class, self._pending.by_taken)
            there = [(rows[node], size) for node, size in promised if node in rows]
            segments.promise_all([row for row, _ in there], [size for _, size in there])
        self._segments[storage_class] = segments
        return segments
