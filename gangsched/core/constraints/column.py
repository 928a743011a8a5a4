"""One value per row, stored as a number, so that a question is evaluated once per distinct value instead of per row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import Generic, TypeVar

import numpy as np

from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.indexes import drop_oldest

Value = TypeVar("Value", bound=Hashable)
FEW = 8
"""Up to this many rows are evaluated one by one."""
_KEPT = 1024
"""Limit for the number of questions with cached results; the oldest is evicted first."""


class Column(Generic[Value]):
    """At most one value for each row; `rows` is the initial size."""

    def __init__(self, rows: int = 16) -> None:
        self._numbers: dict[Value, int] = {}
        self._values: list[Value] = []
        self._of_row: IntArray = np.full(rows, -1, dtype=np.int64)
        self._answers: dict[Hashable, IntArray] = {}

    def set(self, row: int, value: Value | None) -> None:
        """Set the row's value; None removes it."""
        if row >= len(self._of_row):
            self._of_row = np.pad(self._of_row, (0, row + 1), constant_values=-1)
        self._of_row[row] = -1 if value is None else self._number(value)

    def by_row(self) -> dict[int, Value]:
        """The value of each row that has one."""
        return {row: self._values[at] for row, at in enumerate(self._of_row.tolist()) if at >= 0}

    def numbers(self, rows: IntArray) -> IntArray:
        """A number for each of the rows, below `count` and equal for equal values; -1 where there is no value."""
        numbers: IntArray = self._of_row[rows]
        return numbers

    def value(self, number: int) -> Value:
        """The value that has this number."""
        return self._values[number]

    @property
    def count(self) -> int:
        """Upper bound of the `numbers`, exclusive."""
        return len(self._values)

    def may_have(self, value: Value) -> bool:
        """Whether any row has the value, or had it."""
        return value in self._numbers

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
        # The last element stands for rows without a value.
        answers: Mask = np.zeros(len(self._values) + 1, dtype=np.bool_)
        answers[found] = True
        return answers[numbers]

    def where(self, holds: Callable[[Value], bool], rows: IntArray, *, question: Hashable) -> Mask:
        """Which of the rows have a value for which this holds. Results are cached by `question`."""
        return self.number(holds, rows, question=question) > 0

    def number(self, of: Callable[[Value], int], rows: IntArray, *, question: Hashable) -> IntArray:
        """The number that `of` gives for each row's value; 0 where there is none. Results are cached by `question`."""
        known = self._answers.get(question)
        if known is None or len(known) <= len(self._values):
            sure = [] if known is None else known[:-1].tolist()
            sure += [of(value) for value in self._values[len(sure) :]]
            known = self._answers[question] = np.array([*sure, 0], dtype=np.int64)
            drop_oldest(self._answers, _KEPT)
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
