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
from gangsched.core.gang.run import Run
from gangsched.core.gang.states import Facts, settle
from gangsched.core.gang.terms import Terms
from gangsched.core.gang.wants import Want, first, later_need, quorum_need, role_minima, want_of, within_maximum
from gangsched.core.objects.pod import Pod, PodPhase, role_of
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.reasons import Reason

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
    _go_on(gang)
    if gang.emptied:
        gang.emptied = False
        _end_run(gang)
        _go_on(gang)
    census = take_census(gang)
    newly_scheduled = _note_scheduled(gang, census, terms, hindrance, now)
    if not census.live:
        _end_run(gang)
        census = take_census(gang)
    vacated = placeholders.run_out(gang, census, terms, now=now)
    _note_shortness(gang, census, terms, now)
    known = _known(hindrance)
    scheduled = bool(gang.run.scheduled_at)
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
    if gang.exhausted:
        gang.exhausted = False
        gang.replanned = 0
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
    if hindrance is None and not to_come and (gang.vacant() or scheduled or not census.bound):
        gang.run.capped = None
    if gang.run.capped is not None and gang.run.capped.until:
        to_come = []
    facts = facts_of(gang, census, complete=complete, now=now, policy=policy)
    gang.phase = settle(gang.phase, facts)
    return Assessment(
        census=census,
        terms=terms,
        hindrance=hindrance,
        facts=facts,
        want=want_of(gang, census, terms, need, [*eligible, *to_come], moves=placeholders.moving(gang, eligible))
        if complete and rollback.may_plan(gang, now)
        else Want(),
        minimum=gang.run.minimum if gang.run.scheduled_at else terms.spec.minimum,
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


def _go_on(gang: Gang) -> None:
    """Begin a run with the first live member and note who has ended since (rule 3)."""
    run = gang.run
    if not gang.deserted():
        if run.ended:
            run = gang.run = Run(past=run.past & gang.pods.keys())
            gang.told.event = ""
        run.began = True
    if not run.began or run.ended:
        return
    well, badly = PodPhase.SUCCEEDED, PodPhase.FAILED
    for pod in [pod for pod in gang.pods.values() if pod.phase is well or pod.phase is badly]:
        note_ended(gang, pod)


def note_ended(gang: Gang, pod: Pod) -> None:
    """Note that a member has ended, if it belongs to the run under way; once it is gone nothing else would tell."""
    run = gang.run
    if not run.began or run.ended or pod.uid in run.past:
        return
    if pod.phase is PodPhase.SUCCEEDED:
        run.succeeded[pod.uid] = role_of(pod)
        leading = pod.declaration.leading if pod.declaration is not None else ""
        run.led = run.led or (bool(leading) and leading == role_of(pod))
    elif pod.phase is PodPhase.FAILED and pod.uid not in run.failed:
        run.failed.add(pod.uid)


def _end_run(gang: Gang) -> None:
    """End the run now that none of its members is left alive; who lives already begins the next one (rule 3).

    Pods with scheduling gates were no members of it, and are of the next one once they have none. Nor were those whose
    owner may not have the group's name: their turn is still to come.
    """
    run = gang.run
    if not run.began or run.ended:
        return
    outside = {pod.uid for pod in gang.pods.values() if pod.gated} | gang.disowned
    past = run.past | {pod.uid for pod in gang.pods.values() if pod.uid not in outside and not gang.lives(pod)}
    if run.scheduled_at and not run.late:
        run.ended = True
        run.ended_well = run.led or run.successes >= run.minimum
        run.past = past
    else:
        gang.run = Run(past=past)
        gang.told.event = ""
        if gang.undone:
            # It was we who evicted them: those made again go on where they were, and wait out the back-off.
            gang.run.backoff_until, gang.run.timeouts, gang.run.level = run.backoff_until, run.timeouts, run.level
    gang.transaction = gang.undo = None
    gang.refusal = gang.held_up_by = None


def _note_scheduled(gang: Gang, census: Census, terms: Terms, hindrance: Hindrance | None, now: float) -> bool:
    """Note that the quorum is bound, under the minimum in force when it was decided (rules 1 and 9)."""
    run = gang.run
    if not run.began or run.ended:
        return False
    if not _known(hindrance):
        begun = gang.transaction is not None and bool(census.bound)
        if not gang.flies() and not (begun and quorum_need(gang, census, terms, known=False)):
            gang.transaction = None
        return False
    spec = terms.spec
    minima = role_minima(spec)
    if run.scheduled_at:
        there = census.bound_roles + census.done_roles
        roles_bound = all(there[role] >= number for role, number in minima.items())
        if spec.minimum <= run.minimum or (there.total() >= spec.minimum and roles_bound):
            run.minimum = spec.minimum
        if roles_bound:
            run.role_minima = minima
        whole = run.late and roles_bound and there.total() >= run.minimum
        run.late = run.late and not whole
        run.scheduled_at = now if whole else run.scheduled_at
        return whole
    if quorum_need(gang, census, terms):
        if not gang.flies() and not census.bound:
            gang.transaction = None
        return False
    decided = gang.transaction
    run.scheduled_at = now
    run.minimum = min(spec.minimum, decided.minimum) if decided else spec.minimum
    run.role_minima = (
        {role: min(number, decided.role_minima.get(role, 0)) for role, number in minima.items()} if decided else minima
    )
    run.clock_start = run.backoff_until = 0.0
    run.failed_for_good = False
    gang.vanguard = ()
    gang.transaction = gang.undo = None
    gang.refusal = gang.held_up_by = None
    gang.complaint = gang.undone = ""
    return True


def _note_shortness(gang: Gang, census: Census, terms: Terms, now: float) -> None:
    """Note since when a scheduled group has less than it was scheduled with, in all or of a role."""
    run = gang.run
    short = False
    if run.scheduled_at and not run.ended:
        there = census.bound_roles + census.done_roles
        asked = role_minima(terms.spec)
        short = there.total() < run.minimum or any(
            there[role] < min(minimum, asked.get(role, 0)) for role, minimum in run.role_minima.items()
        )
    gang.short_since = (gang.short_since or now) if short else 0.0
    run.vacated = run.vacated and short


def _not_barred(gang: Gang, members: list[Pod], now: float) -> list[Pod]:
    """Those whose binding may be tried; a bar that has ended is a reason to try the gang again."""
    if not gang.barred:
        return members
    there = {pod.uid for pod in gang.live() if not pod.node}
    gang.barred = {uid: barred for uid, barred in gang.barred.items() if uid in there}
    for uid, barred in gang.barred.items():
        if 0 < barred.until <= now:
            gang.barred[uid] = replace(barred, until=0.0)
            gang.parked = False
    return list(filter(gang.may_try, members))


def _unpark_if_changed(gang: Gang, census: Census, terms: Terms, hindrance: Hindrance | None) -> None:
    """A change of its spec, priority, members or of who is bound is a reason to try a parked gang again (rule 5)."""
    members = [(pod.uid, pod.shape, pod.labels) for pod in census.live]
    ask = (members, terms.spec, terms.priority, hindrance, dict(census.bound_roles), dict(census.done_roles))
    if ask != gang.ask:
        gang.ask = ask
        gang.parked = False
        gang.refused_members = {}
