"""The loop of a call: the next gang in the order of contract rule 6 is brought up to date, or placed.

Of what has changed and of what waits for places, whichever is first in the order is next. So no gang is placed before
every gang that may be ahead of it has been looked at. All quorums and repairs come first, then members above the
minimum, both in the same order; further members of a quorum that was just placed belong to the second group. All of it
shares one budget. What that does not reach keeps its place for the next call; see `core.queueing.queue`.
"""

from __future__ import annotations

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.faults import FaultyStep
from gangsched.core.outcome import Outcome
from gangsched.core.placing import Placing
from gangsched.core.planning import budget as units
from gangsched.core.planning.budget import Budget
from gangsched.core.queueing.queue import Candidate
from gangsched.core.state import State
from gangsched.core.upkeep import Upkeep


class Cycle:
    """One run through what has changed and what waits. `outcomes` are those of the gangs that it has reached."""

    def __init__(self, state: State, upkeep: Upkeep, budget: Budget, now: float) -> None:
        self.outcomes: dict[GroupKey, Outcome] = {}
        self._state = state
        self._queue = state.queue
        self._dirty = state.dirty
        self._upkeep = upkeep
        self._budget = budget
        self._now = now
        self._placing = Placing(state, budget, now)
        self._done: set[tuple[GroupKey, bool]] = set()
        self._again: list[GroupKey] = []
        self._has_news = False

    def run(self) -> dict[GroupKey, Outcome]:
        """Go through gangs in order while the budget lasts, and conclude what was begun with each."""
        self._reconcile_overdue()
        self._has_news = True
        self._open()
        self._budget.leave(units.CALL // 4)
        for candidate in self._queue.overdue(self._dirty.since):
            if self._budget.left <= units.CALL // 2:
                break
            self._try(candidate)
        # At least one step in each call, whatever was spent before.
        while self._go_on() and self._budget:
            pass
        self._dirty.note(*self._again)
        self._conclude()
        return self.outcomes

    def _reconcile_overdue(self) -> None:
        """Bring gangs up to date that have waited for more than PATIENCE calls, with up to a quarter of the budget."""
        end = self._budget.spent + units.CALL // 4
        while self._budget.spent < end and self._queue.is_overdue(self._dirty.since):
            self._reconcile(self._dirty.take_longest_waiting())

    def _open(self) -> None:
        """Find the parked gangs that may be tried, now that the cluster has improved."""
        if self._state.cluster.ledger.reserved:
            self._state.plans.fill_up()
        self._queue.wake(self._state.cluster)
        if self._queue.moves:
            snapshot = self._placing.snapshot
            # What is reserved for a group may be free for others, and for itself.
            snapshot.stand_for(None)
            self._queue.open(snapshot)
        # Those that were refused before may fit now.
        gangs = self._state.gangs
        self._done = {tried for tried in self._done if tried[0] not in gangs or not gangs[tried[0]].wait.parked}

    def _go_on(self) -> bool:
        """Take the next step. Returns whether there was one."""
        if self._has_news:
            self._has_news = False
            if self._state.admission.stirred:
                self._upkeep.let_in()
            if eased := self._state.take_eased():
                self._upkeep.try_again(eased)
            self._queue.wake_first_in_lane(self._state.gangs, self._state.assessments, self._now)
        if self._state.cluster.relief:
            self._open()
        candidate = self._queue.next()
        if self._dirty and (candidate is None or self._may_be_ahead(candidate)):
            self._reconcile(self._dirty.take_first())
            return True
        if candidate is not None:
            self._try(candidate)
        return candidate is not None

    def _may_be_ahead(self, candidate: Candidate) -> bool:
        """Whether a gang that is to be brought up to date may be ahead of this one."""
        first = self._dirty.first
        return first is not None and (False, first) <= candidate.rank

    def _outcome(self, key: GroupKey, *, above: bool) -> Outcome:
        """What the call has come to for a gang that is tried now: its effects go behind those of others so far.

        Those on members above its minimum are sent late anyway.
        """
        outcome = self.outcomes.get(key) or Outcome()
        if not above:
            self.outcomes.pop(key, None)
        self.outcomes[key] = outcome
        return outcome

    def _reconcile(self, key: GroupKey) -> None:
        """Bring a gang up to date, once in a call."""
        if key in self.outcomes and self.outcomes[key].reconciled:
            self._again.append(key)
            return
        self._has_news = True
        try:
            self._budget.charge(self._upkeep.reconcile(key, self.outcomes, self._now))
            self._queue.moved(key)
        except Exception as error:  # noqa: BLE001 - a defect may raise anything
            self._set_aside(key, FaultyStep.UPKEEP, error)

    def _try(self, candidate: Candidate) -> None:
        """Place a gang, unless that was tried in this call already, or nothing has opened for it after all."""
        key, above, queue = candidate.key, bool(candidate.rank[0]), self._queue
        if (key, above) in self._done or key in self._dirty or not queue.stands(candidate):
            queue.passed(candidate)
            return
        gang, snapshot = self._state.gangs[key], self._placing.snapshot
        try:
            snapshot.stand_for(self._state.viewers.of(key, self._state.assessments[key], self._now, above=above))
            if candidate.bucket is not None:
                if not queue.worth_a_try(candidate, gang, snapshot):
                    return
                gang.wait.try_all_again()
            want = self._state.assessments[key].want
            self._done.add((key, above))
            if not above and want.only_above(gang.wait.refused_members):
                # Only members above the minimum are left to try: the last call had no time for them.
                queue.passed(candidate)
                queue.follow(candidate)
                return
            self._budget.charge(units.GANG if above else units.GANG + units.POD * len(gang.observed.pods))
            if self._placing.place(gang, self._outcome(key, above=above), above=above):
                queue.follow(candidate)
            queue.tried(candidate, gang)
            if not above and (want.parts or want.extras) and gang.wait.refused_members:
                # Members above the minimum may have to wait for the next call: not parked until they are tried.
                gang.wait.try_again()
            if gang.wait.parked:
                # At once, so that room which another gang gives up in this call wakes it.
                queue.file(gang, self._state.assessments[key])
        except Exception as error:  # noqa: BLE001 - a defect may raise anything
            queue.passed(candidate)
            self._done |= {(key, False), (key, True)}
            self._placing.discard()
            self._set_aside(key, FaultyStep.CYCLE, error)

    def _conclude(self) -> None:
        """End what was begun with each gang: what it still wants, and which effects are due."""
        for key, outcome in [*self.outcomes.items()]:
            if key in self._state.gangs and key not in self._state.containment.parked:
                try:
                    self._upkeep.conclude(key, outcome, self._now)
                except Exception as error:  # noqa: BLE001 - a defect may raise anything
                    self._set_aside(key, FaultyStep.UPKEEP, error)

    def _set_aside(self, key: GroupKey, step: FaultyStep, error: Exception) -> None:
        """Park a gang whose logic has failed; nothing of what was decided about it in this call is sent."""
        self.outcomes[key] = Outcome(reconciled=True)
        if not self._state.contain(self._now, step, key, error):
            self._budget.charge(self._budget.left)
