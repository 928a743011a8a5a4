"""In which order those that leave for an open plan are evicted, and what they take of disruption budgets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from gangsched.core.cluster.cache import Cluster
from gangsched.core.gang.clock import NEVER
from gangsched.core.gang.plan import Plan

_ANY = 1 << 40
"""More evictions than any budget has to allow."""


def next_batch(plan: Plan, cluster: Cluster) -> frozenset[str]:
    """The pods, by UID, that are told to leave next.

    None are while some stay that were told before, also for other plans, or while a node does not take its members.
    Nobody is preempted while disruption budgets cannot be read.

    First are those by whom a disruption budget would be exceeded, then those under any, with all that leave of their
    gangs: if the API server refuses them, nobody else has left in vain.
    """
    blindly = plan.start is None and not cluster.budgets.known
    if plan.victims <= plan.told or plan.lost_at < NEVER or blindly:
        return frozenset()
    pods, budgets = cluster.pods, cluster.budgets

    def stays(uid: str) -> bool:
        pod = pods.get(uid)
        return pod is not None and not (pod.terminating or pod.terminal)

    units = (*plan.whole.values(), *plan.single.values(), *(frozenset((uid,)) for uid in plan.loose))
    rest = [uids for uids in units if not uids <= plan.told and any(map(stays, uids))]
    if not rest or any(map(stays, plan.told | plan.anyway)):
        return frozenset()
    under = [uids for uids in rest if any(uid in pods and budgets.of(pods[uid]) for uid in uids)]
    drawn = [drawn_by(cluster, uids) for uids in under]
    exceeded = {name for name, number in sum(drawn, Counter()).items() if number > budgets.allowed.get(name, 0)}
    doubtful = [uids for uids, names in zip(under, drawn, strict=True) if not exceeded.isdisjoint(names)]
    return frozenset().union(*(doubtful or under or rest))


def allowed_beside(cluster: Cluster, plans: Iterable[Plan], *, exceeds: bool) -> dict[str, int]:
    """How many more evictions each disruption budget allows beside these plans; any if a plan `exceeds`."""
    allowed = cluster.budgets.allowed
    if exceeds:
        return dict.fromkeys(allowed, _ANY)
    drawn = drawn_by(cluster, frozenset[str]().union(*(plan.victims for plan in plans if allowed)))
    return {name: number - drawn[name] for name, number in allowed.items()}


def drawn_by(cluster: Cluster, uids: Iterable[str]) -> Counter[str]:
    """How many evictions of each disruption budget these pods take that its status does not show yet."""
    drawn = Counter[str]()
    for pod in filter(None, map(cluster.pods.get, uids)):
        drawn.update(budget.key for budget in cluster.budgets.drawn_by(pod) if not cluster.budgets.shows(budget, pod))
    return drawn
