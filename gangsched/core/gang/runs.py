"""One run of a gang, from its first live member to the end of its last, and the minima it satisfied (rule 3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from gangsched.core.declarations.minima import begun, chosen, lowered, minima, missing_of, roles_in
from gangsched.core.gang import bindings, parts, rollback
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.turn import Turn, unrecorded
from gangsched.core.gang.wants import placed_of, quorum_minima
from gangsched.core.gang.writes import BindState
from gangsched.core.objects.pod import Pod, PodPhase, role_of
from gangsched.core.objects.record import Minima, Outcome, counted


def note_workload(gang: Gang, live: Sequence[Pod]) -> None:
    """Note which workload the live members belong to; while there are none, keep that of the last ones."""
    if not live and gang.record.workload is not None:
        return
    pods = live or gang.observed.pods.values()
    workloads = {None if pod.workload is None else pod.workload.identity: pod.workload for pod in pods}
    workload = next(iter(workloads.values())) if len(workloads) == 1 else None
    if workload is not None or gang.record.workload is not None:
        gang.change(workload=None if workload is None else replace(workload, declaration=None))


def border(turn: Turn) -> bool:
    """Whether a run may begin or end, or members of it have ended."""
    gang, record = turn.gang, turn.gang.record
    begins = not record.run_start or record.ended or gang.roster.emptied
    return bool(begins or turn.ended or gang.observed.recreates_all or gang.operations.rollback)


def is_followed(turn: Turn) -> bool:
    """Whether the last run has ended, and a member of the next one lives."""
    return turn.gang.record.ended and not turn.gang.deserted()


def follow(turn: Turn) -> None:
    """Begin the next run."""
    turn.gang.begin_run(turn.gang.roster.past & turn.gang.observed.pods.keys())


def is_to_begin(turn: Turn) -> bool:
    """Whether the first member of a run lives."""
    return not turn.gang.record.run_start and not turn.gang.deserted()


def begin(turn: Turn) -> None:
    """Begin the run; members that have a node already began it when they were bound."""
    gang, now = turn.gang, turn.now
    gang.change(run_start=min((pod.bound_at for pod in gang.live() if pod.node), default=now) or now)
    gang.operations.note_complete(0.0)


def have_ended(turn: Turn) -> bool:
    """Whether members of the run have ended."""
    return bool(turn.ended) and turn.gang.record.open


def note_all_ended(turn: Turn) -> None:
    """Record that they have ended."""
    for pod in turn.ended:
        note_ended(turn.gang, pod)


def is_emptied(turn: Turn) -> bool:
    """Whether the last live member has gone since the gang was last reconciled, and then another one came."""
    return turn.gang.roster.emptied


def end_emptied(turn: Turn) -> None:
    """End the run of those that have gone."""
    turn.gang.roster.forget_emptied()
    end(turn)


def is_made_again(turn: Turn) -> bool:
    """Whether the workload makes all members again, and none of the old ones is left."""
    gang = turn.gang
    return gang.observed.recreates_all and bool(gang.record.scheduled_at) and gang.record.open and not placed_of(gang)


def has_no_member(turn: Turn) -> bool:
    """Whether no live member is left."""
    return not turn.census.live


def is_deserted(turn: Turn) -> bool:
    """Whether the run goes on without a live member."""
    return turn.gang.record.open


def done(gang: Gang) -> Counter[str]:
    """Number of members, by role, that have succeeded in the run of the current live members, recorded or not."""
    if not gang.record.open or gang.roster.emptied:
        return Counter()
    return Counter(dict(gang.record.succeeded)) + Counter(map(role_of, _successes(gang)))


def counting(gang: Gang) -> Counter[str]:
    """The successes, by role, that count towards the minimum: before the gang is scheduled those of a quorum under way.

    That is given up once nothing of it is bound or reserved. Successes count before they are recorded.
    """
    if gang.record.scheduled_at:
        return done(gang)
    if not placed_of(gang):
        return Counter()
    new = (pod for pod in _successes(gang) if pod.uid in gang.roster.chosen)
    return Counter(dict(gang.record.quorum_done)) + Counter(map(role_of, new))


def _successes(gang: Gang) -> list[Pod]:
    """The members that have succeeded and are not counted in the record yet."""
    return [pod for pod in unrecorded(gang) if pod.phase is PodPhase.SUCCEEDED]


def leads(pod: Pod) -> bool:
    """Whether the pod's success counts as the success of its gang."""
    declaration = pod.declaration
    return declaration is not None and bool(declaration.role) and declaration.leading == declaration.role


def note_ended(gang: Gang, pod: Pod) -> None:
    """Record that a member of the current run has ended; once the pod is gone, nothing else shows it."""
    record, roster = gang.record, gang.roster
    if not gang.record.open or pod.uid in roster.past or pod.uid in roster.recorded or not pod.terminal:
        return
    roster.count(pod.uid)
    if pod.phase is PodPhase.FAILED:
        # Deleting a pod stops its containers, and most programs then exit with a failure.
        gang.change(failed=record.failed + 1, damaged=record.damaged or not pod.terminating)
        return
    role = role_of(pod)
    gang.change(succeeded=counted(record.succeeded, role), led=record.led or leads(pod))
    if record.quorum is not None and pod.uid in roster.chosen:
        gang.change(quorum_done=counted(record.quorum_done, role))


def end(turn: Turn) -> None:
    """End the run, because none of its members is alive; members that are alive now begin the next run (rule 3).

    Pods with scheduling gates and pods whose owner is gone were not members of it; the former belong to the next run
    once they can be scheduled.
    """
    gang, record = turn.gang, turn.gang.record
    if not gang.record.open:
        return
    outside = {pod.uid for pod in gang.observed.pods.values() if pod.gated} | gang.observed.ownership.former
    past = gang.roster.past | {
        pod.uid for pod in gang.observed.pods.values() if pod.uid not in outside and not gang.lives(pod)
    }
    if record.scheduled_at and not record.late:
        gang.change(outcome=_outcome(gang), preempted_at=0.0)
        gang.drop_quorum()
        gang.roster.end_run(past)
    else:
        gang.begin_run(past)
        if record.rollback_note:
            # Replacements of members that a rollback evicted wait out its back-off.
            gang.change(retry_at=record.retry_at, timeouts=record.timeouts, level=record.level)
    rollback.end(gang)
    gang.wait.forget_refusal()


def is_reviewed(turn: Turn) -> bool:
    """Whether the workload shows another outcome of the run; it may become known only after the last member's end."""
    record = turn.gang.record
    if turn.gang.observed.idle is None or record.outcome not in (Outcome.FAILED, Outcome.UNDECIDED):
        return False
    return _outcome(turn.gang) is not record.outcome


def review_end(turn: Turn) -> None:
    """Correct the outcome."""
    turn.gang.change(outcome=_outcome(turn.gang))


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


def goes_on(turn: Turn) -> bool:
    """Whether a run is under way."""
    return turn.gang.record.open


def is_quorum_bound(turn: Turn) -> bool:
    """Whether all members of the quorum are bound."""
    return not turn.need and turn.terms.minimum_known


def schedule(turn: Turn) -> None:
    """The gang is scheduled, with the minimum that applied when its quorum was decided (rules 1 and 9)."""
    _schedule(turn, chosen(quorum_minima(turn.gang, turn.terms), turn.census.bound_roles))


def _schedule(turn: Turn, satisfied: Minima) -> None:
    gang = turn.gang
    turn.note_scheduled()
    _begin_other_parts(turn)
    why_leaving = gang.record.preempted_by if gang.record.preempted_at else ""
    gang.change(scheduled_at=turn.now, satisfied=satisfied, outcome=Outcome.NONE, preempted_by=why_leaving)
    gang.change(clock_start=0.0, retry_at=0.0, rollback_note="")
    gang.drop_quorum()
    gang.wait.forget_refusal()
    gang.operations.attempt.succeed()
    rollback.end_whole(gang)


def are_others_enough(turn: Turn) -> bool:
    """Whether other parts of a tree than those of its quorum are whole and enough, before the quorum is rolled back.

    No binding may be in flight.
    """
    gang, least = turn.gang, turn.terms.spec.tree
    if least is None or not rollback.is_due(gang.operations.partial_since, turn.now, turn.policy):
        return False
    if not turn.terms.minimum_known or gang.record.quorum is None or missing_of(least, turn.census.bound_roles):
        return False
    return not any(binding.state is BindState.SENT for binding in turn.census.begun)


def schedule_by_others(turn: Turn) -> None:
    """The tree is scheduled with those parts. What its quorum has bound is rolled back alone."""
    _schedule(turn, chosen(minima(turn.terms.spec), turn.census.bound_roles))
    bindings.release_held(turn.gang, turn.cluster)


def _begin_other_parts(turn: Turn) -> None:
    """Members of a tree that its quorum, or a rollback of that, has left bound are from now on a part by themselves."""
    gang, bound_roles = turn.gang, turn.census.bound_roles
    if turn.terms.spec.tree is None:
        return
    doing = gang.operations.rollback
    since = gang.operations.partial_since or (doing.since if doing is not None else 0.0)
    complaint = bindings.complaint(gang)
    known = {uid for part in gang.operations.parts for uid in part.members}
    for part in begun(minima(turn.terms.spec), bound_roles, bound_roles):
        roles = {*roles_in(part)}
        members = [pod for pod in turn.census.bound if role_of(pod) in roles]
        if any(pod.uid not in known for pod in members):
            parts.begin(gang, members, needs=dict(chosen(part, bound_roles).roles), since=since, complaint=complaint)


def is_quorum_gone(turn: Turn) -> bool:
    """Whether nothing of the quorum is bound or reserved any more.

    If the minimum has become unknown, a quorum can be completed only if some of its members are bound.
    """
    gang = turn.gang
    if gang.record.quorum is None and not gang.record.quorum_done:
        return False
    return not turn.census.begun and not (turn.census.bound and turn.need)


def drop_quorum(turn: Turn) -> None:
    """No quorum is under way any more."""
    turn.gang.drop_quorum()


def satisfies_others(turn: Turn) -> bool:
    """Whether a scheduled gang satisfies other minima than recorded, or a late one has become whole."""
    record = turn.gang.record
    return turn.terms.minimum_known and _satisfied(turn) != (record.satisfied, record.late)


def note_satisfied(turn: Turn) -> None:
    """Record which minima are satisfied."""
    record = turn.gang.record
    satisfied, late = _satisfied(turn)
    whole = record.late and not late
    if whole:
        turn.note_scheduled()
    turn.gang.change(satisfied=satisfied, late=late, scheduled_at=turn.now if whole else record.scheduled_at)


def _satisfied(turn: Turn) -> tuple[Minima, bool]:
    """Which minima of its spec a scheduled gang satisfies, and whether it is late still."""
    record, kept = turn.gang.record, turn.census.kept
    asked = minima(turn.terms.spec)
    if asked.choices:
        asked = chosen(asked, kept)
    missing = missing_of(asked, kept)
    roles_bound = not any(missing.roles.values())
    total = asked.total if asked.total <= record.minimum or not missing else record.minimum
    # A late gang is whole once it has what it was scheduled with, even if more is asked for since.
    whole = record.late and not missing_of(lowered(record.satisfied, turn.terms.spec), kept)
    satisfied = Minima(total, asked.roles if roles_bound else record.satisfied.roles)
    # What a tree had stays as it is until others of its parts are enough: its number is that of its roles.
    return satisfied if roles_bound or turn.terms.spec.tree is None else record.satisfied, record.late and not whole


def is_short(turn: Turn) -> bool:
    """Whether a scheduled group has fewer members, in all or of a role, than it was scheduled with, not noted yet."""
    return not turn.gang.operations.short_since and _lacks(turn)


def note_shortness(turn: Turn) -> None:
    """Note since when it has fewer."""
    turn.gang.operations.note_shortness(turn.now)


def is_whole_again(turn: Turn) -> bool:
    """Whether it is short no more, or members of a group that never was have failed or their places have expired."""
    gang = turn.gang
    noted = gang.operations.short_since or gang.record.placeholders_expired or gang.record.damaged
    return bool(noted) and not _lacks(turn)


def forget_shortness(turn: Turn) -> None:
    """Forget what had made it short."""
    turn.gang.operations.note_shortness(0.0)
    turn.gang.change(placeholders_expired=False, damaged=False)


def _lacks(turn: Turn) -> bool:
    record = turn.gang.record
    if not record.scheduled_at or record.ended:
        return False
    least = Minima(record.minimum, lowered(record.satisfied, turn.terms.spec).roles)
    return bool(missing_of(least, turn.census.kept))
