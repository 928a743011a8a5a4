"""Groups that sums exclude: too little room is left on the nodes that accept them, even once all have left that may.

They need not be searched for again before there is more: pods that may leave for them come and go without changing it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gangsched.core.cluster.cache import Cluster
from gangsched.core.contention.plans import Plans
from gangsched.core.contention.pool import Pool
from gangsched.core.contention.search_results import Looked, State
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.planning.guests import withheld

_MOST_CEILINGS = 32
"""So many ceilings are kept at most; each takes as much memory as `Capacity.free`."""


class _Ceiling(NamedTuple):
    """How much room there can be at most for those of a priority: `left` by row and column, after so many changes of
    `nodes`.

    Some may not use the room for which there are `conditional` claims, by their owners, or that is withheld for groups.
    """

    left: IntArray
    nodes: int
    conditional: frozenset[object]

    def equals(self, other: _Ceiling) -> bool:
        """Whether there is the same room."""
        return self[1:] == other[1:] and np.array_equal(self.left, other.left)

    def exceeds(self, before: _Ceiling, rows: Mask) -> bool:
        """Whether there may be more room on one of these rows than there was before."""
        alike = self.nodes == before.nodes and self.left.shape == before.left.shape
        if not alike or not before.conditional <= self.conditional:
            return True
        return bool((self.left[rows] > before.left[rows]).any())


class _Kind(NamedTuple):
    """What groups have in common that more room than the `ceiling` (by number) may help on these `rows` (a mask)."""

    priority: int
    ceiling: int
    rows: bytes


class Hopeless:
    """The groups that sums exclude until there is more room, by `kinds`, and when that was last `looked` at."""

    def __init__(self, cluster: Cluster, plans: Plans, *, exceeds: bool) -> None:
        self.looked = Looked((), 0.0, 0.0, ())
        self._cluster = cluster
        self._plans = plans
        self._exceeds = exceeds
        self._when: tuple[float, State] = 0.0, ()
        self._present: dict[int, _Ceiling] = {}
        self._ceilings: list[_Ceiling] = []
        self.kinds: dict[GroupKey, _Kind] = {}

    def add(self, key: GroupKey, priority: int, pool: Pool, looked: Looked, rows: Mask) -> None:
        """Only more room than there could be for this priority on one of these rows can help the group."""
        present = self._ceiling(priority, pool, looked)
        number = next((at for at, ceiling in enumerate(self._ceilings) if ceiling.equals(present)), len(self._ceilings))
        if number == _MOST_CEILINGS:
            # All are searched for again, and have the same ceiling then.
            self.kinds.clear()
        if not self.kinds:
            self.looked, self._ceilings, number = looked, [], 0
        if number == len(self._ceilings):
            self._ceilings.append(present)
        self.kinds[key] = _Kind(priority, number, rows.tobytes())

    def drop(self, key: GroupKey) -> None:
        """The group asks for something else, or for nothing."""
        self.kinds.pop(key, None)

    def wake(self, pool: Pool, looked: Looked) -> int:
        """Drop all for which there may be more room by now. Returns how often that was compared."""
        self.looked, kinds = looked, {*self.kinds.values()}
        for kind in kinds:
            present, before = self._ceiling(kind.priority, pool, looked), self._ceilings[kind.ceiling]
            if present.exceeds(before, np.frombuffer(kind.rows, dtype=np.bool_)):
                self.kinds = {key: other for key, other in self.kinds.items() if other != kind}
        return len(kinds)

    def _ceiling(self, priority: int, pool: Pool, looked: Looked) -> _Ceiling:
        """The ceiling for groups of this priority when they are looked at."""
        if self._when != (looked.at, looked.state):
            self._when, self._present = (looked.at, looked.state), {}
        if priority not in self._present:
            self._present[priority] = self._new_ceiling(priority, pool, looked.at)
        return self._present[priority]

    def _new_ceiling(self, priority: int, pool: Pool, now: float) -> _Ceiling:
        removable, capacity, ledger = pool.removable, self._cluster.capacity, self._cluster.ledger
        allowed, passed = self._plans.allowed(exceeds=self._exceeds), self._plans.pace.passed(now)
        eligible = removable.eligible(allowed, below=priority, passed=passed, now=now)
        columns = sorted(capacity.columns, key=capacity.columns.__getitem__)
        rows, width = len(capacity.names), len(columns)
        pairs = np.flatnonzero(eligible[removable.owners])
        freed, at = removable.amounts(columns)[pairs], removable.rows[pairs]
        left = capacity.free[:rows, :width].copy()
        for column in range(width):
            left[:, column] += np.bincount(at, freed[:, column], minlength=rows).astype(np.int64)
        np.minimum(left, capacity.allocatable[:rows, :width], out=left)
        conditional: set[object] = {*ledger.nominated}
        for key, room in ledger.reserved.items():
            kept = withheld(self._cluster, room, {})
            amounts = zip(kept.rows.tolist(), map(tuple, kept.amounts.tolist()), strict=True)
            conditional.update(room.claims, ((key, *pair) for pair in amounts))
        return _Ceiling(left, self._cluster.node_changes, frozenset(conditional))
