"""Searches for those who leave for waiting groups, the first in the order first; the least urgent work of a call.

A group that has been refused for want of room is searched for if it may preempt others. A search that does not end in
one call goes on in the next, unless the cluster has changed. Without a result it is repeated only when something has
changed on which it may depend, and at most once in REPEATED_S.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.claims import Claim
from gangsched.core.contention.asking import Asking, refused
from gangsched.core.contention.bars import bar_of
from gangsched.core.contention.line import Line
from gangsched.core.contention.plans import Plans
from gangsched.core.contention.pool import Pool
from gangsched.core.contention.surplus import is_in_flight, is_leaving
from gangsched.core.contention.units import Collector
from gangsched.core.gang.assessment import Assessment
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
from gangsched.core.planning.leaving import Search
from gangsched.core.queueing.order import order_key

REPEATED_S = 1.0
"""Least time in seconds between two searches for one group that found nothing."""
KEPT_S = 2.0
"""For so many seconds it need not be found out anew who may leave."""
_ANY = 1 << 40
"""More evictions than any budget has to allow."""

_State = tuple[int, int]
"""Numbers that change with everything on which a search depends, except the time."""


class _Looked(NamedTuple):
    """A search without a result: of which state, when, and until when time alone cannot help."""

    state: _State
    at: float
    until: float
    result: NoWay


@dataclass(slots=True)
class _Running:
    """A search that goes on among those of this pool, for what the group has `asked`.

    `exceeds`: disruption budgets do not count in it.
    """

    search: Search
    pool: Pool
    asked: tuple[object, ...]
    exceeds: bool


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
        self._line = Line()
        self._running: dict[GroupKey, _Running] = {}
        self._looked: dict[GroupKey, _Looked] = {}
        self._collector: Collector | None = None
        self._calls = 0
        self._pool: Pool | None = None
        self._pool_state: _State = (-1, -1)
        self._taken: set[str] = set()
        self._due = float("inf")

    # Which groups

    def note(self, gang: Gang, assessment: Assessment, classes: PriorityClasses) -> None:
        """Note whether the group, which was just brought up to date or tried, may be searched for."""
        if not gang.wait.parked and gang.key not in self._line:
            return
        may = bar_of(gang, assessment, classes, self._policy) is None
        if gang.operations.plan is not None:
            gang.operations.plan.allowed = may
        refusal = refused(gang, assessment) if may and gang.wait.parked else None
        # One that waits for a sum of resources before its first member is placed waits for others to end.
        searched = refusal is not None and not (refusal.never or refusal.paused or refusal.start)
        if self._line.file(gang.key, order_key(gang, assessment) if searched else None):
            self._forget(gang.key)

    def drop(self, key: GroupKey) -> None:
        """The group is not to be searched for any more."""
        self._line.drop(key)
        self._forget(key)

    def _forget(self, key: GroupKey) -> None:
        self._running.pop(key, None)
        self._looked.pop(key, None)

    # Searching

    def go_on(self, budget: Budget, now: float, contain: Callable[[GroupKey, Exception], object]) -> None:
        """Go on with the searches while the budget lasts, and open a plan for each that has a result."""
        self.unfinished, self._due = False, float("inf")
        if not self._line or not self._cluster.budgets.known:
            # Without knowing the disruption budgets nobody is asked to leave.
            self._pool = self._collector = None
            return
        self._plans.pace.tokens.fill(now)
        budget.leave(units.CALL // 8)
        for key in self._line:
            if not budget:
                self.unfinished = True
                return
            # What one that is to be brought up to date asks for may be another thing then.
            if key not in self._members.dirty and self._is_due(key, now):
                try:
                    self._search(self._members.gangs[key], budget, now)
                except Exception as error:  # noqa: BLE001 - a defect may raise anything
                    self.drop(key)
                    contain(key, error)

    def next_due(self) -> float:
        """When a search is due without an event, in epoch seconds; infinity if none is."""
        return self._due

    def _is_due(self, key: GroupKey, now: float) -> bool:
        gang = self._members.gangs[key]
        if not self._plans.may_open(key, now):
            self._await(self._plans.next_for(key))
            return False
        since = self._delayed_until(gang)
        if now < since:
            self._await(since)
            return False
        looked = self._looked.get(key)
        if looked is None or (looked.state == self._state and now < looked.until):
            self._await(float("inf") if looked is None else looked.until)
            return looked is None
        if now < looked.at + REPEATED_S:
            self._await(looked.at + REPEATED_S)
            return False
        return True

    def _await(self, at: float) -> None:
        self._due = min(self._due, at)

    @property
    def _state(self) -> _State:
        return self._cluster.changes, self._cluster.budgets.changes

    def _search(self, gang: Gang, budget: Budget, now: float) -> None:
        if not self._plans.pace.tokens:
            self._await(self._plans.pace.tokens.next())
            return
        assessment, pool = self._assessments[gang.key], self._collected(budget, now)
        ask = self._asking.of(gang, assessment)
        if ask is None or pool is None:
            self.unfinished = pool is None
            return
        running = self._running.get(gang.key)
        if running is None or running.pool is not pool or running.asked != gang.wait.asked:
            running = self._begun(gang, ask, pool, now, exceeds=False)
        snapshot, leaving = self._asking.snapshot(gang, assessment, self._leaving(pool, now), budget)
        before = running.search.trials
        found = running.search.go_on(snapshot)
        self.trials += running.search.trials - before
        if isinstance(found, NoWay) and self._policy.preemption.exceeds_budgets and not running.exceeds:
            running = self._begun(gang, ask, pool, now, exceeds=True)
            found = running.search.go_on(snapshot)
        if found is None:
            self._running[gang.key] = running
            self.unfinished = True
            return
        self._running.pop(gang.key, None)
        if isinstance(found, After) and not self._is_still_so(found, pool, leaving):
            self._pool = None
            self.unfinished = True
        elif isinstance(found, After):
            self._open(gang, found, pool, leaving, now)
        else:
            until = min(pool.until, self._plans.pace.passed_until())
            self._looked[gang.key] = _Looked(self._pool_state, now, until, found)
            self._await(until)

    def _open(self, gang: Gang, found: After, pool: Pool, leaving: Sequence[Claim], now: float) -> None:
        """Open the plan that was found; also if nobody leaves for it but pods that leave already, some of them of
        others that would leave for it.
        """
        names, places = [unit.name for unit in found.leaving], found.placement.assignments
        nodes = {node for _, node in places}
        pods = [claim.pod for claim in leaving if claim.node in nodes]
        priority = self._assessments[gang.key].terms.priority
        if names or any(self._priority_of(pod) < priority for pod in pods):
            self._plans.open(gang, places, {name: pool.victims[name] for name in names}, pods, now)
            self._taken.update(names)
            return
        # Also if it fits by now and is refused all the same, once in this state is enough.
        self._looked[gang.key] = _Looked(self._pool_state, now, pool.until, NoWay())
        if pods:
            self._await(pool.until)
        else:
            gang.wait.try_again()
            self._members.dirty.note(gang.key)

    def _priority_of(self, pod: Pod) -> int:
        """The priority that orders the pod's gang or, without one, the pod."""
        gang = self._members.gang_of(pod.uid)
        assessment = self._assessments.get(gang.key) if gang is not None else None
        return assessment.terms.priority if assessment is not None else min(pod.priority, self._policy.max_priority)

    def searched(self, gang: Gang, now: float) -> tuple[Pool, After | NoWay | None]:
        """Who may leave, and the result of a whole search for the group out of turn; nothing of it is kept.

        There is none if the group's pods fail wherever they are.
        """
        pool, assessment = self._asking.collector(now).collect(), self._assessments[gang.key]
        ask = self._asking.of(gang, assessment)
        found = None
        for exceeds in (False, True) if ask is not None and self._policy.preemption.exceeds_budgets else (False,):
            if ask is not None and not isinstance(found, After):
                snapshot, _ = self._asking.snapshot(gang, assessment, self._leaving(pool, now), Budget(_ANY))
                found = self._begun(gang, ask, pool, now, exceeds=exceeds).search.go_on(snapshot)
        return pool, found

    def due(self, gang: Gang) -> float:
        """From when on, in epoch seconds, the group may open a plan."""
        return max(self._delayed_until(gang), self._plans.next_for(gang.key))

    def _delayed_until(self, gang: Gang) -> float:
        """When it has waited for as long as autoscalers are given, since it was complete or became short."""
        doing = gang.operations
        return max(doing.complete_since, doing.short_since) + self._policy.preemption.delay_s

    def _leaving(self, pool: Pool, now: float) -> list[Claim]:
        """Those that leave already, but for pods that could not be evicted a short time ago."""
        passed = self._plans.pace.passed(now)
        return [each for each in pool.leaving if each.pod.terminating or each.pod.uid not in passed]

    def passed(self, key: GroupKey, now: float) -> Collection[str]:
        """The names of units that are not to be asked to leave for the group for now."""
        return self._taken | self._plans.pace.passed(now, key)

    def _collected(self, budget: Budget, now: float) -> Pool | None:
        """All that may leave; None if the budget has ended before it was found.

        Where that, or a search, takes several calls it is found anew once in KEPT_S at most, though the cluster changes
        all the time, and what a search has found with it is checked before anybody relies on it.
        """
        pool = self._pool
        several = self._calls > 1 or bool(self._running)
        kept = pool is not None and several and now < pool.at + KEPT_S
        fresh = kept or self._pool_state == self._state
        if pool is not None and pool.nodes == self._cluster.node_changes and now < pool.until and fresh:
            return pool
        if self._collector is None or pool is not None:
            self._pool, self._pool_state = None, self._state
            self._collector, self._calls = self._asking.collector(now), 0
        self._calls += 1
        self._pool = self._collector.go_on(budget)
        if self._pool is not None:
            self._collector = None
            self._taken = set()
        return self._pool

    def _is_still_so(self, found: After, pool: Pool, leaving: Iterable[Claim]) -> bool:
        """Whether all that is to leave is there as it was when it was collected, and may leave or leaves still."""
        claims, victims = self._cluster.ledger.claims, [pool.victims[unit.name] for unit in found.leaving]
        if any(claims.get(claim.pod.uid) is not claim for unit in found.leaving for claim in unit.claims):
            return False
        if not all(is_leaving(claim, self._members.gang_of(claim.pod.uid)) for claim in leaving):
            return False
        gangs = [self._members.gangs.get(each.gang) for each in victims if each.gang is not None]
        return all(gang is not None and not is_in_flight(gang) for gang in gangs)

    def _begun(self, gang: Gang, ask: Ask, pool: Pool, now: float, *, exceeds: bool) -> _Running:
        left = self._plans.allowed()
        if exceeds:
            left = dict.fromkeys(left, _ANY)
        priority = self._assessments[gang.key].terms.priority
        search = Search(ask, pool.removable, left, below=priority, passed=self.passed(gang.key, now))
        return _Running(search, pool, gang.wait.asked, exceeds)

    def validate(self) -> list[str]:
        """Contradictions, each as a sentence."""
        return self._line.validate(self._members.gangs)
