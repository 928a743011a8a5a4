"""Open plans: the places that are reserved for a group until those that hold them have left.

Each step of a plan waits for the one before: the reservation is in the group's status; it is written in the status of
each group that leaves entirely; then pods are evicted. Meanwhile the group is tried with whatever is free, and its plan
ends as soon as it has its places. A plan ends in one of the ways of `ENDINGS`; whoever has not begun to leave stays.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from gangsched.core.cluster.cache import Cluster
from gangsched.core.contention.batches import next_batch
from gangsched.core.contention.endings import CHANGED, ENDINGS, REFUSED, ROOM_LOST, STARTED, Ending, Look, foreign_on
from gangsched.core.contention.loose import Loose
from gangsched.core.contention.marks import Marks
from gangsched.core.contention.pace import Pace
from gangsched.core.contention.pool import OVERDUE_S, Victim
from gangsched.core.contention.surplus import is_leaving
from gangsched.core.gang import clock, preempted
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.plan import Plan
from gangsched.core.membership.members import Members
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.effects import Effect
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.results import EvictionRefused, PodEvicted, Spared

_ANY = 1 << 40
"""More evictions than any budget has to allow."""
REFUSED_S = 60.0
"""A plan ends once the API server has refused one of its evictions for so many seconds, or at once if for good."""


Proves = Callable[[Gang, Plan], bool]


class Plans:
    """The open plans of all groups; `ended` counts endings by name, `lost` resource-seconds of those told to leave."""

    def __init__(
        self,
        cluster: Cluster,
        members: Members,
        assessments: Mapping[GroupKey, Assessment],
        *,
        a_minute: int,
        is_foreign: Callable[[Pod], bool],
    ) -> None:
        self._cluster = cluster
        self._members = members
        self._assessments = assessments
        self._is_foreign = is_foreign
        self.pace = Pace(a_minute)
        self.holders: dict[GroupKey, None] = {}
        self.ended: Counter[str] = Counter()
        self.lost: defaultdict[str, float] = defaultdict(float)
        self._loose = Loose(cluster)
        self._told: list[tuple[Pod, GroupKey]] = []
        self._lasted_s: list[float] = []
        self._lost_plans: list[tuple[GroupKey, str]] = []
        self._marks = Marks(members)

    # A plan's life

    def __bool__(self) -> bool:
        """Whether a plan is open, or something of one is left to do."""
        return bool(self.holders or self._loose or self._marks)

    def may_open(self, key: GroupKey, now: float) -> bool:
        """Whether the group has no plan, or one of a former leader, and need not wait before it may have another."""
        gang = self._members.gangs.get(key)
        plan = gang.operations.plan if gang is not None else None
        return (plan is None or plan.former) and self.pace.allowed_from(key) <= now

    def next_for(self, key: GroupKey) -> float:
        """From when on, in epoch seconds, the group may open another plan; infinity while it has one."""
        return float("inf") if key in self.holders else self.pace.allowed_from(key)

    def opened(self) -> dict[GroupKey, Plan]:
        """The open plans."""
        gangs = ((key, self._members.gangs.get(key)) for key in self.holders)
        return {key: plan for key, gang in gangs if gang is not None and (plan := gang.operations.plan) is not None}

    def drawn(self, *plans: Plan) -> Counter[str]:
        """How many evictions of each disruption budget these plans take that its status does not show yet."""
        pods, drawn = self._cluster.pods, Counter[str]()
        for uid in (uid for plan in plans for uid in plan.victims):
            pod = pods.get(uid)
            if pod is not None and pod.lifetime.ready:
                drawn.update(each.key for each in self._cluster.budgets.of(pod) if pod.name not in each.disrupted)
        return drawn

    def allowed(self, *, exceeds: bool = False) -> dict[str, int]:
        """How many more evictions each disruption budget allows, beside open plans; any if a plan `exceeds`."""
        if exceeds:
            return dict.fromkeys(self._cluster.budgets.allowed, _ANY)
        drawn = self.drawn(*self.opened().values()) if self._cluster.budgets.allowed else Counter[str]()
        return {name: number - drawn[name] for name, number in self._cluster.budgets.allowed.items()}

    def open(
        self,
        gang: Gang,
        places: Sequence[tuple[Pod, str]],
        victims: Mapping[str, Victim],
        leaving: Sequence[Pod],
        now: float,
    ) -> None:
        """Open a plan: reserve these places for the group.

        These units leave them, by their names, and so do these pods, which leave already.
        """
        whole = {each.gang: each.uids for each in victims.values() if each.whole and each.gang is not None}
        single: dict[GroupKey, frozenset[str]] = {}
        loose = set[str]()
        for each in victims.values():
            if each.gang is None:
                loose |= each.uids
            elif each.gang not in whole:
                single[each.gang] = single.get(each.gang, frozenset()) | each.uids
        pods = [self._cluster.pods[uid] for each in victims.values() for uid in each.uids]
        ends = [pod.gone_by if pod.terminating else now + pod.lifetime.grace_s for pod in (*pods, *leaving)]
        devices = self._cluster.devices
        users = [pod for pod in (*pods, *leaving) if pod.uses_devices]
        plan = Plan(
            places=places,
            whole=whole,
            single=single,
            loose=frozenset(loose),
            claims=frozenset(each.key for pod in users for each in (*devices.claims(pod), *devices.made(pod))),
            anyway=frozenset(pod.uid for pod in leaving if not pod.terminating),
            units={name: each.uids for name, each in victims.items()}
            | {pod.uid: frozenset((pod.uid,)) for pod in leaving},
            opened_at=now,
            expires=max(now, *ends) + OVERDUE_S,
            asked=gang.wait.asked,
            beside=frozenset(foreign_on(places, self._cluster, self._is_foreign)),
        )
        former = gang.operations.plan
        gang.operations.wait_for(plan)
        if not gang.plain:
            # What a former leader had reserved is written, if it is the same.
            same = {(pod.uid, node) for pod, node in former.places} if former is not None else set()
            gang.durability.written(pod.uid for pod, node in places if (pod.uid, node) in same)
            gang.durability.ask(now)
        self.pace.tokens.take(len(pods))
        self.holders[gang.key] = None
        self._cluster.ledger.reserve(gang.key, places, plan.leaving)
        self._members.dirty.note(gang.key)

    def take_up(self, gang: Gang) -> None:
        """Go on with the plan of a former leader, if the group has one."""
        if gang.operations.plan is not None:
            self.holders[gang.key] = None

    def go_on(self, now: float, proves: Proves, contain: Callable[[GroupKey, Exception], object]) -> list[Effect]:
        """Take what is due in each plan. Returns evictions of pods without a group.

        `proves` tells whether a plan of a group is right still, which it must be before anybody is evicted. `contain`
        is called with each group whose logic fails.
        """
        for key in [*self.holders]:
            try:
                self._go_on(key, now, proves)
            except Exception as error:  # noqa: BLE001 - a defect may raise anything
                contain(key, error)
        plans = self.opened().values()
        self._marks.keep({key for plan in plans for key in plan.whole})
        return self._loose.go_on({uid for plan in plans for uid in plan.loose}, now)

    def _go_on(self, key: GroupKey, now: float, proves: Proves) -> None:
        gang = self._members.gangs.get(key)
        plan = gang.operations.plan if gang is not None else None
        if gang is None or plan is None:
            # The group is gone, or its logic has failed.
            self.holders.pop(key)
            self._cluster.ledger.unreserve(key)
            return
        claims, gang_of = self._cluster.ledger.claims, self._members.gang_of
        stay = any(uid in claims and not is_leaving(claims[uid], gang_of(uid)) for uid in plan.anyway)
        refused = self._refused(plan, now)
        look = Look(gang, self._assessments.get(key), plan, self._cluster, refused, stay, self._is_foreign, now)
        ending = next((each for each in ENDINGS if each.fact(look)), None)
        if ending is not None:
            self._end(gang, plan, ending, look.refused or self._marks.missing(plan), now)
            return
        if plan.former:
            return
        self._note_leaving(gang, plan, look)
        batch = next_batch(plan, self._cluster) if gang.has_told_places() else None
        if batch and self._marks.hold(gang, plan, now):
            if proves(gang, plan):
                self._tell(gang, plan, batch, now)
            else:
                # Something may have changed once. If it was wrong from the start, the next one will be too.
                self.pace.pause(key, now, excused=True)
                self._end(gang, plan, CHANGED, (), now)

    def _note_leaving(self, gang: Gang, plan: Plan, look: Look) -> None:
        """Have the group tried whenever another pod has left, and wait for those that still terminate."""
        there = [self._cluster.pods[uid] for uid in plan.leaving if uid in self._cluster.pods]
        ends = [pod.gone_by for pod in there if pod.terminating and pod.gone_by]
        plan.expires = max([plan.expires, *(end + OVERDUE_S for end in ends)])
        if len(there) != plan.there or (look.left and not plan.tried_when_left):
            plan.there = len(there)
            plan.tried_when_left |= look.left
            gang.wait.try_again()
            self._members.dirty.note(gang.key)

    def _tell(self, holder: Gang, plan: Plan, batch: frozenset[str], now: float) -> None:
        """Have these pods evicted, which are all that leave of their gangs."""
        gangs, pods = self._members.gangs, self._cluster.pods
        plan.evicting_since = plan.evicting_since or now
        plan.told |= batch
        whole = [key for key, uids in plan.whole.items() if uids <= batch and key in gangs]
        single = {key: uids for key, uids in plan.single.items() if uids <= batch and key in gangs}
        loose = plan.loose & batch
        for key in whole:
            gangs[key].operations.may_leave()
            self._members.dirty.note(key)
        self._note_lost(batch, now)
        self._pause_clock(holder, plan, now)
        self._told += [(pods[uid], holder.key) for uid in sorted(loose.union(*single.values())) if uid in pods]
        for key, uids in single.items():
            preempted.part_with(gangs[key], uids, now)
            self._members.dirty.note(key)
        self._loose.evict(sorted(loose))

    def _note_lost(self, batch: frozenset[str], now: float) -> None:
        """Count the work that is lost with these pods."""
        for pod in filter(None, map(self._cluster.pods.get, batch)):
            for resource, amount in pod.shape.requests:
                self.lost[resource] += amount * (now - (pod.bound_at or now))

    def _pause_clock(self, holder: Gang, plan: Plan, now: float) -> None:
        """Let the group's clock stand still while its victims end, at most once for each attempt (contract rule 4)."""
        attempt = holder.record.timeouts
        if holder.operations.paused_at_attempt != attempt:
            holder.operations.note_pause(attempt)
            plan.attempt = attempt
            pods = self._cluster.pods
            graces_s = [pods[uid].lifetime.grace_s for uid in plan.leaving if uid in pods]
            plan.paused_until = now + max(graces_s, default=0)
            self._members.dirty.note(holder.key)

    def _refused(self, plan: Plan, now: float) -> list[str]:
        """Units of which an eviction is refused for good, or has been for too long."""
        refusals = self._refusals(plan)
        plan.refused_since = since = {uid: plan.refused_since.get(uid, now) for uid in refusals}
        failed = {
            uid for uid, each in refusals.items() if each.why is Spared.FORBIDDEN or now >= since[uid] + REFUSED_S
        }
        return [name for name, uids in plan.units.items() if not failed.isdisjoint(uids)] if failed else []

    def _refusals(self, plan: Plan) -> dict[str, EvictionRefused]:
        """Why the API server has last refused to evict pods that leave for the plan, by UID."""
        gangs = [self._members.gangs[key] for key in (*plan.whole, *plan.single) if key in self._members.gangs]
        doing = [each for gang in gangs for each in (gang.operations.parting, gang.operations.rollback) if each]
        found = self._loose.refused()
        for each in doing:
            found |= each.evictions.refused()
        return {uid: refusal for uid, refusal in found.items() if uid in plan.leaving}

    def _end(self, gang: Gang, plan: Plan, ending: Ending, refused: Iterable[str], now: float) -> None:
        key = gang.key
        self.ended[ending.name] += 1
        if ending.pauses:
            self.pace.pause(key, now)
        elif ending.name == STARTED:
            self.pace.forget(key)
            self._lasted_s.append(now - plan.opened_at)
        if ending.passes:
            self.pace.pass_over((each for name in refused for each in (name, *plan.units[name])), now)
        if ending.name == ROOM_LOST:
            self.pace.pass_over(plan.units, now, key)
        if ending.name in (REFUSED, ROOM_LOST):
            self._lost_plans.append((key, self._why_refused(plan)))
        for other, uids in plan.single.items():
            if other in self._members.gangs:
                preempted.keep(self._members.gangs[other], uids)
                self._members.dirty.note(other)
        self._loose.keep(plan.loose)
        clock.go_on_after(gang, plan.paused_s(gang.record.timeouts, now))
        gang.operations.wait_for(None)
        self.holders.pop(key, None)
        self._cluster.ledger.unreserve(key)
        self._members.dirty.note(key)

    def _why_refused(self, plan: Plan) -> str:
        """What the API server has said about an eviction; empty if it refuses none."""
        refusals = self._refusals(plan)
        return refusals[min(refusals)].message if refusals else ""

    # What others are told

    def take_lost(self) -> list[tuple[GroupKey, str]]:
        """Groups whose plans came to nothing since the last call, each with what the API server said if it refused."""
        lost, self._lost_plans = self._lost_plans, []
        return lost

    def take_told(self) -> list[tuple[Pod, GroupKey]]:
        """Single pods that were told to leave since the last call, each with the group for which they leave."""
        told, self._told = self._told, []
        return told

    def take_lasted(self) -> list[float]:
        """For how many seconds plans were open that have had their places since the last call."""
        lasted, self._lasted_s = self._lasted_s, []
        return lasted

    # Results and times

    def note_result(self, result: PodEvicted | EvictionRefused, now: float) -> None:
        """Note the result of the eviction of a pod without a group."""
        self._loose.note(result, now)

    def drop(self, key: GroupKey) -> None:
        """The group waits for nothing any more."""
        self.pace.forget(key)

    def next_due(self) -> float:
        """When something is due without an event, in epoch seconds; infinity if nothing is."""
        due = [self._loose.next_due()]
        for plan in self.opened().values() if self.holders else ():
            due.append(plan.expires)
            due += [since + REFUSED_S for since in plan.refused_since.values()]
        return min(due)
