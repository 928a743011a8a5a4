"""One value per row, stored as a number: a question is evaluated once per distinct value and answered for all rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import Generic, TypeVar

import numpy as np

from gangsched.core.objects.arrays import IntArray, Mask

Value = TypeVar("Value", bound=Hashable)
FEW = 8
"""Up to so many rows are evaluated one by one."""
_KEPT = 1024
"""The answers to so many questions are cached; the oldest is dropped first."""


def uncount(counts: dict[Value, int], value: Value) -> None:
    """Count the value once less, and drop it at zero.

    Raises:
        KeyError: it is not counted.
    """
    counts[value] -= 1
    if not counts[value]:
        del counts[value]


class Column(Generic[Value]):
    """At most one value for each row; `rows` is the initial size."""

    def __init__(self, rows: int = 16) -> None:
        self._numbers: dict[Value, int] = {}
        self._values: list[Value] = []
        self._of_row: IntArray = np.full(rows, -1, dtype=np.int64)
        self._answers: dict[Hashable, Mask] = {}

    def set(self, row: int, value: Value | None) -> None:
        """Set the row's value; None removes it."""
        if row >= len(self._of_row):
            self._of_row = np.pad(self._of_row, (0, row + 1), constant_values=-1)
        self._of_row[row] = -1 if value is None else self._number(value)

    def by_row(self) -> dict[int, Value]:
        """The value of each row that has one."""
        return {row: self._values[at] for row, at in enumerate(self._of_row.tolist()) if at >= 0}

    def numbers(self, rows: IntArray) -> IntArray:
        """A number for each of the rows, less than `count` and equal where the value is; -1 where there is none."""
        numbers: IntArray = self._of_row[rows]
        return numbers

    def value(self, number: int) -> Value:
        """The value that has this number."""
        return self._values[number]

    @property
    def count(self) -> int:
        """More than any of the `numbers`."""
        return len(self._values)

    def any(self, rows: IntArray) -> Mask:
        """Which of the rows have a value."""
        there: Mask = self._of_row[rows] >= 0
        return there

    def among(self, values: Collection[Value], rows: IntArray) -> Mask:
        """Which of the rows have one of the values."""
        numbers: IntArray = self._of_row[rows]
        if len(rows) <= FEW:
            return np.array([at >= 0 and self._values[at] in values for at in numbers.tolist()], dtype=np.bool_)
        found = [self._numbers[value] for value in values if value in self._numbers]
        if len(found) == 1:
            single: Mask = numbers == found[0]
            return single
        # The last element answers for rows without a value.
        answers: Mask = np.zeros(len(self._values) + 1, dtype=np.bool_)
        answers[found] = True
        return answers[numbers]

    def where(self, holds: Callable[[Value], bool], rows: IntArray, *, question: Hashable) -> Mask:
        """Which of the rows have a value for which this holds. Answers are cached by `question`."""
        known = self._answers.get(question)
        if known is None or len(known) <= len(self._values):
            sure = [] if known is None else known[:-1].tolist()
            sure += [holds(value) for value in self._values[len(sure) :]]
            if len(self._answers) >= _KEPT:
                del self._answers[next(iter(self._answers))]
            known = self._answers[question] = np.array([*sure, False], dtype=np.bool_)
        return known[self._of_row[rows]]

    def _number(self, value: Value) -> int:
        number = self._numbers.get(value)
        if number is None:
            if len(self._values) > 2 * len(self._of_row):
                self._forget_unused()
            number = self._numbers[value] = len(self._values)
            self._values.append(value)
        return number

    def _forget_unused(self) -> None:
        used = np.unique(self._of_row[self._of_row >= 0])
        self._values = [self._values[at] for at in used.tolist()]
        self._numbers = {value: at for at, value in enumerate(self._values)}
        self._of_row = np.where(self._of_row < 0, -1, np.searchsorted(used, self._of_row))
        self._answers.clear()
