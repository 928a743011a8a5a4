"""One run of a gang: from its first live member to the end of the last, with what was satisfied meanwhile (rule 3)."""

from __future__ import annotations

from gangsched.core.gang import rollback
from gangsched.core.gang.gang import Census, Gang
from gangsched.core.gang.terms import WITHOUT_OBJECT, Hindrance, Terms
from gangsched.core.gang.wants import lowered, minima, quorum_need, role_minima
from gangsched.core.objects.pod import Pod, PodPhase, role_of
from gangsched.core.objects.podgroup import GroupSpec
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import Minima, Outcome, counted

UNKNOWN_MINIMUM = WITHOUT_OBJECT | {Reason.INVALID_DECLARATION, Reason.CONTRADICTION}
"""Hindrances under which nobody can say how many members are enough."""


def known(hindrance: Hindrance | None) -> bool:
    return hindrance is None or hindrance.reason not in UNKNOWN_MINIMUM


def go_on(gang: Gang, now: float) -> None:
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
    if not record.run_start or record.ended or pod.uid in gang.roster.past or pod.uid in gang.roster.recorded:
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


def end(gang: Gang) -> None:
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
        gang.note(outcome=Outcome.SUCCEEDED if well else Outcome.FAILED)
        gang.drop_quorum()
        gang.roster.end_run(past)
    else:
        gang.begin_run(past)
        if record.undone:
            # gangsched evicted them: those made again go on where they were, and wait out the back-off.
            gang.note(retry_at=record.retry_at, timeouts=record.timeouts, level=record.level)
    rollback.end(gang)
    gang.attempt.forget_refusal()


def note_scheduled(gang: Gang, census: Census, terms: Terms, hindrance: Hindrance | None, now: float) -> bool:
    """Note that the quorum is bound, under the minimum in force when it was decided (rules 1 and 9)."""
    record = gang.record
    if not record.run_start or record.ended:
        return False
    if not known(hindrance):
        begun = record.quorum is not None and bool(census.bound)
        if not gang.flies() and not (begun and quorum_need(gang, census, terms, known=False)):
            gang.drop_quorum()
        return False
    if record.scheduled_at:
        return _note_satisfied(gang, census, terms.spec, now)
    if quorum_need(gang, census, terms):
        if not gang.flies() and not census.bound:
            gang.drop_quorum()
        return False
    gang.note(
        scheduled_at=now,
        satisfied=lowered(record.quorum, terms.spec) if record.quorum is not None else minima(terms.spec),
        clock_start=0.0,
        retry_at=0.0,
        outcome=Outcome.NONE,
        undone="",
    )
    gang.drop_quorum()
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


def note_shortness(gang: Gang, census: Census, terms: Terms, now: float) -> None:
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
