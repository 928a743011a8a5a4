"""One run of a gang, from its first live member to the end of its last, and the minima it satisfied (rule 3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from gangsched.core.declarations.minima import begun, chosen, lowered, minima, missing_of, roles_in
from gangsched.core.declarations.terms import Terms
from gangsched.core.gang import bindings, parts, rollback
from gangsched.core.gang.gang import Census, Gang
from gangsched.core.gang.steps import Step, apply, begin_run
from gangsched.core.gang.wants import quorum_minima, quorum_need
from gangsched.core.gang.writes import BindState
from gangsched.core.objects.pod import Pod, PodPhase, role_of
from gangsched.core.objects.podgroup import GroupSpec
from gangsched.core.objects.record import Minima, Outcome, counted


def note_workload(gang: Gang, live: Sequence[Pod]) -> None:
    """Note which workload the live members belong to; while there are none, keep that of the last ones."""
    if not live and gang.record.workload is not None:
        return
    there = live or gang.observed.pods.values()
    found = {None if pod.workload is None else pod.workload.identity: pod.workload for pod in there}
    workload = next(iter(found.values())) if len(found) == 1 else None
    apply(gang, Step.BELONGS, workload=None if workload is None else replace(workload, declaration=None))


def go_on(gang: Gang, now: float) -> None:
    """Begin a run with the first live member, and record which of its members have ended since (rule 3)."""
    if not gang.deserted():
        if gang.record.ended:
            begin_run(gang, gang.roster.past & gang.observed.pods.keys())
        if not gang.record.run_start:
            start = min((pod.bound_at for pod in gang.live() if pod.node), default=now) or now
            apply(gang, Step.RUN_BEGINS, run_start=start)
            gang.observed.note_complete(0.0)
    if not _open(gang):
        return
    well, badly = PodPhase.SUCCEEDED, PodPhase.FAILED
    for pod in [pod for pod in gang.observed.pods.values() if pod.phase is well or pod.phase is badly]:
        note_ended(gang, pod)


def _open(gang: Gang) -> bool:
    """Whether a run is under way."""
    return bool(gang.record.run_start) and not gang.record.ended


def done(gang: Gang) -> Counter[str]:
    """Number of members, by role, that have succeeded in the run of the current live members, recorded or not."""
    if not _open(gang) or gang.roster.emptied:
        return Counter()
    noted = gang.roster.past | gang.roster.recorded
    unnoted = [pod for pod in gang.observed.pods.values() if pod.phase is PodPhase.SUCCEEDED and pod.uid not in noted]
    return Counter(dict(gang.record.succeeded)) + Counter(map(role_of, unnoted))


def leads(pod: Pod) -> bool:
    """Whether the pod's success counts as the success of its gang."""
    said = pod.declaration
    return said is not None and bool(said.role) and said.leading == said.role


def note_ended(gang: Gang, pod: Pod) -> None:
    """Record that a member of the current run has ended; once the pod is gone, nothing else shows it."""
    record, roster = gang.record, gang.roster
    if not _open(gang) or pod.uid in roster.past or pod.uid in roster.recorded or not pod.terminal:
        return
    roster.count(pod.uid)
    if pod.phase is PodPhase.FAILED:
        # Deleting a pod stops its containers, and most programs then exit with a failure.
        apply(gang, Step.MEMBER_ENDS, failed=record.failed + 1, damaged=record.damaged or not pod.terminating)
        return
    role = role_of(pod)
    apply(gang, Step.MEMBER_ENDS, succeeded=counted(record.succeeded, role), led=record.led or leads(pod))
    if record.quorum is not None and pod.uid in roster.chosen:
        apply(gang, Step.MEMBER_ENDS, quorum_done=counted(record.quorum_done, role))


def end(gang: Gang) -> None:
    """End the run, because none of its members is alive; members that are alive now begin the next run (rule 3).

    Pods with scheduling gates and pods whose owner is gone were not members of it; the former belong to the next run
    once they can be scheduled.
    """
    record = gang.record
    if not _open(gang):
        _review_end(gang)
        return
    outside = {pod.uid for pod in gang.observed.pods.values() if pod.gated} | gang.observed.ownership.former
    past = gang.roster.past | {
        pod.uid for pod in gang.observed.pods.values() if pod.uid not in outside and not gang.lives(pod)
    }
    if record.scheduled_at and not record.late:
        apply(gang, Step.RUN_ENDS, outcome=_outcome(gang))
        gang.roster.end_run(past)
    else:
        begin_run(gang, past)
        if record.rollback_note:
            apply(gang, Step.REPLACED, retry_at=record.retry_at, timeouts=record.timeouts, level=record.level)
    rollback.end(gang)
    gang.attempt.forget_refusal()


def _review_end(gang: Gang) -> None:
    """Update the outcome of an ended run from its workload, whose end may become known only after the last member's."""
    if gang.observed.idle is not None and gang.record.outcome in (Outcome.FAILED, Outcome.UNDECIDED):
        apply(gang, Step.RUN_ENDS, outcome=_outcome(gang))


def _outcome(gang: Gang) -> Outcome:
    """The outcome of a run that was scheduled and has ended.

    Between two waves of a Job the outcome is undecided, because the next wave is bound as a whole or not at all. It is
    undecided too once the workload is suspended or scaled to 0, and if the members were deleted: only members that
    failed make the run a failure. A Job of which an index has failed for good ends as failed, however many succeeded.
    """
    record, wave, idle = gang.record, gang.observed.wave, gang.observed.idle
    if record.led or (idle is not None and idle.completed):
        return Outcome.SUCCEEDED
    if not gang.observed.given_up and (record.successes >= record.minimum if wave is None else not wave.owed):
        return Outcome.SUCCEEDED
    if idle is not None:
        return Outcome.FAILED if idle.ended else Outcome.UNDECIDED
    goes_on = wave is not None and wave.goes_on
    return Outcome.FAILED if record.damaged and not goes_on else Outcome.UNDECIDED


def note_scheduled(gang: Gang, census: Census, terms: Terms, now: float) -> bool:
    """Record that the quorum is bound, under the minimum that applied when it was decided (rules 1 and 9).

    Returns whether the gang has just become scheduled, or whole after it was late.
    """
    record = gang.record
    if not _open(gang):
        return False
    if terms.minimum_known and record.scheduled_at:
        return _note_satisfied(gang, census, terms.spec, now)
    missing = quorum_need(gang, census, terms)
    if missing or not terms.minimum_known:
        # If the minimum has become unknown, a quorum can be completed only if some of its members are bound.
        if not gang.operations.has_unconfirmed() and not (census.bound and missing):
            apply(gang, Step.QUORUM_DROPPED)
        return False
    satisfied = chosen(quorum_minima(gang, terms), census.bound_roles)
    apply(gang, Step.SCHEDULED, scheduled_at=now, satisfied=satisfied)
    rollback.end(gang)
    return True


def go_on_with_others(gang: Gang, census: Census, terms: Terms, now: float) -> bool:
    """Record a tree as scheduled if other parts than those of its quorum, bound above it, are whole and enough.

    Returns whether it is. No binding may be in flight. What the quorum has bound is rolled back alone.
    """
    least, there = terms.spec.tree, census.bound_roles
    if least is None or not terms.minimum_known or gang.record.quorum is None or missing_of(least, there):
        return False
    if any(each.state is BindState.SENT for each in gang.operations.unconfirmed()):
        return False
    apply(gang, Step.SCHEDULED, scheduled_at=now, satisfied=chosen(least, there))
    since, said = gang.operations.partial_since, bindings.complaint(gang)
    for part in begun(least, there, there):
        members = [pod for pod in census.bound if role_of(pod) in {*roles_in(part)}]
        parts.begin(gang, members, needs=dict(chosen(part, there).roles), since=since, complaint=said)
    rollback.end(gang)
    return True


def _note_satisfied(gang: Gang, census: Census, spec: GroupSpec, now: float) -> bool:
    """Record which minima of a scheduled gang's spec are satisfied.

    Returns whether a late gang has just become whole.
    """
    record, there = gang.record, census.bound_roles + census.done_roles
    asked = minima(spec)
    if asked.choices:
        asked = chosen(asked, there)
    missing = missing_of(asked, there)
    roles_bound = not any(missing.roles.values())
    total = asked.total if asked.total <= record.minimum or not missing else record.minimum
    whole = record.late and roles_bound and there.total() >= total
    satisfied = Minima(total, asked.roles if roles_bound else record.satisfied.roles)
    apply(
        gang,
        Step.SATISFIED,
        # What a tree had stays as it is until others of its parts are enough: its number is that of its roles.
        satisfied=satisfied if roles_bound or spec.tree is None else record.satisfied,
        late=record.late and not whole,
        scheduled_at=now if whole else record.scheduled_at,
    )
    return whole


def note_shortness(gang: Gang, census: Census, terms: Terms, now: float) -> None:
    """Note since when a scheduled group has fewer members, in all or of a role, than it was scheduled with."""
    record = gang.record
    short = False
    if record.scheduled_at and not record.ended:
        least = Minima(record.minimum, lowered(record.satisfied, terms.spec).roles)
        short = bool(missing_of(least, census.bound_roles + census.done_roles))
    gang.observed.note_shortness((gang.observed.short_since or now) if short else 0.0)
    if (record.placeholders_expired or record.damaged) and not short:
        apply(gang, Step.NOT_SHORT)
