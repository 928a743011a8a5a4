"""Which groups have places reserved for later, so that none starves, and the searches for when they start.

A group that has waited for long, and for which nobody is preempted, gets the earliest moment at which it fits once
others have ended by themselves, and its places from then on. Until then others use them who will have ended by then
(`viewers`); they join those who leave. The first of the line reserves; another one beside it only if they have no node
in common. It is the least urgent work of a call, and goes on from call to call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.claims import Claim
from gangsched.core.contention.asking import Asking
from gangsched.core.contention.covering import is_covered
from gangsched.core.contention.departing import Departing
from gangsched.core.contention.endings import CHANGED, OVERTAKEN, YIELDED
from gangsched.core.contention.ends import UNKNOWN, End
from gangsched.core.contention.line import Line
from gangsched.core.contention.plans import Ended, Plans
from gangsched.core.contention.reach import Reach, depending
from gangsched.core.contention.search_results import State
from gangsched.core.contention.searching import REPEATED_S, Searching
from gangsched.core.contention.trusted_ends import TrustedEnds
from gangsched.core.gang import rollback
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.clock import NEVER
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.plan import Plan
from gangsched.core.membership.members import Members
from gangsched.core.objects.arrays import Mask
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.policy import Policy
from gangsched.core.planning.ask import Ask
from gangsched.core.planning.budget import Budget
from gangsched.core.planning.earliest import Earliest
from gangsched.core.planning.trial import Placement
from gangsched.core.queueing.order import order_key

LOOKED_AT_S, SELDOM_S = 10.0, 60.0
"""A reservation is looked at again at most once in so many seconds; seldom if nothing has touched its nodes: then only
what others declare may have changed, or which devices there are."""
MOST_IN_LINE = 256
"""Of so many groups, the first in the order, it is found out whether they reserve beside others."""
_EARLIER_S = 1.0
"""A start is earlier if it is by more than so many seconds."""


class _Looked(NamedTuple):
    """What was found `at` this time for what the group had `asked`; `could`: it has a start.

    The search began in this `state`, after so many changes of claims (`since`). It holds `until` somebody is taken at
    his word again who could not be evicted. `lost` is the last loss of a reservation before that, if any. A later one
    is another value, even an equal one.
    """

    at: float
    state: State
    since: int
    until: float
    asked: tuple[object, ...]
    could: bool
    lost: Ended | None


class _Running(Struct):
    """A search that goes on, for what the group had `asked`, on nodes that have changed so often since the start.

    It began in this `state`, after so many changes of claims (`since`).
    """

    asked: tuple[object, ...]
    nodes: int
    state: State
    since: int
    departing: Departing
    search: Earliest | None = None


class Reserving:
    """The groups that may reserve, in order, and their searches. `backfilled` counts those that used their nodes."""

    def __init__(
        self,
        cluster: Cluster,
        members: Members,
        assessments: Mapping[GroupKey, Assessment],
        plans: Plans,
        searching: Searching,
        *,
        asking: Asking,
        policy: Policy,
    ) -> None:
        self.unfinished = False
        self.backfilled = 0
        self._cluster = cluster
        self._members = members
        self._assessments = assessments
        self._plans = plans
        self._searching = searching
        self._asking = asking
        self._age_s = policy.reservations.starvation_age_s
        self._ends = TrustedEnds(cluster, members, plans.pace, by_promises=policy.reservations.by_promises)
        self._line = Line()
        self._looked: dict[GroupKey, _Looked] = {}
        self._reach = Reach(cluster, asking)
        self._running: dict[GroupKey, _Running] = {}
        self._backfilled: dict[GroupKey, None] = {}
        self._passed_in: State = ()
        self._has_news = False
        self._due = NEVER

    def __bool__(self) -> bool:
        """Whether a group may reserve places, or something is to be told."""
        return bool(self._line or self._backfilled)

    # Which groups

    def note(self, gang: Gang, assessment: Assessment) -> None:
        """Note whether the group, which was just brought up to date or tried, may reserve places."""
        plan, is_filed = gang.operations.plan, gang.key in self._line
        leaves = plan is not None and rollback.under_way(gang) is not None
        if (leaves and is_filed) or not (gang.wait.parked or is_filed) or not (self._age_s or plan is not None):
            return
        refusal = gang.wait.refusal if gang.wait.parked and assessment.want.quorum is not None else None
        waits = refusal is not None and not (refusal.never or refusal.paused or refusal.start)
        # While others of its members are being bound it asks only for the rest.
        waits &= not (gang.plain or gang.operations.has_unconfirmed()) and bool(gang.operations.complete_since)
        is_other = self._line.file(gang.key, order_key(gang, assessment) if waits else None)
        self._has_news |= is_other or self._has_lost(gang)

    def drop(self, key: GroupKey) -> None:
        """The group is gone."""
        self._line.drop(key)
        self._reach.drop(key)
        for known in (self._looked, self._running):
            known.pop(key, None)

    def next_due(self, now: float) -> float:
        """When a search is due without an event, in epoch seconds; infinity if none is."""
        if not self._line:
            return NEVER
        return self._due if self._asking.state == self._passed_in else min(self._due, now + LOOKED_AT_S)

    # Searching

    def go_on(self, budget: Budget, now: float, contain: Callable[[GroupKey, Exception], object]) -> None:
        """Look at the groups that may reserve, while the budget lasts."""
        has_news = self._has_news or self.unfinished or self._asking.state != self._passed_in
        self.unfinished = self._has_news = False
        if has_news or now >= self._due:
            self._due = NEVER
            try:
                self._go_on(budget, now, contain)
            finally:
                self._asking.rest()
        self._passed_in = self._asking.state

    def _go_on(self, budget: Budget, now: float, contain: Callable[[GroupKey, Exception], object]) -> None:
        taken: Mask = ~self._cluster.nodes_by_row.among_first(len(self._cluster.capacity.names))
        everywhere = bool(taken.all())
        for key in self._line.first(MOST_IN_LINE):
            gang = self._members.gangs[key]
            # What it asks for may be another thing than was found.
            self._has_news |= bool(gang.inbox)
            if gang.inbox or self.unfinished or (everywhere and gang.operations.plan is None):
                continue
            try:
                if (kept := self._look_at(gang, taken, budget, now)) is not None:
                    taken |= kept
                    everywhere = bool(taken.all())
            except Exception as error:  # noqa: BLE001 - a defect may raise anything
                self.drop(key)
                contain(key, error)

    def _look_at(self, gang: Gang, taken: Mask, budget: Budget, now: float) -> Mask | None:
        """Find out whether the group reserves places and which ones. Returns the nodes that it keeps others from."""
        key, plan = gang.key, gang.operations.plan
        if plan is not None and plan.start is None:
            return None
        since = gang.operations.complete_since + self._age_s
        if plan is None and now < since and not self._has_lost(gang):
            self._await(since)
            return None
        if not budget:
            self.unfinished = True
            return None
        ask = self._asking.of(gang, self._assessments[key])
        if ask is None:
            # While its evictions have no answer it wants nothing, and if they are refused the same as before.
            return self._reach.before(key) if plan is not None else None
        pool = self._reach.of(gang, ask, budget, now)
        if not self._age_s or bool((pool & taken).any()):
            self._plans.give_up(gang, YIELDED, now)
            return None
        due = self._is_due(gang, ask, pool, now)
        if due and plan is not None:
            self._renew(gang, plan, ask, budget, now)
        if due and not self._has_lost(gang) and self._searching.may_find(gang, now):
            self._await(now + REPEATED_S)
        elif due:
            self._search(gang, ask, pool, budget, now)
        looked = self._looked.get(key)
        return pool if gang.operations.plan is not None or looked is None or looked.could else None

    def seeks(self, gang: Gang, now: float) -> bool:
        """Whether a search for a plan of the group, of whichever kind, is due or goes on."""
        later = gang.key in self._line and (gang.key in self._running or self._has_lost(gang))
        return later or self._searching.may_find(gang, now)

    def _await(self, at: float) -> None:
        self._due = min(self._due, at)

    def _has_lost(self, gang: Gang) -> bool:
        """Whether it has lost its places since it was looked at: others must not take them before it has others."""
        lost = self._plans.lost(gang)
        return lost is not None and ((looked := self._looked.get(gang.key)) is None or looked.lost is not lost)

    def _is_due(self, gang: Gang, ask: Ask, pool: Mask, now: float) -> bool:
        looked, plan = self._looked.get(gang.key), gang.operations.plan
        if looked is None or looked.asked is not gang.wait.asked or (plan and plan.former) or self._has_lost(gang):
            return True
        wait_s, touched = NEVER, self._cluster.ledger.touched
        if looked.state != self._asking.state:
            is_alike = looked.state[1] == self._asking.state[1] and touched.last(depending(ask, pool)) <= looked.since
            wait_s = SELDOM_S if is_alike else LOOKED_AT_S
        at = max(looked.at + LOOKED_AT_S, min(looked.until, looked.at + wait_s))
        if now < at:
            self._await(at)
        return now >= at

    def _renew(self, gang: Gang, plan: Plan, ask: Ask, budget: Budget, now: float) -> None:
        """Let all join that will have ended by then, and end the plan if it cannot come true any more.

        That is if others have taken what was reserved, or if the group asks for more than a former leader has reserved.
        """
        if plan.lost_at < NEVER and not (plan.former and len(plan.places) < ask.need):
            # Whether it can is known once the node is back.
            return
        nearby = (claim for node in plan.nodes for claim in self._cluster.on_node.get(node, {}).values())
        known = plan.ends.keys() | gang.observed.pods.keys()
        ends = self._ends.of_all((claim for claim in nearby if claim.pod.uid not in known), now)
        if plan.start is not None and (plan.former or plan.start < NEVER):
            self._add(gang, plan, [(claim, end) for claim, end in ends if end.promised <= max(plan.start, now)])
        former, plan.former = plan.former, False
        plan.note_asked(gang.wait.asked)
        if former and not self._asking.is_enough(gang, plan, ask, budget, now):
            self._plans.give_up(gang, CHANGED, now)
        elif not is_covered(self._cluster, plan):
            self._plans.give_up(gang, OVERTAKEN, now)

    def join(self, gang: Gang, places: Sequence[tuple[Pod, str]], now: float) -> None:
        """Let members of a gang that were just placed join those who leave, if they will have ended by then."""
        for key, plan in self._plans.opened().items():
            if plan.start is None or plan.start == NEVER or plan.former or key == gang.key:
                continue
            claims, nodes = self._cluster.ledger.claims, plan.nodes
            placed = [claims[pod.uid] for pod, node in places if node in nodes and pod.uid in claims]
            joining = [(claim, end) for claim, end in self._ends.of_all(placed, now) if end.promised <= plan.start]
            self._add(self._members.gangs[key], plan, joining)
            if joining and gang.key not in self._backfilled:
                self.backfilled += 1
                self._backfilled[gang.key] = None

    def take_backfilled(self) -> list[GroupKey]:
        """The groups with members that were placed since the last call where others have places reserved for later."""
        backfilled, self._backfilled = [*self._backfilled], {}
        return backfilled

    def _add(self, gang: Gang, plan: Plan, ends: Sequence[tuple[Claim, End]]) -> None:
        """These leave for the plan too."""
        if ends:
            plan.ends |= {claim.pod.uid: end.promised for claim, end in ends}
            plan.promises |= {claim.pod.uid for claim, end in ends if end.promised < end.certain}
            self._plans.leave_for(gang, plan)

    def _search(self, gang: Gang, ask: Ask, pool: Mask, budget: Budget, now: float) -> None:
        running, nodes = self._running.get(gang.key), self._cluster.node_changes
        if running is None or running.asked is not gang.wait.asked or running.nodes != nodes:
            running = self._running[gang.key] = self._begun(gang, ask, pool, now)
        if running.search is None and (departures := running.departing.go_on(budget)) is not None:
            running.search = Earliest(ask, departures, now)
        result = None
        if running.search is not None and budget:
            result = running.search.go_on(self._asking.snapshot(gang, {}, budget, now))
        leaving = running.departing.ends_of(result.leaving) if result is not None else {}
        if many := self._ends.too_many(leaving, now):
            # Each may be evicted, but not all of them.
            running.departing.distrust(many)
            running.search = result = None
        if result is None:
            self.unfinished = True
            return
        self._running.pop(gang.key, None)
        if result.placement is not None:
            self._use(gang, result.placement, leaving, result.start, now)
        could, lost, until = result.placement is not None, self._plans.lost(gang), self._plans.pace.passed_until()
        # What has changed meanwhile, if only by what was just reserved, is looked at as soon as anything later is.
        self._await(until if running.state == self._asking.state else min(until, now + LOOKED_AT_S))
        self._looked[gang.key] = _Looked(now, running.state, running.since, until, gang.wait.asked, could, lost)

    def _begun(self, gang: Gang, ask: Ask, pool: Mask, now: float) -> _Running:
        """A search among all whose end may help, in the order in which they are waited for."""
        promised = self._asking.promised_to_others(self._asking.viewer(gang, now))
        promised |= gang.observed.pods.keys()  # a run does not wait for its own end
        names, on_node = self._cluster.capacity.names, self._cluster.on_node
        claims = (
            claim
            for row in np.flatnonzero(depending(ask, pool)).tolist()
            for uid, claim in on_node.get(names[row], {}).items()
            if uid not in promised
        )
        departing = Departing(claims, partial(self._ends.of, now=now, passed=self._plans.pace.passed(now)))
        nodes, since = self._cluster.node_changes, self._cluster.ledger.touched.changes
        return _Running(gang.wait.asked, nodes, self._asking.state, since, departing)

    def _use(self, gang: Gang, placed: Placement, leaving: Mapping[str, End], at: float, now: float) -> None:
        """Reserve what was found, unless the group fits already, or starts no later with what it has."""
        plan, start = gang.operations.plan, at if at < UNKNOWN else NEVER
        if not leaving:
            gang.wait.try_again()
            self._members.dirty.note(gang.key)
        elif plan is None or plan.start is None or start < plan.start - _EARLIER_S:
            self._plans.open(gang, self._plans.opening.reserving(gang, placed.assignments, leaving, start, now), now)
