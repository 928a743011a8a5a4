"""Which gangs are brought up to date in one call of the machine, and what that makes of who waits."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gangsched.core.cluster.cache import Cluster
from gangsched.core.containment import Containment
from gangsched.core.gang import bindings, making, rollback
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.lifecycle import Assessment
from gangsched.core.gang.membership import Members
from gangsched.core.gang.reconcile import reconcile
from gangsched.core.gang.surroundings import Surroundings
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.effects import Effect
from gangsched.core.objects.faults import Step
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.policy import Policy
from gangsched.core.planning import budget as units
from gangsched.core.planning.budget import Budget
from gangsched.core.queueing import validation
from gangsched.core.queueing.admission import Admission
from gangsched.core.queueing.deadlines import Deadlines
from gangsched.core.queueing.queue import Queue
from gangsched.core.status.writer import StatusWriter

LARGE = 250
LOOK_S_PER_POD = 20e-6
"""A gang of more than LARGE pods that waits for nothing in the queue is brought up to date at most this often for each
of its pods: that costs about a tenth of it, and events of its members that come in between are dealt with together."""


class Upkeep:
    """Reconciles gangs, keeps `assessments`, files each gang where it waits, and has people told.

    `leave` has all that waits for a gang forget it. `timeouts` only grows.
    """

    def __init__(
        self,
        cluster: Cluster,
        members: Members,
        assessments: dict[GroupKey, Assessment],
        *,
        surroundings: Surroundings,
        queue: Queue,
        admission: Admission,
        deadlines: Deadlines,
        tellings: Deadlines,
        writer: StatusWriter,
        containment: Containment,
        leave: Callable[[GroupKey], None],
        policy: Policy,
        look_s_per_pod: float,
    ) -> None:
        self.timeouts = 0
        self._waits: list[float] = []
        self._cluster = cluster
        self._members = members
        self._assessments = assessments
        self._surroundings = surroundings
        self._queue = queue
        self._admission = admission
        self._deadlines = deadlines
        self._tellings = tellings
        self._writer = writer
        self._containment = containment
        self._leave = leave
        self._policy = policy
        self._look_s_per_pod = look_s_per_pod

    def go_on_from(self, former: Upkeep) -> None:
        """Count on from there: all else was made anew."""
        self.timeouts = former.timeouts
        self._waits = former.take_waits()

    def lacking(self, pod: Pod) -> tuple[GroupKey, int] | None:
        """The gang that this new pod belongs to and how many members it lacks; None if it is not known to lack any."""
        if pod.uid in self._cluster.pods or pod.declaration is None:
            return None
        key = GroupKey(pod.namespace, pod.declaration.group)
        assessment = self._assessments.get(key)
        return (key, assessment.missing) if assessment is not None and assessment.missing else None

    def some(
        self, waiting: int, effects: list[Effect], now: float, budget: Budget
    ) -> tuple[dict[GroupKey, None], list[GroupKey]]:
        """Bring gangs up to date: with a quarter of the budget each those touched by this call's events, those that
        have been `waiting` for that (or more of the former), the longest waiting first, and those that are due.

        Returns them, and with an eighth of the budget those of which only something is due to be told.
        """
        touched: dict[GroupKey, None] = {}
        dirty = self._members.dirty
        for key in dirty.beyond(waiting):
            if budget.spent >= units.TURN // 4:
                break
            dirty.done(key)
            budget.charge(self.if_due(key, touched, effects, now))
        while budget.spent < units.TURN // 2 and (longest := dirty.first()) is not None:
            dirty.done(longest)
            budget.charge(self.if_due(longest, touched, effects, now))
        while budget.spent < units.TURN * 3 // 4 and (due := self._deadlines.take_due(now)) is not None:
            budget.charge(self.if_due(due, touched, effects, now))
        to_be_told: list[GroupKey] = []
        while budget.spent < units.TURN * 7 // 8 and (untold := self._tellings.take_due(now)) is not None:
            to_be_told.append(untold)
            budget.charge(units.GANG // 2)
        return touched, to_be_told

    def if_due(self, key: GroupKey, touched: dict[GroupKey, None], effects: list[Effect], now: float) -> int:
        """Bring the gang up to date, unless it is large and can wait. Returns the work as units."""
        gang = self._members.gangs.get(key)
        if gang is None:
            touched[key] = None
            return 0
        if now < gang.look_at and not self._queue.wants_first(key):
            self._deadlines.hasten(key, gang.look_at)
            if key in self._queue:
                self._queue.file(gang, self._assessments[key])
            return units.POD
        touched[key] = None
        if key in self._containment.parked and not self._containment.may_leave(key, now):
            return units.GANG
        decided = len(effects)
        try:
            if key in self._containment.parked:
                gang = self._containment.release(key, now)
            self._advance(gang, effects, now)
        except Exception as error:  # noqa: BLE001 - a defect may raise anything
            del effects[decided:]
            self._containment.sent(effects)
            self._containment.park(key, Step.UPKEEP, error, now)
        return units.GANG + units.POD * len(gang.pods)

    def tell(self, key: GroupKey, effects: list[Effect], now: float) -> None:
        """Tell what is due of the gang, and forget it if nothing speaks of it any more."""
        gang = self._members.gangs.get(key)
        if gang is None:
            self.forget(key)
            return
        if key not in self._containment.parked:
            try:
                effects += self._told(gang, self._assessments[key], now)
            except Exception as error:  # noqa: BLE001 - a defect may raise anything
                self._containment.sent(effects)
                self._containment.park(key, Step.TELLING, error, now)
        if key in self._containment.parked:
            effects += self._containment.look(key, now)
            gang = self._members.gangs[key]
        if self._members.finished(gang):
            self.forget(key)

    def _told(self, gang: Gang, assessment: Assessment, now: float) -> list[Effect]:
        effects: list[Effect] = []
        self._writer.schedule(gang, assessment, now)
        if gang.tell_at <= now:
            effects = self._writer.tell(gang, assessment, now)
            self._writer.schedule(gang, assessment, now)
        self._tellings.set(gang.key, gang.tell_at)
        return effects

    def forget(self, key: GroupKey) -> None:
        """The gang exists no longer."""
        self._members.drop(key)
        self._assessments.pop(key, None)
        self._leave(key)
        self._deadlines.drop(key)
        self._containment.drop(key)

    def set_deadlines(self, keys: Iterable[GroupKey], effects: list[Effect], now: float) -> None:
        """Note when each of these gangs must be looked at again, now that they have been and were told of."""
        for key in keys:
            gang = self._members.gangs.get(key)
            if gang is None:
                continue
            due = self._assessments[key].due
            if key not in self._containment.parked:
                try:
                    due = min(due, bindings.next_retry(gang), rollback.next_due(gang), making.due(gang))
                except Exception as error:  # noqa: BLE001 - a defect may raise anything
                    self._containment.sent(effects)
                    self._containment.park(key, Step.UPKEEP, error, now)
                    effects += self._containment.look(key, now)
                    due = self._assessments[key].due
            self._deadlines.set(key, due)

    def try_again(self, keys: Iterable[GroupKey]) -> None:
        """Have the next pass try these gangs, though they were refused in the same cluster."""
        for key in keys:
            gang = self._members.gangs[key]
            gang.attempt.try_again()
            if key in self._queue:
                self._queue.file(gang, self._assessments[key])

    def take_waits(self) -> list[float]:
        """Seconds from complete to bound of the gangs scheduled since the last call."""
        waits, self._waits = self._waits, []
        return waits

    def let_in(self) -> list[GroupKey]:
        """Have those tried that may enter now."""
        entered, kept_out = self._admission.let_in(self._members.gangs)
        # The clock of a group that may not be tried yet stands still.
        self._members.dirty.note(*self._admission.take_giving_way(), *kept_out)
        for key in entered:
            self._queue.file(self._members.gangs[key], self._assessments[key])
        return entered

    def validate(self) -> list[str]:
        """Contradictions between the gangs and what is kept of who waits."""
        alive = {*self._members.gangs, *self._members.dirty}
        return [
            *(f"{key}: an assessment though it is gone" for key in self._assessments if key not in alive),
            *validation.of_queue(self._queue, alive),
            *validation.of_admission(self._admission, alive),
            *validation.of_deadlines(self._deadlines, alive),
            *validation.of_deadlines(self._tellings, alive),
        ]

    def _advance(self, gang: Gang, effects: list[Effect], now: float) -> None:
        if len(gang.pods) > LARGE:
            gang.look_at_once(not_before=now + len(gang.pods) * self._look_s_per_pod)
        assessment, decided = reconcile(
            gang,
            self._cluster,
            policy=self._policy,
            priority_classes=self._surroundings.priority_classes,
            foreign=self._members.foreign,
            now=now,
        )
        self._assessments[gang.key] = assessment
        effects += decided
        self.timeouts += assessment.timed_out
        if assessment.newly_scheduled and gang.complete_since:
            self._waits.append(now - gang.complete_since)
        if self._admission.admits(gang, assessment, now):
            self._queue.file(gang, assessment)
        else:
            self._queue.drop(gang.key)
