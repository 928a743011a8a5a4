"""Converts nodes to the values of the core, by the rules of kube-scheduler."""

from __future__ import annotations

import math

from gangsched.core.objects.node import Node, Taint
from gangsched.core.objects.requests import counted, of_plugin
from gangsched.core.objects.shape import Amounts
from gangsched.kube import wire
from gangsched.kube.terms import preferences
from gangsched.kube.terms.pod_terms import labels
from gangsched.kube.terms.shapes import amounts
from gangsched.kube.terms.sharing import sharing

_shared_features = sharing()


def node_value(node: wire.Node) -> Node:
    """The core's value for the node. An unreadable allocatable amount counts as zero."""
    spec = node.spec or wire.NodeSpec()
    status = node.status or wire.NodeStatus()
    return Node(
        name=node.metadata.name or "",
        allocatable=_allocatable(status.allocatable or {}),
        labels=labels(node.metadata.labels),
        taints=tuple(Taint(key=taint.key, effect=taint.effect, value=taint.value or "") for taint in spec.taints or ()),
        unschedulable=bool(spec.unschedulable),
        features=_shared_features(tuple(sorted(status.declared_features or ()))),
        images=preferences.images(status.images) if status.images else (),
        awaited=_awaited(status),
    )


def _allocatable(quantities: wire.Quantities) -> Amounts:
    allocatable = amounts(quantities, "status.allocatable", [])
    return tuple(
        sorted(
            (name, math.ceil(size)) for name, size in allocatable.items() if size and (name == "pods" or counted(name))
        )
    )


def _awaited(status: wire.NodeStatus) -> tuple[str, ...]:
    """See `Node.awaited`: the kubelet lists such a resource with less than its capacity, or with 0 after a restart."""
    offered, had = status.allocatable or {}, status.capacity or {}
    names = [name for name in {**offered, **had} if of_plugin(name)]
    if not names:
        return ()
    now, then = (
        amounts({name: quantities.get(name, "0") for name in names}, "status", []) for quantities in (offered, had)
    )
    return tuple(sorted(name for name in names if not now.get(name) or then.get(name, 0) > now[name]))
