"""Values for every row that are found anew only where something was taken or given back."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.planning import budget as units
from gangsched.core.planning.budget import Budget

Key = TypeVar("Key", bound=Hashable)
Array = TypeVar("Array", IntArray, npt.NDArray[np.float64], Mask)
MOST_KEPT = 256
"""For so many keys; the oldest is forgotten."""


@dataclass(frozen=True, slots=True)
class _Known(Generic[Array]):
    """A value for each row, true after so many changes."""

    values: Array
    changes: int


class Kept(Generic[Key, Array]):
    """Arrays of `size` rows by key. `changed` lists the rows of each change, and grows; `budget` pays for looks."""

    def __init__(self, size: int, changed: list[IntArray], budget: Budget) -> None:
        self._size = size
        self._changed = changed
        self._budget = budget
        self._known: dict[Key, _Known[Array]] = {}

    def __len__(self) -> int:
        """For how many keys an array is kept."""
        return len(self._known)

    def get(self, key: Key, of: Callable[[Key, IntArray], Array]) -> Array:
        """The key's array, to be read only; `of` finds the values of some rows."""
        before = self._known.get(key)
        if before is None:
            values = of(key, np.arange(self._size))
            self._budget.charge(units.CLASS + self._size)
            if len(self._known) >= MOST_KEPT:
                del self._known[next(iter(self._known))]
        elif before.changes == len(self._changed):
            return before.values
        else:
            rows = np.unique(np.concatenate(self._changed[before.changes :]))
            values = before.values.copy()
            values[rows] = of(key, rows)
            self._budget.charge(units.CLASS + len(rows))
        self._known[key] = _Known(values, len(self._changed))
        return values
