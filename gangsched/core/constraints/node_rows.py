"""The nodes by row, as constraints read them: names, labels, and the last change of each.

A `Column` stores one value per row as a number, so that a question is evaluated once per distinct value instead of per
row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Generic, TypeVar

import numpy as np

from gangsched.core.constraints.naming import listed
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.indexes import drop_oldest
from gangsched.core.objects.node import Node

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
        valued: Mask = self._of_row[rows] >= 0
        return valued

    def among(self, values: Collection[Value], rows: IntArray) -> Mask:
        """Which of the rows have one of the values."""
        numbers: IntArray = self._of_row[rows]
        if len(rows) <= FEW:
            return np.array([at >= 0 and self._values[at] in values for at in numbers.tolist()], dtype=np.bool_)
        wanted = [self._numbers[value] for value in values if value in self._numbers]
        if len(wanted) == 1:
            single: Mask = numbers == wanted[0]
            return single
        # The last element stands for rows without a value.
        answers: Mask = np.zeros(len(self._values) + 1, dtype=np.bool_)
        answers[wanted] = True
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


_MOST_KEYS = 256
"""Limit for the number of label keys with a cached column; the oldest is evicted first."""
_NO_LABELS: Mapping[str, str] = {}


class Nodes:
    """Names and labels by row, which the cluster keeps up to date. `generation` grows with each change.

    `shut` are the rows of nodes that are shut for now, `awaiting` has those with awaited resources (`Node`).
    """

    def __init__(self) -> None:
        self.generation = 0
        self.names: Column[str] = Column()
        self.shut: set[int] = set()
        self.awaiting: dict[int, tuple[str, ...]] = {}
        self._unsettled: set[int] = set()
        self._labels: dict[int, Mapping[str, str]] = {}
        self._changed: IntArray = np.zeros(16, dtype=np.int64)
        self._by_key: dict[str, Column[str]] = {}
        self._apart: dict[str, tuple[int, bool]] = {}

    def set(self, row: int, node: Node) -> None:
        """Set the row's node."""
        labels = dict(node.labels)
        if self._labels.get(row) != labels:
            for key, column in self._by_key.items():
                column.set(row, labels.get(key))
        self._labels[row] = labels
        self.names.set(row, node.name)
        self._note(row, shut=node.shut, unsettled=node.unsettled, awaited=node.awaited)
        self._touch(row)

    def remove(self, row: int) -> None:
        """Remove the row's node."""
        del self._labels[row]
        self.names.set(row, None)
        for column in self._by_key.values():
            column.set(row, None)
        self._note(row, shut=False, unsettled=False, awaited=())
        self._touch(row)

    def contradictions(self, nodes: Mapping[int, Node]) -> list[str]:
        """A sentence if the stored names and labels differ from these nodes by row; empty otherwise."""
        labels = {row: dict(node.labels) for row, node in nodes.items()}
        by_label = {key: {row: pairs[key] for row, pairs in labels.items() if key in pairs} for key in self._by_key}
        right = self.names.by_row() == {row: node.name for row, node in nodes.items()} and self._labels == labels
        right = right and {key: column.by_row() for key, column in self._by_key.items()} == by_label
        right = right and self.shut == {row for row, node in nodes.items() if node.shut}
        right = right and self._unsettled == {row for row, node in nodes.items() if node.unsettled}
        right = right and self.awaiting == {row: node.awaited for row, node in nodes.items() if node.awaited}
        return [] if right else ["labels and names by row are not those of the nodes"]

    def unsettled(self, rows: IntArray) -> Mask:
        """Which of the rows have a node of which not everything is known yet (`Node.unsettled`)."""
        return np.isin(rows, list(self._unsettled)) if self._unsettled else np.zeros(len(rows), dtype=np.bool_)

    def labels(self, row: int) -> Mapping[str, str]:
        """The labels of the row's node; empty if the row has none."""
        return self._labels.get(row, _NO_LABELS)

    def by_label(self, key: str) -> Column[str]:
        """Each row's value of the label."""
        column = self._by_key.get(key)
        if column is None:
            self._apart.pop(key, None)
            column = self._by_key[key] = Column(len(self._changed))
            drop_oldest(self._by_key, _MOST_KEYS)
            for row, labels in self._labels.items():
                column.set(row, labels.get(key))
        return column

    def beside(self, rows: IntArray, key: str, others: IntArray) -> Mask:
        """Which of the rows share a topology domain, by this label, with one of the `others`."""
        column = self.by_label(key)
        inside: Mask = np.zeros(column.count + 1, dtype=np.bool_)
        inside[column.numbers(others)] = True
        # The last element stands for rows without the label.
        inside[-1] = False
        return inside[column.numbers(rows)]

    def tells_apart(self, key: str) -> bool:
        """Whether every node has this label with a value of its own, as with kubernetes.io/hostname."""
        known = self._apart.get(key)
        if known is None or known[0] != self.generation:
            numbers = self.by_label(key).numbers(np.array(list(self._labels), dtype=np.int64))
            apart = bool((numbers >= 0).all()) and len(np.unique(numbers)) == len(numbers)
            known = self._apart[key] = (self.generation, apart)
        return known[1]

    def values(self, key: str, rows: IntArray) -> list[str]:
        """The distinct values of this label on these rows, sorted."""
        column = self.by_label(key)
        return sorted(column.value(number) for number in np.unique(column.numbers(rows)).tolist() if number >= 0)

    def described(self, key: str, values: Sequence[str]) -> str:
        """The topology domains of these values for messages: `zone (a, b)`; only the key if each domain is a node.

        The first values are named and the others counted.
        """
        if not values or self.tells_apart(key):
            return key
        return f"{key} ({listed(values)})"

    def there(self, rows: IntArray) -> Mask:
        """Which of the rows have a node."""
        return self.names.any(rows)

    def among_first(self, rows: int) -> Mask:
        """Which of the first rows, so many, have a node."""
        return self.there(np.arange(rows))

    @property
    def size(self) -> int:
        """Upper limit for the number of rows."""
        return len(self._changed)

    def changed_since(self, generation: int) -> IntArray:
        """The rows that have changed since this generation; all rows for -1."""
        return np.flatnonzero(self._changed > generation)

    def last_change(self, rows: IntArray) -> int:
        """A number that grows whenever the node of one of these rows changes."""
        return int(self._changed[rows].max(initial=0))

    def _note(self, row: int, *, shut: bool, unsettled: bool, awaited: tuple[str, ...]) -> None:
        for rows, belongs in ((self.shut, shut), (self._unsettled, unsettled)):
            if belongs:
                rows.add(row)
            else:
                rows.discard(row)
        if awaited:
            self.awaiting[row] = awaited
        else:
            self.awaiting.pop(row, None)

    def _touch(self, row: int) -> None:
        self.generation += 1
        if row >= len(self._changed):
            self._changed = np.pad(self._changed, (0, row + 1))
        self._changed[row] = self.generation
