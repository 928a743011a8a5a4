"""Nodes that accept the members of an open plan no longer: at once they count as lost, unless they may be back soon."""

from __future__ import annotations

from gangsched.core.cluster.cache import Cluster
from gangsched.core.gang.clock import NEVER
from gangsched.core.gang.plan import Plan
from gangsched.core.objects.node import Node
from gangsched.core.planning.classes import MemberClass

BACK_S = 30.0
"""A node that is not ready counts as lost only after so many seconds: a kubelet that begins anew is back by then, and
others would have left for nothing."""


def note_nodes(plan: Plan, cluster: Cluster, now: float) -> None:
    """Note from when on the plan has lost a node, which is found anew when one of its nodes has changed."""
    nodes = [cluster.nodes.get(node) for _, node in plan.places]
    if nodes != plan.nodes_seen:
        refusing = _refusing(plan, cluster)
        after_s = BACK_S if all(node is not None and node.unsettled for node in refusing) else 0.0
        plan.lost_at = min(plan.lost_at, now + after_s) if refusing else NEVER
        plan.nodes_seen = nodes


def _refusing(plan: Plan, cluster: Cluster) -> list[Node | None]:
    """The nodes that do not accept the member that has a place there, whatever else is on them; None for one gone."""
    accepting = {shape: cluster.accepting(MemberClass(shape)) for shape in {pod.shape for pod, _ in plan.places}}
    rows = cluster.capacity.rows
    refusing = {node for pod, node in plan.places if node not in rows or not accepting[pod.shape][rows[node]]}
    return [cluster.nodes.get(node) for node in refusing]
