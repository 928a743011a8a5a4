"""Advances a gang's life cycle and finds what the gang wants from a scheduling cycle.

`advance` is called with the current time after every event that concerns a gang. It begins and ends runs, records that
the quorum is bound, calls `clock` and `rollback`, and finds the phase by the table in `states`. The rules are those of
the contract; their numbers are given beside them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from gangsched.core.cluster.cache import Cluster
from gangsched.core.declarations.minima import Need, chosen, minima, missing_of
from gangsched.core.declarations.terms import Terms
from gangsched.core.gang import bindings, parts, placeholders, prebinding, rollback, runs, wants
from gangsched.core.gang.clock import NEVER, back_off, keep_clock, runs_out
from gangsched.core.gang.gang import Census, Gang, take_census
from gangsched.core.gang.states import Facts, settle
from gangsched.core.gang.steps import Step, apply
from gangsched.core.gang.wants import Want
from gangsched.core.gang.writes import BindState
from gangsched.core.objects.pod import Pod, role_of
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.record import Outcome, Phase


class Assessment(Struct, frozen=True, kw_only=True):
    """The current state of the gang.

    `complete`: the members and placeholders are enough, and nothing keeps the gang from being tried. `surplus` are
    members beyond a maximum. `facts`, `minimum` and `due` are known once the call is over: `due` is when, in epoch
    seconds, the gang must be reconciled even without an event. `timed_out`: its clock has just run out;
    `newly_scheduled`: its quorum has just been bound.
    """

    census: Census
    terms: Terms
    complete: bool = False
    facts: Facts = Facts()
    want: Want = Want()
    minimum: int = 0
    surplus: Sequence[Pod] = ()
    due: float = NEVER
    timed_out: bool = False
    newly_scheduled: bool = False

    @property
    def missing(self) -> int:
        """Number of members that do not exist yet."""
        if self.terms.spec.tree is not None:
            return missing_of(self.terms.spec.tree, Counter(map(role_of, self.census.live))).number
        return max(0, self.terms.spec.minimum - len(self.census.live))

    @property
    def missing_roles(self) -> dict[str, int]:
        """Number of members that do not exist yet, by role."""
        live = Counter(map(role_of, self.census.live))
        least = chosen(minima(self.terms.spec), live).roles
        return {role: number - live[role] for role, number in least if number > live[role]}


class Progress(Struct, frozen=True):
    """Which members may be placed (`eligible`), which are beyond a maximum (`surplus`), and placeholders (`to_come`).

    `complete`: the members and placeholders are enough, and nothing keeps the gang from being tried.
    """

    census: Census
    eligible: Sequence[Pod]
    surplus: Sequence[Pod]
    to_come: Sequence[Pod]
    complete: bool


def advance(gang: Gang, cluster: Cluster, terms: Terms, *, now: float, policy: Policy) -> Assessment:
    """Bring the gang up to date, release reservations that are of no use any more, and find what it wants."""
    rollback.end_restart(gang)
    runs.go_on(gang, now)
    if gang.roster.take_emptied() or (_is_remade(gang) and not _has_bound(gang)):
        runs.end(gang)
        runs.go_on(gang, now)
    census, newly_scheduled = _note_scheduled(gang, cluster, terms, now=now, policy=policy)
    if not census.live:
        runs.end(gang)
        census = take_census(gang)
    if placeholders.run_out(gang, census, terms, now=now):
        placeholders.release(gang, cluster)
    census = parts.keep(gang, cluster, census, terms.spec, now=now, policy=policy)
    runs.note_shortness(gang, census, terms, now)
    need = _need(gang, census, terms)
    rollback.drop_restart(gang, terms)
    rollback.note_partial(gang, census, need, terms, now)
    rollback.begin_due(gang, census, need, terms, now=now, policy=policy)
    if rollback.under_way(gang) is not None:
        bindings.release_held(gang, cluster)
        census = take_census(gang)
    assessment = _find_want(gang, cluster, census, need, terms, now=now, policy=policy)
    return replace(assessment, newly_scheduled=newly_scheduled)


def advance_tried(gang: Gang, cluster: Cluster, terms: Terms, *, now: float, policy: Policy) -> Assessment:
    """Find what the gang wants after the scheduling cycle has tried to place what it wanted before."""
    census = take_census(gang)
    if placeholders.run_out(gang, census, terms, now=now):
        placeholders.release(gang, cluster)
    return _find_want(gang, cluster, census, _need(gang, census, terms), terms, now=now, policy=policy)


def conclude(gang: Gang, assessment: Assessment, *, now: float, policy: Policy) -> Assessment:
    """Find the phase, and when the gang is due again, once nothing more is decided about it in this call."""
    census, terms = assessment.census, assessment.terms
    if gang.outside and gang.record.clock_start and not gang.operations.placeholders():
        # A group that may not be tried does not time out.
        apply(gang, Step.CLOCK_STOPS)
    facts = _facts(gang, census, complete=assessment.complete, now=now, policy=policy)
    _enter(gang, settle(gang.record.phase, facts), now)
    minimum = gang.record.minimum if gang.record.scheduled_at else terms.spec.minimum
    return replace(assessment, facts=facts, minimum=minimum, due=_next_due(gang, census, terms, facts, policy))


def _need(gang: Gang, census: Census, terms: Terms) -> Need:
    return wants.later_need(gang, census, terms) if gang.record.scheduled_at else wants.quorum_need(gang, census, terms)


def _find_want(
    gang: Gang, cluster: Cluster, census: Census, need: Need, terms: Terms, *, now: float, policy: Policy
) -> Assessment:
    """Keep the clock, give up reservations that form no quorum, and find what the gang wants."""
    if gang.attempt.take_exhausted():
        back_off(gang, now=now, policy=policy)
    prebinding.keep(gang, need, now)
    progress = _progress(gang, census, need, terms, now)
    if _is_hopeless(gang, progress.census, need, complete=progress.complete):
        _give_up(gang, cluster)
        progress = _progress(gang, take_census(gang), need, terms, now)
    _unpark_if_changed(gang, progress.census, terms, now)
    overdue = prebinding.overdue(gang, policy) if gang.record.prebinding_at else ""
    counts = _counts(gang, progress, terms)
    timed_out = keep_clock(
        gang, progress.census, terms, complete=progress.complete, counts=counts, now=now, policy=policy
    )
    if timed_out and overdue:
        # Undoing pre-bindings changes what the members ask for, which must not end the back-off early.
        apply(gang, Step.ROLLED_BACK, rollback_note=overdue)
    if timed_out and gang.operations.bindings:
        _give_up(gang, cluster)
        gang.attempt.wait()
        progress = _progress(gang, take_census(gang), need, terms, now)
    census, to_come, scheduled = progress.census, progress.to_come, bool(gang.record.scheduled_at)
    if terms.hindrance is None and not to_come and (gang.operations.placeholders() or scheduled or not census.bound):
        apply(gang, Step.UNCAPPED)
    if gang.record.capped is not None and gang.record.capped.until:
        to_come = ()
    return Assessment(
        census=census,
        terms=terms,
        complete=progress.complete,
        want=_want(gang, progress, terms, need, to_come, now),
        surplus=progress.surplus,
        timed_out=timed_out,
    )


def _note_scheduled(gang: Gang, cluster: Cluster, terms: Terms, *, now: float, policy: Policy) -> tuple[Census, bool]:
    """The census, and whether the gang has just become scheduled: by its quorum or, before that of a tree is rolled
    back, by other parts. Then what is left of the quorum is given up.
    """
    census = take_census(gang)
    if runs.note_scheduled(gang, census, terms, now):
        return census, True
    if rollback.is_due(gang.operations.partial_since, now, policy) and runs.go_on_with_others(gang, census, terms, now):
        bindings.release_held(gang, cluster)
        return take_census(gang), True
    return census, False


def _want(gang: Gang, progress: Progress, terms: Terms, need: Need, to_come: Sequence[Pod], now: float) -> Want:
    """What the gang wants; if that is no quorum any more, why the last one of a scheduled gang did not fit is past."""
    want = Want()
    if progress.complete and rollback.may_plan(gang, now) and not _is_remade(gang):
        moves, closed = placeholders.moving(gang, progress.eligible), parts.closed(gang, now)
        some = [*progress.eligible, *to_come]
        want = wants.want_of(gang, progress.census, terms, need, some, moves=moves, closed=closed)
    if gang.record.scheduled_at and want.quorum is None:
        gang.attempt.forget_refusal()
    return want


def _enter(gang: Gang, phase: Phase, now: float) -> None:
    record = gang.record
    runs_first = phase is Phase.RUNNING and record.phase is not phase and not record.running_at
    apply(gang, Step.PHASE, phase=phase, running_at=now if runs_first else record.running_at)


def _progress(gang: Gang, census: Census, need: Need, terms: Terms, now: float) -> Progress:
    """Find which members exist and may be placed."""
    waiting, surplus = wants.within_maximum(gang, census, terms)
    eligible: Sequence[Pod] = bindings.may_be_tried(gang, waiting, now)
    if _finishes(gang, terms):
        eligible = wants.first(eligible, need)
    there = [*(binding.pod for binding in gang.operations.unconfirmed()), *eligible]
    to_come: Sequence[Pod] = ()
    if (
        terms.hindrance is None
        and (there or census.bound)
        and (gang.operations.rollback is None or rollback.may_plan(gang, now))
    ):
        # A member that fits no reservation does not replace a placeholder: it may fit nowhere.
        fitting = (
            [pod for pod in there if pod.uid not in gang.operations.mismatched] if gang.operations.mismatched else there
        )
        to_come = placeholders.to_come(gang, need, fitting, terms)
    there += to_come
    scheduled = bool(gang.record.scheduled_at) and not gang.record.ended
    enough = scheduled or (need.met_by(there) and bool(need or there))
    complete = enough and (terms.hindrance is None or _finishes(gang, terms))
    return Progress(census, eligible, surplus, to_come, complete)


def _counts(gang: Gang, progress: Progress, terms: Terms) -> bool:
    """Whether the clock runs: the gang is tried, and placeholders are reserved for members that do not exist.

    If a controller creates members only once others are ready, the clock does not run while any member is to come.
    """
    held = bool(gang.operations.placeholders())
    comes = (progress.to_come or held) if terms.sequential else (progress.to_come and not held)
    return not (gang.outside or comes)


def _is_remade(gang: Gang) -> bool:
    """Whether the workload is deleting the rest of a scheduled gang in order to recreate all of it.

    No new member is bound beside the old ones. Once the old ones are no longer members another run begins, in which the
    new ones are bound as a whole.
    """
    if not (gang.observed.recreates_all and gang.record.scheduled_at) or gang.record.ended:
        return False
    return gang.lingering() > 0 or not _has_bound(gang)


def _has_bound(gang: Gang) -> bool:
    """Whether any live member has a node or a reservation."""
    return any(pod.node or pod.uid in gang.operations.bindings for pod in gang.live())


def _give_up(gang: Gang, cluster: Cluster) -> None:
    """Release all reservations, and forget why single members were refused beside them."""
    bindings.release_all(gang, cluster)
    gang.attempt.forget_members()


def _finishes(gang: Gang, terms: Terms) -> bool:
    """Whether the PodGroup is gone while the quorum is partly bound; such a quorum must still be finished (rule 10)."""
    return terms.undeclared and bool(gang.operations.partial_since)


def _unpark_if_changed(gang: Gang, census: Census, terms: Terms, now: float) -> None:
    """Try a parked gang again after a change of its spec, priority, members or bound members (rule 5), or a pause."""
    members = [(pod.uid, pod.shape, pod.labels) for pod in census.live]
    ask = (members, terms.spec, terms.priority, terms.hindrance, dict(census.bound_roles), dict(census.done_roles))
    gang.attempt.asks(ask, now)


def _facts(gang: Gang, census: Census, *, complete: bool, now: float, policy: Policy) -> Facts:
    """The facts from which the table in `states` finds the phase."""
    record = gang.record
    scheduled = bool(record.scheduled_at) and not record.ended
    unconfirmed = [] if scheduled else gang.operations.unconfirmed()
    sent = any(binding.state is BindState.SENT for binding in unconfirmed)
    short = bool(gang.observed.short_since) and (
        record.late or now >= gang.observed.short_since + policy.degraded_after_s
    )
    rolling_back = (
        gang.operations.rollback is not None and now >= gang.operations.rollback.since + policy.degraded_after_s
    )
    return Facts(
        complete=complete,
        held=(bool(unconfirmed) and not sent) or (record.capped is not None and not scheduled and bool(census.bound)),
        binding=sent or (gang.operations.rollback is not None and not rolling_back and not scheduled),
        quorum_running=scheduled and census.running + census.done >= record.minimum,
        was_scheduled=scheduled,
        degraded=short or rolling_back,
        backing_off=now < record.retry_at,
        failed_for_good=record.outcome is Outcome.OUT_OF_TIME,
        ended_well=record.outcome is Outcome.SUCCEEDED,
        ended_badly=record.outcome is Outcome.FAILED,
        suspended=not census.live and gang.observed.idle is not None and not gang.observed.idle.ended,
    )


def _is_hopeless(gang: Gang, census: Census, need: Need, *, complete: bool) -> bool:
    """Whether the reservations are of no use: nothing is bound or in flight, and they form no quorum or none is wanted.

    Binding them would bind only a part of the gang; after their release the gang is planned as a whole.
    """
    if gang.record.scheduled_at or census.bound or not gang.operations.bindings:
        return False
    if gang.record.prebinding_at and complete and gang.attempt.refusal is None:
        # A member whose pre-bindings failed may find another node beside the others.
        return False
    held = [binding.pod for binding in gang.operations.bindings.values() if binding.state is BindState.HELD]
    return len(held) == len(gang.operations.bindings) and (not complete or not need.met_by(held))


def _next_due(gang: Gang, census: Census, terms: Terms, facts: Facts, policy: Policy) -> float:
    """When, in epoch seconds, the gang must be reconciled even without an event."""
    record = gang.record
    expires, held_until = placeholders.expires(gang, terms), placeholders.held_until(gang, terms)
    # While no member is bound, the group's clock releases reservations, once no binding is in flight.
    due = [gang.attempt.pause.until, expires if record.scheduled_at or census.bound else NEVER, parts.due(gang, policy)]
    if held_until < expires:
        due.append(held_until)
    if gang.operations.rollback is not None and not facts.degraded:
        due.append(gang.operations.rollback.since + policy.degraded_after_s)
    if record.capped is not None and record.capped.until:
        due.append(record.capped.until)
    # Members stay barred beyond the run in which they were refused, for example if the PodGroup was replaced.
    due += [barred.until for barred in gang.operations.barred.values() if barred.until]
    if record.scheduled_at:
        if gang.observed.short_since and not facts.degraded:
            due.append(gang.observed.short_since + policy.degraded_after_s)
        return min(due)
    if gang.operations.partial_since and (gang.operations.rollback is None or gang.operations.rollback.retried):
        due.append(gang.operations.partial_since + rollback.lasts_s(policy))
    if record.outcome is not Outcome.OUT_OF_TIME:
        due.append(record.retry_at or runs_out(gang, census, terms, policy))
    return min(due)
