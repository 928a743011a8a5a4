"""NodeAffinity: a node must match the pod's nodeSelector and one term of its required node affinity.

Nodes that match preferred terms are preferred, by the sum of the weights. A malformed term matches no node; in
kube-scheduler a malformed preferred term would keep the pod from being scheduled.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/nodeaffinity and k8s.io/component-helpers
scheduling/corev1/nodeaffinity. A condition is evaluated once for each distinct value of its label, so a pod with
hundreds of them costs milliseconds on thousands of nodes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gangsched.core.constraints.constraint import Member, NodeConstraint, Words, World
from gangsched.core.constraints.naming import node_terms
from gangsched.core.constraints.node_rows import FEW
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.indexes import drop_oldest
from gangsched.core.objects.reasons import NodeReason
from gangsched.core.objects.selectors import field_holds, holds, may_hold, well_formed
from gangsched.core.objects.shape import Labels, NodeTerm, Requirement

_Asked = tuple[Labels, tuple[NodeTerm, ...] | None]
_ANY: _Asked = ((), None)
_KEPT = 1024
"""Limit for the number of selectors whose matching nodes are cached; the least recently used is evicted first."""


class NodeAffinity(NodeConstraint):
    """The plug-in of this name."""

    about = frozenset({"node_selector", "node_affinity", "soft"})
    weight = 2
    proves = True
    words = (
        Words(
            NodeReason.AFFINITY,
            "not matched by {resource}",
            "a wider {resource}: {nodes} not matched",
        ),
    )

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._nodes = world.nodes
        self._known: dict[_Asked, tuple[Mask, int]] = {}
        self._generation = -1
        self._rows: dict[NodeTerm, IntArray] = {}
        self._by_value: dict[str, dict[str, list[int]]] = {}

    def mask(self, member: Member, rows: IntArray) -> Mask | None:
        """The nodes that match; nodes that have not changed since the last call are not evaluated again."""
        asked = (member.shape.node_selector, member.shape.node_affinity)
        return None if asked == _ANY else self._matching(asked, rows)

    def at_best(self, member: Member, rows: IntArray) -> Mask | None:
        """The nodes that match, or may match once they have all their labels."""
        shape = member.shape
        if (shape.node_selector, shape.node_affinity) == _ANY:
            return None
        selected = NodeTerm(tuple(Requirement(key, "In", (value,)) for key, value in shape.node_selector))
        mask: Mask = np.ones(len(rows), dtype=np.bool_)
        if shape.node_selector:
            mask &= self.among_at_best((selected,), rows)
        return mask if shape.node_affinity is None else mask & self.among_at_best(shape.node_affinity, rows)

    def among_at_best(self, terms: tuple[NodeTerm, ...], rows: IntArray) -> Mask:
        """Like `among`, but also the rows that may match once their nodes have labels that they lack now."""
        mask = self.among(terms, rows)
        for at in np.flatnonzero(~mask & self._nodes.unsettled(rows)).tolist():
            row = int(rows[at])
            mask[at] = any(self._may_match(term, row) for term in terms)
        return mask

    def _may_match(self, term: NodeTerm, row: int) -> bool:
        named = all(self._named(requirement, np.array([row]))[0] for requirement in term.fields)
        return named and may_hold(term.expressions, self._nodes.labels(row)) and bool(term.fields or term.expressions)

    def refusals(self, member: Member, rows: IntArray) -> Iterator[tuple[str, str, Mask]]:
        """Each label of the nodeSelector, then the node affinity, with the rows where it is the first not to match."""
        left: Mask = np.ones(len(rows), dtype=np.bool_)
        for key, value in member.shape.node_selector:
            matched = self._nodes.by_label(key).among((value,), rows)
            yield NodeReason.AFFINITY, f"nodeSelector {key}={value}", left & ~matched
            left &= matched
        terms = member.shape.node_affinity
        if terms is not None:
            yield NodeReason.AFFINITY, f"node affinity {node_terms(terms)}", left & ~self.among(terms, rows)

    def among(self, terms: tuple[NodeTerm, ...], rows: IntArray) -> Mask:
        """Which of the rows match one of the terms, whether they come from a pod, a volume or a device."""
        return self._matching(((), terms), rows)

    def rows(self, term: NodeTerm) -> IntArray:
        """All rows that match the term, in order; cached until a node changes.

        There may be as many terms as nodes, each with one node's name, so terms on a single label use an index.
        """
        if self._generation != self._nodes.generation:
            self._generation = self._nodes.generation
            self._rows.clear()
            self._by_value.clear()
        rows = self._rows.get(term)
        if rows is None:
            rows = self._rows[term] = self._with_term(term)
        return rows

    def _with_term(self, term: NodeTerm) -> IntArray:
        requirement = term.expressions[0] if len(term.expressions) == 1 and not term.fields else None
        if requirement is None or requirement.operator != "In" or not well_formed(requirement):
            return np.flatnonzero(self.among((term,), np.arange(len(self._world.stock.names))))
        by_value = self._by_value.get(requirement.key)
        if by_value is None:
            by_value = self._by_value[requirement.key] = {}
            for row, value in self._nodes.by_label(requirement.key).by_row().items():
                by_value.setdefault(value, []).append(row)
        rows = (row for value in {*requirement.values} for row in by_value.get(value, ()))
        return np.array(sorted(rows), dtype=np.int64)

    def prefers(self, member: Member) -> bool:
        """Whether there are preferred terms."""
        return member.soft is not None and bool(member.soft.node_terms)

    def score(self, member: Member, rows: IntArray) -> IntArray:
        """The sum of the weights of the terms that match, relative to the largest sum."""
        sums: IntArray = np.zeros(len(rows), dtype=np.int64)
        for weight, term in member.soft.node_terms if member.soft is not None else ():
            sums += weight * self.among((term,), rows)
        return 100 * sums // max(1, int(sums.max(initial=0)))

    def _matching(self, asked: _Asked, rows: IntArray) -> Mask:
        known, generation = self._known.pop(asked, (None, -1))
        if known is not None:
            self._known[asked] = (known, generation)
        if generation != self._nodes.generation and len(rows) <= FEW:
            return self._judged(asked, rows)
        if known is None or generation != self._nodes.generation:
            known = self._renewed(asked, known, generation)
        return known[rows]

    def _renewed(self, asked: _Asked, known: Mask | None, generation: int) -> Mask:
        size = self._nodes.size
        matching: Mask = np.zeros(size, dtype=np.bool_)
        if known is not None:
            matching[: len(known)] = known
        rows = self._nodes.changed_since(generation)
        matching[rows] = self._judged(asked, rows)
        self._known[asked] = (matching, self._nodes.generation)
        drop_oldest(self._known, _KEPT)
        return matching

    def _judged(self, asked: _Asked, rows: IntArray) -> Mask:
        selector, terms = asked
        matching: Mask = np.ones(len(rows), dtype=np.bool_)
        for key, value in selector:
            matching &= self._nodes.by_label(key).among((value,), rows)
        if terms is not None:
            any_term: Mask = np.zeros(len(rows), dtype=np.bool_)
            for term in terms:
                any_term |= self._term(term, rows)
            matching &= any_term
        return matching

    def _term(self, term: NodeTerm, rows: IntArray) -> Mask:
        matching: Mask = np.zeros(len(rows), dtype=np.bool_)
        if not (term.expressions or term.fields) or not all(map(well_formed, term.expressions)):
            return matching
        matching[:] = True
        for requirement in term.fields:
            matching &= self._named(requirement, rows)
        for requirement in term.expressions:
            if not matching.any():
                break
            matching &= self._labelled(requirement, rows)
        return matching

    def _named(self, requirement: Requirement, rows: IntArray) -> Mask:
        names = self._nodes.names
        wanted = [value for value in requirement.values if field_holds(requirement, value)]
        if requirement.operator == "In":
            return names.among(wanted, rows)
        return names.where(lambda name: field_holds(requirement, name), rows, question=requirement)

    def _labelled(self, requirement: Requirement, rows: IntArray) -> Mask:
        column = self._nodes.by_label(requirement.key)
        match requirement.operator:
            case "In":
                return column.among(requirement.values, rows)
            case "NotIn":
                return ~column.among(requirement.values, rows)
            case "DoesNotExist":
                return ~column.any(rows)
        return column.where(lambda value: holds(requirement, {requirement.key: value}), rows, question=requirement)
