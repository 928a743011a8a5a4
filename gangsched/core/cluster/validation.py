"""Whether the cluster's accounting is what its pods say."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from gangsched.core.cluster.holdings import Holdings
from gangsched.core.constraints.anti_affinity import AntiAffinityIndex
from gangsched.core.constraints.ports import PortsInUse

if TYPE_CHECKING:
    from gangsched.core.cluster.cache import Cluster


def contradictions(cluster: Cluster) -> list[str]:
    """Each index that differs from what it would be if it were made of the pods anew, in a sentence; empty if none."""
    taken = []
    ports: dict[str, PortsInUse] = {}
    port_rows: dict[tuple[str, int], Counter[int]] = {}
    terms = AntiAffinityIndex()
    on_node: dict[str, set[str]] = {}
    for uid, pod in cluster.pods.items():
        node = cluster.node_of(uid)
        if not node or pod.terminal:
            continue
        on_node.setdefault(node, set()).add(uid)
        if node in cluster.nodes:
            taken.append((node, pod.shape.requests))
            ports.setdefault(node, PortsInUse()).add(pod.shape.host_ports)
            for port in pod.shape.host_ports:
                port_rows.setdefault((port.protocol, port.port), Counter())[cluster.capacity.rows[node]] += 1
            for term in pod.anti_affinity:
                terms.add(term, cluster.labels.of(node))
    wrong = cluster.capacity.mismatches(taken)
    in_use = {cluster.capacity.names[row]: used for row, used in cluster.ports.items() if used}
    by_port = {port: rows for port, rows in cluster.port_rows.items() if rows}
    if in_use != {node: used for node, used in ports.items() if used} or by_port != port_rows:
        wrong.append("the host ports in use are not those of the pods")
    if terms != cluster.anti_affinity:
        wrong.append("the anti-affinity terms are not those of the pods")
    if on_node != cluster.on_node:
        wrong.append("the lists of pods by node are not what the pods say")
    if cluster.holdings != Holdings(pod for pod in cluster.pods.values() if not pod.name):
        wrong.append("what namespaces hold for members to come is not what the places say")
    return wrong
