"""What a process resumes with when it begins to decide, after a restart or a failover to a standby.

First the record and the reservations in the PodGroup's status (`adopt`). Then what is written nowhere (`find_begun`),
inferred from the pods' times: for groups without a PodGroup's record, and for members that a former leader has bound
since the record was last written. Nothing else in the core infers anything from times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gangsched.core.cluster.cache import Cluster
from gangsched.core.gang import bindings, caps, clock, ownership, placeholders, rollback
from gangsched.core.gang.declaration import declared_spec, said_minimum
from gangsched.core.gang.foreign import Foreign
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.hindrances import MOST_PLACES
from gangsched.core.gang.runs import leads
from gangsched.core.gang.wants import minima, missing_of
from gangsched.core.gang.writes import Undo
from gangsched.core.objects.pod import Pod, PodPhase, role_of
from gangsched.core.objects.podgroup import Group, GroupSpec, OnDegraded
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import Minima, Outcome, Phase
from gangsched.core.objects.status import GroupStatus, Reservation
from gangsched.core.planning.placement import classify
from gangsched.core.planning.snapshot import Snapshot

OUTAGE_S = 300.0
"""A quorum whose members were bound longer ago than this and the repair deadline is not taken for half done, unless a
PodGroup of gangsched declares the group."""


def adopt(gang: Gang, cluster: Cluster, *, policy: Policy, now: float) -> None:
    """Resume with the record in the status of the gang's PodGroup; without a record nothing is taken over."""
    group = gang.group
    record = group.status.record if group is not None else None
    if group is None or record is None:
        return
    told = {condition.type: condition for condition in group.status.conditions}
    scheduled, degraded = told.get("Scheduled"), told.get("Degraded")
    gang.recall(record)
    gang.told.recall(group.status, scheduled.reason if scheduled is not None else "")
    if scheduled is not None and scheduled.generation != group.generation:
        clock.begin_anew(gang)
    if degraded is not None and degraded.status and gang.record.scheduled_at:
        gang.note_shortness(degraded.since - policy.degraded_after_s)
    # Times of pods are whole seconds.
    began = float("inf") if record.ended else int(record.run_start)
    ended = [pod for pod in gang.pods.values() if pod.terminal]
    gang.roster.begin_run(pod.uid for pod in ended if max(pod.bound_at, pod.created) < began)
    if _another_has_begun(gang):
        gang.begin_run(pod.uid for pod in ended)
        return
    _count_ended(gang, [pod for pod in ended if pod.uid not in gang.roster.past])
    if group.status.reservation is not None:
        _hold_or_give_up(gang, cluster, group, group.status.reservation, policy=policy, now=now)
    _resume_rollback(gang, group.status, now)


def _resume_rollback(gang: Gang, status: GroupStatus, now: float) -> None:
    """Go on with a rollback that a former leader began: of a quorum, or a restart, whose members are those bound now.

    The record says what a rollback of a quorum was begun for. It goes on for as long as the group is Degraded, and at
    least until the back-off has ended. If members have reservations again, it is being retried.
    """
    record, review_at = gang.record, now + rollback.REVIEW_S
    degraded = next((each for each in status.conditions if each.type == "Degraded" and each.status), None)
    if not record.scheduled_at:
        if record.undone and (degraded is not None or now < record.retry_at):
            since = now if degraded is None else degraded.since
            undo = Undo(since, record.undone, review_at=review_at, retried=bool(gang.bindings))
            rollback.go_on_with(gang, undo)
        return
    spec = gang.group.spec if gang.group is not None else None
    restarting = degraded is not None and degraded.reason in (Reason.RESTARTING, Reason.EVICTION_REFUSED)
    if restarting and spec is not None and spec.on_degraded is OnDegraded.RESTART:
        old = frozenset(pod.uid for pod in gang.live() if pod.node)
        rollback.go_on_with(gang, Undo(now, rollback.RESTART_NOTE, old, review_at=review_at))


def _another_has_begun(gang: Gang) -> bool:
    """Whether all live members came without a leader, and none of the recorded run is left: nothing else shows it."""
    live = gang.live()
    if not live or any(pod.node for pod in live):
        return False
    if gang.record.outcome is Outcome.OUT_OF_TIME:
        # The members of the recorded run have a condition that says so.
        return not any(pod.told_reason for pod in live)
    return bool(gang.record.scheduled_at) and not gang.record.successes


def _count_ended(gang: Gang, ended: Sequence[Pod]) -> None:
    """Count members that ended without a leader: of each role as many as recorded, or as many as exist if more."""
    record, well = gang.record, [pod for pod in ended if pod.phase is PodPhase.SUCCEEDED]
    recorded = Counter(dict(record.succeeded))
    succeeded = Counter(map(role_of, well)) | recorded
    led = record.led or any(map(leads, well))
    gang.note(succeeded=tuple(sorted(succeeded.items())), failed=max(len(ended) - len(well), record.failed), led=led)
    if record.quorum is not None:
        # Those that are not in the record have succeeded since its quorum was begun.
        done = Counter(dict(record.quorum_done)) + (succeeded - recorded)
        gang.note(quorum_done=tuple(sorted(done.items())))
    gang.roster.count(*(pod.uid for pod in ended))


def _hold_or_give_up(
    gang: Gang, cluster: Cluster, group: Group, reservation: Reservation, *, policy: Policy, now: float
) -> None:
    """Hold the reservations of the status again; those that expired without a leader are given up."""
    spec, started = group.spec, group.status.schedule_start_time
    to_come = any(place.count > len(place.pods) for place in reservation.placements)
    expires, capped = reservation.expires, clock.NEVER
    if to_come and started:
        # maxScheduleTime may have been changed since (rule 4).
        time_s = spec.max_schedule_time_s if spec is not None else None
        default = max(expires, started + policy.default_max_schedule_time_s)
        expires = default if time_s is None else started + time_s
    if to_come and gang.record.held_since:
        capped = gang.record.held_since + policy.max_hold_s
    if min(expires, capped) > now:
        _hold_again(gang, cluster, spec, reservation, policy)
    elif capped < expires:
        caps.hold_no_longer(gang, capped, policy)
    elif spec is not None and to_come and any(pod.node for pod in gang.live()):
        placeholders.wait_no_longer(gang, spec, now)


def _hold_again(gang: Gang, cluster: Cluster, spec: GroupSpec | None, reservation: Reservation, policy: Policy) -> None:
    """Hold the reservations of pods that still wait, or do not exist yet, and still fit."""
    waiting = {pod.name: pod for pod in gang.live() if not pod.node}
    left: Counter[str] = Counter()
    if caps.may_hold_again(gang, cluster, reservation, policy) and spec is not None and spec.minimum <= MOST_PLACES:
        # Some members that did not exist may have been created since.
        bound = Counter(role_of(pod) for pod in gang.live() if pod.node)
        there = [waiting[name] for place in reservation.placements for name in place.pods if name in waiting]
        left = placeholders.missing(missing_of(minima(spec), bound), there, spec)
    snapshot = Snapshot(cluster)
    for place in reservation.placements:
        row = cluster.capacity.rows.get(place.node)
        pods = [waiting.pop(name) for name in place.pods if name in waiting]
        vacant = max(0, min(place.count - len(place.pods), left[place.role]))
        left[place.role] -= vacant
        pods += placeholders.again(gang, place, vacant)
        if row is None:
            continue
        for pod in pods:
            member = classify(snapshot, [pod])[pod.uid]
            if snapshot.fits(member, row):
                snapshot.take(row, member, 1)
                bindings.begin(gang, cluster, [(pod, place.node)], held=True)
    if gang.bindings and spec is not None:
        if not gang.record.scheduled_at:
            take_over(gang, spec)
        gang.durability.found(gang.bindings, asked_at=reservation.expires - policy.repair_deadline_s)


def take_over(gang: Gang, spec: GroupSpec) -> None:
    """Go on with a former leader's quorum; one that is not recorded ends under the present minimum."""
    if gang.record.quorum is None:
        gang.begin_quorum(minima(spec))
    there = [uid for uid, binding in gang.bindings.items() if not binding.vacant]
    gang.roster.choose((*gang.roster.inherited, *there), anew=True)


def find_begun(gang: Gang, *, foreign: Foreign, policy: Policy, now: float) -> None:
    """Find out whether a former leader has begun a quorum that is not complete; a gang that has failed has none."""
    # Pods that the group does without say nothing of its quorum, however long they have waited.
    ownership.guard(gang, policy.owner_guard)
    if not gang.record.run_start:
        # A quorum's members all exist when it is bound, so pods bound before are of earlier runs.
        oldest = min((pod.created for pod in gang.live()), default=float("inf"))
        old = (pod.uid for pod in gang.pods.values() if pod.terminal and pod.bound_at < oldest)
        gang.roster.end_run(gang.roster.past.union(old))
    record = gang.record
    failed = record.outcome is Outcome.OUT_OF_TIME or (record.phase is Phase.FAILED and not record.ended)
    if not failed and (record.ended or not record.scheduled_at):
        gang.roster.inherit_only(_half_done(gang, now, policy))
        if gang.roster.inherited:
            # Time without a leader does not count (rule 1), but its length is unknown: at least half is left.
            first = min(gang.pods[uid].bound_at for uid in gang.roster.inherited)
            rollback.count_on(gang, since=min(now, max(first, now - rollback.lasts_s(policy) / 2)))
    spec = declared_spec(gang, foreign)
    if _remembers_nothing(gang) and not gang.plain and not gang.roster.inherited:
        _recall_scheduled(gang, spec)
    if gang.roster.inherited and spec is not None:
        take_over(gang, spec)


def _remembers_nothing(gang: Gang) -> bool:
    """Whether the gang has no PodGroup of a user, or one that was just made to hold reservations with placeholders.

    No member is bound beside such reservations before they are in the status: bound members were bound before it.
    """
    group = gang.group
    if group is None or group.spec is None:
        return group is None
    return group.made and not group.status.phase and any(role.template for role in group.spec.roles)


def _half_done(gang: Gang, now: float, policy: Policy) -> set[str]:
    """The members, by UID, with which a former leader may have begun a quorum, of a group that was never scheduled.

    With a PodGroup, whose status would show that the group was scheduled, these are the members bound since it exists,
    and all bound members if it was made because some were bound. Without one the times show it: the members that still
    wait existed when the others were bound, not long ago. Replacements of members that a scheduled group has lost are
    younger.
    """
    bound = {pod.uid: pod.bound_at for pod in gang.live() if pod.node}
    if gang.group is not None and not _remembers_nothing(gang):
        # Times of pods are whole seconds.
        since = max(0.0 if gang.group.made else gang.group.created, int(gang.record.settled_at))
        return {uid for uid, at in bound.items() if at >= since}
    begun_at = min(bound.values(), default=0.0)
    # A member that is leaving waited as well when the others were bound.
    not_ours = gang.roster.past | gang.disowned
    waited = (pod for pod in gang.pods.values() if not (pod.node or pod.terminal or pod.uid in not_ours))
    recent = now <= begun_at + OUTAGE_S + policy.repair_deadline_s
    return set(bound) if recent and any(pod.created <= begun_at for pod in waited) else set()


def _recall_scheduled(gang: Gang, spec: GroupSpec | None) -> None:
    """Take a group without a user's PodGroup, with bound members and no half-done quorum, for scheduled.

    Nothing else remembers it. A quorum is bound together, so members that wait beside bound ones came later. If some
    come later by their template, the missing ones may never have existed, and only what is bound is said (rule 11).
    """
    bound = [pod for pod in gang.pods.values() if pod.node and pod.uid not in gang.roster.past]
    if all(pod.terminal for pod in bound):
        # No member of that run is left: those that wait begin another one.
        gang.roster.end_run(gang.roster.past.union(pod.uid for pod in bound))
        return
    says = [pod.declaration for pod in bound if pod.declaration is not None]
    minimum = said_minimum(says) if spec is None else spec.minimum
    if minimum is None:
        return
    begun_at = min(pod.bound_at for pod in bound) or 1.0
    by_template = any(role.template for say in says for role in say.roles)
    late = by_template and sum(pod.phase is not PodPhase.FAILED for pod in bound) < minimum
    gang.note(run_start=begun_at, scheduled_at=begun_at, satisfied=Minima(minimum), late=late)
