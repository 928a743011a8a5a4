"""Which rows accept a shape for what their nodes are, all rows at once.

Says for every row what `filters.refusal` says for its node. Asking node by node costs a shape's conditions × nodes;
here a condition costs a look into an index of the label that it names, so that a pod with hundreds of them costs
milliseconds on thousands of nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from gangsched.core.constraints import filters
from gangsched.core.objects.node import Node, Taint
from gangsched.core.objects.selectors import field_holds, holds, well_formed
from gangsched.core.objects.shape import NodeTerm, Requirement, Shape, Toleration

Rows = frozenset[int]
_KEPT = 1024
_NONE: Rows = frozenset()

Key = TypeVar("Key")
Value = TypeVar("Value")


class Matching:
    """The nodes by row, indexed by their taints and by those labels that somebody asks for."""

    def __init__(self) -> None:
        self._nodes: dict[int, Node] = {}
        self._labels: dict[int, Mapping[str, str]] = {}
        self._row_of: dict[str, int] = {}
        self._tainted: dict[tuple[Taint, ...], set[int]] = {}
        self._cordoned: set[int] = set()
        self._by_label: dict[str, dict[str, list[int]]] = {}
        self._untolerated: dict[tuple[Toleration, ...], Rows] = {}

    def set_node(self, row: int, node: Node, labels: Mapping[str, str]) -> None:
        """The node of this row has this form."""
        old = self._nodes.get(row)
        if old is not None:
            self._untaint(row, old)
        if old is None or old.labels != node.labels:
            self._by_label.clear()
        if old is None or old.taints != node.taints:
            self._untolerated.clear()
        self._nodes[row] = node
        self._labels[row] = labels
        self._row_of[node.name] = row
        if node.taints:
            self._tainted.setdefault(node.taints, set()).add(row)
        if node.unschedulable:
            self._cordoned.add(row)

    def remove_node(self, row: int) -> None:
        """The row has no node any more."""
        old = self._nodes.pop(row)
        self._untaint(row, old)
        del self._labels[row], self._row_of[old.name]
        self._by_label.clear()
        self._untolerated.clear()

    def rows(self) -> Iterable[int]:
        """All rows that have a node."""
        return self._nodes.keys()

    def cordoned(self, shape: Shape) -> Iterable[int]:
        """Rows whose cordon keeps the shape out."""
        if not self._cordoned or filters.tolerates_cordon(shape):
            return _NONE
        return self._cordoned

    def tainted(self, shape: Shape) -> Iterable[int]:
        """Rows with a taint that keeps the shape out."""
        rows = self._untolerated.get(shape.tolerations)
        if rows is None:
            rows = frozenset(
                row
                for taints, there in self._tainted.items()
                if filters.first_untolerated(shape.tolerations, taints) is not None
                for row in there
            )
            _remember(self._untolerated, shape.tolerations, rows)
        return rows

    def attracted(self, shape: Shape) -> set[int] | None:
        """Rows that nodeSelector and required node affinity accept; None for all."""
        found: set[int] | None = None
        for key, value in shape.node_selector:
            found = _narrowed(found, self.rows_with(key, (value,)))
        if shape.node_affinity is not None:
            any_term: set[int] = set()
            for term in shape.node_affinity:
                any_term |= self._term(term)
            found = _narrowed(found, any_term)
        return found

    def rows_with(self, key: str, values: Iterable[str]) -> set[int]:
        """Rows whose nodes carry the label with one of the values."""
        by_value = self._index(key)
        return {row for value in values for row in by_value.get(value, ())}

    def _term(self, term: NodeTerm) -> set[int]:
        if not (term.expressions or term.fields) or not all(map(well_formed, term.expressions)):
            return set()
        found: set[int] | None = None
        for requirement in term.fields:
            found = _narrowed(found, self._named(requirement))
        for requirement in term.expressions:
            if found is not None and not found:
                break
            found = _narrowed(found, self._labelled(requirement))
        return found or set()

    def _named(self, requirement: Requirement) -> set[int]:
        if requirement.operator == "In" and len(requirement.values) == 1:
            row = self._row_of.get(requirement.values[0])
            return set() if row is None or not field_holds(requirement, requirement.values[0]) else {row}
        return {row for name, row in self._row_of.items() if field_holds(requirement, name)}

    def _labelled(self, requirement: Requirement) -> set[int]:
        match requirement.operator:
            case "In":
                return self.rows_with(requirement.key, requirement.values)
            case "NotIn":
                return self._nodes.keys() - self.rows_with(requirement.key, requirement.values)
            case "DoesNotExist":
                return self._nodes.keys() - self.rows_with(requirement.key, self._index(requirement.key))
        by_value = self._index(requirement.key)
        return self.rows_with(
            requirement.key, [value for value in by_value if holds(requirement, {requirement.key: value})]
        )

    def _index(self, key: str) -> Mapping[str, list[int]]:
        by_value = self._by_label.get(key)
        if by_value is None:
            by_value = {}
            for row, labels in self._labels.items():
                value = labels.get(key)
                if value is not None:
                    by_value.setdefault(value, []).append(row)
            _remember(self._by_label, key, by_value)
        return by_value

    def _untaint(self, row: int, node: Node) -> None:
        self._cordoned.discard(row)
        if node.taints:
            self._tainted[node.taints].discard(row)
            if not self._tainted[node.taints]:
                del self._tainted[node.taints]


def _narrowed(rows: set[int] | None, more: set[int]) -> set[int]:
    return more if rows is None else rows & more


def _remember(known: dict[Key, Value], key: Key, value: Value) -> None:
    """Keep an answer, and forget the oldest if there are too many."""
    if len(known) >= _KEPT:
        del known[next(iter(known))]
    known[key] = value
