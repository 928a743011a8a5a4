"""What a group asks for, and on which snapshot: with it searches begin, and a plan is proven once more."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from msgspec.structs import replace

from gangsched.core.cluster.avoidance import Avoidance
from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.claims import Claim, Viewer
from gangsched.core.contention.batches import drawn_by
from gangsched.core.contention.covering import enough, is_covered
from gangsched.core.contention.gathering import Gathering
from gangsched.core.contention.plans import Plans
from gangsched.core.contention.pool import Pool
from gangsched.core.contention.search_results import Running, State
from gangsched.core.contention.surplus import is_leaving
from gangsched.core.contention.units import Shares
from gangsched.core.contention.viewers import Viewers
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.plan import Plan
from gangsched.core.gang.wants import as_a_whole
from gangsched.core.membership.members import Members
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.policy import Policy
from gangsched.core.planning import budget as units
from gangsched.core.planning.after import After, NoWay
from gangsched.core.planning.ask import Ask
from gangsched.core.planning.budget import Budget
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.leavers import PreparedLeavers
from gangsched.core.planning.leaving import Search
from gangsched.core.planning.placement import fits
from gangsched.core.planning.refusal import Refusal

_PLENTY = 1 << 40


def refused(gang: Gang, assessment: Assessment) -> Refusal | None:
    """Why there is no room for what others may leave for; None if there is nothing, or it was not refused."""
    ask = as_a_whole(gang, assessment.terms, assessment.want)
    if ask is None or ask is assessment.want.quorum:
        return gang.wait.refusal if ask is not None else None
    return next(filter(None, (gang.wait.refused_members.get(pod.uid) for pod in ask.members)), None)


class Asking:
    """What groups ask for that others may leave for."""

    def __init__(
        self,
        cluster: Cluster,
        members: Members,
        assessments: Mapping[GroupKey, Assessment],
        plans: Plans,
        viewers: Viewers,
        *,
        avoidance: Avoidance,
        policy: Policy,
    ) -> None:
        self._cluster = cluster
        self._members = members
        self._assessments = assessments
        self._plans = plans
        self._viewers = viewers
        self._avoidance = avoidance
        self._policy = policy
        self._leavers = PreparedLeavers()
        self._snapshot: Snapshot | None = None
        # The claims that have left it, by UID, and the mark up to which nothing else was done to it.
        self._gone: Mapping[str, Claim] = {}
        self._mark = 0
        self._shares = Shares(cluster, assessments, policy, members.foreign)

    @property
    def state(self) -> State:
        """Another value once anything has changed by which it is decided who may leave, or when others will end."""
        cluster, members = self._cluster, self._members
        changes = cluster.changes + cluster.relief.changes
        return changes, cluster.budgets.changes, members.declared + members.foreign.jobs

    def of(self, gang: Gang, assessment: Assessment) -> Ask | None:
        """What others may leave for; None if there is nothing, or the group's pods fail wherever they are."""
        pause = self._avoidance.failures.closed(gang.key, gang.live)
        ask = as_a_whole(gang, assessment.terms, assessment.want)
        if ask is None or pause.everywhere:
            return None
        return replace(ask, start=None).avoiding(self._avoidance.by_all(), self._avoidance.by_gang(gang.key), pause)

    def gathering(self, *, follows: bool = False) -> Gathering:
        """Gathers all that may leave."""
        return Gathering(self._cluster, self._members, self._assessments, self._policy, follows=follows)

    def search(self, gang: Gang, ask: Ask, pool: Pool, state: State, now: float, *, exceeds: bool = False) -> Running:
        """A search among all that may leave, in this state; with `exceeds` disruption budgets do not count."""
        priority, allowed = self._assessments[gang.key].terms.priority, self._plans.allowed(exceeds=exceeds)
        passed = self._plans.pace.passed(now, gang.key)
        later = self._waited_for(self.viewer(gang, now), pool)
        if later:
            # What they leave is reserved.
            passed |= {name for name, victim in pool.victims.items() if not later.isdisjoint(victim.uids)}
        search = Search(ask, pool.removable, allowed, below=priority, passed=passed, now=now)
        return Running(search, pool, state, gang.wait.asked, exceeds)

    def searched(self, gang: Gang, pool: Pool, now: float) -> After | NoWay | None:
        """The result of a whole search out of turn. There is none if the group's pods fail wherever they are."""
        ask, result = self.of(gang, self._assessments[gang.key]), None
        for exceeds in (False, True) if self._policy.preemption.exceeds_budgets else (False,):
            if ask is not None and not isinstance(result, After):
                snapshot = self.snapshot(gang, self.leaving(pool, now), Budget(_PLENTY), now, lasting=True)
                result = self.search(gang, ask, pool, (), now, exceeds=exceeds).search.go_on(snapshot)
        self.rest()
        return result

    def snapshot(
        self, gang: Gang, leaving: Mapping[str, Claim], budget: Budget, now: float, *, lasting: bool = False
    ) -> Snapshot:
        """The cluster as the group sees it without these claims, by pod (UID). It is good until the next one.

        Of what those leave that leave for another group, what is reserved for that is not free. All that share a
        budget, as those of one call do, share a snapshot: meanwhile plans are opened and end, but no pod comes or goes.
        Claims that are `lasting` are asked about from call to call.
        """
        if self._snapshot is None or self._snapshot.budget is not budget:
            budget.charge(units.CLASS + len(self._cluster.nodes))
            self._snapshot, self._gone, self._mark = Snapshot(self._cluster, budget=budget), {}, 0
        snapshot, before = self._snapshot, self._gone
        snapshot.undo(self._mark)
        # Most of them are the same for each who asks in a call, and many of them in the next call.
        anew = lasting and len(leaving) > 2 * len(before)
        if leaving is not before:
            snapshot.stay([claim for uid, claim in before.items() if anew or uid not in leaving])
        own = self._cluster.ledger.reserved.get(gang.key)
        # Who is preempted for the group itself counts for nobody else.
        gone = leaving.keys() - own.leaving if own is not None and own.start is None else leaving
        snapshot.stand_for(self.viewer(gang, now), gone=gone)
        if anew:
            self._leavers.leave(snapshot, leaving)
        elif leaving is not before:
            snapshot.leave([claim for uid, claim in leaving.items() if uid not in before])
        self._gone, self._mark = leaving, snapshot.mark()
        return snapshot

    def leaving(self, pool: Pool, now: float) -> Mapping[str, Claim]:
        """Those that leave already, by UID, but for pods that could not be evicted a short time ago."""
        leaving = pool.about_to_go(now)
        passed = leaving.keys() & self._plans.pace.passed(now)
        if not passed:
            return leaving
        return {uid: claim for uid, claim in leaving.items() if claim.pod.terminating or uid not in passed}

    def rest(self) -> None:
        """Nobody asks any more in this call."""
        self._snapshot = None

    def forget(self) -> None:
        """Keep nobody who leaves: no group is searched for."""
        self._leavers = PreparedLeavers()

    def viewer(self, gang: Gang, now: float) -> Viewer:
        """Who asks when the group's quorum is placed."""
        return self._viewers.of(gang.key, self._assessments[gang.key], now)

    def promised_to_others(self, viewer: Viewer) -> set[str]:
        """The pods, by UID, that leave places which are not this one's."""
        claims, reserved = self._cluster.ledger.claims, self._cluster.ledger.reserved.items()
        return set[str]().union(*(room.remaining(claims) for key, room in reserved if viewer.sees(key, room.start)))

    def _waited_for(self, viewer: Viewer, pool: Pool) -> frozenset[str]:
        """The pods, by UID, that leave by themselves places which are not this one's.

        Where nobody knows when, those stay that are enough, and others may leave beside them: the least important.
        """
        ledger, awaited = self._cluster.ledger, frozenset[str]()
        seen = [room for key, room in ledger.reserved.items() if room.start is not None and key in viewer.later]
        victims = {uid: unit for unit in pool.removable.units for uid in pool.victims[unit.name].uids} if seen else {}

        def importance(uid: str) -> tuple[bool, int, str, str]:
            unit = victims.get(uid)
            return (False, 0, "", uid) if unit is None else (True, -unit.level, unit.name, uid)

        for room in seen:
            leaving = room.remaining(ledger.claims)
            if room.fills_up:
                order = sorted(leaving - ledger.promised(), key=importance)
                leaving = enough(self._cluster, room, map(ledger.claims.__getitem__, order))
            awaited |= leaving
        return awaited

    def proves(self, gang: Gang, plan: Plan, budget: Budget, now: float) -> bool:
        """Whether an open plan of the group is right still.

        All that leave for it may, it fits once they have, and not before more of them are told to.
        """
        assessment = self._assessments[gang.key]
        ask, levels, gang_of = self.of(gang, assessment), self._levels(plan, now), self._members.gang_of
        leaving = self._leaving_for(plan)
        on_their_way = {uid: claim for uid, claim in leaving.items() if is_leaving(claim, gang_of(uid))}
        staying = leaving.keys() - on_their_way.keys()
        for name, uids in plan.units.items() if plan.start is None else ():
            may_stay = levels.get(name, assessment.terms.priority) >= assessment.terms.priority
            if may_stay and not staying.isdisjoint(uids):
                return False
        if ask is None or not {pod.uid for pod in ask.members} >= plan.members:
            return False
        left = self._plans.allowed()
        if (
            not self._policy.preemption.exceeds_budgets
            and left
            and any(left[name] < 0 for name in drawn_by(self._cluster, plan.victims))
        ):
            return False
        snapshot = self.snapshot(gang, on_their_way, budget, now)
        if fits(snapshot, ask):
            # Nobody more has to leave.
            return False
        snapshot.leave([leaving[uid] for uid in leaving if uid in staying])
        return fits(snapshot, ask)

    def suffices(self, gang: Gang, plan: Plan, leaving: Collection[str], budget: Budget, now: float) -> bool:
        """Whether the group has the plan's places, and fits, once these pods (by UID) have left."""
        ask = self.of(gang, self._assessments[gang.key])
        if ask is None or not is_covered(self._cluster, plan, leaving):
            return False
        return fits(self.snapshot(gang, self._counting(leaving), budget, now), ask)

    def is_enough(self, gang: Gang, plan: Plan, ask: Ask, budget: Budget, now: float) -> bool:
        """Whether those for whom the plan has places are all that the group asks for, and fit once others have left."""
        planned = plan.members
        placed = replace(ask, members=[pod for pod in ask.members if pod.uid in planned])
        return fits(self.snapshot(gang, self._leaving_for(plan), budget, now), placed)

    def _leaving_for(self, plan: Plan) -> dict[str, Claim]:
        """The claims, by UID, of those that leave for the plan and are still there."""
        return self._counting(plan.leaving)

    def _counting(self, uids: Collection[str]) -> dict[str, Claim]:
        """The claims of these pods, by UID, that count on their nodes."""
        claims = self._cluster.ledger.claims
        return {uid: claims[uid] for uid in sorted(uids) if uid in claims and claims[uid].counts}

    def _levels(self, plan: Plan, now: float) -> dict[str, int]:
        """The levels of the units, by name, that may leave for the plan, whether or not they are told so already."""
        gangs = {key: gang for key in (*plan.whole, *plan.single) if (gang := self._members.gangs.get(key)) is not None}
        uids = plan.loose.union(*(gang.observed.pods for gang in gangs.values()))
        promised = (uids & self._cluster.ledger.promised()) - plan.leaving
        shares = [self._shares.of_pod(claim, promised) for claim in self._staying(plan.loose, None)]
        for key, gang in gangs.items():
            claims = self._staying(gang.observed.pods, gang)
            shares.append(self._shares.of_gang(gang, claims, promised, leaves=key in plan.whole))
        return {unit.name: unit.level for share in shares for unit in share.units if unit.protected <= now}

    def _staying(self, uids: Iterable[str], gang: Gang | None) -> list[Claim]:
        """The claims of those of these pods that are members of the gang and do not terminate."""
        claims, members = self._cluster.ledger.claims, self._members
        own = [claims[uid] for uid in uids if uid in claims and members.gang_of(uid) is gang]
        return [claim for claim in own if claim.counts and not claim.pod.terminating]
