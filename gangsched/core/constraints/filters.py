"""The predicates that depend on a pod's shape and a node alone: what the node is, not what it has left.

One function for each, in the order in which kube-scheduler tries them; `refusal` names the first that says no. The
result for one shape and one node changes only with the node object, so the planner keeps it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from functools import lru_cache

from gangsched.core.objects.node import Node, Taint
from gangsched.core.objects.reasons import NodeReason
from gangsched.core.objects.selectors import node_matches
from gangsched.core.objects.shape import Shape, Toleration

KEEPING_OUT = frozenset({"NoSchedule", "NoExecute"})
"""The effects of taints that keep a pod off a node."""

_CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def refusal(shape: Shape, node: Node) -> NodeReason | None:
    """The first reason for which the node takes no pod of this shape however empty it is; None if it takes them."""
    if not open_for(shape, node):
        return NodeReason.UNSCHEDULABLE
    if first_untolerated(shape.tolerations, node.taints) is not None:
        return NodeReason.TAINT
    if not attracts(shape, node):
        return NodeReason.AFFINITY
    return None


def open_for(shape: Shape, node: Node) -> bool:
    """Whether the node is not cordoned, or the pod tolerates the taint that stands for a cordon."""
    return not node.unschedulable or tolerates_cordon(shape)


def tolerates_cordon(shape: Shape) -> bool:
    """Whether the pod tolerates the taint that stands for a cordon."""
    return any(tolerates(toleration, _CORDON) for toleration in shape.tolerations)


def first_untolerated(
    tolerations: Iterable[Toleration], taints: Iterable[Taint], *, effects: Container[str] = KEEPING_OUT
) -> Taint | None:
    """The first taint with one of the effects that no toleration covers."""
    accepted = _accepted(tuple(tolerations))
    for taint in taints:
        if taint.effect in effects and not any(pattern in accepted for pattern in _patterns(taint)):
            return taint
    return None


Pattern = tuple[str, str, str | None]
"""Key (empty: every one), effect (empty: every one) and value (None: every one)."""


@lru_cache(maxsize=256)
def _accepted(tolerations: tuple[Toleration, ...]) -> frozenset[Pattern]:
    """The patterns that the tolerations cover, so that a taint is looked up however many there are."""
    return frozenset(
        (toleration.key, toleration.effect, None if toleration.operator == "Exists" else toleration.value)
        for toleration in tolerations
        if toleration.operator in ("", "Equal", "Exists")
    )


def _patterns(taint: Taint) -> Iterator[Pattern]:
    """The patterns of which one must be accepted for the taint to be tolerated."""
    return (
        (key, effect, value)
        for key in (taint.key, "")
        for effect in (taint.effect, "")
        for value in (taint.value, None)
    )


def attracts(shape: Shape, node: Node) -> bool:
    """Whether the pod's nodeSelector and required node affinity accept the node."""
    if not shape.node_selector and shape.node_affinity is None:
        return True
    return node_matches(
        node_selector=shape.node_selector, terms=shape.node_affinity, labels=dict(node.labels), name=node.name
    )


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether the toleration covers the taint.

    An empty effect covers all effects and an empty key all keys. Without an operator values must be equal, also under
    an empty key. Gt and Lt never match: their feature gate is off in Kubernetes 1.36.
    """
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case _:
            return False
