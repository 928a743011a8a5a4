"""Finds out when waiting groups will probably start, for their status: the least urgent work of a call.

It begins when something has changed, with the state at that moment, and goes on from call to call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.claims import Claim
from gangsched.core.contention.asking import Asking
from gangsched.core.contention.ends import UNKNOWN, End, end_of, last_end
from gangsched.core.contention.outlook import AT_ONCE_S, MOST_IN_LINE, Outlook
from gangsched.core.contention.pool import OVERDUE_S
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.clock import NEVER
from gangsched.core.gang.gang import Gang
from gangsched.core.membership.members import Members
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.expected_start import ExpectedStart, Unknown
from gangsched.core.objects.faults import Omitted
from gangsched.core.objects.pod import Pod, role_of
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.shape import Shape
from gangsched.core.planning import budget as units
from gangsched.core.planning.ask import Ask
from gangsched.core.planning.budget import Budget
from gangsched.core.planning.expansion import HOSTNAME
from gangsched.core.planning.field import Field
from gangsched.core.planning.forecast import Ends, Forecast, Waiting

FIRST_S = 30.0
"""A group's start is found out once it has waited for so many seconds, and again at most once in as many."""
PAUSE_S = 3600.0
_LOAD = 0.02
"""At most about this part of one processor's time is spent on it."""
_UNITS_A_SECOND = 25_000_000
_PLACE, _END = 15, 60
"""Cost, in units of the budget, of reading where a pod is, and of finding out when it ends."""
_AT_ONCE = 200
_AT_ANY_TIME_S = AT_ONCE_S / MOST_IN_LINE

_Walk = Generator[None, None, dict[GroupKey, ExpectedStart]]


class _Expected(NamedTuple):
    """A group as it waits, by what it is expected to do and by what is certain; `depends`: amounts tell too little."""

    expected: Waiting
    certain: Waiting
    depends: bool


class Forecasting:
    """`starts` are the expected starts by group, as each was told last. `waiting` are the groups that were refused or
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
        self.starts: dict[GroupKey, ExpectedStart] = {}
        self._cluster = cluster
        self._members = members
        self._assessments = assessments
        self._asking = asking
        self._line = line
        self._found: Mapping[GroupKey, ExpectedStart] = {}
        self._is_on = policy.forecasts
        self._age_s = policy.reservations.starvation_age_s
        self.waiting: set[GroupKey] = set()
        self._due = NEVER
        self._not_before = 0.0
        self._changes = -1
        self._budget = Budget()
        self._spent = 0
        self._running: _Walk | None = None

    def next_due(self) -> float:
        """When it is due without an event, in epoch seconds; infinity if it is not."""
        return self._due

    def note(self, gang: Gang, assessment: Assessment, now: float) -> None:
        """Note whether the group, which was just brought up to date or tried, waits."""
        if gang.wait.parked and self._is_on and gang.observed.group is not None:
            self.waiting.add(gang.key)
            if gang.key not in self.starts:
                self._due = min(self._due, max(now + FIRST_S, self._not_before))
        elif assessment.want.quorum is None:
            # One that is tried at present keeps what it was told.
            self.drop(gang.key)

    def drop(self, key: GroupKey) -> None:
        """The group is gone, or waits no more."""
        self.waiting.discard(key)
        self.starts.pop(key, None)
        if not self.waiting:
            self._running, self.unfinished = None, False

    def go_on(self, budget: Budget, now: float) -> list[GroupKey]:
        """Go on while the budget lasts. Returns the groups whose start has moved."""
        self.unfinished = False
        if self._running is None:
            if self.starts and self._changes != self._cluster.changes:
                self._due = min(self._due, self._not_before)
            if now < self._due:
                return []
            self._due, self._spent, self._changes = NEVER, 0, self._cluster.changes
            self._running = self._walk(now)
        walk, self._running = self._running, None
        self._budget, before = budget, budget.spent
        try:
            found = _gone_on(walk, budget)
        except Exception as error:  # noqa: BLE001 - a defect may raise anything, and nothing depends on this
            self.omit(error, now)
            return []
        self._spent += budget.spent - before
        if found is None:
            self._running, self.unfinished = walk, True
            return []
        self._not_before = now + max(FIRST_S, self._spent / _UNITS_A_SECOND / _LOAD)
        return self._tell(found, now)

    def omit(self, error: Exception, now: float) -> None:
        """Rest for some time after an exception."""
        self._faults.append(Omitted("expected starts", error, PAUSE_S))
        self._due = self._not_before = now + PAUSE_S

    def take_faults(self) -> list[Omitted]:
        """The exceptions since the last call."""
        faults, self._faults = self._faults, []
        return faults

    def all(self, now: float) -> dict[GroupKey, ExpectedStart]:
        """The expected starts as they are now, found out at once. Nothing is changed."""
        self._budget = Budget(1 << 50)
        return _gone_on(self._walk(now), self._budget) or {}

    def _tell(self, found: Mapping[GroupKey, ExpectedStart], now: float) -> list[GroupKey]:
        # Some may be gone, or wait no more, since the walk began.
        found = {key: start for key, start in found.items() if key in self.waiting and key in self._members.gangs}
        moved = [
            key for key, start in found.items() if key not in self.starts or start.has_moved(self._found[key], now)
        ]
        for key in [*self.starts]:
            if key not in found:
                del self.starts[key]
        self._found = {key: found[key] if key in moved else self._found[key] for key in found}
        self.starts |= {key: found[key].told_in(key.namespace, now) for key in moved}
        # Who should have left by then, and is there, is not counted on any more.
        times = (at for each in found.values() for at in each[:2])
        nearest = min((at for at in times if at > now), default=NEVER)
        self._due = min(self._due, max(nearest + OVERDUE_S + 1, self._not_before))
        return moved

    # One walk

    def _walk(self, now: float) -> _Walk:
        """What is there at its beginning, played forward; as before if nodes change before all groups are known."""
        line = [*islice(self._line(), MOST_IN_LINE + 1)]
        rows = self._cluster.capacity.rows
        claims = [each for each in self._cluster.ledger.claims.values() if each.counts and each.node in rows]
        field = Field(self._cluster)
        places = field.places(claims)
        self._budget.charge(_PLACE * len(claims))
        yield
        ends = yield from self._ends(claims, now)
        waiting: dict[GroupKey, _Expected] = {}
        starts: dict[GroupKey, ExpectedStart] = {}
        for key in line[:MOST_IN_LINE]:
            gang = self._members.gangs.get(key)
            if not field.is_good():
                self._due = now + FIRST_S
                return {**self._found}
            assessment = self._assessments.get(key)
            ask = self._asking.of(gang, assessment) if gang is not None and assessment is not None else None
            chosen = _needed(ask) if ask is not None else []
            if gang is None or ask is None or not chosen:
                continue
            if any(pod.device_claims or not field.delegated.isdisjoint(dict(pod.shape.requests)) for pod in chosen):
                starts[key] = ExpectedStart(why=Unknown.DEPENDS)
            else:
                waiting[key] = self._waiting(gang, field, ask, chosen, now)
            self._budget.charge(units.POD * len(chosen))
            yield
        self._budget.charge(_PLACE * len(ends))
        yield
        promise = np.array([end.promised < end.certain for end in ends], dtype=np.bool_)
        certain = Ends(np.array([end.certain for end in ends], dtype=np.float64), *places, promise)
        soonest = np.where(certain.at < UNKNOWN, now, certain.at)
        soonest[promise] = [end.promised for end in ends if end.promised < end.certain]
        early = certain._replace(at=soonest)
        expected = yield from self._played(field, early, [each.expected for each in waiting.values()], now)
        safe = yield from self._played(field, certain, [each.certain for each in waiting.values()], now)
        outlook = Outlook(
            expected,
            safe,
            owner=lambda at: self._owner(claims[at].pod),
            could=lambda key: field.could(waiting[key].expected),
            now=now,
        )
        for key, each in waiting.items():
            gang = self._members.gangs.get(key)
            starts[key] = outlook.of(key, gang.operations.plan if gang is not None else None, depends=each.depends)
            yield
        return starts | dict.fromkeys(line[MOST_IN_LINE:], ExpectedStart(why=Unknown.LINE))

    def _played(
        self, field: Field, ends: Ends, line: Sequence[Waiting], now: float
    ) -> Generator[None, None, list[Forecast]]:
        """Played forward twice: with those who overtake, and in strict order."""
        both = []
        for strict in (False, True):
            forecast = Forecast(field.free, field.pools, ends, now, strict=strict)
            both.append(forecast)
            self._budget.charge(_PLACE * len(ends.at))
            yield
            for cost in forecast.play(line):
                self._budget.charge(cost)
                yield
        return both

    def _ends(self, claims: Sequence[Claim], now: float) -> Generator[None, None, list[End]]:
        victims = {
            uid: plan.expires
            for gang in self._members.gangs.values()
            if (plan := gang.operations.plan) is not None and plan.start is None
            for uid in plan.leaving
        }
        ends: list[End] = []
        for at, claim in enumerate(claims, 1):
            pod = claim.pod
            if pod.uid in victims and not pod.terminating:
                expires = max(now, victims[pod.uid])
                ends.append(End(expires, min(now + pod.lifetime.grace_s, expires)))
            else:
                gang = self._members.gang_of(pod.uid)
                ends.append(end_of(pod, gang, self._members.foreign, now, ours=self._members.ours(pod)))
            if not at % _AT_ONCE:
                self._budget.charge(_END * _AT_ONCE)
                yield
        return ends

    def _waiting(self, gang: Gang, field: Field, ask: Ask, chosen: Sequence[Pod], now: float) -> _Expected:
        """The group as it waits, with these members."""
        holds_from = NEVER
        if gang.operations.plan is not None:
            holds_from = 0.0
        elif self._age_s and not gang.plain and gang.operations.complete_since:
            holds_from = gang.operations.complete_since + self._age_s
        waits = field.waiting(gang.key, ask, chosen, holds_from)
        last = partial(last_end, chosen, gang, self._members.foreign, now)
        promised, certain = (
            end - now if (end := last(by_promises=each)) < UNKNOWN else NEVER for each in (True, False)
        )
        # Who only has a limit may end at any time.
        early = promised if promised < certain or certain == NEVER else _AT_ANY_TIME_S
        depends = any(_depends(pod.shape) for pod in chosen)
        return _Expected(replace(waits, lasts_s=early), replace(waits, lasts_s=certain), depends)

    def _owner(self, pod: Pod) -> GroupKey:
        gang = self._members.gang_of(pod.uid)
        return gang.key if gang is not None and not gang.plain else GroupKey(pod.namespace, pod.name, pod.uid)


def _gone_on(walk: _Walk, budget: Budget) -> dict[GroupKey, ExpectedStart] | None:
    """Go on while the budget lasts. Returns the result, None before there is one."""
    try:
        while budget:
            next(walk)
    except StopIteration as stopped:
        found: dict[GroupKey, ExpectedStart] = stopped.value
        return found
    return None


def _needed(ask: Ask) -> list[Pod]:
    """As many members as are needed, the minima of roles first."""
    missing = Counter({role: need for role, need in ask.role_needs.items() if need > 0})
    chosen: list[Pod] = []
    rest: list[Pod] = []
    for pod in ask.members:
        if missing[role_of(pod)] > 0:
            missing[role_of(pod)] -= 1
            chosen.append(pod)
        else:
            rest.append(pod)
    return chosen + rest[: max(0, ask.need - len(chosen))]


def _depends(shape: Shape) -> bool:
    """Whether more than amounts decides where a member may be, beside that it wants a node for itself."""
    apart = [term for term in shape.anti_affinity if term.topology_key != HOSTNAME]
    return bool(shape.affinity or shape.spread or shape.disks or apart)
