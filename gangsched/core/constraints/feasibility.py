"""Each shape's static verdict on every node: what depends on the node and the shape alone, remembered.

A verdict is brought up to date only for the nodes that have changed since it was last asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from gangsched.core.constraints import filters
from gangsched.core.constraints.matching import Matching
from gangsched.core.objects.node import Node
from gangsched.core.objects.reasons import NodeReason
from gangsched.core.objects.shape import Shape

Codes = npt.NDArray[np.uint8]
ACCEPTED = 0
VACANT = 255
STATIC_REASONS = (NodeReason.UNSCHEDULABLE, NodeReason.TAINT, NodeReason.AFFINITY)
"""Reasons that depend on the node and the shape alone; reason i has the code i + 1."""
_CODES = {reason: code for code, reason in enumerate(STATIC_REASONS, start=1)}
_KEPT_SHAPES = 1024
_FEW = 8
"""So many rows are judged one by one."""


class _Verdict:
    """One shape's codes by row, and the generation of the nodes of which they are true."""

    __slots__ = ("codes", "generation")

    def __init__(self) -> None:
        self.codes: Codes = np.zeros(0, dtype=np.uint8)
        self.generation = -1


class Feasibility:
    """The nodes by row, and what they say to the shapes that were asked about last."""

    def __init__(self) -> None:
        self._nodes: dict[int, Node] = {}
        self._matching = Matching()
        self._generation = 0
        self._row_generation: npt.NDArray[np.int64] = np.zeros(16, dtype=np.int64)
        self._known: dict[Shape, _Verdict] = {}

    def set_node(self, row: int, node: Node, labels: Mapping[str, str]) -> None:
        """The node of this row has this form."""
        self._nodes[row] = node
        self._matching.set_node(row, node, labels)
        self._touch(row)

    def remove_node(self, row: int) -> None:
        """The row has no node any more."""
        del self._nodes[row]
        self._matching.remove_node(row)
        self._touch(row)

    def generation(self, rows: npt.NDArray[np.int64]) -> int:
        """A number that grows whenever the node of one of these rows changes."""
        return int(self._row_generation[rows].max(initial=0))

    def rows_with(self, key: str, values: Iterable[str]) -> set[int]:
        """Rows whose nodes carry the label with one of the values."""
        return self._matching.rows_with(key, values)

    def verdicts(self, shape: Shape, size: int) -> Codes:
        """Verdicts of so many rows: ACCEPTED, 1 + index into STATIC_REASONS, or VACANT."""
        key = _static(shape)
        known = self._known.pop(key, None) or _Verdict()
        self._known[key] = known
        if len(self._known) > _KEPT_SHAPES:
            del self._known[next(iter(self._known))]
        if known.generation != self._generation or len(known.codes) != size:
            changed = np.flatnonzero(self._row_generation[:size] > known.generation).tolist()
            if len(changed) > _FEW:
                codes = self._judge_all(key, size)
            else:
                codes = np.full(size, VACANT, dtype=np.uint8)
                codes[: len(known.codes)] = known.codes
                for row in changed:
                    codes[row] = self._judge(key, row)
            known.codes = codes
            known.generation = self._generation
        return known.codes

    def accepts(self, shape: Shape, row: int) -> bool:
        """Whether the row's node takes the shape if it has room: one row of `verdicts`, without the others."""
        key = _static(shape)
        known = self._known.get(key)
        if known is not None and row < len(known.codes) and self._row_generation[row] <= known.generation:
            return bool(known.codes[row] == ACCEPTED)
        return self._judge(key, row) == ACCEPTED

    def _judge_all(self, shape: Shape, size: int) -> Codes:
        """As `_judge`, for every row; the first reason to refuse is written last."""
        codes: Codes = np.full(size, VACANT, dtype=np.uint8)
        attracted = self._matching.attracted(shape)
        codes[list(self._nodes)] = ACCEPTED if attracted is None else _CODES[NodeReason.AFFINITY]
        if attracted:
            codes[list(attracted)] = ACCEPTED
        codes[list(self._matching.tainted(shape))] = _CODES[NodeReason.TAINT]
        codes[list(self._matching.cordoned(shape))] = _CODES[NodeReason.UNSCHEDULABLE]
        return codes

    def _judge(self, shape: Shape, row: int) -> int:
        node = self._nodes.get(row)
        if node is None:
            return VACANT
        reason = filters.refusal(shape, node)
        return ACCEPTED if reason is None else _CODES[reason]

    def _touch(self, row: int) -> None:
        self._generation += 1
        if row >= len(self._row_generation):
            grown = np.zeros(max(row + 1, 2 * len(self._row_generation)), dtype=np.int64)
            grown[: len(self._row_generation)] = self._row_generation
            self._row_generation = grown
        self._row_generation[row] = self._generation


def _static(shape: Shape) -> Shape:
    """The part of a shape that its static verdict depends on."""
    return Shape(node_selector=shape.node_selector, node_affinity=shape.node_affinity, tolerations=shape.tolerations)
