"""Whether places that are reserved for later are still covered, by what is free and by what leaves them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.claims import Claim, Reserved
from gangsched.core.contention.ends import ENDLESS, UNKNOWN, End
from gangsched.core.gang.plan import Plan
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.planning.earliest import Departure
from gangsched.core.planning.guests import withheld


def is_covered(cluster: Cluster, holder: GroupKey, plan: Plan) -> bool:
    """Whether as much is free as must be withheld for the group: what is reserved and not used by who leaves for it."""
    reserved = Reserved(cluster.ledger.reserved[holder].claims, plan.leaving)
    kept, capacity = withheld(cluster, reserved, {}), cluster.capacity
    for at, resource in enumerate(kept.resources):
        column = capacity.column(resource)
        free = 0 if column is None else np.maximum(capacity.free[kept.rows, column], 0)
        if bool((kept.amounts[:, at] > free).any()):
            return False
    return True


def enough(cluster: Cluster, plan: Plan, ends: Sequence[tuple[Claim, End]]) -> list[tuple[Claim, End]]:
    """Of those on its nodes the first to end whose amounts, with what is free there, are enough for its places."""
    found, capacity = list[tuple[Claim, End]](), cluster.capacity
    lacking: dict[str, Counter[str]] = {}
    for pod, node in plan.places:
        lacking.setdefault(node, Counter()).update(dict(pod.shape.requests))
    for node, amounts in lacking.items():
        for resource in amounts:
            amounts[resource] -= max(0, capacity.free_of(capacity.rows[node], resource))
    for claim, end in sorted(ends, key=lambda each: (each[1].promised, each[0].pod.uid)):
        if +lacking[claim.node]:
            lacking[claim.node].subtract(dict(claim.pod.shape.requests))
            found.append((claim, end))
    return found


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
