"""The predicates that depend on a pod's shape and a node alone: what the node is, not what it has left.

One function for each, in the order in which kube-scheduler tries them; `refusal` names the first that says no. The
result for one shape and one node changes only with the node object, so the planner keeps it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from gangsched.core.model import Node, Shape, Taint, Toleration
from gangsched.core.reasons import NodeReason
from gangsched.core.selectors import node_matches

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
    return not node.unschedulable or any(tolerates(toleration, _CORDON) for toleration in shape.tolerations)


def first_untolerated(
    tolerations: Iterable[Toleration], taints: Iterable[Taint], *, effects: Container[str] = KEEPING_OUT
) -> Taint | None:
    """The first taint with one of the effects that no toleration covers."""
    tolerations = tuple(tolerations)
    for taint in taints:
        if taint.effect in effects and not any(tolerates(toleration, taint) for toleration in tolerations):
            return taint
    return None


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
