"""Whether the claims are what the pods say, and everything kept of nodes and claims what these say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from gangsched.core.cluster.ledger import Claim, Kind
from gangsched.core.constraints.feasibility import Feasibility
from gangsched.core.objects.pod import Pod

if TYPE_CHECKING:
    from gangsched.core.cluster.cache import Cluster


def contradictions(cluster: Cluster) -> list[str]:
    """What is not as it would be if it were made of the nodes and pods anew, in a sentence each; empty if nothing."""
    wrong = [
        f"{uid}: claims {claim.kind} {claim.node or 'no node'}, which its pod does not"
        for uid, claim in cluster.ledger.claims.items()
        if not _says(cluster.pods.get(uid), claim)
    ]
    wrong += [
        f"{uid}: is on {pod.node} and has no claim"
        for uid, pod in cluster.pods.items()
        if pod.node and not pod.terminal and cluster.ledger.of(uid) is None
    ]
    wrong += [
        f"{uid}: a member to come without a place"
        for uid, pod in cluster.pods.items()
        if not pod.name and cluster.ledger.of(uid) is None
    ]
    wrong += cluster.ledger.validate()
    wrong += cluster.capacity.misplaced({name: node.allocatable for name, node in cluster.nodes.items()})
    wrong += cluster.labels.mismatches({name: node.labels for name, node in cluster.nodes.items()})
    rows = set(cluster.capacity.rows.values())
    if not cluster.relief.rows <= rows:
        wrong.append("a row without a node is told to have become better")
    return [*wrong, *_outdated(cluster)]


def _says(pod: Pod | None, claim: Claim) -> bool:
    """Whether the pod is such that the claim may stand."""
    if pod is None or pod.terminal:
        return False
    takes = (pod.namespace, pod.shape, pod.anti_affinity)
    if takes != (claim.namespace, claim.shape, claim.anti_affinity):
        return False
    match claim.kind:
        case Kind.BOUND:
            return pod.node == claim.node
        case Kind.NOMINATED:
            return not pod.node and pod.nominated_node == claim.node
        case _:
            return not pod.node and bool(pod.name) is (claim.kind is Kind.ASSUMED)


def _outdated(cluster: Cluster) -> Iterator[str]:
    """Verdicts that are remembered and would be others if they were found anew."""
    rows = cluster.capacity.rows
    anew = Feasibility()
    for name, node in cluster.nodes.items():
        anew.set_node(rows[name], node, dict(node.labels))
    for shape in dict.fromkeys(pod.shape for pod in cluster.pods.values()):
        if not np.array_equal(cluster.verdicts(shape), anew.verdicts(shape, len(cluster.capacity.names))):
            yield f"what nodes say to {shape} is outdated"
