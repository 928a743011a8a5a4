"""Nodes that take the members of an open plan no longer: at once they count as lost, unless they may be back soon."""

from __future__ import annotations

from collections.abc import Iterator

from gangsched.core.cluster.cache import Cluster
from gangsched.core.contention.covering import reserved
from gangsched.core.gang.clock import NEVER
from gangsched.core.gang.plan import Plan
from gangsched.core.planning.classes import MemberClass

BACK_S = 30.0
"""A node whose kubelet or device plug-in is not ready counts as lost only after so many seconds: what begins anew is
back by then, and others would have left for nothing."""


def note_nodes(plan: Plan, cluster: Cluster, now: float) -> None:
    """Note from when on the plan has lost a node, which is found anew when one of its nodes has changed."""
    if plan.changes_seen == cluster.node_changes:
        return
    plan.changes_seen = cluster.node_changes
    nodes = [cluster.nodes.get(node) for _, node in plan.places]
    if nodes != plan.nodes_seen:
        may_be_back = [*_refusing(plan, cluster)]
        after_s = BACK_S if all(may_be_back) else 0.0
        plan.lost_at = min(plan.lost_at, now + after_s) if may_be_back else NEVER
        plan.nodes_seen = nodes


def _refusing(plan: Plan, cluster: Cluster) -> Iterator[bool]:
    """For each node that does not take its members, even if nobody else were on it: whether it may be back soon."""
    capacity, nodes = cluster.capacity, cluster.nodes
    for node, amounts in reserved(cluster, plan).items():
        row = capacity.rows.get(node)
        if row is None:
            yield False
        elif any(amount > capacity.given(row, resource) for resource, amount in amounts.items()):
            yield nodes[node].unsettled or bool(nodes[node].awaited)
    accepting = {shape: cluster.accepting(MemberClass(shape)) for shape in {pod.shape for pod, _ in plan.places}}
    for pod, node in plan.places:
        row = capacity.rows.get(node)
        if row is not None and not accepting[pod.shape][row]:
            yield nodes[node].unsettled
