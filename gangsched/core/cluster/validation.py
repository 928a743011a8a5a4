"""Whether the claims are what the pods say, and everything kept of nodes and claims what these say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gangsched.core.cluster.ledger import Claim, Kind
from gangsched.core.constraints.constraint import Constraint
from gangsched.core.objects.node import Node
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
    rows = cluster.capacity.rows
    by_row = {rows[name]: node for name, node in cluster.nodes.items() if name in rows}
    wrong += cluster.ledger.validate(_told_of_nodes(cluster.constraints, by_row))
    wrong += cluster.nodes_by_row.contradictions(by_row)
    wrong += cluster.capacity.misplaced({name: node.allocatable for name, node in cluster.nodes.items()})
    wrong += cluster.labels.mismatches({name: node.labels for name, node in cluster.nodes.items()})
    if not cluster.relief.rows <= by_row.keys():
        wrong.append("a row without a node is told to have become better")
    return wrong


def _told_of_nodes(constraints: Sequence[Constraint], nodes: Mapping[int, Node]) -> list[Constraint]:
    """The same constraints, told of these nodes and nothing else."""
    told = [each.anew() for each in constraints]
    for row, node in nodes.items():
        for constraint in told:
            constraint.set_node(row, node)
    return told


def _says(pod: Pod | None, claim: Claim) -> bool:
    """Whether the pod is such that the claim may stand."""
    if pod is None or pod != claim.pod or pod.terminal:
        return False
    match claim.kind:
        case Kind.BOUND:
            return pod.node == claim.node
        case Kind.NOMINATED:
            return not pod.node and pod.nominated_node == claim.node
        case _:
            return not pod.node and bool(pod.name) is (claim.kind is Kind.ASSUMED)
