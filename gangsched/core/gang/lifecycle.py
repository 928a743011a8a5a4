"""A gang's life: what the pods, the bindings and the clock make of its run, and what it therefore wants of a pass.

`advance` is called after every event that touches a gang, with the present time. It brings the run up to date (begins
and ends it, notes that it is scheduled), lets `clock` and `demand` do their part and the table in `states` find the
phase. The rules are those of the contract; their numbers stand beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from msgspec import Struct

from gangsched.core.gang import placeholders, rollback
from gangsched.core.gang.agreement import Hindrance
from gangsched.core.gang.census import Census, take_census
from gangsched.core.gang.clock import back_off, keep_clock
from gangsched.core.gang.declaration import WITHOUT_OBJECT
from gangsched.core.gang.facts import facts_of, is_complete, is_hopeless, next_due, roles_to_come
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.states import Facts, settle
from gangsched.core.gang.terms import Terms
from gangsched.core.gang.wants import (
    Want,
    first,
    later_need,
    lowered,
    minima,
    quorum_need,
    role_minima,
    want_of,
    within_maximum,
)
from gangsched.core.objects.pod import Pod, PodPhase, role_of
from gangsched.core.objects.podgroup import GroupSpec
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import Minima, Outcome, counted

UNKNOWN_MINIMUM = WITHOUT_OBJECT | {Reason.INVALID_DECLARATION, Reason.CONTRADICTION}
"""Hindrances under which nobody can say how many members are enough."""


class Assessment(Struct, frozen=True, kw_only=True):
    """The gang as it stands now. `missing` members (by role in `missing_roles`) are still to be created or bound.

    `hopeless`: places are held that cannot become a quorum, and nothing of the gang is bound or on its way; `vacated`:
    the time of those held for members to come is over. `due` is when the gang's life goes on though nothing happens to
    it, in epoch seconds.
    """

    census: Census
    terms: Terms
    hindrance: Hindrance | None
    facts: Facts
    want: Want
    minimum: int
    missing: int
    missing_roles: Mapping[str, int]
    surplus: Sequence[Pod]
    hopeless: bool
    due: float
    timed_out: bool = False
    vacated: bool = False
    newly_scheduled: bool = False


def advance(gang: Gang, terms: Terms, hindrance: Hindrance | None, *, now: float, policy: Policy) -> Assessment:
    """Bring the gang up to date and say what it wants."""
    rollback.end_restart(gang)
    _go_on(gang, now)
    if gang.roster.take_emptied():
        _end_run(gang)
        _go_on(gang, now)
    census = take_census(gang)
    newly_scheduled = _note_scheduled(gang, census, terms, hindrance, now)
    if not census.live:
        _end_run(gang)
        census = take_census(gang)
    vacated = placeholders.run_out(gang, census, terms, now=now)
    _note_shortness(gang, census, terms, now)
    known = _known(hindrance)
    scheduled = bool(gang.record.scheduled_at)
    need = later_need(gang, census, terms) if scheduled else quorum_need(gang, census, terms, known=known)
    rollback.drop_restart(gang, terms, known=known)
    rollback.note_partial(gang, census, need, known=known, now=now)
    rollback.begin_due(gang, census, need, terms, now=now, policy=policy)
    eligible, surplus = within_maximum(gang, census, terms)
    eligible = _not_barred(gang, eligible, now)
    if gang.doubted:
        # Whoever can do without them does.
        gang.doubted &= gang.pods.keys()
        eligible.sort(key=lambda pod: pod.uid in gang.doubted)
    if gang.attempt.take_exhausted():
        back_off(gang, now=now, policy=policy)
    if _finishes(gang, hindrance):
        eligible = first(eligible, need)
    there = [*(binding.pod for binding in gang.flying()), *eligible]
    to_come: list[Pod] = []
    if hindrance is None and (there or census.bound) and (gang.undo is None or rollback.may_plan(gang, now)):
        # Who fits no place keeps none from being held: it may fit nowhere.
        fitting = [pod for pod in there if pod.uid not in gang.mismatched] if gang.mismatched else there
        to_come = placeholders.to_come(gang, need, fitting, terms)
    complete = (hindrance is None or _finishes(gang, hindrance)) and is_complete(gang, need, [*there, *to_come])
    _unpark_if_changed(gang, census, terms, hindrance)
    counts = not gang.outside and (not to_come or bool(gang.vacant()))
    timed_out = keep_clock(gang, census, terms, complete=complete, counts=counts, now=now, policy=policy)
    if (
        gang.record.capped is not None
        and hindrance is None
        and not to_come
        and (gang.vacant() or scheduled or not census.bound)
    ):
        gang.note(capped=None)
    if gang.record.capped is not None and gang.record.capped.until:
        to_come = []
    facts = facts_of(gang, census, complete=complete, now=now, policy=policy)
    gang.note(phase=settle(gang.record.phase, facts))
    return Assessment(
        census=census,
        terms=terms,
        hindrance=hindrance,
        facts=facts,
        want=want_of(gang, census, terms, need, [*eligible, *to_come], moves=placeholders.moving(gang, eligible))
        if complete and rollback.may_plan(gang, now)
        else Want(),
        minimum=gang.record.minimum if gang.record.scheduled_at else terms.spec.minimum,
        missing=max(0, terms.spec.minimum - len(census.live)),
        missing_roles=roles_to_come(terms, census),
        surplus=surplus,
        hopeless=is_hopeless(gang, census, need, complete=complete) or (timed_out and bool(gang.bindings)),
        due=next_due(gang, census, terms, facts, policy),
        timed_out=timed_out,
        vacated=vacated,
        newly_scheduled=newly_scheduled,
    )


def _known(hindrance: Hindrance | None) -> bool:
    return hindrance is None or hindrance.reason not in UNKNOWN_MINIMUM


def _finishes(gang: Gang, hindrance: Hindrance | None) -> bool:
    """Whether the PodGroup is gone and a transaction of it is still to be finished (rule 10)."""
    gone = hindrance is not None and hindrance.reason in WITHOUT_OBJECT
    return gone and bool(gang.partial_since)


def _go_on(gang: Gang, now: float) -> None:
    """Begin a run with the first live member and note who has ended since (rule 3)."""
    if not gang.deserted():
        if gang.record.ended:
            gang.begin_run(gang.roster.past & gang.pods.keys())
        if not gang.record.run_start:
            gang.note(run_start=min((pod.bound_at for pod in gang.live() if pod.node), default=now) or now)
    if not gang.record.run_start or gang.record.ended:
        return
    well, badly = PodPhase.SUCCEEDED, PodPhase.FAILED
    for pod in [pod for pod in gang.pods.values() if pod.phase is well or pod.phase is badly]:
        note_ended(gang, pod)


def note_ended(gang: Gang, pod: Pod) -> None:
    """Note that a member has ended, if it belongs to the run under way; once it is gone nothing else would tell."""
    record = gang.record
    if not record.run_start or record.ended or pod.uid in gang.roster.past or pod.uid in gang.roster.counted:
        return
    if pod.phase is PodPhase.SUCCEEDED:
        gang.roster.count(pod.uid)
        role = role_of(pod)
        leading = pod.declaration.leading if pod.declaration is not None else ""
        gang.note(succeeded=counted(record.succeeded, role), led=record.led or (bool(leading) and leading == role))
        if record.quorum is not None and pod.uid in gang.roster.chosen:
            gang.note(quorum_done=counted(record.quorum_done, role))
    elif pod.phase is PodPhase.FAILED:
        gang.roster.count(pod.uid)
        gang.note(failed=record.failed + 1)


def _end_run(gang: Gang) -> None:
    """End the run now that none of its members is left alive; who lives already begins the next one (rule 3).

    Pods with scheduling gates were no members of it, and are of the next one once they have none. Nor were those whose
    owner may not have the group's name: their turn is still to come.
    """
    record = gang.record
    if not record.run_start or record.ended:
        return
    outside = {pod.uid for pod in gang.pods.values() if pod.gated} | gang.disowned
    past = gang.roster.past | {pod.uid for pod in gang.pods.values() if pod.uid not in outside and not gang.lives(pod)}
    if record.scheduled_at and not record.late:
        well = record.led or record.successes >= record.minimum
        gang.note(outcome=Outcome.SUCCEEDED if well else Outcome.FAILED, quorum=None, quorum_done=())
        gang.roster.end_run(past)
    else:
        gang.begin_run(past)
        if record.undone:
            # gangsched evicted them: those made again go on where they were, and wait out the back-off.
            gang.note(retry_at=record.retry_at, timeouts=record.timeouts, level=record.level)
    rollback.end(gang)
    gang.attempt.forget_refusal()


def _note_scheduled(gang: Gang, census: Census, terms: Terms, hindrance: Hindrance | None, now: float) -> bool:
    """Note that the quorum is bound, under the minimum in force when it was decided (rules 1 and 9)."""
    record = gang.record
    if not record.run_start or record.ended:
        return False
    if not _known(hindrance):
        begun = record.quorum is not None and bool(census.bound)
        if not gang.flies() and not (begun and quorum_need(gang, census, terms, known=False)):
            _drop_quorum(gang)
        return False
    if record.scheduled_at:
        return _note_satisfied(gang, census, terms.spec, now)
    if quorum_need(gang, census, terms):
        if not gang.flies() and not census.bound:
            _drop_quorum(gang)
        return False
    gang.note(
        scheduled_at=now,
        satisfied=lowered(record.quorum, terms.spec) if record.quorum is not None else minima(terms.spec),
        clock_start=0.0,
        retry_at=0.0,
        outcome=Outcome.NONE,
        quorum=None,
        quorum_done=(),
        undone="",
    )
    rollback.end(gang)
    gang.attempt.succeeded()
    return True


def _note_satisfied(gang: Gang, census: Census, spec: GroupSpec, now: float) -> bool:
    """Note what of a scheduled gang's spec is satisfied. Returns whether one that was late has just become whole."""
    record = gang.record
    asked = minima(spec)
    there = census.bound_roles + census.done_roles
    roles_bound = all(there[role] >= number for role, number in asked.roles)
    total = record.minimum
    if asked.total <= total or (there.total() >= asked.total and roles_bound):
        total = asked.total
    whole = record.late and roles_bound and there.total() >= total
    gang.note(
        satisfied=Minima(total, asked.roles if roles_bound else record.satisfied.roles),
        late=record.late and not whole,
        scheduled_at=now if whole else record.scheduled_at,
    )
    return whole


def _drop_quorum(gang: Gang) -> None:
    """No quorum is under way any more."""
    gang.note(quorum=None, quorum_done=())


def _note_shortness(gang: Gang, census: Census, terms: Terms, now: float) -> None:
    """Note since when a scheduled group has less than it was scheduled with, in all or of a role."""
    record = gang.record
    short = False
    if record.scheduled_at and not record.ended:
        there = census.bound_roles + census.done_roles
        asked = role_minima(terms.spec)
        short = there.total() < record.minimum or any(
            there[role] < min(minimum, asked.get(role, 0)) for role, minimum in record.satisfied.roles
        )
    gang.note_shortness((gang.short_since or now) if short else 0.0)
    gang.note(vacated=record.vacated and short)


def _not_barred(gang: Gang, members: list[Pod], now: float) -> list[Pod]:
    """Those whose binding may be tried; a bar that has ended is a reason to try the gang again."""
    if not gang.barred:
        return members
    there = {pod.uid for pod in gang.live() if not pod.node}
    gang.barred = {uid: barred for uid, barred in gang.barred.items() if uid in there}
    for uid, barred in gang.barred.items():
        if 0 < barred.until <= now:
            gang.barred[uid] = replace(barred, until=0.0)
            gang.attempt.try_again()
    return list(filter(gang.may_try, members))


def _unpark_if_changed(gang: Gang, census: Census, terms: Terms, hindrance: Hindrance | None) -> None:
    """A change of its spec, priority, members or of who is bound is a reason to try a parked gang again (rule 5)."""
    members = [(pod.uid, pod.shape, pod.labels) for pod in census.live]
    ask = (members, terms.spec, terms.priority, hindrance, dict(census.bound_roles), dict(census.done_roles))
    if ask != gang.ask:
        gang.ask = ask
        gang.attempt.try_all_again()
