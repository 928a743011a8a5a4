"""The decision logic of the scheduler, behind one entry point: `Machine.handle(events, now) -> effects`.

Each call applies the events to the cluster and the gangs, reconciles the gangs that they touched, runs one scheduling
cycle, and writes status. Nothing here does I/O, reads a clock or uses randomness: the same events at the same times
give the same effects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from gangsched.core.cluster.avoidance import Avoidance
from gangsched.core.composition import Composition
from gangsched.core.contention.forecasting import Forecasting
from gangsched.core.contention.proofs import Proofs
from gangsched.core.contention.prospects import Prospect, Prospects
from gangsched.core.cycle import Cycle
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.plan import Plan
from gangsched.core.membership.installations import Elsewhere
from gangsched.core.membership.rechecking import Contain, recheck_worsened
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.effects import Effect
from gangsched.core.objects.events import Event, PodSeen
from gangsched.core.objects.faults import Fault, FaultyStep, Omitted, Rebuilt, SetAside
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.stats import Measured, Stage, Stats
from gangsched.core.outcome import joined
from gangsched.core.planning import budget as units
from gangsched.core.planning.budget import Budget
from gangsched.core.queueing.agenda import Due
from gangsched.core.status import gang_events, usage
from gangsched.core.upkeep import RECONCILE_PAUSE_S_PER_POD


class Machine:
    """Events in, effects out. The only owner of the state; see the module's docstring."""

    def __init__(
        self,
        policy: Policy,
        *,
        reconcile_pause_s_per_pod: float = RECONCILE_PAUSE_S_PER_POD,
        passed: Callable[[Stage | None], None] = lambda _: None,
    ) -> None:
        """`passed` is called when each stage of a call ends, and with None when a call begins; it may read a clock."""
        self._passed = passed
        self._spent = 0
        self._avoidance = Avoidance()
        self._called = 0.0
        self._refusals: Counter[str] = Counter()
        self._touched: dict[GroupKey, None] = {}
        self._parts = Composition(policy, self._avoidance, reconcile_pause_s_per_pod)
        self._adopt(0.0)

    def _adopt(self, now: float) -> list[Effect]:
        """Use the parts as they are after a rebuild. The next call decides, and is due at once."""
        parts = self._parts
        state, self._intake, self._upkeep = parts.state, parts.intake, parts.upkeep
        self._state = state
        self.cluster, self.gangs, self.assessments = state.cluster, state.gangs, state.assessments
        self.ahead = state.ahead
        self._touched = dict.fromkeys(self.gangs)
        self._called, self._due = now, now if self._intake.synced else float("inf")
        return []

    def handle(self, events: Sequence[Event], now: float) -> list[Effect]:
        """Apply the events and decide; `now` is in epoch seconds, after 1970, and never goes back.

        All events are applied, whatever that costs. All other work of a call is bounded by its budget; the caller
        yields to other tasks, and calls again while `next_deadline` is due.
        """
        self._touched = {}
        if self._is_nothing_new(events, now):
            self._due = min(self._due, self._state.reserving.next_due(now))
            return []
        self._passed(None)
        self._avoidance.note_time(now)
        if not self._parts.store(events, now):
            return self._adopt(now)
        self._passed(Stage.EVENTS)
        effects: list[Effect] = [*self._avoidance.take_events()]
        if self._intake.synced:
            self._called = now
            try:
                self._decide(effects, now)
            except Exception:
                if not self._parts.blames(events, effects, now):
                    raise
                return self._adopt(now)
        else:
            effects.clear()
            self._forget_finished()
        return self._adopt(now) if self._parts.is_broken(effects, now) else effects

    def _decide(self, effects: list[Effect], now: float) -> None:
        """Go through the gangs in order within the budget, and write status."""
        state, upkeep = self._state, self._upkeep
        state.holders.renew(now)
        for key, withdrawals in state.members.take_given_up():
            upkeep.forget_decided(key)
            effects += withdrawals
        budget = Budget(units.CALL)
        while state.members.entering and budget:
            budget.charge(upkeep.take_in(next(iter(state.members.entering)), now))
        # Places that statuses hold are counted before any other is looked for.
        if state.members.entering:
            self._due = now
            return
        contain, take_in = partial(state.contain, now, FaultyStep.UPKEEP), partial(upkeep.take_in, now=now)
        if state.cluster.worsened:
            effects += recheck_worsened(state.cluster, state.members, take_in, contain, budget)
        effects += state.members.undeclared.take_events()
        state.restarts.keep(now, take_in, contain)
        state.dirty.begin_call(state.queue.begin_call())
        upkeep.note_due(now)
        self._passed(Stage.UPKEEP)
        outcomes = Cycle(state, upkeep, budget, now).run()
        self._touched = dict.fromkeys(outcomes)
        effects += joined(outcomes.values())
        for outcome in outcomes.values():
            self._refusals.update(outcome.refusals)
        contain = partial(state.contain, now, FaultyStep.CYCLE)
        if state.plans:
            self._go_on_with_plans(effects, budget, contain, now)
        state.note_sent(effects)
        state.searching.go_on(budget, now, contain)
        reserves = bool(state.reserving)
        if reserves:
            state.reserving.go_on(budget, now, contain)
            self._tell_of_reservations(effects)
        if state.forecasting.waiting:
            for key in state.forecasting.go_on(budget, now):
                state.agenda.hasten(Due.STATUS, key, now)
        self._passed(Stage.PLAN)
        self._write(effects, upkeep.unwritten(now), budget, now)
        searches = state.searching.unfinished or (reserves and state.reserving.unfinished)
        waiting = (state.dirty, state.queue.waits, state.unserved.waits, searches, state.forecasting.unfinished)
        unfinished = any(waiting) or state.cluster.relief or state.cluster.worsened
        self._due = now if unfinished else max(now, self._next_due(now))
        self._spent = budget.spent
        self._passed(Stage.STATUS)

    def _next_due(self, now: float) -> float:
        """When something is due even without an event, in epoch seconds; infinity if nothing is."""
        state = self._state
        return min(
            state.agenda.next(),
            state.leftovers.next_due(),
            self._avoidance.next_end(),
            state.restarts.next_end(),
            state.plans.next_due(),
            state.searching.next_due(),
            state.reserving.next_due(now),
            state.forecasting.next_due() if state.forecasting.waiting else float("inf"),
        )

    def _go_on_with_plans(self, effects: list[Effect], budget: Budget, contain: Contain, now: float) -> None:
        """Take what is due in open plans, and tell those who leave and those who lost a plan."""
        state, known, asking = self._state, self.assessments, self._state.asking
        proofs = Proofs(*(partial(ask, budget=budget, now=now) for ask in (asking.proves, asking.suffices)))
        effects += state.plans.go_on(now, proofs, partial(state.reserving.seeks, now=now), contain)
        told = state.plans.news.take_told()
        effects += [gang_events.on_preempted(pod, holder, overdue=overdue) for pod, holder, overdue in told]
        for key, why in state.plans.news.take_lost():
            effects += gang_events.on_plan_lost(self.gangs[key], known[key], why) if key in known else ()

    def _tell_of_reservations(self, effects: list[Effect]) -> None:
        """Tell groups whose reservations were moved, and those that use reserved nodes until then."""
        state, known = self._state, self.assessments
        for key, ending in state.plans.news.take_moved():
            # Who had not ended by the former start may have by this one.
            self._upkeep.try_again(state.queue.seeing(key))
            effects += gang_events.on_moved(self.gangs[key], known[key], ending) if key in known else ()
        for key in state.reserving.take_backfilled():
            effects += gang_events.on_backfilled(self.gangs[key], known[key]) if key in known else ()

    def _write(self, effects: list[Effect], unwritten: Sequence[GroupKey], budget: Budget, now: float) -> None:
        """Write what people and autoscalers are told about the gangs touched in this call, and about these."""
        state, upkeep = self._state, self._upkeep
        entered, kept_out = upkeep.let_in() if state.admission.stirred else ((), ())
        state.dirty.note(*kept_out)
        changed = dict.fromkeys((*self._touched, *unwritten))
        for key in changed:
            upkeep.write_status(key, effects, now)
        for key in entered:
            # They took the place of gangs that left in this call, and are tried in the next one, which is due at once.
            state.agenda.hasten(Due.RECONCILE, key, now)
        effects += state.leftovers.take_back(state.cluster, now)
        effects += state.unserved.decide(now, budget)
        contain = partial(state.contain, now, FaultyStep.DEMAND)
        effects += state.scaling.decide(self._touched, state.gangs, state.assessments, contain=contain, now=now)
        effects += state.phases.decide(changed, state.gangs, state.assessments, now)
        effects += state.expired.decide(state.containment.parked)

    def next_deadline(self) -> float | None:
        """When, in epoch seconds, the next call is due even without an event; None if none is.

        It is the time of the last call if that call left work undone.
        """
        return self._due if self._due < float("inf") else None

    @property
    def called(self) -> float:
        """When the last call that decided was made, in epoch seconds; 0.0 before the first."""
        return self._called

    @property
    def touched(self) -> Collection[GroupKey]:
        """The gangs that the last call has brought up to date or dropped; no other has another state than before it."""
        return self._touched

    @property
    def plans(self) -> Mapping[GroupKey, Plan]:
        """The open plans of preemption, by the groups for which others leave; for reading only."""
        return self._state.plans.opened()

    def preemption_of(self, key: GroupKey) -> Prospect | None:
        """What preemption means for the group at present; None if it does not wait for room that others could leave."""
        state, gang = self._state, self.gangs[key]
        prospects = Prospects(
            state.cluster, state.members, state.plans, state.searching, asking=state.asking, policy=state.policy
        )
        return prospects.of(gang, self.assessments[key], state.surroundings.priority_classes, self._called)

    @property
    def forecasting(self) -> Forecasting:
        """Finds out when waiting groups will probably start; for reading only."""
        return self._state.forecasting

    def lacking(self, pod: Pod) -> tuple[GroupKey, int] | None:
        """The gang that this new pod belongs to and how many members it lacks; None if it is not known to lack any."""
        if pod.uid in self.cluster.pods:
            return None
        pod = self._state.members.undeclared.declared(pod)
        if pod.declaration is None:
            return None
        key = GroupKey(pod.namespace, pod.declaration.group)
        assessment = self.assessments.get(key)
        return (key, assessment.missing) if assessment is not None and assessment.missing else None

    def stats(self) -> Stats:
        """The present state in numbers, for metrics."""
        queue = self._state.queue
        starts = [plan.start for plan in self.plans.values()]
        return Stats(
            pods=len(self.cluster.pods)
            - sum(len(gang.operations.placeholders()) for gang in self.gangs.values())
            - len(self._state.restarts.placeholders()),
            nodes=len(self.cluster.nodes),
            phases=Counter(gang.record.phase.value for gang in self.gangs.values() if not gang.plain),
            waiting=len(queue),
            parked=queue.parked,
            refusals=self._refusals,
            timeouts=self._upkeep.timeouts,
            avoided_nodes=len(self._avoidance.by_all()),
            node_refusals=self._avoidance.counted,
            held=usage.held(self.gangs.values(), self._state.restarts.placeholders(), self.cluster.pods),
            idle=usage.idle(self.gangs.values()),
            partial=sum(bool(gang.operations.partial_since) for gang in self.gangs.values()),
            set_aside=self._parts.quarantine.number(),
            plans=starts.count(None),
            ended=self._state.plans.ended,
            evictions=self._state.evictions,
            lost=self._state.plans.news.lost_work,
            trials=self._state.searching.trials,
            reservations=len(starts) - starts.count(None),
            reserved_idle=usage.reserved_idle(self.cluster),
            backfilled=self._state.reserving.backfilled,
        )

    def gang_of(self, uid: str) -> Gang | None:
        """The gang that the pod is a member of; None if there is none."""
        return self._state.members.gang_of(uid)

    def facts(self) -> list[Event]:
        """The observed state of the cluster as events, in the order of a start, without decisions.

        A new machine that applies them knows as much as a process that has just listed everything, and also which
        bindings the API server has confirmed though the watch does not show them yet.
        """
        return self._parts.facts()

    def elsewhere(self, namespace: str, name: str) -> Elsewhere | None:
        """The group of this name, or of the pod of this name, if it belongs to another installation; else None."""
        return self._state.members.installations.find(namespace, name)

    def take_measured(self) -> Measured:
        """What was measured since the last call."""
        return self._upkeep.take_measured(self._spent / units.CALL)

    def take_rivals(self) -> list[tuple[str, str]]:
        """Pods of ours that another process has bound since the last call, as ("NAMESPACE/POD", node) pairs."""
        return [(f"{pod.namespace}/{pod.name}", pod.node) for pod in self._state.members.take_rivals()]

    def validate(self) -> list[str]:
        """Contradictions in the state; empty when all is well (checked after every test)."""
        return self._state.validate()

    def take_faults(self) -> list[Fault | Omitted | Rebuilt | SetAside]:
        """The exceptions that were contained since the last call, and the contradictions that they led to."""
        return self._parts.take_faults()

    def set_aside(self) -> list[str]:
        """The objects that are set aside, each with its kind, its name and the exception."""
        return self._parts.quarantine.described()

    def _is_nothing_new(self, events: Sequence[Event], now: float) -> bool:
        """Whether no work is left or due, and the events change nothing that matters, as most updates by kubelets.

        What counts instead of an object that is set aside may be what that object is now.
        """
        if not self._intake.synced or self._due <= now or self._parts.quarantine:
            return False
        return all(isinstance(event, PodSeen) and self._state.members.is_known(event.pod) for event in events)

    def _forget_finished(self) -> None:
        """Drop gangs that no object refers to any more, while the machine does not decide yet, as on a standby."""
        members = self._state.members
        for key in members.dirty:
            gang = self.gangs.get(key)
            if gang is None or members.finished(gang):
                self._upkeep.forget(key)
        members.dirty.forget_all()
        members.installations.forget_gone()
        members.take_given_up()
        self._state.restarts.forget_lost()
        self.cluster.forget_worsened()
