"""The allocatable and free amounts of all nodes, as int64 matrices (nodes × resources).

A row is a node, a column a resource; the pod count is the column `pods`, of which every pod takes one. Sums are kept
as exact Python integers beside the matrix and clipped to ±`MAX_AMOUNT` when they enter it, so that absurd quantities
can neither overflow it nor stop the scheduler. No node can have more, so only extreme overcommitment is inexact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.quantity import clip
from gangsched.core.objects.shape import PODS, Amounts

FROM_THE_START = 64
"""Number of resources that get a column as soon as a node offers them; later ones get it when first asked for."""


class Capacity:
    """Rows of nodes with exact accounting; the row of a removed node is reused.

    `provided` are the resources that devices can provide instead of nodes; they may change.
    """

    def __init__(self, provided: Collection[str] = ()) -> None:
        self.columns: dict[str, int] = {PODS: 0}
        self.rows: dict[str, int] = {}
        self.names: list[str] = []
        self.free: IntArray = np.zeros((16, 4), dtype=np.int64)
        self.allocatable: IntArray = np.zeros((16, 4), dtype=np.int64)
        self._given: list[dict[str, int]] = []
        self._taken: list[dict[str, int]] = []
        self._vacant: list[int] = []
        self._givers: Counter[str] = Counter()
        self._provided = provided
        self._delegated: frozenset[str] = frozenset()

    def delegated(self) -> frozenset[str]:
        """The resources that no node lists, so that devices provide them."""
        if not self._provided:
            return frozenset()
        return frozenset(resource for resource in self._provided if not self._listed(resource))

    def redelegated(self) -> bool:
        """Whether the delegated resources have changed since the last call."""
        before, self._delegated = self._delegated, self.delegated()
        return before != self._delegated

    def counted(self, amounts: Amounts) -> Amounts:
        """The part of the amounts that is taken from nodes, that is, without delegated resources."""
        delegated = self.delegated()
        return tuple(pair for pair in amounts if pair[0] not in delegated) if delegated else amounts

    def _listed(self, resource: str) -> bool:
        column = self.column(resource)
        return column is not None and bool((self.allocatable[:, column] > 0).any())

    def column(self, resource: str) -> int | None:
        """The resource's column, or None if no node has any of it.

        Beyond the first `FROM_THE_START` a column is created when it is first asked for, so that resources which nodes
        offer and no pod requests cost nothing.
        """
        column = self.columns.get(resource)
        if column is None and self._givers[resource]:
            column = self._add_column(resource)
        return column

    def free_of(self, row: int, resource: str) -> int:
        """The exact free amount of the resource on the row; negative where the node is overcommitted."""
        return self._given[row].get(resource, 0) - self._taken[row].get(resource, 0)

    def given(self, row: int, resource: str) -> int:
        """The row's allocatable amount of the resource."""
        return self._given[row].get(resource, 0)

    def set_node(self, name: str, allocatable: Amounts) -> int:
        """Add the node or change its allocatable amounts; what is taken there stays. Returns its row."""
        row = self.rows.get(name)
        if row is None:
            row = self._new_row(name)
        given = dict(allocatable)
        old = self._given[row]
        self._given[row] = given
        self._givers.update(given.keys() - old.keys())
        self._givers -= Counter(old.keys() - given.keys())
        for resource in {**old, **given}:
            column = self.columns.get(resource)
            if column is not None:
                self._refresh(row, resource, column)
            elif resource in given and len(self.columns) < FROM_THE_START:
                self._add_column(resource)
        return row

    def remove_node(self, name: str) -> int:
        """Remove the node and all that was taken there. Returns the row that it had."""
        row = self.rows.pop(name)
        self.names[row] = ""
        self._givers -= Counter(self._given[row].keys())
        self._given[row] = {}
        self._taken[row] = {}
        self.free[row] = 0
        self.allocatable[row] = 0
        self._vacant.append(row)
        return row

    def count(self, row: int, amounts: Amounts, sign: int = 1) -> None:
        """Count a pod with these requests on the row (1), or count it no longer (-1)."""
        given, taken = self._given[row], self._taken[row]
        for resource, amount in (*amounts, (PODS, 1)):
            taken[resource] = now = taken.get(resource, 0) + sign * amount
            if not now:
                del taken[resource]
            column = self.columns.get(resource)
            if column is not None:
                self.free[row, column] = clip(given.get(resource, 0) - now)

    def _refresh(self, row: int, resource: str, column: int) -> None:
        given = self._given[row].get(resource, 0)
        self.allocatable[row, column] = clip(given)
        self.free[row, column] = clip(given - self._taken[row].get(resource, 0))

    def _add_column(self, resource: str) -> int:
        column = self.columns[resource] = len(self.columns)
        if column >= self.free.shape[1]:
            self._grow(self.free.shape[0], self.free.shape[1] * 2)
        for row, (given, taken) in enumerate(zip(self._given, self._taken, strict=True)):
            if resource in given or resource in taken:
                self._refresh(row, resource, column)
        return column

    def _new_row(self, name: str) -> int:
        if self._vacant:
            row = self._vacant.pop()
            self.names[row] = name
        else:
            row = len(self.names)
            self.names.append(name)
            self._given.append({})
            self._taken.append({})
            if row >= self.free.shape[0]:
                self._grow(self.free.shape[0] * 2, self.free.shape[1])
        self.rows[name] = row
        return row

    def _grow(self, rows: int, columns: int) -> None:
        wider = ((0, rows - self.free.shape[0]), (0, columns - self.free.shape[1]))
        self.free, self.allocatable = np.pad(self.free, wider), np.pad(self.allocatable, wider)

    def mismatches(self, taken: Iterable[tuple[str, Amounts]]) -> list[str]:
        """One sentence for each difference from what these (node, requests) pairs add up to."""
        expected: dict[str, dict[str, int]] = {name: {} for name in self.rows}
        for name, amounts in taken:
            sums = expected[name]
            for resource, amount in (*amounts, (PODS, 1)):
                sums[resource] = sums.get(resource, 0) + amount
        wrong = []
        for name, row in self.rows.items():
            if self._taken[row] != expected[name]:
                wrong.append(f"{name}: taken {self._taken[row]}, expected {expected[name]}")
            for resource, column in self.columns.items():
                held = self.free[row, column], self.allocatable[row, column]
                if held != (clip(self.free_of(row, resource)), clip(self.given(row, resource))):
                    wrong.append(f"{name}: the matrix holds {held[0]} of {held[1]} {resource}")
        return wrong

    def misplaced(self, given: Mapping[str, Amounts]) -> list[str]:
        """One sentence for each difference from nodes with these allocatable amounts."""
        wrong = []
        names = {row: name for name, row in self.rows.items()}
        if self.rows.keys() != given.keys() or self.names != [names.get(row, "") for row in range(len(self.names))]:
            wrong.append("the rows are not those of the nodes")
        if any(self._given[row] != dict(given.get(name, ())) for name, row in self.rows.items()):
            wrong.append("what nodes give is not what they say")
        if self._givers != Counter(resource for amounts in given.values() for resource, _ in amounts):
            wrong.append("the numbers of nodes that give a resource are not what the nodes say")
        vacant = [row for row, name in enumerate(self.names) if not name]
        held = [self._given[row] or self._taken[row] or self.free[row].any() for row in vacant]
        if sorted(self._vacant) != vacant or any(held):
            wrong.append("the vacant rows are not those without a node, or hold something")
        return wrong
