"""A cache of values for every row; only rows on which something was taken or given back are recomputed."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.planning import budget as units
from gangsched.core.planning.budget import Budget

Key = TypeVar("Key", bound=Hashable)
Array = TypeVar("Array", IntArray, npt.NDArray[np.float64], Mask)
MOST_CACHED = 256
"""Limit for the number of cached arrays; the oldest is evicted first."""


class RowCache(Generic[Key, Array]):
    """Arrays of `size` rows by key. `changed` is a growing log of changed rows; `budget` is charged for each update."""

    def __init__(self, size: int, changed: list[IntArray], budget: Budget) -> None:
        self._size = size
        self._changed = changed
        self._budget = budget
        self._known: dict[Key, tuple[Array, int]] = {}

    def get(self, key: Key, of: Callable[[Key, IntArray], Array]) -> Array:
        """The key's array, read-only; `of` computes the values of the given rows."""
        before = self._known.get(key)
        if before is None:
            values = of(key, np.arange(self._size))
            self._budget.charge(units.CLASS + self._size)
            if len(self._known) >= MOST_CACHED:
                del self._known[next(iter(self._known))]
        elif before[1] == len(self._changed):
            return before[0]
        else:
            rows = _without_repetition(np.concatenate(self._changed[before[1] :]), self._size)
            values = before[0].copy()
            values[rows] = of(key, rows)
            self._budget.charge(units.CLASS + len(rows))
        self._known[key] = values, len(self._changed)
        return values


def _without_repetition(rows: IntArray, size: int) -> IntArray:
    """The distinct rows, sorted. Large inputs go through a mask, which takes a twentieth of the time of sorting."""
    if len(rows) < size // 8:
        return np.unique(rows) if len(rows) > 1 else rows
    mask: Mask = np.zeros(size, dtype=np.bool_)
    mask[rows] = True
    return np.flatnonzero(mask)
