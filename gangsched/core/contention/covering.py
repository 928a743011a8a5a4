"""Whether places that are reserved for later are still covered, by what is free and by what leaves them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.claims import Claim
from gangsched.core.contention.ends import ENDLESS, UNKNOWN, End
from gangsched.core.gang.plan import Plan
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import PODS
from gangsched.core.planning.earliest import Departure


def is_covered(cluster: Cluster, plan: Plan) -> bool:
    """Whether as much as is reserved on each node is free, or used by those who leave for it."""
    lacking, claims = _lacking(cluster, plan), cluster.ledger.claims
    for claim in (claims[uid] for uid in plan.leaving if uid in claims):
        if claim.counts and claim.node in lacking:
            lacking[claim.node].subtract(_amounts(cluster, claim.pod))
    return not any(+amounts for amounts in lacking.values())


def enough(cluster: Cluster, plan: Plan, ends: Sequence[tuple[Claim, End]]) -> list[tuple[Claim, End]]:
    """Of those on its nodes the first to end whose amounts, with what is free there, are enough for its places."""
    found, lacking = list[tuple[Claim, End]](), _lacking(cluster, plan)
    for claim, end in sorted(ends, key=lambda each: (each[1].promised, each[0].pod.uid)):
        if +lacking[claim.node]:
            lacking[claim.node].subtract(_amounts(cluster, claim.pod))
            found.append((claim, end))
    return found


def reserved(cluster: Cluster, plan: Plan) -> dict[str, Counter[str]]:
    """What is reserved on each node, by resource."""
    found: dict[str, Counter[str]] = {}
    for pod, node in plan.places:
        found.setdefault(node, Counter()).update(_amounts(cluster, pod))
    return found


def _lacking(cluster: Cluster, plan: Plan) -> dict[str, Counter[str]]:
    """What is reserved on each node less what is free there: more than that, where others have more than there is."""
    lacking = reserved(cluster, plan)
    for node, amounts in lacking.items():
        for resource in +amounts:
            amounts[resource] -= cluster.capacity.free_of(cluster.capacity.rows[node], resource)
    return lacking


def _amounts(cluster: Cluster, pod: Pod) -> dict[str, int]:
    """What the pod takes of its node."""
    return {PODS: 1, **dict(cluster.capacity.counted(pod.shape.requests))}


def ranked(departures: Sequence[Departure]) -> list[Departure]:
    """Those whose ends nothing tells leave node by node, the nodes with the fewest of them first."""
    known = [each for each in departures if each.end < UNKNOWN]
    by_node: dict[str, list[Departure]] = {}
    for each in departures:
        if each.end >= UNKNOWN:
            by_node.setdefault(each.claim.node, []).append(each)
    order = sorted(by_node.items(), key=lambda item: (len(item[1]), item[0]))
    for rank, (_, several) in enumerate(order):
        known += [Departure((ENDLESS if each.end >= ENDLESS else UNKNOWN) + rank, each.claim) for each in several]
    return known
