"""TaintToleration: a node with a NoSchedule or NoExecute taint takes only pods that tolerate it.

Nodes with fewer PreferNoSchedule taints that a pod does not tolerate are preferred.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/tainttoleration and k8s.io/api core/v1/toleration.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from gangsched.core.constraints.constraint import Member, PropertyConstraint, Words, World
from gangsched.core.constraints.naming import listed
from gangsched.core.constraints.naming import taint as named
from gangsched.core.constraints.node_rows import Column
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.node import Node, Taint
from gangsched.core.objects.reasons import NodeReason
from gangsched.core.objects.shape import Toleration

KEEPING_OUT = frozenset({"NoSchedule", "NoExecute"})
"""Effects of taints that keep pods out."""
_REPELLING = "PreferNoSchedule"
_MOST_KEYS = 64
"""Limit for the number of taint keys that a refusal reports one by one; taints of further keys join the last one."""
_MOST_NAMED = 256
"""Limit for the number of distinct sets of taints, per key, that are examined to name some taints."""


class TaintToleration(PropertyConstraint[tuple[Taint, ...]]):
    """The plug-in of this name."""

    weight = 3
    proves = True
    words = (
        Words(
            NodeReason.TAINT,
            "with a taint that is not tolerated: {resource}",
            "tolerating or removing {resource}: {nodes} with that taint",
        ),
    )

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._repelling: Column[tuple[Taint, ...]] = Column()
        self._rows: set[int] = set()

    def set_node(self, row: int, node: Node) -> None:
        """Set the taints of the row."""
        super().set_node(row, node)
        self._repel(row, tuple(taint for taint in node.taints if taint.effect == _REPELLING))

    def remove_node(self, row: int) -> None:
        """Remove the taints of the row."""
        super().remove_node(row)
        self._repel(row, ())

    def state(self) -> object:
        """The taints by row."""
        return super().state(), self._repelling.by_row()

    def of_node(self, node: Node) -> tuple[Taint, ...]:
        """The taints that keep pods out."""
        return tuple(taint for taint in node.taints if taint.effect in KEEPING_OUT)

    def mask(self, member: Member, rows: IntArray) -> Mask | None:
        """The nodes whose taints are all tolerated."""
        tolerations = member.shape.tolerations
        return self.column.where(
            lambda taints: all(tolerated(tolerations, taint) for taint in taints), rows, question=tolerations
        )

    def at_best(self, member: Member, rows: IntArray) -> Mask | None:
        """The nodes whose lasting taints are all tolerated."""
        tolerations = member.shape.tolerations
        return self.column.where(
            lambda taints: all(taint.passes or tolerated(tolerations, taint) for taint in taints),
            rows,
            question=("lasting", tolerations),
        )

    def refusals(self, member: Member, rows: IntArray) -> Iterator[tuple[str, str, Mask]]:
        """For each key, the taints that are the first not tolerated, and where; beyond a limit keys are grouped."""
        tolerations = member.shape.tolerations

        def refusing(taints: tuple[Taint, ...]) -> Taint | None:
            return next((taint for taint in taints if not tolerated(tolerations, taint)), None)

        mask = self.mask(member, rows)
        closed = np.zeros(len(rows), dtype=np.bool_) if mask is None else ~mask
        numbers = self.column.numbers(rows)
        by_key: dict[str, list[int]] = {}
        for value in np.unique(numbers[closed & (numbers >= 0)]).tolist():
            taint = refusing(self.column.value(value))
            if taint is not None:
                key = taint.key if taint.key in by_key or len(by_key) < _MOST_KEYS else next(reversed(by_key))
                by_key.setdefault(key, []).append(value)
        for values in by_key.values():
            taints = {taint for value in values[:_MOST_NAMED] if (taint := refusing(self.column.value(value)))}
            yield NodeReason.TAINT, listed(sorted(map(named, taints))), np.isin(numbers, values)

    def prefers(self, member: Member) -> bool:  # noqa: ARG002 - members that tolerate all of them are no special case
        """Whether a node has a PreferNoSchedule taint."""
        return bool(self._rows)

    def score(self, member: Member, rows: IntArray) -> IntArray:
        """100 without untolerated PreferNoSchedule taints, 0 for the node with most of them."""
        tolerations = member.shape.tolerations
        counts = self._repelling.number(
            lambda taints: sum(not tolerated(tolerations, taint) for taint in taints), rows, question=tolerations
        )
        return 100 - 100 * counts // max(1, int(counts.max(initial=0)))

    def _repel(self, row: int, taints: tuple[Taint, ...]) -> None:
        self._repelling.set(row, taints or None)
        if taints:
            self._rows.add(row)
        else:
            self._rows.discard(row)


def tolerated(tolerations: tuple[Toleration, ...], taint: Taint) -> bool:
    """Whether one of the tolerations covers the taint.

    An empty effect covers all effects and an empty key all keys. Without an operator the values must be equal, even if
    the key is empty. Gt and Lt never match: their feature gate is off in Kubernetes 1.37.
    """
    covered = _covered(tolerations)
    return any(
        (key, effect, value) in covered
        for key in (taint.key, "")
        for effect in (taint.effect, "")
        for value in (taint.value, None)
    )


@lru_cache(maxsize=256)
def _covered(tolerations: tuple[Toleration, ...]) -> frozenset[tuple[str, str, str | None]]:
    """The taints that they cover, for constant-time lookup, as (key, effect, value).

    An empty key or effect and the value None stand for all.
    """
    return frozenset(
        (toleration.key, toleration.effect, None if toleration.operator == "Exists" else toleration.value)
        for toleration in tolerations
        if toleration.operator in ("", "Equal", "Exists")
    )
