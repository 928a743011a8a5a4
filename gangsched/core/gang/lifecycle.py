"""A gang's life: what the pods, the bindings and the clock make of its run, and what it therefore wants of a pass.

`advance` is called after every event that touches a gang, with the present time. It brings the run up to date (begins
and ends it, notes that it is scheduled), lets `clock` and `demand` do their part and the table in `states` find the
phase. The rules are those of the contract; their numbers stand beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from gangsched.core.cluster.cache import Cluster
from gangsched.core.gang import bindings, placeholders, rollback, runs
from gangsched.core.gang.agreement import Hindrance
from gangsched.core.gang.census import Census, take_census
from gangsched.core.gang.clock import back_off, keep_clock
from gangsched.core.gang.declaration import WITHOUT_OBJECT
from gangsched.core.gang.facts import facts_of, is_complete, is_hopeless, next_due, roles_to_come
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.states import Facts, settle
from gangsched.core.gang.terms import Terms
from gangsched.core.gang.wants import (
    Need,
    Want,
    first,
    later_need,
    quorum_need,
    want_of,
    within_maximum,
)
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.policy import Policy


class Assessment(Struct, frozen=True, kw_only=True):
    """The gang as it stands now. `missing` members (by role in `missing_roles`) are still to be created or bound.

    `due` is when the gang's life goes on though nothing happens to it, in epoch seconds. `timed_out`: its clock has run
    out just now; `newly_scheduled`: its quorum is bound now and was not before.
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
    due: float
    timed_out: bool
    newly_scheduled: bool


class Standing(Struct, frozen=True):
    """Who may be placed (`eligible`, `surplus` being beyond a maximum), beside whom members are `to_come`.

    `complete`: with those they are enough, and nothing keeps the gang from being tried.
    """

    census: Census
    eligible: Sequence[Pod]
    surplus: Sequence[Pod]
    to_come: Sequence[Pod]
    complete: bool


def advance(
    gang: Gang, cluster: Cluster, terms: Terms, hindrance: Hindrance | None, *, now: float, policy: Policy
) -> Assessment:
    """Bring the gang up to date, give up places that are good for nothing any more, and say what it wants."""
    rollback.end_restart(gang)
    runs.go_on(gang, now)
    if gang.roster.take_emptied():
        runs.end(gang)
        runs.go_on(gang, now)
    census = take_census(gang)
    newly_scheduled = runs.note_scheduled(gang, census, terms, hindrance, now)
    if not census.live:
        runs.end(gang)
        census = take_census(gang)
    if placeholders.run_out(gang, census, terms, now=now):
        placeholders.vacate(gang, cluster)
    runs.note_shortness(gang, census, terms, now)
    known = runs.known(hindrance)
    scheduled = bool(gang.record.scheduled_at)
    need = later_need(gang, census, terms) if scheduled else quorum_need(gang, census, terms, known=known)
    rollback.drop_restart(gang, terms, known=known)
    rollback.note_partial(gang, census, need, known=known, now=now)
    rollback.begin_due(gang, census, need, terms, now=now, policy=policy)
    if gang.undo is not None and not gang.undo.retried:
        bindings.release_held(gang, cluster)
        census = take_census(gang)
    if gang.attempt.take_exhausted():
        back_off(gang, now=now, policy=policy)
    standing = _standing(gang, census, need, terms, hindrance, now)
    if is_hopeless(gang, standing.census, need, complete=standing.complete):
        _give_up(gang, cluster)
        standing = _standing(gang, take_census(gang), need, terms, hindrance, now)
    _unpark_if_changed(gang, standing.census, terms, hindrance)
    counts = not gang.outside and (not standing.to_come or bool(gang.vacant()))
    timed_out = keep_clock(
        gang, standing.census, terms, complete=standing.complete, counts=counts, now=now, policy=policy
    )
    if timed_out and gang.bindings:
        _give_up(gang, cluster)
        gang.attempt.wait()
        standing = _standing(gang, take_census(gang), need, terms, hindrance, now)
    census, to_come = standing.census, standing.to_come
    if hindrance is None and not to_come and (gang.vacant() or scheduled or not census.bound):
        gang.note(capped=None)
    if gang.record.capped is not None and gang.record.capped.until:
        to_come = ()
    facts = facts_of(gang, census, complete=standing.complete, now=now, policy=policy)
    gang.note(phase=settle(gang.record.phase, facts))
    want = Want()
    if standing.complete and rollback.may_plan(gang, now):
        moves = placeholders.moving(gang, standing.eligible)
        want = want_of(gang, census, terms, need, [*standing.eligible, *to_come], moves=moves)
    return Assessment(
        census=census,
        terms=terms,
        hindrance=hindrance,
        facts=facts,
        want=want,
        minimum=gang.record.minimum if gang.record.scheduled_at else terms.spec.minimum,
        missing=max(0, terms.spec.minimum - len(census.live)),
        missing_roles=roles_to_come(terms, census),
        surplus=standing.surplus,
        due=next_due(gang, census, terms, facts, policy),
        timed_out=timed_out,
        newly_scheduled=newly_scheduled,
    )


def _standing(
    gang: Gang, census: Census, need: Need, terms: Terms, hindrance: Hindrance | None, now: float
) -> Standing:
    """Who is there and may be placed."""
    waiting, surplus = within_maximum(gang, census, terms)
    eligible: Sequence[Pod] = bindings.may_be_tried(gang, waiting, now)
    if _finishes(gang, hindrance):
        eligible = first(eligible, need)
    there = [*(binding.pod for binding in gang.flying()), *eligible]
    to_come: Sequence[Pod] = ()
    if hindrance is None and (there or census.bound) and (gang.undo is None or rollback.may_plan(gang, now)):
        # Who fits no place keeps none from being held: it may fit nowhere.
        fitting = [pod for pod in there if pod.uid not in gang.mismatched] if gang.mismatched else there
        to_come = placeholders.to_come(gang, need, fitting, terms)
    complete = (hindrance is None or _finishes(gang, hindrance)) and is_complete(gang, need, [*there, *to_come])
    return Standing(census, eligible, surplus, to_come, complete)


def _give_up(gang: Gang, cluster: Cluster) -> None:
    """Give up all places; what single members were refused for beside them does not hold any more."""
    bindings.release_all(gang, cluster)
    gang.attempt.forget_members()


def _finishes(gang: Gang, hindrance: Hindrance | None) -> bool:
    """Whether the PodGroup is gone and a transaction of it is still to be finished (rule 10)."""
    gone = hindrance is not None and hindrance.reason in WITHOUT_OBJECT
    return gone and bool(gang.partial_since)


def _unpark_if_changed(gang: Gang, census: Census, terms: Terms, hindrance: Hindrance | None) -> None:
    """A change of its spec, priority, members or of who is bound is a reason to try a parked gang again (rule 5)."""
    members = [(pod.uid, pod.shape, pod.labels) for pod in census.live]
    ask = (members, terms.spec, terms.priority, hindrance, dict(census.bound_roles), dict(census.done_roles))
    if ask != gang.ask:
        gang.ask = ask
        gang.attempt.try_all_again()
