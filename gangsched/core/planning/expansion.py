"""Computes what new nodes must offer so that a refused quorum fits: capacity for the members that fit on no node today.

Each of these members may get a node of its own. The name of a new node is not known in advance, so no new node helps
members that accept nodes by name only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import chain

from gangsched.core.cluster.labels import Domain
from gangsched.core.constraints.volume_binding import BoundTo
from gangsched.core.objects.quantity import MAX_AMOUNT
from gangsched.core.objects.selectors import well_formed
from gangsched.core.objects.shape import PODS, Amounts, NodeTerm
from gangsched.core.objects.status import MOST_DEMANDS, Demand
from gangsched.core.planning.classes import MemberClass

HOSTNAME = "kubernetes.io/hostname"
"""The label that makes each node a domain of its own."""


def demand(missing: Mapping[MemberClass, int], within: tuple[Domain, ...]) -> tuple[Demand, ...]:
    """The requests of these members, the most frequent first; empty if there is a member that no new node can help.

    New nodes must be `within` these domains, of which a Demand names the innermost.

    If there are more distinct requests than the limit, the last entry stands for the rest, with their largest amount
    of each resource.
    """
    if any(map(only_by_name, missing)):
        return ()
    counts: Counter[Amounts] = Counter()
    for member, count in missing.items():
        counts[member.shape.requests] += count
    entries = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    if len(entries) > MOST_DEMANDS:
        rest = entries[MOST_DEMANDS - 1 :]
        largest: dict[str, int] = {}
        for resource, amount in chain.from_iterable(requests for requests, _ in rest):
            largest[resource] = max(amount, largest.get(resource, 0))
        last = (tuple(sorted(largest.items())), sum(count for _, count in rest))
        entries = [*entries[: MOST_DEMANDS - 1], last]
    value = within[-1][1] if within else None
    return tuple(Demand(count=count, requests=requests, domain=value or "") for requests, count in entries)


def demand_on_one_node(whole: Mapping[MemberClass, int]) -> tuple[Demand, ...]:
    """The request of a quorum that must be on one node: a single node with room for all of it."""
    if any(map(only_by_name, whole)):
        return ()
    total: Counter[str] = Counter({PODS: sum(whole.values())})
    for member, count in whole.items():
        for resource, amount in member.shape.requests:
            total[resource] += count * amount
    requests = tuple((resource, min(amount, MAX_AMOUNT)) for resource, amount in sorted(total.items()))
    return (Demand(count=1, requests=requests),)


def only_by_name(member: MemberClass) -> bool:
    """Whether the members, or their volumes, accept only nodes with certain names, or none at all."""
    shape, bound_to = member.shape, member.sight(BoundTo)
    affinities = bound_to.affinities if bound_to is not None else ()
    if (bound_to is not None and not bound_to.ready) or any(all(map(_only_by_name, terms)) for terms in affinities):
        return True
    if any(key == HOSTNAME for key, _ in shape.node_selector):
        return True
    return shape.node_affinity is not None and all(map(_only_by_name, shape.node_affinity))


def _only_by_name(term: NodeTerm) -> bool:
    named = any(field.operator != "NotIn" for field in term.fields)
    named = named or any(expression.key == HOSTNAME and expression.operator == "In" for expression in term.expressions)
    return named or not (term.fields or term.expressions) or not all(map(well_formed, term.expressions))
