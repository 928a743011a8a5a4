"""Whether places that are reserved for later are still covered, by what is free and by what leaves them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping, Sequence

from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.claims import Claim, Reserved
from gangsched.core.contention.ends import ENDLESS, UNKNOWN
from gangsched.core.gang.plan import Plan
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import PODS
from gangsched.core.planning.earliest import Departure
from gangsched.core.planning.guests import withheld


def is_covered(cluster: Cluster, plan: Plan, leaving: Collection[str] | None = None) -> bool:
    """Whether as much as is reserved on each node is free, or used by those who leave for it, or by `leaving` alone."""
    lacking = _lacking(cluster, plan)
    _free(cluster, lacking, _placed(cluster, plan.leaving if leaving is None else leaving, lacking))
    return not any(+amounts for amounts in lacking.values())


def needed_for_room(
    cluster: Cluster, plan: Plan, order: Sequence[frozenset[str]], leaving: Collection[str]
) -> list[frozenset[str]]:
    """Those of the units that must leave beside those `leaving`, so that there is room, once every other stays.

    The last ones stay first.
    """
    lacking, needed = _lacking(cluster, plan), list[frozenset[str]]()
    for uids in (leaving, *order):
        _free(cluster, lacking, _placed(cluster, uids, lacking))
    for uids in reversed(order):
        claims = _placed(cluster, uids, lacking)
        for claim in claims:
            lacking[claim.node].update(_amounts(cluster, claim.pod))
        if any(+lacking[claim.node] for claim in claims):
            needed.append(uids)
            _free(cluster, lacking, claims)
    return needed


def note_cover(plan: Plan, cluster: Cluster, tightened: set[str]) -> None:
    """Note whether the plan is still covered; only on these nodes there may be less room since."""
    if not plan.covered or not tightened.isdisjoint(plan.nodes):
        plan.covered = is_covered(cluster, plan)


def missing(cluster: Cluster, plan: Plan) -> dict[str, Counter[str]]:
    """What of its places is not free yet on each node, by resource: room that others leave for another group is not."""
    lacking, names = _lacking(cluster, plan), cluster.capacity.names
    for other in (room for room in cluster.ledger.reserved.values() if room.start is None):
        theirs = withheld(cluster, other, {})
        for row, amounts in zip(theirs.rows.tolist(), theirs.amounts.tolist(), strict=True):
            if names[row] in lacking:
                lacking[names[row]].update(dict(zip(theirs.resources, amounts, strict=True)))
    return {node: +amounts for node, amounts in lacking.items()}


def enough(cluster: Cluster, reserved: Reserved, claims: Iterable[Claim]) -> frozenset[str]:
    """The first of these, by UID, that make up for what is missing on their nodes."""
    leaving, lacking = set[str](), {node: Counter(amounts) for node, amounts in reserved.missing.items()}
    for claim in claims:
        if +lacking.get(claim.node, Counter()):
            lacking[claim.node].subtract(_amounts(cluster, claim.pod))
            leaving.add(claim.pod.uid)
    return frozenset(leaving)


def reserved(cluster: Cluster, plan: Plan) -> dict[str, Counter[str]]:
    """What is reserved on each node, by resource."""
    by_node: dict[str, Counter[str]] = {}
    for pod, node in plan.places:
        by_node.setdefault(node, Counter()).update(_amounts(cluster, pod))
    return by_node


def _placed(cluster: Cluster, uids: Iterable[str], nodes: Container[str]) -> list[Claim]:
    """The claims of those of these pods that count on one of the nodes."""
    claims = filter(None, map(cluster.ledger.claims.get, uids))
    return [claim for claim in claims if claim.counts and claim.node in nodes]


def _free(cluster: Cluster, lacking: Mapping[str, Counter[str]], claims: Iterable[Claim]) -> None:
    """Count what these claims use as free on their nodes, all of which are among those that lack something."""
    for claim in claims:
        lacking[claim.node].subtract(_amounts(cluster, claim.pod))


def _lacking(cluster: Cluster, plan: Plan) -> dict[str, Counter[str]]:
    """What is reserved on each node less what is free there: more than that, where others have more than there is."""
    lacking, rows = reserved(cluster, plan), cluster.capacity.rows
    for node in lacking.keys() & rows.keys():
        for resource in +lacking[node]:
            lacking[node][resource] -= cluster.capacity.free_of(rows[node], resource)
    return lacking


def _amounts(cluster: Cluster, pod: Pod) -> dict[str, int]:
    """What the pod takes of its node."""
    return {PODS: 1, **dict(cluster.capacity.counted(pod.shape.requests))}


def ranked(departures: Sequence[Departure]) -> list[Departure]:
    """Those whose ends nothing tells leave node by node, the nodes with the fewest of them first."""
    known = [departure for departure in departures if departure.end < UNKNOWN]
    by_node: dict[str, list[Departure]] = {}
    for departure in departures:
        if departure.end >= UNKNOWN:
            by_node.setdefault(departure.claim.node, []).append(departure)
    order = sorted(by_node.items(), key=lambda item: (len(item[1]), item[0]))
    for rank, (_, on_node) in enumerate(order):
        known += [Departure((ENDLESS if end >= ENDLESS else UNKNOWN) + rank, claim) for end, claim in on_node]
    return known
