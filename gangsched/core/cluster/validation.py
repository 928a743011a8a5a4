"""Whether the cluster's accounting is what its pods say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gangsched.core.cluster.holdings import Holdings

if TYPE_CHECKING:
    from gangsched.core.cluster.cache import Cluster


def contradictions(cluster: Cluster) -> list[str]:
    """Each index that differs from what it would be if it were made of the pods anew, in a sentence; empty if none."""
    taken = []
    constraints = [each.anew() for each in cluster.constraints]
    by_row = {cluster.capacity.rows[name]: node for name, node in cluster.nodes.items()}
    for row, each in by_row.items():
        for constraint in constraints:
            constraint.set_node(row, each)
    on_node: dict[str, set[str]] = {}
    for uid, pod in cluster.pods.items():
        node = cluster.node_of(uid)
        if not node or pod.terminal:
            continue
        on_node.setdefault(node, set()).add(uid)
        if node in cluster.nodes:
            taken.append((node, pod.shape.requests))
            for constraint in constraints:
                constraint.add(pod, cluster.capacity.rows[node])
    wrong = [*cluster.capacity.mismatches(taken), *cluster.nodes_by_row.contradictions(by_row)]
    for kept, expected in zip(cluster.constraints, constraints, strict=True):
        if kept.told() != expected.told():
            wrong.append(f"what {type(kept).__name__} knows is not what nodes and pods say")
    if on_node != cluster.on_node:
        wrong.append("the lists of pods by node are not what the pods say")
    if cluster.holdings != Holdings(pod for pod in cluster.pods.values() if not pod.name):
        wrong.append("what namespaces hold for members to come is not what the places say")
    return wrong
