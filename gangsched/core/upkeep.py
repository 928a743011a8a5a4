"""Reconciles the gangs that are due in a call of the machine, and updates the queue accordingly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from gangsched.core.decided import Left
from gangsched.core.gang import bindings, making, prebinding, rollback
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.reconcile import reconcile
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.effects import Effect
from gangsched.core.objects.faults import FaultyStep
from gangsched.core.objects.stats import Measured
from gangsched.core.planning import budget as units
from gangsched.core.planning.budget import Budget
from gangsched.core.state import State

LARGE = 250
RECONCILE_PAUSE_S_PER_POD = 20e-6
"""After a gang of more than LARGE pods was reconciled, it is not reconciled again for RECONCILE_PAUSE_S_PER_POD seconds
for each of its pods, unless it wants a quorum, a repair or a move, or may have become complete. So reconciling takes
about a tenth of the time, and batches the events of its members."""


class Upkeep:
    """Reconciles gangs, stores their assessments, puts them into the queue and writes their status.

    `timeouts` counts time-outs and only grows.
    """

    def __init__(self, state: State, reconcile_pause_s_per_pod: float) -> None:
        self.timeouts = 0
        self._waits: list[tuple[int, float]] = []
        self._partial_s: list[float] = []
        self._partial_since: dict[GroupKey, float] = {}
        self._state = state
        self._assessments = state.assessments
        self._reconcile_pause_s_per_pod = reconcile_pause_s_per_pod

    def go_on_from(self, former: Upkeep) -> None:
        """Continue the counters and measurements of the former one."""
        self.timeouts = former.timeouts
        former_measured = former.take_measured()
        self._waits, self._partial_s = [*former_measured.waits], [*former_measured.partial_s]
        self._partial_since = former._partial_since

    def take_measured(self, budget: float = 0.0) -> Measured:
        """The measurements since the last call; `budget` is the share of its budget that the machine has spent."""
        measured = Measured(waits=self._waits, partial_s=self._partial_s, budget=budget)
        self._waits, self._partial_s = [], []
        return measured

    def take_in(self, effects: Sequence[Effect], now: float) -> None:
        """Apply to each gang what was stored about it, except to those whose logic has failed."""
        state = self._state
        for key in state.members.take_told():
            gang = state.gangs[key]
            step = FaultyStep.RECOVERY if gang.inbox.enters else FaultyStep.EVENT
            if key not in state.containment.parked:
                try:
                    state.take_in(gang, now)
                except Exception as error:  # noqa: BLE001 - a defect may raise anything
                    state.contain(effects, now, step, key, error)

    def some(self, effects: list[Effect], now: float, budget: Budget) -> tuple[dict[GroupKey, None], list[GroupKey]]:
        """Reconcile gangs that an event or a deadline concerns, in the order of contract rule 6, with half the budget.

        A quarter of that may go first to gangs that have waited for more than PATIENCE calls. Returns the gangs, and
        those of which only the status is due, limited by an eighth of the budget.
        """
        state, dirty = self._state, self._state.members.dirty
        dirty.begin_call(state.queue.begin_call())
        while budget.spent < units.CALL // 8 and (due := state.deadlines.take_due(now)) is not None:
            dirty.note(due)
            budget.charge(units.POD)
        touched: dict[GroupKey, None] = {}
        while budget.spent < units.CALL // 4 and state.queue.is_overdue(dirty.since):
            budget.charge(self.if_due(dirty.take_longest_waiting(), touched, effects, now))
        while budget.spent < units.CALL // 2 and (first := dirty.take_first()) is not None:
            budget.charge(self.if_due(first, touched, effects, now))
        unwritten: list[GroupKey] = []
        while budget.spent < units.CALL * 5 // 8 and (due := state.status_deadlines.take_due(now)) is not None:
            unwritten.append(due)
            budget.charge(units.GANG // 2)
        return touched, unwritten

    def if_due(self, key: GroupKey, touched: dict[GroupKey, None], effects: list[Effect], now: float) -> int:
        """Reconcile the gang, unless it is large and can wait. Returns the work in budget units."""
        state, containment = self._state, self._state.containment
        gang = state.gangs.get(key)
        if gang is None:
            touched[key] = None
            return 0
        if now < gang.reconcile_not_before and not (state.queue.wants_first(key) or self._may_be_complete(gang)):
            state.deadlines.hasten(key, gang.reconcile_not_before)
            if key in state.queue:
                state.queue.file(gang, self._assessments[key])
            return units.POD
        touched[key] = None
        if key in containment.parked and not containment.may_leave(key, now):
            return units.GANG
        decided = len(effects)
        try:
            if key in containment.parked:
                gang = containment.release(key)
                state.take_in(gang, now)
            self._advance(gang, effects, now)
        except Exception as error:  # noqa: BLE001 - a defect may raise anything
            del effects[decided:]
            state.contain(effects, now, FaultyStep.UPKEEP, key, error)
        return units.GANG + units.POD * gang.observed.size

    def _may_be_complete(self, gang: Gang) -> bool:
        """Whether at least as many pods have come as the gang lacked when it was last reconciled.

        Then it may be ahead of others in the order, and is looked at before they are planned.
        """
        assessment = self._assessments.get(gang.key)
        lacked = 0 if assessment is None else max(assessment.missing, sum(assessment.missing_roles.values()))
        return 0 < lacked <= gang.observed.size - gang.reconciled_size

    def _advance(self, gang: Gang, effects: list[Effect], now: float) -> None:
        state = self._state
        if gang.observed.size > LARGE:
            gang.allow_reconcile(not_before=now + gang.observed.size * self._reconcile_pause_s_per_pod)
        partial_since = gang.operations.partial_since
        assessment, decided = reconcile(
            gang,
            state.cluster,
            policy=state.policy,
            priority_classes=state.surroundings.priority_classes,
            foreign=state.members.foreign,
            avoidance=state.avoidance,
            now=now,
        )
        self._assessments[gang.key] = assessment
        state.surroundings.resting.note(gang)
        state.starts.note(gang, assessment.terms.spec.min_resources)
        effects += decided
        self.timeouts += assessment.timed_out
        if assessment.newly_scheduled and gang.observed.complete_since:
            self._waits.append((assessment.terms.priority, now - gang.observed.complete_since))
        self._measure_partial(gang, partial_since, now)
        if state.admission.admits(gang, assessment, now):
            state.queue.file(gang, assessment)
        else:
            state.queue.drop(gang.key)

    def _measure_partial(self, gang: Gang, before: float, now: float) -> None:
        """Measure how long the quorum was partly bound, if that has ended; `before`: since when it was, until now.

        An attempt to complete it that begins in between has a time of its own, but is part of the same wait.
        """
        if since := before or gang.operations.partial_since:
            self._partial_since.setdefault(gang.key, since)
        if not gang.operations.partial_since and (began := self._partial_since.pop(gang.key, 0.0)):
            self._partial_s.append(now - began)

    def write_status(self, key: GroupKey, effects: list[Effect], now: float) -> None:
        """Write the gang's status if it is due, and drop the gang if no object refers to it any more."""
        state, containment = self._state, self._state.containment
        gang = state.gangs.get(key)
        if gang is None:
            self.forget(key)
            return
        if key not in containment.parked:
            try:
                assessment = self._assessments[key]
                state.writer.schedule(gang, assessment, now)
                if gang.next_write.write_at <= now:
                    written = state.writer.write(gang, assessment, now)
                    state.writer.schedule(gang, assessment, now)
                    effects += written
                state.status_deadlines.set(key, gang.next_write.write_at)
            except Exception as error:  # noqa: BLE001 - a defect may raise anything
                state.contain(effects, now, FaultyStep.STATUS, key, error)
        if key in containment.parked:
            effects += containment.handle_parked(key, now)
        if state.members.finished(state.gangs[key]):
            self.forget(key)

    def forget(self, key: GroupKey) -> None:
        """Drop a gang that no longer exists."""
        state = self._state
        state.members.drop(key)
        state.surroundings.resting.forget(key)
        self._partial_since.pop(key, None)
        self._assessments.pop(key, None)
        state.leave(key)
        state.deadlines.drop(key)
        state.containment.drop(key)

    def set_deadlines(self, keys: Iterable[GroupKey], effects: list[Effect], now: float) -> None:
        """Set the time at which each of these gangs must be reconciled again; called after their status was written."""
        state = self._state
        for key in keys:
            gang = state.gangs.get(key)
            if gang is None:
                continue
            due = self._assessments[key].due
            if key not in state.containment.parked:
                try:
                    own = (bindings.next_retry(gang), rollback.next_due(gang), making.due(gang))
                    due = min(due, *own, prebinding.next_due(gang, state.policy))
                except Exception as error:  # noqa: BLE001 - a defect may raise anything
                    state.contain(effects, now, FaultyStep.UPKEEP, key, error)
                    effects += state.containment.handle_parked(key, now)
                    due = self._assessments[key].due
            state.deadlines.set(key, due)

    def try_again(self, keys: Iterable[GroupKey]) -> None:
        """Have the next cycle try these gangs, although the cluster has not changed since they were refused."""
        state = self._state
        for key in keys:
            gang = state.gangs[key]
            gang.attempt.try_again()
            if key in state.queue:
                state.queue.file(gang, self._assessments[key])

    def want_only(self, left: Mapping[GroupKey, Left]) -> None:
        """Reduce what these gangs want above the minimum to what the cycle did not place."""
        for key, (parts, extras) in left.items():
            assessment = self._assessments[key]
            self._assessments[key] = replace(assessment, want=replace(assessment.want, parts=parts, extras=extras))

    def let_in(self) -> list[GroupKey]:
        """Admit the gangs for which there is room. Returns them."""
        state = self._state
        entered, kept_out = state.admission.let_in(state.gangs)
        # Reconciling them stops their clocks, because a group that may not be tried must not time out.
        state.members.dirty.note(*state.admission.take_giving_way(), *kept_out)
        for key in entered:
            state.queue.file(state.gangs[key], self._assessments[key])
        return entered
