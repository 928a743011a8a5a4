"""Who has declared to end by now, and stays where places are reserved for a group that waits for nothing else.

All of its gang is evicted, whatever its priority (cause Overdue): its word is what let it, or the group, be planned so.
Nobody is who could stay, because the room of others is enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from gangsched.core.cluster.cache import Cluster
from gangsched.core.contention.batches import drawn_by
from gangsched.core.contention.covering import needed_for_room
from gangsched.core.contention.pool import OVERDUE_S
from gangsched.core.contention.proofs import Suffices
from gangsched.core.contention.surplus import is_in_flight
from gangsched.core.contention.units import name_of
from gangsched.core.gang.clock import NEVER
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.plan import Plan
from gangsched.core.membership.members import Members
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Pod

Allowed = Callable[[], Mapping[str, int]]
"""How many more evictions each disruption budget allows."""


class CalledIn(NamedTuple):
    """Those who are evicted for a plan: of each gang all members, by UID, and pods without one, by the unit's name.

    They should have left until it `expires`, in epoch seconds. The `spared` stay.
    """

    whole: Mapping[GroupKey, frozenset[str]]
    loose: Mapping[str, frozenset[str]]
    expires: float
    spared: frozenset[str]


class Overdue:
    """Finds them for plans of a later start. It changes nothing."""

    def __init__(self, cluster: Cluster, members: Members) -> None:
        self._cluster = cluster
        self._members = members

    def due(self, holder: Gang, plan: Plan) -> float:
        """When somebody is to be called in, in epoch seconds; infinity if that is not known, or nobody may be."""
        return self._due(holder, plan, self._staying(plan))

    def _due(self, holder: Gang, plan: Plan, staying: Sequence[Pod]) -> float:
        if not any(self._may_be_called_in(holder, plan, pod) for pod in staying):
            return NEVER
        return max(self._promised(plan, pod) for pod in staying)

    def _may_be_called_in(self, holder: Gang, plan: Plan, pod: Pod) -> bool:
        """Whether it may be evicted now: not if its gang is being bound, is the holder, or leaves already.

        One that was called in may have a further member, whose binding is under way.
        """
        gang = self._members.gang_of(pod.uid)
        if gang is None or gang.plain:
            return True
        is_new = any(member.uid not in plan.victims for member in gang.bound())
        return is_new and gang is not holder and gang.lives(pod) and not is_in_flight(gang)

    def called_in(self, holder: Gang, plan: Plan, allowed: Allowed, suffices: Suffices, now: float) -> CalledIn | None:
        """Who is evicted for the plan from now on, once nobody else is to end; None before.

        None of them could stay beside the others, first those whose evictions budgets have not `allowed`. A gang that
        is being bound, or leaves already, is waited for.
        """
        staying = self._staying(plan)
        if self._due(holder, plan, staying) > now:
            return None
        whole: dict[GroupKey, frozenset[str]] = {}
        loose: dict[str, frozenset[str]] = {}
        for pod in staying:
            gang = self._members.gang_of(pod.uid)
            if gang is None or gang.plain:
                loose[name_of(pod)] = frozenset((pod.uid,))
            elif self._may_be_called_in(holder, plan, pod):
                whole[gang.key] = frozenset(member.uid for member in gang.bound())
        order = self._in_order([*whole.values(), *loose.values()], allowed())
        spared = self._spared(plan, order, partial(suffices, holder, plan))
        return CalledIn(
            {key: uids for key, uids in whole.items() if spared.isdisjoint(uids)},
            {name: uids for name, uids in loose.items() if spared.isdisjoint(uids)},
            now + OVERDUE_S + max(pod.lifetime.grace_s for pod in staying),
            spared,
        )

    def _in_order(self, every: Sequence[frozenset[str]], allowed: Mapping[str, int]) -> list[frozenset[str]]:
        """These units, those first whose evictions are allowed beside the ones before them."""
        within, beyond, drawn = list[frozenset[str]](), list[frozenset[str]](), Counter[str]()
        for uids in every:
            more = drawn + drawn_by(self._cluster, uids)
            if any(number > allowed.get(name, 0) for name, number in more.items()):
                beyond.append(uids)
            else:
                within.append(uids)
                drawn = more
        return [*within, *beyond]

    def _spared(
        self, plan: Plan, order: Sequence[frozenset[str]], suffices: Callable[[Collection[str]], bool]
    ) -> frozenset[str]:
        """The pods of units that may stay, the last ones first; none if it does not suffice that all leave.

        Of the others those leave, or are waited for, who are to end.
        """
        every = frozenset[str]().union(*order)
        leaving = plan.leaving - every
        # Mostly room alone is missing, and then it takes no question for each of them.
        enough = needed_for_room(self._cluster, plan, order, leaving)
        if suffices(leaving.union(*enough)):
            return every.difference(*enough)
        return every.difference(*needed(order, leaving, suffices)) if suffices(leaving | every) else frozenset()

    def _staying(self, plan: Plan) -> list[Pod]:
        """Those who are still to end, and are not told to leave yet, nor spared; nobody if nobody knows the start."""
        if plan.start is None or plan.start == NEVER:
            return []
        claims, known = self._cluster.ledger.claims, plan.victims | plan.spared
        pods = (claims[uid].pod for uid in plan.ends if uid in claims and claims[uid].counts)
        return [pod for pod in pods if not pod.terminating and pod.uid not in known]

    def _promised(self, plan: Plan, pod: Pod) -> float:
        """When the pod will be overdue. One that a limit ends is waited for."""
        at = plan.ends[pod.uid] - pod.lifetime.grace_s
        return at if pod.uid in plan.promises else NEVER


def needed(
    order: Sequence[frozenset[str]], leaving: frozenset[str], suffices: Callable[[Collection[str]], bool]
) -> Sequence[frozenset[str]]:
    """Those of the units, which suffice beside those `leaving`, that must leave once every other has been spared.

    Where few of many are needed that takes far fewer questions than there are units.
    """
    if suffices(leaving):
        return ()
    if len(order) == 1:
        return order
    first, last = order[: len(order) // 2], order[len(order) // 2 :]
    of_last = needed(last, leaving.union(*first), suffices)
    return *needed(first, leaving.union(*of_last), suffices), *of_last
