"""How much room there can be at most for those of a priority: what each node has left once all have left that may.

A group for which that is too little by sums need not be searched for again before there is more on a node that it
accepts: pods that may leave for it come and go without changing that.
"""

from __future__ import annotations

from itertools import count
from typing import NamedTuple

import numpy as np

from gangsched.core.cluster.cache import Cluster
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.planning.removable import Removable

_MOST_KNOWN = 32
"""Of so many ceilings it is known later whether there is more room; each takes as much memory as `Capacity.free`."""


class _Ceiling(NamedTuple):
    """The room `left` by row and column, after so many changes of `nodes`.

    Some may not use the room for which there are `conditional` claims, by their owners.
    """

    left: IntArray
    nodes: int
    conditional: frozenset[str]


class Ceilings:
    """The last ceilings, by number."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[int, _Ceiling] = {}
        self._numbers = count()
        self._grown: dict[tuple[int, int], Mask | None] = {}

    def note(self, removable: Removable, eligible: Mask) -> int:
        """Returns the number of the present ceiling, if these units may leave."""
        capacity, ledger = self._cluster.capacity, self._cluster.ledger
        columns = sorted(capacity.columns, key=capacity.columns.__getitem__)
        rows, width = len(capacity.names), len(columns)
        pairs = np.flatnonzero(eligible[removable.owners])
        freed, at = removable.amounts(columns)[pairs], removable.rows[pairs]
        left = capacity.free[:rows, :width].copy()
        for column in range(width):
            left[:, column] += np.bincount(at, freed[:, column], minlength=rows).astype(np.int64)
        np.minimum(left, capacity.allocatable[:rows, :width], out=left)
        reserved = (each.claims for each in ledger.reserved.values())
        ceiling = _Ceiling(left, self._cluster.node_changes, frozenset(ledger.nominated).union(*reserved))
        for number, other in self._known.items():
            if other[1:] == ceiling[1:] and np.array_equal(other.left, left):
                return number
        number = next(self._numbers)
        self._known[number] = ceiling
        if len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]
            self._grown.clear()
        return number

    def has_grown(self, before: int, now: int, rows: Mask) -> bool:
        """Whether there may be more room on one of these rows than there was, by the numbers of both ceilings."""
        if (before, now) not in self._grown:
            self._grown[before, now] = self._compared(before, now)
        grown = self._grown[before, now]
        return grown is None or bool((grown & rows).any())

    def _compared(self, before: int, now: int) -> Mask | None:
        """The rows that have more room; None if any may."""
        old, new = self._known.get(before), self._known[now]
        if old is None or old.nodes != new.nodes or old.left.shape != new.left.shape:
            return None
        if not old.conditional <= new.conditional:
            return None
        grown: Mask = np.logical_or.reduce(new.left > old.left, axis=1)
        return grown
