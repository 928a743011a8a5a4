"""A gang's life: what the pods, the bindings and the clock make of its run, and what it therefore wants of a pass.

`advance` is called after every event that touches a gang, with the present time. It brings the run up to date (begins
and ends it, notes that it is scheduled, keeps the clock), lets the table in `states` find the phase, and says what the
gang wants. The rules are those of the contract; their numbers stand beside them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from gangsched.core.declaration import Hindrance, Terms
from gangsched.core.gang import BindState, Census, Gang, Run, role_of, take_census
from gangsched.core.model import OnDegraded, Pod, PodPhase, TimeoutPolicy
from gangsched.core.placement import Ask
from gangsched.core.policy import Policy
from gangsched.core.reasons import Reason
from gangsched.core.states import Facts, settle

UNKNOWN_MINIMUM = frozenset({Reason.POD_GROUP_NOT_FOUND, Reason.INVALID_DECLARATION, Reason.CONTRADICTION})
"""Hindrances under which nobody can say how many members are enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """What a gang wants of a pass: `quorum` all or nothing, `repairs` and `extras` one by one.

    `repair` gives quorum and repairs the first place in the order (contract rules 6 and 12).
    """

    repair: bool = False
    quorum: Ask | None = None
    repairs: Sequence[Pod] = ()
    extras: Sequence[Pod] = ()

    def __bool__(self) -> bool:
        return self.quorum is not None or bool(self.repairs) or bool(self.extras)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """The gang as it stands now. `missing` members (by role in `missing_roles`) are still to be created or bound."""

    census: Census
    terms: Terms
    hindrance: Hindrance | None
    facts: Facts
    want: Want
    minimum: int
    missing: int
    missing_roles: Mapping[str, int]
    surplus: Sequence[Pod]
    timed_out: bool = False
    newly_scheduled: bool = False


@dataclass(slots=True)
class _Need:
    """How many more must be bound, in all and by role."""

    total: int
    roles: dict[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.total > 0 or any(self.roles.values())

    @property
    def number(self) -> int:
        """The least number of members that would satisfy both."""
        return max(self.total, sum(self.roles.values()))


def advance(gang: Gang, terms: Terms, hindrance: Hindrance | None, *, now: float, policy: Policy) -> Assessment:
    """Bring the gang up to date and say what it wants."""
    _turn_run(gang)
    census = take_census(gang)
    newly_scheduled = _note_scheduled(gang, census, terms, hindrance, now)
    _note_shortness(gang, census, terms, now)
    need = _need(gang, census, terms)
    eligible, surplus = _within_maximum(gang, census, terms)
    complete = hindrance is None and _complete(gang, census, terms, eligible)
    ask = (tuple((pod.uid, pod.shape) for pod in eligible), terms.spec, len(census.bound), hindrance)
    if ask != gang.ask:
        gang.ask = ask
        gang.parked = False
        gang.refused_members = {}
    timed_out = _keep_clock(gang, census, terms, complete=complete, now=now, policy=policy)
    facts = _facts(gang, census, complete=complete, now=now, policy=policy)
    gang.phase = settle(gang.phase, facts)
    return Assessment(
        census=census,
        terms=terms,
        hindrance=hindrance,
        facts=facts,
        want=_want(gang, census, terms, need, eligible) if complete else Want(),
        minimum=gang.run.minimum if gang.run.scheduled_at else terms.spec.minimum,
        missing=_to_come(terms.spec.minimum, census),
        missing_roles=_roles_to_come(terms, census),
        surplus=surplus,
        timed_out=timed_out,
        newly_scheduled=newly_scheduled,
    )


def begin_anew(gang: Gang) -> None:
    """Let a change of the spec reset the back-off and revive a group that failed by its clock (rule 5)."""
    gang.run.backoff_until = 0.0
    gang.run.level = 0
    gang.run.failed_for_good = False
    gang.run.clock_start = 0.0
    gang.parked = False


def back_off(gang: Gang, *, now: float, policy: Policy) -> None:
    """Count a failed attempt and let the gang wait: initial × 2ⁿ up to the longest, less up to a fifth by jitter."""
    gang.run.timeouts += 1
    gang.run.level += 1
    longest = min(policy.backoff_initial_s * 2 ** min(gang.run.level - 1, 32), policy.backoff_max_s)
    gang.run.backoff_until = now + longest * (1 - _jitter(gang, policy.seed) / 5)
    gang.run.clock_start = 0.0


def _jitter(gang: Gang, seed: int) -> float:
    digest = sha256(f"{seed}/{gang.key}/{gang.run.timeouts}".encode()).digest()
    return int.from_bytes(digest[:4], "big") / 2**32


def _turn_run(gang: Gang) -> None:
    """Begin a run with the first live member, end it when none is left (rule 3)."""
    run = gang.run
    live = next(gang.live(), None) is not None
    if live and run.ended:
        run = gang.run = Run(past=run.past & gang.pods.keys())
    if live:
        run.began = True
    if not run.began or run.ended:
        return
    for pod in gang.pods.values():
        if run.is_past(pod):
            continue
        if pod.phase is PodPhase.SUCCEEDED:
            run.succeeded[pod.uid] = role_of(pod)
        elif pod.phase is PodPhase.FAILED:
            run.failed.add(pod.uid)
    if live:
        return
    past = run.past | gang.pods.keys()
    if run.scheduled_at:
        run.ended = True
        run.ended_well = len(run.succeeded) >= run.minimum
        run.past = past
    else:
        gang.run = Run(past=past)
    gang.decided_minimum = 0
    gang.refusal = None


def _note_scheduled(gang: Gang, census: Census, terms: Terms, hindrance: Hindrance | None, now: float) -> bool:
    """Note that the quorum is bound, under the minimum in force when it was decided (rules 1 and 9)."""
    run = gang.run
    if not census.live or (hindrance is not None and hindrance.reason in UNKNOWN_MINIMUM):
        return False
    spec = terms.spec
    minimum = _minimum_in_force(gang, terms)
    if not gang.flying() and not census.bound:
        gang.decided_minimum = 0
    satisfied = len(census.bound) + census.done
    roles_bound = all(
        census.bound_roles[role.name] + census.done_roles[role.name] >= role.min_member for role in spec.roles
    )
    if run.scheduled_at:
        if spec.minimum <= run.minimum or (satisfied >= spec.minimum and roles_bound):
            run.minimum = spec.minimum
        if roles_bound:
            run.role_minima = {role.name: role.min_member for role in spec.roles}
        return False
    if len(census.bound) < minimum or not roles_bound:
        return False
    run.scheduled_at = now
    run.minimum = minimum
    run.role_minima = {role.name: role.min_member for role in spec.roles}
    run.clock_start = run.backoff_until = 0.0
    run.level = 0
    run.failed_for_good = False
    gang.decided_minimum = 0
    gang.refusal = None
    return True


def _minimum_in_force(gang: Gang, terms: Terms) -> int:
    """A transaction in flight ends under the minimum it was decided with; a lowered one applies at once (rule 9)."""
    return min(gang.decided_minimum or terms.spec.minimum, terms.spec.minimum)


def _need(gang: Gang, census: Census, terms: Terms) -> _Need:
    """What is missing now: of the quorum, or of what a scheduled group had (completed members count there)."""
    scheduled = bool(gang.run.scheduled_at)
    done = census.done_roles if scheduled else Counter[str]()
    minimum = _minimum_in_force(gang, terms)
    if gang.short_since:
        minimum = min(minimum, gang.run.minimum)
    return _Need(
        total=max(0, minimum - len(census.bound) - done.total()),
        roles={
            role.name: max(0, role.min_member - census.bound_roles[role.name] - done[role.name])
            for role in terms.spec.roles
        },
    )


def _within_maximum(gang: Gang, census: Census, terms: Terms) -> tuple[list[Pod], list[Pod]]:
    """Waiting members that the maxima leave room for, and those beyond; bound ones and those on their way go first."""
    spec = terms.spec
    placed = [*census.bound, *(binding.pod for binding in gang.flying())]
    roles = Counter(map(role_of, placed))
    maxima = {role.name: role.max_member for role in spec.roles if role.max_member is not None}
    number = len(placed)
    eligible: list[Pod] = []
    surplus: list[Pod] = []
    for pod in census.waiting:
        role = role_of(pod)
        beyond = (spec.max_member is not None and number >= spec.max_member) or (
            role in maxima and roles[role] >= maxima[role]
        )
        if beyond:
            surplus.append(pod)
        else:
            eligible.append(pod)
            number += 1
            roles[role] += 1
    return eligible, surplus


def _complete(gang: Gang, census: Census, terms: Terms, eligible: Sequence[Pod]) -> bool:
    """Whether enough live members exist for the minimum and each role's; always so once the group was scheduled."""
    if gang.run.scheduled_at:
        return True
    there = [*census.bound, *(binding.pod for binding in gang.flying()), *eligible]
    roles = Counter(map(role_of, there))
    return (
        bool(there)
        and len(there) >= _minimum_in_force(gang, terms)
        and all(roles[role.name] >= role.min_member for role in terms.spec.roles)
    )


def _to_come(minimum: int, census: Census) -> int:
    return max(0, minimum - len(census.live))


def _roles_to_come(terms: Terms, census: Census) -> dict[str, int]:
    missing = {role.name: role.min_member - census.live_roles[role.name] for role in terms.spec.roles}
    return {role: number for role, number in missing.items() if number > 0}


def _keep_clock(gang: Gang, census: Census, terms: Terms, *, complete: bool, now: float, policy: Policy) -> bool:
    """Start, stop, clear and read the clock (rule 4). Returns whether it has just run out."""
    run = gang.run
    if run.scheduled_at or run.failed_for_good:
        return False
    if not complete:
        run.clock_start = run.backoff_until = 0.0
        gang.complete_since = 0.0
        return False
    gang.complete_since = gang.complete_since or now
    if run.backoff_until:
        if now < run.backoff_until:
            return False
        run.backoff_until = 0.0
        gang.parked = False
    if gang.plain or census.bound:
        return False
    run.clock_start = run.clock_start or now
    if gang.flying() or now < run.clock_start + terms.max_schedule_time_s:
        return False
    if terms.spec.timeout_policy is TimeoutPolicy.FAIL:
        run.timeouts += 1
        run.failed_for_good = True
        run.clock_start = 0.0
    else:
        back_off(gang, now=now, policy=policy)
    return True


def _note_shortness(gang: Gang, census: Census, terms: Terms, now: float) -> None:
    """Note since when a scheduled group has less than it was scheduled with, in all or of a role."""
    run = gang.run
    short = False
    if run.scheduled_at and not run.ended:
        still_asked = {role.name: role.min_member for role in terms.spec.roles}
        short = len(census.bound) + census.done < run.minimum or any(
            census.bound_roles[role] + census.done_roles[role] < min(minimum, still_asked.get(role, 0))
            for role, minimum in run.role_minima.items()
        )
    gang.short_since = (gang.short_since or now) if short else 0.0


def _facts(gang: Gang, census: Census, *, complete: bool, now: float, policy: Policy) -> Facts:
    run = gang.run
    scheduled = bool(run.scheduled_at) and not run.ended
    flying = [] if scheduled else gang.flying()
    sent = any(binding.state is BindState.SENT for binding in flying)
    return Facts(
        complete=complete,
        held=bool(flying) and not sent,
        binding=sent,
        quorum_running=scheduled and census.running + census.done >= run.minimum,
        was_scheduled=scheduled,
        short=bool(gang.short_since) and now >= gang.short_since + policy.degraded_after_s,
        backing_off=now < run.backoff_until,
        failed_for_good=run.failed_for_good,
        ended_well=run.ended and run.ended_well,
        ended_badly=run.ended and not run.ended_well,
    )


def _want(gang: Gang, census: Census, terms: Terms, need: _Need, eligible: Sequence[Pod]) -> Want:
    if gang.run.failed_for_good or gang.flying() or not eligible:
        return Want()
    scheduled = bool(gang.run.scheduled_at)
    if not scheduled or (need and not gang.short_since):
        if not need:
            return Want(extras=eligible)
        if need.number > len(eligible):
            return Want()
        quorum = Ask(
            members=eligible,
            need=need.number,
            role_needs=need.roles,
            strategy=terms.spec.strategy,
            own=Counter(_node(gang, pod) for pod in census.bound),
        )
        return Want(repair=bool(census.bound) and not scheduled, quorum=quorum)
    if need and terms.spec.on_degraded is OnDegraded.REPAIR:
        repairs = _first(eligible, need)
        return Want(repair=True, repairs=repairs, extras=[pod for pod in eligible if pod not in repairs])
    return Want(extras=eligible)


def _node(gang: Gang, pod: Pod) -> str:
    return pod.node or gang.bindings[pod.uid].node


def _first(members: Sequence[Pod], need: _Need) -> list[Pod]:
    """The first members that the need can use, roles' needs before the rest; fewer if there are not enough."""
    owed = dict(need.roles)
    free = max(0, need.total - sum(owed.values()))
    chosen = []
    for pod in members:
        role = role_of(pod)
        if owed.get(role, 0) > 0:
            owed[role] -= 1
        elif free > 0:
            free -= 1
        else:
            continue
        chosen.append(pod)
    return chosen
