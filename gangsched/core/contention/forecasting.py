"""Finds out when waiting groups will probably start, for their status: the least urgent work of a call.

It begins when something has changed, with the state at that moment, and goes on from call to call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.claims import Claim
from gangsched.core.contention.asking import Asking
from gangsched.core.contention.ends import DECLARED, UNKNOWN, end_of, expected_end, is_overdue
from gangsched.core.contention.former_runs import FormerRuns
from gangsched.core.contention.outlook import MOST_IN_LINE, Outlook
from gangsched.core.contention.pool import OVERDUE_S
from gangsched.core.contention.search_results import State
from gangsched.core.contention.told_starts import ToldStarts
from gangsched.core.contention.waiting_group import WaitingGroup, as_it_waits
from gangsched.core.gang import rollback, wants
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.clock import NEVER
from gangsched.core.gang.gang import Gang
from gangsched.core.membership.members import Members
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.expected_start import ExpectedStart, Unknown
from gangsched.core.objects.faults import Omitted
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.policy import Policy
from gangsched.core.planning import budget as units
from gangsched.core.planning.budget import Budget
from gangsched.core.planning.field import Field
from gangsched.core.planning.forecast import Ends, Forecast
from gangsched.core.planning.taking import Waiting

FIRST_S = 30.0
"""A group's start is found out once it has waited for so many seconds, and again at most once in as many."""
PAUSE_S = 3600.0
_NARROWED_S = 300.0
"""What is told of a start that is further away than twice that becomes narrower by itself."""
_LOAD = 0.0065
"""At most about this part of one processor's time is spent on it."""
_UNITS_A_SECOND = 30_000_000
_PLACE, _END = 15, 60
"""Cost, in units of the budget, of reading where a pod is, and of finding out when it ends."""
_AT_ONCE = 200

_Walk = Generator[None, None, dict[GroupKey, ExpectedStart] | None]


class Forecasting:
    """`told_starts` are the expected starts by group, as each was told. `waiting` are the groups that were refused or
    held up: while there are none, there is nothing to do. `line` gives the groups that wait, in order.
    """

    def __init__(
        self,
        cluster: Cluster,
        members: Members,
        assessments: Mapping[GroupKey, Assessment],
        asking: Asking,
        line: Callable[[], Iterable[GroupKey]],
        policy: Policy,
    ) -> None:
        self.unfinished = False
        self._faults: list[Omitted] = []
        self._cluster = cluster
        self._members = members
        self._assessments = assessments
        self._asking = asking
        self._line = line
        self._is_first = True
        self._policy = policy
        self.told_starts = ToldStarts()
        self.waiting: set[GroupKey] = set()
        self._due = NEVER
        self._not_before = 0.0
        self._seen: State = ()
        self._budget = Budget()
        self._spent = 0
        self._running: _Walk | None = None

    def next_due(self) -> float:
        """When it is due without an event, in epoch seconds; infinity if it is not."""
        return self._due

    def note(self, gang: Gang, assessment: Assessment, now: float) -> None:
        """Note whether the group, which was just brought up to date or tried, waits."""
        as_a_whole = gang.wait.parked and wants.as_a_whole(gang, assessment.terms, assessment.want) is not None
        if as_a_whole and self._policy.forecasts and gang.observed.group is not None:
            self.waiting.add(gang.key)
            if gang.key not in self.told_starts.last:
                self._due = min(self._due, max(now + FIRST_S, self._not_before))
        elif assessment.want.quorum is None and rollback.under_way(gang) is None:
            # One that is tried at present keeps what it was told, and so does one whose evictions have no answer yet.
            self.drop(gang.key, began=now if gang.operations.has_unconfirmed() else 0.0)

    def told(self, gang: Gang) -> ExpectedStart | None:
        """What the group was told last. That of a former leader is good until it is found out for the first time."""
        if self._policy.forecasts and self._is_first and gang.written.status is not None:
            return gang.written.status.expected
        return self.told_starts.last.get(gang.key)

    def drop(self, key: GroupKey, began: float = 0.0) -> None:
        """The group is gone, or waits no more: it began then, in epoch seconds, if it did."""
        self.told_starts.drop(key, began)
        self.waiting.discard(key)
        if not self.waiting:
            self._running, self.unfinished = None, False

    def go_on(self, budget: Budget, now: float) -> list[GroupKey]:
        """Go on while the budget lasts. Returns the groups whose start has moved."""
        self.unfinished = False
        if self._running is None:
            if self.told_starts.last and self._seen != self._asking.state:
                self._due = min(self._due, self._not_before)
            if now < self._due:
                return []
            self._due, self._spent, self._seen = NEVER, 0, self._asking.state
            self._running = self._walk(now)
        walk, self._running = self._running, None
        self._budget, before = budget, budget.spent
        try:
            gone = _gone_on(walk, budget)
        except Exception as error:  # noqa: BLE001 - a defect may raise anything, and nothing depends on this
            return self.omit(error, now)
        self._spent += budget.spent - before
        if not gone.to_its_end:
            self._running, self.unfinished = walk, True
            return []
        self._not_before = now + max(FIRST_S, self._spent / _UNITS_A_SECOND / _LOAD)
        if gone.starts is None:
            self._due = self._not_before
            return []
        return self._tell(gone.starts, now)

    def omit(self, error: Exception, now: float) -> list[GroupKey]:
        """Rest for some time after an exception. Returns the groups whose start is no longer told."""
        told = self._told_among(self.waiting)
        self._faults.append(Omitted("expected starts", error, PAUSE_S))
        self._due = self._not_before = now + PAUSE_S
        self._is_first = False
        for key in [*self.told_starts.last]:
            self.told_starts.drop(key)
        return told

    def take_faults(self) -> list[Omitted]:
        """The exceptions since the last call."""
        faults, self._faults = self._faults, []
        return faults

    def all(self, now: float) -> dict[GroupKey, ExpectedStart]:
        """The expected starts as they are now, found out at once. Nothing is changed."""
        self._budget = Budget(1 << 50)
        return _gone_on(self._walk(now), self._budget).starts or {}

    def _tell(self, starts: Mapping[GroupKey, ExpectedStart], now: float) -> list[GroupKey]:
        # Some may be gone, or wait no more, since the walk began.
        starts = {key: start for key, start in starts.items() if key in self.waiting and key in self._members.gangs}
        told = self.told_starts.last
        new = {key: start.told_in(key.namespace, now) for key, start in starts.items()}
        moved = [key for key, start in new.items() if start.has_moved(told.get(key), now)]
        taken_back = self._told_among(self.waiting - starts.keys())
        self._is_first = False
        for key in [*told]:
            if key not in starts:
                self.told_starts.drop(key)
        for key in moved:
            self.told_starts.tell(key, new[key], now)
        self._due = min(self._due, max(_looked_at_again(starts.values(), now), self._not_before))
        return moved + taken_back

    def _told_among(self, keys: Iterable[GroupKey]) -> list[GroupKey]:
        gangs = [self._members.gangs[key] for key in sorted(keys) if key in self._members.gangs]
        return [gang.key for gang in gangs if self.told(gang) is not None]

    # One walk

    def _walk(self, now: float) -> _Walk:
        """What is there at its beginning, played forward; None if nodes change before all groups are known."""
        line = [*self._line()]
        rows = self._cluster.capacity.rows
        claims = [claim for claim in self._cluster.ledger.claims.values() if claim.counts and claim.node in rows]
        field = Field(self._cluster)
        yield
        former = FormerRuns(self._members)
        for cost in former.read():
            self._budget.charge(cost)
            yield
        certain, early = yield from self._ends(claims, field, former, now)
        waiting: dict[GroupKey, WaitingGroup] = {}
        starts: dict[GroupKey, ExpectedStart] = {}
        for key in line[:MOST_IN_LINE]:
            gang = self._members.gangs.get(key)
            if not field.is_good():
                return None
            assessment = self._assessments.get(key)
            ask = self._asking.of(gang, assessment) if gang is not None and assessment is not None else None
            if gang is None or assessment is None or ask is None or not ask.members:
                continue
            foreign, policy = self._members.foreign, self._policy
            group = as_it_waits(gang, assessment, ask, field, foreign, former=former, policy=policy, now=now)
            if group is None:
                starts[key] = ExpectedStart(why=Unknown.DEPENDS)
            else:
                waiting[key] = group
            self._budget.charge(units.POD * len(ask.members))
            yield
        expected = yield from self._played(field, early, [group.expected for group in waiting.values()], now)
        safe = yield from self._played(field, certain, [group.certain for group in waiting.values()], now)
        outlook = Outlook(
            expected,
            safe,
            owner=lambda at: self._owner(claims[at].pod),
            could=lambda key: field.could(waiting[key].expected, self._budget),
            now=now,
        )
        wanted = Counter(port for group in waiting.values() for port in group.ports)
        wanted.update(field.ports)
        for key, group in waiting.items():
            gang = self._members.gangs.get(key)
            depends = group.depends or any(wanted[port] > 1 for port in group.ports)
            plan = gang.operations.plan if gang is not None else None
            starts[key] = outlook.of(key, plan, depends=depends, refused=group.refused)
            self._budget.charge(units.POD)
            yield
        return starts | dict.fromkeys(line[MOST_IN_LINE:], ExpectedStart(why=Unknown.LINE))

    def _played(self, field: Field, ends: Ends, line: Sequence[Waiting], now: float) -> Generator[None, None, Forecast]:
        forecast = Forecast(field.free, field.pools, ends, now, UNKNOWN)
        self._budget.charge(_PLACE * len(ends.at))
        yield
        for cost in forecast.play(line):
            self._budget.charge(cost)
            yield
        return forecast

    def _ends(
        self, claims: Sequence[Claim], field: Field, former: FormerRuns, now: float
    ) -> Generator[None, None, tuple[Ends, Ends]]:
        """When each of these ends for certain, and when it is expected to."""
        victims = {
            uid: plan.expires
            for gang in self._members.gangs.values()
            if (plan := gang.operations.plan) is not None and plan.start is None
            for uid in plan.leaving
        }
        pieces = []
        for first in range(0, max(1, len(claims)), _AT_ONCE):
            batch = claims[first : first + _AT_ONCE]
            ends = [self._end(claim, victims.get(claim.pod.uid), former, now) for claim in batch]
            pieces.append((np.array(ends, dtype=np.float64).reshape(-1, 3), *field.places(batch)))
            self._budget.charge((_PLACE + _END) * len(batch))
            yield
        times, rows, amounts = (np.concatenate(columns) for columns in zip(*pieces, strict=True))
        certain, expected, doubt = times.T
        safe = Ends(certain, rows, amounts, np.zeros(len(rows), dtype=np.int64))
        return safe, safe._replace(at=expected, doubt=doubt.astype(np.int64))

    def _end(self, claim: Claim, expires: float | None, former: FormerRuns, now: float) -> tuple[float, float, int]:
        """When it ends for certain, when it is expected to, and how much doubt there is about that.

        `expires`: it is preempted for a group whose plan is given up at that time.
        """
        pod = claim.pod
        if expires is not None and not pod.terminating:
            latest = max(now, expires)
            return latest, min(now + pod.lifetime.grace_s, latest), DECLARED
        gang = self._members.gang_of(pod.uid)
        end = end_of(pod, gang, self._members.foreign, now, ours=self._members.ours(pod))
        return end.certain, *expected_end(pod, end, former.end_of(pod, gang, now), now)

    def _owner(self, pod: Pod) -> tuple[GroupKey, bool]:
        gang = self._members.gang_of(pod.uid)
        key = gang.key if gang is not None and not gang.plain else GroupKey(pod.namespace, pod.name, pod.uid)
        return key, is_overdue(pod, self._members.foreign)


def _looked_at_again(starts: Iterable[ExpectedStart], now: float) -> float:
    """When these are found out anew even if nothing changes, in epoch seconds.

    What is told of a start that is far away becomes narrower halfway. Who should have left by then, and is there, is
    not counted on any more.
    """
    nearest = min((at for start in starts for at in start[:2] if at + OVERDUE_S > now), default=NEVER)
    halfway = (nearest - now) / 2
    return now + halfway if _NARROWED_S < halfway < NEVER else nearest + OVERDUE_S + 1


class _Gone(NamedTuple):
    """How far a walk has gone."""

    to_its_end: bool
    starts: dict[GroupKey, ExpectedStart] | None


def _gone_on(walk: _Walk, budget: Budget) -> _Gone:
    """Go on while the budget lasts."""
    try:
        while budget:
            next(walk)
    except StopIteration as stopped:
        return _Gone(True, stopped.value)
    return _Gone(False, None)
