"""What a call of the machine does for one gang beside placing it: reconciling, filing and writing its status."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import islice

from gangsched.core.gang import news
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.mail import Context
from gangsched.core.gang.reconcile import conclude, reconcile
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.effects import Effect
from gangsched.core.objects.faults import FaultyStep
from gangsched.core.objects.stats import Measured
from gangsched.core.outcome import Outcome
from gangsched.core.planning import budget as units
from gangsched.core.queueing.agenda import Due
from gangsched.core.state import State
from gangsched.core.status.conditions import reason_of

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
        plans_s, starts = self._state.plans.news.take_lasted(), self._state.forecasting.told_starts.take_errors()
        measured = Measured(waits=self._waits, partial_s=self._partial_s, plans_s=plans_s, starts=starts, budget=budget)
        self._waits, self._partial_s = [], []
        return measured

    def take_in(self, key: GroupKey, now: float) -> int:
        """Apply to the gang what was stored about it, unless its logic has failed. Returns the work in budget units."""
        state, gang = self._state, self._state.gangs.get(key)
        step = FaultyStep.RECOVERY if state.members.take_entering(key) else FaultyStep.EVENT
        if gang is None or not gang.inbox or key in state.containment.parked:
            return 0
        try:
            news.take_in(gang, Context(state.cluster, state.members.foreign, state.policy, now))
            if step is FaultyStep.RECOVERY:
                state.admission.go_on(gang)
                state.plans.take_up(gang)
        except Exception as error:  # noqa: BLE001 - a defect may raise anything
            state.contain(now, step, key, error)
        return units.GANG + units.POD * gang.observed.size if step is FaultyStep.RECOVERY else 0

    def note_due(self, now: float) -> None:
        """Mark the gangs dirty whose time has come, for an eighth of the budget of a call."""
        state, spent = self._state, 0
        while spent < units.CALL // 8 and (due := state.agenda.take_due(Due.RECONCILE, now)) is not None:
            state.dirty.note(due)
            spent += units.POD

    def reconcile(self, key: GroupKey, outcomes: dict[GroupKey, Outcome], now: float) -> int:
        """Bring the gang up to date, unless it is large and can wait. Returns the work in budget units.

        Whatever has happened to a gang whose logic has failed, it is left alone until it may be tried again.
        """
        state, containment = self._state, self._state.containment
        self.take_in(key, now)
        gang = state.gangs.get(key)
        if gang is None:
            outcomes[key] = Outcome(reconciled=True)
            self.forget(key)
            return 0
        if now < gang.reconcile_not_before and not (state.queue.wants_first(key) or self._may_be_complete(gang)):
            state.agenda.hasten(Due.RECONCILE, key, gang.reconcile_not_before)
            if key in state.queue:
                state.queue.file(gang, self._assessments[key])
            return units.POD
        outcome = outcomes.setdefault(key, Outcome())
        outcome.reconciled = True
        if key in containment.parked:
            if not containment.may_leave(key, now):
                return units.GANG
            containment.release(key)
            self.take_in(key, now)
            if key in containment.parked:
                return units.GANG
            gang = state.gangs[key]
        self._reconcile(gang, outcome, now)
        return units.GANG + units.POD * gang.observed.size

    def _may_be_complete(self, gang: Gang) -> bool:
        """Whether at least as many pods have come as the gang lacked when it was last reconciled.

        Then it may be ahead of others in the order, and is looked at before they are planned.
        """
        assessment = self._assessments.get(gang.key)
        lacked = 0 if assessment is None else max(assessment.missing, sum(assessment.missing_roles.values()))
        return 0 < lacked <= gang.observed.size - gang.reconciled_size

    def _reconcile(self, gang: Gang, outcome: Outcome, now: float) -> None:
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
        outcome.decide(decided)
        state.surroundings.resting.note(gang)
        if assessment.newly_scheduled and gang.operations.complete_since:
            self._waits.append((assessment.terms.priority, now - gang.operations.complete_since))
        self._measure_partial(gang, partial_since, now)
        self._assessments[gang.key] = assessment
        self._file(gang, assessment, now)

    def conclude(self, key: GroupKey, outcome: Outcome, now: float) -> None:
        """End what this call does about the gang: its phase, what it still wants, and the effects that are due."""
        state, gang = self._state, self._state.gangs[key]
        assessment, decided = conclude(
            gang,
            state.cluster,
            self._assessments[key],
            tried=outcome.tried,
            policy=state.policy,
            avoidance=state.avoidance,
            now=now,
        )
        outcome.decide(decided)
        gang.note_reason(reason_of(gang, assessment), now)
        self._assessments[key] = assessment
        if outcome.tried:
            self._file(gang, assessment, now)
        state.searching.note(gang, assessment, state.surroundings.priority_classes)
        state.reserving.note(gang, assessment)
        if gang.wait.parked or key in state.forecasting.waiting:
            state.forecasting.note(gang, assessment, now)
        state.agenda.set(Due.RECONCILE, key, assessment.due)

    def _file(self, gang: Gang, assessment: Assessment, now: float) -> None:
        """Put the gang into the queue, if it may be tried, with what it wants now."""
        state = self._state
        state.starts.note(gang, assessment.terms.spec.min_resources)
        self.timeouts += assessment.timed_out
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
                if gang.written.write_at <= now:
                    written = state.writer.write(gang, assessment, now)
                    state.writer.schedule(gang, assessment, now)
                    effects += written
                state.agenda.set(Due.STATUS, key, gang.written.write_at)
            except Exception as error:  # noqa: BLE001 - a defect may raise anything
                state.contain(now, FaultyStep.STATUS, key, error)
        if key in containment.parked:
            effects += containment.handle_parked(key, now)
            state.agenda.set(Due.RECONCILE, key, self._assessments[key].due)
        if state.members.finished(state.gangs[key]):
            self.forget(key)

    def unwritten(self, now: float) -> list[GroupKey]:
        """The gangs of which only the status is due, for an eighth of the budget of a call."""
        most = max(1, units.CALL // 8 // (units.GANG // 2))
        due = iter(partial(self._state.agenda.take_due, Due.STATUS, now), None)
        # What is stored of a gang with news is not what its record speaks of: it is written at its turn.
        return [key for key in islice(due, most) if not self._state.gangs[key].inbox]

    def forget(self, key: GroupKey) -> None:
        """Drop a gang that no longer exists."""
        self._state.members.drop(key)
        self.forget_decided(key)

    def forget_decided(self, key: GroupKey) -> None:
        """Forget all that was decided about a gang that was dropped, even if it has been made again."""
        state = self._state
        state.surroundings.resting.forget(key)
        self._partial_since.pop(key, None)
        self._assessments.pop(key, None)
        state.leave(key)
        state.agenda.drop(Due.RECONCILE, key)
        state.containment.drop(key)

    def try_again(self, keys: Iterable[GroupKey]) -> None:
        """Have the next cycle try these gangs, although the cluster has not changed since they were refused."""
        state = self._state
        for key in keys:
            gang = state.gangs[key]
            gang.wait.try_again()
            if key in state.queue:
                state.queue.file(gang, self._assessments[key])

    def let_in(self) -> tuple[list[GroupKey], list[GroupKey]]:
        """Admit the gangs for which there is room. Returns them, and those that are newly kept out."""
        state = self._state
        entered, kept_out, giving_way = state.admission.let_in(state.gangs)
        state.dirty.note(*giving_way)
        for key in entered:
            state.queue.file(state.gangs[key], self._assessments[key])
        return entered, kept_out
