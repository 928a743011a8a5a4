"""Searches for those who leave for waiting groups, the first in the order first; the least urgent work of a call.

A group that has been refused for want of room is searched for if it may preempt others. A search that does not end in
one call goes on in the next, unless the cluster has changed. Without a result it is repeated only when something has
changed on which it may depend, and at most once in REPEATED_S.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.claims import Claim
from gangsched.core.contention.asking import Asking, refused
from gangsched.core.contention.bars import bar_of
from gangsched.core.contention.endings import CHANGED
from gangsched.core.contention.gathering import Gathering
from gangsched.core.contention.hopeless import Hopeless
from gangsched.core.contention.line import Line
from gangsched.core.contention.plans import Plans
from gangsched.core.contention.pool import Pool
from gangsched.core.contention.search_results import Looked, Moment, Running, State, stays_hopeless
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.clock import NEVER
from gangsched.core.gang.gang import Gang
from gangsched.core.membership.members import Members
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.priority_class import PriorityClasses
from gangsched.core.planning import budget as units
from gangsched.core.planning.after import After, NoWay
from gangsched.core.planning.ask import Ask
from gangsched.core.planning.budget import Budget
from gangsched.core.queueing.order import order_key

REPEATED_S = 1.0
"""Least time in seconds between two searches for one group that found nothing."""
_HOPELESS = units.CLASS // 2
"""Cost, in units of the budget, of seeing that groups which are alike are still without hope."""


class Searching:
    """The groups that may be searched for, in order, and their searches."""

    def __init__(
        self,
        cluster: Cluster,
        members: Members,
        assessments: Mapping[GroupKey, Assessment],
        plans: Plans,
        *,
        asking: Asking,
        policy: Policy,
    ) -> None:
        self.unfinished = False
        self.trials = 0
        self._cluster = cluster
        self._members = members
        self._assessments = assessments
        self._plans = plans
        self._asking = asking
        self._policy = policy
        self._exceeds = policy.preemption.exceeds_budgets
        self._line = Line()
        self._running: dict[GroupKey, Running] = {}
        self._looked: dict[GroupKey, Looked] = {}
        self._gathering: Gathering | None = None
        self._hopeless = Hopeless(cluster, plans, exceeds=self._exceeds)
        self._moment = Moment()
        self._has_news = False
        self._passed_in: State = ()
        self._again = 0.0
        self._due = float("inf")

    # Which groups

    def note(self, gang: Gang, assessment: Assessment, classes: PriorityClasses) -> None:
        """Note whether the group, which was just brought up to date or tried, may be searched for."""
        if self._gathering is not None:
            self._gathering.note(gang.key)
        if not gang.wait.parked and gang.key not in self._line:
            return
        self._has_news = True
        if gang.key in self._looked and self._looked[gang.key].asked is not gang.wait.asked:
            self._forget(gang.key)
        may = bar_of(gang, assessment, classes, self._policy) is None
        if gang.operations.plan is not None and gang.operations.plan.start is None:
            gang.operations.plan.allowed = may
        refusal = refused(gang, assessment) if may and gang.wait.parked else None
        # One that waits for a sum of resources before its first member is placed waits for others to end.
        searched = refusal is not None and not (refusal.never or refusal.paused or refusal.start)
        # While others of its members are being bound, a plan would end as started at once.
        searched = searched and not gang.operations.has_unconfirmed()
        if self._line.file(gang.key, order_key(gang, assessment) if searched else None):
            self._forget(gang.key)

    def drop(self, key: GroupKey) -> None:
        """The group is gone, or is not to be searched for any more."""
        if self._gathering is not None:
            self._gathering.note(key)
        self._line.drop(key)
        self._forget(key)

    def _forget(self, key: GroupKey) -> None:
        self._running.pop(key, None)
        self._looked.pop(key, None)
        self._hopeless.drop(key)

    # Searching

    def go_on(self, budget: Budget, now: float, contain: Callable[[GroupKey, Exception], object]) -> None:
        """Go on with the searches while the budget lasts, and open a plan for each that has a result."""
        self._has_news |= self.unfinished
        self.unfinished = False
        if not self._line or not self._cluster.budgets.known:
            # Without knowing the disruption budgets nobody is asked to leave.
            self._rest()
        elif self._is_time(now):
            try:
                self._go_on(budget, now, contain)
            finally:
                self._asking.rest()

    def _go_on(self, budget: Budget, now: float, contain: Callable[[GroupKey, Exception], object]) -> None:
        self._due = self._again = float("inf")
        self._moment = Moment()
        self._plans.pace.tokens.fill(now)
        # One that ends in the call in which it began has everything prepared for it only once.
        budget.leave(units.CALL * 3 // 4)
        self._wake(budget, now)
        for key in self._line:
            self.unfinished |= not budget
            if self.unfinished:
                return
            # What one that is to be brought up to date asks for may be another thing then.
            if key not in self._hopeless.kinds and key not in self._members.dirty and self._is_due(key, now):
                try:
                    self._search(self._members.gangs[key], budget, now)
                except Exception as error:  # noqa: BLE001 - a defect may raise anything
                    self.drop(key)
                    contain(key, error)
        self._has_news, self._passed_in = False, self._state

    def _wake(self, budget: Budget, now: float) -> None:
        """Look at those without hope whether there may be more room for them by now."""
        if not self._hopeless.kinds or not self._may_differ(self._hopeless.looked, now):
            return
        pool = self._pool(budget, now)
        if pool is None:
            self.unfinished = True
            return
        looked = Looked(self._state, now, self._moment.until, ())
        budget.charge(_HOPELESS * self._hopeless.wake(pool, looked))
        self._await(looked.until)

    def _rest(self) -> None:
        """Keep nothing, because no group is searched for."""
        self._due = float("inf")
        if self._gathering is not None:
            self._gathering.rest()
            self._gathering = None
            self._asking.forget()
            for key in self._line:
                self._forget(key)

    def _is_time(self, now: float) -> bool:
        """Whether a search may be due. If nothing is new but what the cluster counts, none is for REPEATED_S."""
        if self._has_news or now >= self._due:
            return True
        if self._passed_in != self._state:
            self._await(self._again)
        return now >= self._due

    def next_due(self) -> float:
        """When a search is due without an event, in epoch seconds; infinity if none is."""
        return self._due

    def _is_due(self, key: GroupKey, now: float) -> bool:
        if now < (due := self.due(self._members.gangs[key])):
            self._await(due)
            return False
        looked = self._looked.get(key)
        return looked is None or self._may_differ(looked, now)

    def _may_differ(self, looked: Looked, now: float) -> bool:
        """Whether it may come to something else by now, and was long enough ago; if not, that is awaited."""
        self._again = min(self._again, looked.at + REPEATED_S)
        same = looked.state == self._state and now < looked.until
        at = looked.until if same else looked.at + REPEATED_S
        if now < at:
            self._await(at)
        return now >= at

    def _await(self, at: float) -> None:
        self._due = min(self._due, at)

    @property
    def _state(self) -> State:
        gathering = self._gathering
        kept = (gathering.version, gathering.is_stale) if gathering is not None else ()
        return *self._asking.state, *kept

    def _search(self, gang: Gang, budget: Budget, now: float) -> None:
        if not self._plans.pace.tokens:
            self._await(self._plans.pace.tokens.next())
            return
        running, nodes = self._running.get(gang.key), self._cluster.node_changes
        if running is not None and (running.asked is not gang.wait.asked or running.pool.nodes != nodes):
            running = None
        pool = self._pool(budget, now)
        if pool is None:
            self.unfinished = True
            return
        assessment = self._assessments[gang.key]
        ask = self._asking.of(gang, assessment)
        if ask is None:
            return
        running = running or self._asking.search(gang, ask, pool, self._state, now)
        leaving = self._asking.leaving(pool, now)
        snapshot = self._asking.snapshot(gang, leaving, budget, now, lasting=True)
        before = running.search.trials
        result = running.search.go_on(snapshot)
        self.trials += running.search.trials - before
        if isinstance(result, NoWay) and self._exceeds and not running.exceeds:
            running = self._asking.search(gang, ask, pool, self._state, now, exceeds=True)
            result = running.search.go_on(snapshot)
        if result is None:
            self._running[gang.key] = running
            self.unfinished = True
            return
        self._running.pop(gang.key, None)
        if isinstance(result, NoWay):
            self._note_nobody(gang, ask, running, result, now)
        elif all(map(pool.removable.has, result.leaving)):
            self._open(gang, result, pool, leaving, now)
        else:
            # Somebody has changed meanwhile: once more, with those of now.
            self.unfinished = True

    def _note_nobody(self, gang: Gang, ask: Ask, running: Running, no_way: NoWay, now: float) -> None:
        """Nobody was found to leave: what a former leader has reserved is of no use, if its nodes are there."""
        plan = gang.operations.plan
        if plan is not None and plan.start is None and plan.lost_at == NEVER and not no_way.exhausted:
            self._plans.give_up(gang, CHANGED, now)
        looked = Looked(running.state, now, self._moment.until, gang.wait.asked)
        # Who is passed over for this group alone will be asked again though no more room has come.
        lasts = stays_hopeless(ask) and self._plans.pace.passed(now, gang.key) == self._plans.pace.passed(now)
        if no_way.hopeless and lasts and running.state == self._state:
            priority = self._assessments[gang.key].terms.priority
            self._hopeless.add(gang.key, priority, running.pool, looked, running.search.open_rows)
        self._note_looked(gang.key, looked)

    def _pool(self, budget: Budget, now: float) -> Pool | None:
        """All that may leave; None if the budget has ended before it was found."""
        if self._moment.when == (now, self._state):
            return self._moment.pool
        if self._gathering is None:
            self._gathering = self._asking.gathering(follows=True)
        pool = self._gathering.pool(budget)
        if pool is not None:
            until = min(pool.until(now), self._plans.pace.passed_until())
            self._moment = Moment((now, self._state), pool, until)
        return pool

    def _note_looked(self, key: GroupKey, looked: Looked) -> None:
        self._looked[key] = looked
        self._again = min(self._again, looked.at + REPEATED_S)
        self._await(looked.until)

    def _open(self, gang: Gang, after: After, pool: Pool, leaving: Mapping[str, Claim], now: float) -> None:
        """Open the plan that was found; also if nobody leaves for it but pods that leave already, some of them of
        others that would leave for it.
        """
        names, places = [unit.name for unit in after.leaving], after.placement.assignments
        nodes = {node for _, node in places}
        on_node = self._cluster.on_node
        uids = {uid for node in nodes for uid in on_node.get(node, ()) if uid in leaving}
        pods = [leaving[uid].pod for uid in sorted(uids)]
        priority = self._assessments[gang.key].terms.priority
        if names or any(self._priority_of(pod) < priority for pod in pods):
            victims = {name: pool.victims[name] for name in names}
            # After this plan it is not known any more that nobody is found.
            self._looked.pop(gang.key, None)
            self._plans.open(gang, self._plans.opening.preempting(gang, places, victims, pods, now), now)
            return
        # Also if it fits by now and is refused all the same, once in this state is enough.
        self._note_looked(gang.key, Looked(self._state, now, self._moment.until, gang.wait.asked))
        if not pods:
            gang.wait.try_again()
            self._members.dirty.note(gang.key)

    def _priority_of(self, pod: Pod) -> int:
        """The priority that orders the pod's gang or, without one, the pod."""
        gang = self._members.gang_of(pod.uid)
        assessment = self._assessments.get(gang.key) if gang is not None else None
        return assessment.terms.priority if assessment is not None else min(pod.priority, self._policy.max_priority)

    def may_find(self, gang: Gang, now: float) -> bool:
        """Whether others may be preempted for the group now, and it is not known yet that nobody is found."""
        looked, known = self._looked.get(gang.key), self._cluster.budgets.known
        is_found = looked is not None and looked.asked is gang.wait.asked and gang.key not in self._running
        return gang.key in self._line and known and now >= self.due(gang) and not is_found

    def pool(self) -> Pool:
        """All that may leave at present, out of turn."""
        return (self._gathering or self._asking.gathering()).whole()

    def due(self, gang: Gang) -> float:
        """From when on, in epoch seconds, the group may open a plan."""
        return max(self._delayed_until(gang), self._plans.next_for(gang.key))

    def _delayed_until(self, gang: Gang) -> float:
        """When it has waited for as long as autoscalers are given, since it was complete or became short."""
        doing = gang.operations
        return max(doing.complete_since, doing.short_since) + self._policy.preemption.delay_s

    def validate(self) -> list[str]:
        """Contradictions, each as a sentence."""
        kept = self._gathering.validate() if self._gathering is not None else []
        return self._line.validate(self._members.gangs) + kept
