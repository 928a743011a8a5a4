"""The nodes by row, as constraints read them: names, labels, and the last change of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gangsched.core.constraints.column import Column
from gangsched.core.constraints.naming import listed
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.indexes import drop_oldest
from gangsched.core.objects.node import Node

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
        for rows, there in ((self.shut, shut), (self._unsettled, unsettled)):
            if there:
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
