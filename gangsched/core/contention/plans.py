"""Open plans: the places that are reserved for a group until those that hold them have left.

They are preempted, or end by themselves (`Plan.start`). Each step of a preemption waits for the one before: the
reservation is in the group's status; it is written in the status of each group that leaves entirely; then pods are
evicted. Meanwhile the group is tried with whatever is free, and its plan ends as soon as it has its places. A plan ends
in one of the ways of `ENDINGS`; whoever has not begun to leave stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from gangsched.core.cluster.cache import Cluster
from gangsched.core.contention import endings
from gangsched.core.contention.batches import allowed_beside, next_batch
from gangsched.core.contention.covering import missing, note_cover
from gangsched.core.contention.loose import Loose
from gangsched.core.contention.lost_nodes import note_nodes
from gangsched.core.contention.marks import Marks
from gangsched.core.contention.opening import Opening
from gangsched.core.contention.overdue import CalledIn, Overdue
from gangsched.core.contention.pace import KEPT_S, Pace
from gangsched.core.contention.plan_news import PlanNews
from gangsched.core.contention.pool import OVERDUE_S
from gangsched.core.contention.proofs import Proofs
from gangsched.core.contention.refusals import REFUSED_S, Refusals, failed
from gangsched.core.contention.singles import Singles
from gangsched.core.contention.surplus import is_leaving
from gangsched.core.gang import clock
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.plan import Plan
from gangsched.core.membership.members import Members
from gangsched.core.membership.rechecking import Contain
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.effects import Effect
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.results import EvictionRefused, PodEvicted

_FOLLOWER = "Plans"


class Ended(NamedTuple):
    """A plan has ended in the way of this name, at a time in epoch seconds."""

    how: str
    at: float


class Plans:
    """The open plans of all groups; `ended` counts endings by name.

    `holders` are the groups with a plan, or with what the last one had reserved: until when at most, in epoch seconds.
    """

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
        self.opening = Opening(cluster, is_foreign=is_foreign)
        self.pace = Pace(a_minute)
        self.holders: dict[GroupKey, float] = {}
        self.ended: Counter[str] = Counter()
        self._loose = Loose(cluster)
        self._refusals = Refusals(members.gangs, self._loose)
        self.news = PlanNews()
        self._ended: dict[GroupKey, Ended] = {}
        self._marks = Marks(members, assessments)
        self._singles = Singles(members)
        self._overdue = Overdue(cluster, members)

    # A plan's life

    def __bool__(self) -> bool:
        """Whether a plan is open, or something of one is left to do."""
        return bool(self.holders or self._loose.pods or self._marks.marked or self._singles.gangs)

    def next_for(self, key: GroupKey) -> float:
        """From when on, in epoch seconds, others may be preempted for the group; infinity while they are."""
        gang = self._members.gangs.get(key)
        plan = gang.operations.plan if gang is not None else None
        # The nodes that a former leader has reserved may be back soon.
        preempts = plan is not None and plan.start is None and (not plan.former or plan.lost_at < clock.NEVER)
        return float("inf") if preempts else self.pace.allowed_from(key)

    def opened(self) -> dict[GroupKey, Plan]:
        """The open plans."""
        gangs = ((key, self._members.gangs.get(key)) for key in self.holders)
        return {key: plan for key, gang in gangs if gang is not None and (plan := gang.operations.plan) is not None}

    def allowed(self, *, exceeds: bool = False) -> dict[str, int]:
        """How many more evictions each disruption budget allows, beside open plans; any if a plan `exceeds`."""
        return allowed_beside(self._cluster, self.opened().values(), exceeds=exceeds)

    def lost(self, gang: Gang) -> Ended | None:
        """How the places were lost that the group had reserved for later, if it has waited for them ever since."""
        ended = self._ended.get(gang.key) if gang.operations.plan is None else None
        is_lost = ended is not None and ended.how in endings.LOST and ended.at >= gang.operations.complete_since
        return ended if is_lost else None

    def open(self, gang: Gang, plan: Plan, now: float) -> None:
        """Reserve the plan's places for the group, instead of those that it has."""
        self.pace.tokens.take(len(plan.victims))
        former = gang.operations.plan
        if former is not None and not former.former:
            self._end(gang, former, endings.MOVED, (), now)
        gang.operations.wait_for(plan)
        if not gang.plain:
            # What a former leader had reserved is written, if it is the same.
            same = {(pod.uid, node) for pod, node in former.places} if former is not None and former.former else set()
            gang.durability.written(pod.uid for pod, node in plan.places if (pod.uid, node) in same)
            gang.durability.ask(now)
        self.holders[gang.key] = clock.NEVER
        # It was tried while they all were there.
        plan.remaining = sum(map(self._cluster.pods.__contains__, plan.leaving))
        self._cluster.ledger.reserve(gang.key, plan.places, plan.leaving, start=plan.start)
        self.fill_up()
        self._members.dirty.note(gang.key)
        if plan.start is not None and gang.key in self._ended:
            self.news.moved.append((gang.key, self._ended.pop(gang.key).how))

    def leave_for(self, gang: Gang, plan: Plan) -> None:
        """Others leave for the plan of this group than did so far."""
        plan.note_leaving()
        self._cluster.ledger.leave_for(gang.key, plan.leaving)

    def fill_up(self) -> None:
        """Withhold what has come free of places of which nobody knows when all of them will be."""
        filling = {key for key, room in self._cluster.ledger.reserved.items() if room.fills_up}
        touched = self._cluster.ledger.touched.take("Filling") if filling else set[str]()
        for key, plan in self.opened().items() if touched else ():
            if key in filling and not touched.isdisjoint(plan.nodes):
                self._cluster.ledger.reserved[key].lack(missing(self._cluster, plan))

    def give_up(self, gang: Gang, ending: endings.Ending, now: float) -> None:
        """End the group's plan, if it has one."""
        if gang.operations.plan is not None:
            self._end(gang, gang.operations.plan, ending, (), now)

    def take_up(self, gang: Gang) -> None:
        """Go on with the plan of a former leader, if the group has one."""
        if gang.operations.plan is not None:
            self.holders[gang.key] = clock.NEVER

    def go_on(self, now: float, proofs: Proofs, seeks: Callable[[Gang], bool], contain: Contain) -> list[Effect]:
        """Take what is due in each plan. Returns evictions of pods without a group.

        By the `proofs` a plan must be right still before anybody is evicted. `seeks` tells whether another one is
        looked for: so long what the last one has reserved is kept, but not for longer than KEPT_S. `contain` is called
        with each group whose logic fails.
        """
        # Without a plan nobody would take what is noted later.
        noted = self._cluster.ledger.journal.take(_FOLLOWER) if self.holders else None
        changed = frozenset(noted) if noted is not None else None
        tightened = self._cluster.ledger.tightened.take(_FOLLOWER) if self.holders else set[str]()
        for key in [*self.holders]:
            gang = self._members.gangs.get(key)
            try:
                if gang is not None and gang.operations.plan is not None:
                    self._go_on(gang, gang.operations.plan, now, proofs, changed, tightened)
                else:
                    self.holders[key] = min(self.holders[key], now + KEPT_S)
                    if gang is None or now >= self.holders[key] or not seeks(gang):
                        self._release(key)
            except Exception as error:  # noqa: BLE001 - a defect may raise anything
                contain(key, error)
        plans = self.opened().values()
        self._marks.keep(set[GroupKey]().union(*(plan.whole for plan in plans)))
        self._keep_singles()
        return self._loose.go_on(set[str]().union(*(plan.loose for plan in plans)), now)

    def _go_on(
        self, gang: Gang, plan: Plan, now: float, proofs: Proofs, changed: frozenset[str] | None, tightened: set[str]
    ) -> None:
        key, claims, gang_of = gang.key, self._cluster.ledger.claims, self._members.gang_of
        stay = any(uid in claims and not is_leaving(claims[uid], gang_of(uid)) for uid in plan.anyway)
        refusals = self._refusals.of(plan)
        plan.refused_since = {uid: plan.refused_since.get(uid, now) for uid in refusals}
        refused = failed(plan, refusals, plan.refused_since, now)
        look = endings.Look(gang, self._assessments.get(key), plan, self._cluster, refused, stay, self._is_foreign, now)
        note_nodes(plan, self._cluster, now)
        if plan.former and not plan.asked:
            # What it asked for when a former leader opened it is not known.
            plan.note_asked(gang.wait.asked)
        if plan.start is None:
            note_cover(plan, self._cluster, tightened)
        if (ending := next((row for row in endings.ENDINGS if row.fact(look)), None)) is not None:
            self._end(gang, plan, ending, look.refused or self._marks.missing(plan), now)
            return
        if plan.former:
            return
        self._note_leaving(gang, plan, look, changed)
        if (called := self._overdue.called_in(gang, plan, self.allowed, proofs.suffices, now)) is not None:
            self._call_in(gang, plan, called)
        batch = next_batch(plan, self._cluster)
        if not batch or not gang.has_told_places() or self._marks.are_on_their_way(plan):
            return
        # A new leader evicts whoever is marked, so the plan must be right before that, and once more after it.
        if proofs.proves(gang, plan):
            if self._marks.hold(gang, plan, now):
                self._tell(gang, plan, batch, now)
        elif plan.start is not None:
            self._end(gang, plan, endings.UNKEPT, plan.units, now)
        else:
            # Something may have changed once. If it was wrong from the start, the next one will be too.
            self.pace.pause(key, now, excused=True)
            self._end(gang, plan, endings.CHANGED, (), now)

    def _call_in(self, gang: Gang, plan: Plan, called: CalledIn) -> None:
        """Have those evicted who have overstayed."""
        plan.whole = {**plan.whole, **called.whole}
        plan.loose = plan.loose.union(*called.loose.values())
        plan.units = {**plan.units, **called.loose, **{str(key): uids for key, uids in called.whole.items()}}
        plan.spared |= called.spared
        for key in called.whole:
            self._members.gangs[key].operations.overstay()
        plan.expires = max(plan.expires, called.expires)
        self.leave_for(gang, plan)

    def _note_leaving(self, gang: Gang, plan: Plan, look: endings.Look, changed: frozenset[str] | None) -> None:
        """Have the group tried whenever another pod has left, and wait for those that still terminate.

        Only these pods have changed since this was last noted; with None any may have.
        """
        before = plan.remaining
        if changed is None or plan.looked_at is not plan.leaving or not plan.leaving.isdisjoint(changed):
            remaining = [*filter(None, map(self._cluster.pods.get, plan.leaving))]
            plan.expires = max(plan.expires, OVERDUE_S + max((pod.gone_by for pod in remaining), default=0.0))
            plan.remaining, plan.looked_at = len(remaining), plan.leaving
        if plan.remaining != before or (look.left and not plan.tried_when_left):
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
        self.news.note_lost(filter(None, map(pods.get, batch)), now)
        self._pause_clock(holder, plan, now)
        told = sorted(filter(pods.__contains__, loose.union(*single.values())))
        self.news.told += [(pods[uid], holder.key, plan.start is not None) for uid in told]
        for key, uids in single.items():
            self._singles.evict(key, uids, now)
        self._loose.evict(sorted(loose))

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

    def _end(self, gang: Gang, plan: Plan, ending: endings.Ending, refused: Iterable[str], now: float) -> None:
        key = gang.key
        self.ended[ending.name] += 1
        if ending.pauses:
            self.pace.pause(key, now)
        elif ending.name == endings.STARTED:
            self.pace.forget(key)
            self._ended.pop(key, None)
            self.news.lasted_s += [now - plan.opened_at] if plan.start is None else []
        if ending.passes:
            self.pace.pass_over((passed for name in refused for passed in (name, *plan.units[name])), now)
        if ending.name == endings.ROOM_LOST:
            self.pace.pass_over((name for name, uids in plan.units.items() if uids & plan.told), now, key)
        if plan.start is not None and ending.name != endings.STARTED:
            self._ended[key] = Ended(ending.name, now)
        elif ending.name in (endings.REFUSED, endings.ROOM_LOST):
            self.news.lost.append((key, self._refusals.why(plan)))
        self._loose.keep(plan.loose)
        if key in self._assessments:
            clock.go_on_after(gang, clock.paused_s(gang, plan, self._assessments[key].terms, now))
        gang.operations.wait_for(None)
        if ending.pauses or ending.name in endings.FINAL:
            # Otherwise its room is kept while another plan is looked for.
            self._release(key)
        self._keep_singles()
        self._members.dirty.note(key)

    def _release(self, key: GroupKey) -> None:
        """Nothing is reserved for the group any more."""
        self.holders.pop(key, None)
        self._cluster.ledger.unreserve(key)
        if not self.holders:
            self._cluster.ledger.journal.forget(_FOLLOWER)

    def _keep_singles(self) -> None:
        """Let members stay that no open plan wants to leave."""
        plans = self.opened().values()
        self._singles.keep(set[str]().union(*(uids for plan in plans for uids in plan.single.values())))

    # Results and times

    def note_result(self, result: PodEvicted | EvictionRefused, now: float) -> None:
        """Note the result of the eviction of a pod without a group."""
        self._loose.note(result, now)

    def drop(self, key: GroupKey) -> None:
        """The group waits for nothing any more."""
        self.pace.forget(key)
        self._ended.pop(key, None)

    def next_due(self) -> float:
        """When something is due without an event, in epoch seconds; infinity if nothing is."""
        due = [self._loose.next_due(), *self.holders.values()]
        for key, plan in self.opened().items() if self.holders else ():
            due += [plan.expires, plan.lost_at, self._overdue.due(self._members.gangs[key], plan)]
            due += [since + REFUSED_S for since in plan.refused_since.values()]
        return min(due)
