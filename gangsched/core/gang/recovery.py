"""Restores gangs when a process begins to decide, after a restart or a failover to a standby.

It reads the record and the reservations in the PodGroup's status. What is written nowhere is inferred by
`gang.unrecorded`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import asdict

from gangsched.core.cluster.cache import Cluster
from gangsched.core.declarations.hindrances import MOST_PLACES
from gangsched.core.declarations.minima import chosen, minima, missing_of
from gangsched.core.declarations.resolution import declared_spec
from gangsched.core.gang import bindings, caps, clock, placeholders, rollback
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.mail import Context
from gangsched.core.gang.plan import Plan
from gangsched.core.gang.runs import leads
from gangsched.core.gang.wants import placed_of
from gangsched.core.objects.pod import Pod, PodPhase, role_of
from gangsched.core.objects.podgroup import GroupSpec, OnDegraded
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import Outcome
from gangsched.core.objects.status import PREEMPTION, TIME, Condition, GroupStatus, Reservation
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.filling import classify
from gangsched.core.planning.needed_prebindings import prebindings

_POD_S = 60.0
"""For so many seconds a new leader reserves the place that a pod without a group was to have, if nobody leaves it."""


def resume(gang: Gang, left: Sequence[Pod], context: Context) -> None:
    """Resume with the record in the status of the gang's PodGroup; without a record, restore nothing.

    Pods that have just `left` may be counted in the record.
    """
    group, now = gang.observed.group, context.now
    record = group.status.record if group is not None else None
    if group is None or record is None:
        return
    scheduled = group.status.condition("Scheduled")
    degraded = shown if (shown := group.status.condition("Degraded")) is not None and shown.status else None
    gang.change(**asdict(record))
    gang.written.restore(group.status, scheduled.reason if scheduled is not None else "")
    if changed := scheduled is not None and scheduled.generation != group.generation:
        clock.reset_back_off(gang)
    if degraded is not None and gang.record.scheduled_at:
        gang.operations.note_shortness(degraded.since - context.policy.degraded_after_s)
    # Pod timestamps have a resolution of one second.
    began = float("inf") if record.ended else int(record.run_start)
    ended = [pod for pod in (*gang.observed.pods.values(), *left) if pod.terminal]
    gang.roster.begin_run(pod.uid for pod in ended if max(pod.bound_by, pod.created) < began)
    if _another_has_begun(gang):
        gang.begin_run(pod.uid for pod in ended)
        return
    _count_ended(gang, [pod for pod in ended if pod.uid not in gang.roster.past])
    if not record.scheduled_at and (record.clock_start or record.timeouts):
        _recall_complete(gang, now)
    reservation = group.status.reservation
    spec = declared_spec(gang.key, group, gang.live(), context.foreign) if reservation is not None else None
    if reservation is not None and reservation.kind in (PREEMPTION, TIME):
        _resume_plan(gang, reservation, spec, context)
    elif changed and not (record.scheduled_at or gang.record.quorum_done or any(pod.node for pod in gang.live())):
        # The places are those of another spec, and nothing is begun.
        gang.drop_quorum()
    elif reservation is not None:
        _hold_or_give_up(gang, spec, group.status, reservation, context)
    _resume_rollback(gang, group.spec, degraded, now)


def _recall_complete(gang: Gang, now: float) -> None:
    """It was complete before: at the latest since its last member was created, or since the clock runs."""
    since = (gang.record.clock_start, max((pod.created for pod in gang.live()), default=0.0))
    gang.operations.note_complete(min(filter(None, since), default=now))


def _resume_rollback(gang: Gang, spec: GroupSpec | None, degraded: Condition | None, now: float) -> None:
    """Continue a rollback that a former leader began: of a quorum, or a restart, which evicts the members bound now.

    The record says why a quorum was rolled back. The rollback goes on for as long as the group is Degraded, and at
    least until the back-off has ended. If members have reservations again, the quorum is being retried.
    """
    record = gang.record
    if not record.scheduled_at:
        if record.rollback_note and (degraded is not None or now < record.retry_at):
            since = now if degraded is None else degraded.since
            rollback.go_on_with(gang, rollback.begun(since, record.rollback_note, now))
            if gang.operations.bindings:
                rollback.retry(gang)
        return
    restarting = degraded is not None and degraded.reason in (Reason.RESTARTING, Reason.EVICTION_REFUSED)
    if restarting and spec is not None and spec.on_degraded is OnDegraded.RESTART:
        old = frozenset(pod.uid for pod in gang.live() if pod.node)
        rollback.go_on_with(gang, rollback.begun(now, rollback.RESTART_NOTE, now, restart=old))


def _resume_plan(gang: Gang, reservation: Reservation, spec: GroupSpec | None, context: Context) -> None:
    """Reserve the places again while others leave them. Who does is found out by `core.contention`."""
    now, waiting = context.now, {pod.name: pod for pod in gang.live() if not pod.node}
    places = [(waiting[name], place.node) for place in reservation.placements for name in place.pods if name in waiting]
    for place in reservation.placements:
        places += [(pod, place.node) for pod in placeholders.again(gang, spec, place, place.count - len(place.pods))]
    if reservation.expires > now and places:
        start = (reservation.start or clock.NEVER) if reservation.kind == TIME else None
        plan = Plan(places=places, start=start, opened_at=now, expires=reservation.expires, former=True)
        gang.operations.wait_for(plan)
        context.cluster.ledger.reserve(gang.key, places, (), start=start)
        gang.durability.restore((pod.uid for pod, _ in places), asked_at=now)


def resume_plan_of_pod(gang: Gang, context: Context) -> None:
    """Reserve again the place of a pod without a group, which its status names while others leave for it."""
    for pod in gang.live():
        if pod.condition_reason == Reason.WAITS_FOR_VICTIMS and pod.nominated_node and not pod.node:
            places = [(pod, pod.nominated_node)]
            expires = context.now + _POD_S
            gang.operations.wait_for(Plan(places=places, opened_at=context.now, expires=expires, former=True))
            context.cluster.ledger.reserve(gang.key, places, ())


def _another_has_begun(gang: Gang) -> bool:
    """Whether another run began without a leader: no live member has a node, and none is left of the recorded run."""
    live = gang.live()
    if not live or any(pod.node for pod in live):
        return False
    if gang.record.outcome is Outcome.OUT_OF_TIME:
        # The members of the recorded run carry a condition with the time-out's reason.
        return not any(pod.condition_reason for pod in live)
    return bool(gang.record.scheduled_at) and not gang.record.successes


def _count_ended(gang: Gang, ended: Sequence[Pod]) -> None:
    """Count members that ended without a leader: for each role the recorded or the seen number, whichever is larger."""
    record, well = gang.record, [pod for pod in ended if pod.phase is PodPhase.SUCCEEDED]
    recorded = Counter(dict(record.succeeded))
    succeeded = Counter(map(role_of, well)) | recorded
    led = record.led or any(map(leads, well))
    damaging = sum(pod.phase is PodPhase.FAILED and not pod.terminating for pod in ended)
    gang.change(
        succeeded=tuple(sorted(succeeded.items())),
        failed=max(len(ended) - len(well), record.failed),
        led=led,
        damaged=record.damaged or damaging > record.failed,
    )
    if record.quorum is not None:
        # Successes that are not in the record happened after its quorum began.
        done = Counter(dict(record.quorum_done)) + (succeeded - recorded)
        gang.change(quorum_done=tuple(sorted(done.items())))
    gang.roster.count(*(pod.uid for pod in ended))


def _hold_or_give_up(
    gang: Gang, spec: GroupSpec | None, status: GroupStatus, reservation: Reservation, context: Context
) -> None:
    """Hold the reservations in the status again, or give them up if they expired while there was no leader."""
    policy, now, started = context.policy, context.now, status.schedule_start_time
    to_come = any(place.count > len(place.pods) for place in reservation.placements)
    expires, capped = reservation.expires, clock.NEVER
    if to_come and gang.record.held_since and not started:
        # No clock runs: the controller creates members only once others are ready.
        expires = clock.NEVER
    elif to_come and started:
        # maxScheduleTime may have been changed since (rule 4).
        time_s = spec.max_schedule_time_s if spec is not None else None
        default = max(expires, started + policy.default_max_schedule_time_s)
        expires = default if time_s is None else started + time_s
    if to_come and gang.record.held_since:
        capped = gang.record.held_since + policy.max_hold_s
    if min(expires, capped) > now:
        _hold_again(gang, spec, reservation, context.cluster, policy)
    elif capped < expires:
        caps.hold_no_longer(gang, capped, policy)
    elif spec is not None and to_come and any(pod.node for pod in gang.live()):
        placeholders.wait_no_longer(gang, spec, now)


def _hold_again(gang: Gang, spec: GroupSpec | None, reservation: Reservation, cluster: Cluster, policy: Policy) -> None:
    """Hold the reservations again of pods that still wait or do not exist yet, where they still fit."""
    waiting = {pod.name: pod for pod in gang.live() if not pod.node}
    left: Counter[str] = Counter()
    if caps.may_hold_again(gang, cluster, reservation, policy) and spec is not None and spec.minimum <= MOST_PLACES:
        # Some members that did not exist may have been created since.
        bound = Counter(role_of(pod) for pod in gang.live() if pod.node)
        reserved = [waiting[name] for place in reservation.placements for name in place.pods if name in waiting]
        left = placeholders.missing(missing_of(minima(spec), bound), reserved, spec)
    snapshot = Snapshot(cluster)
    for place in reservation.placements:
        row = cluster.capacity.rows.get(place.node)
        pods = [waiting.pop(name) for name in place.pods if name in waiting]
        number = max(0, min(place.count - len(place.pods), left[place.role]))
        left[place.role] -= number
        pods += placeholders.again(gang, spec, place, number)
        if row is None:
            continue
        for pod in pods:
            member = classify(snapshot, [pod])[pod.uid]
            if snapshot.fits(member, row):
                snapshot.take(row, member, 1)
                asked = prebindings(snapshot, [(pod, place.node)])
                bindings.begin(gang, cluster, [(pod, place.node)], held=True, prebindings=asked)
    if gang.operations.bindings and spec is not None:
        if not gang.record.scheduled_at:
            take_over(gang, spec)
        gang.durability.restore(gang.operations.bindings, asked_at=reservation.expires - policy.repair_deadline_s)


def take_over(gang: Gang, spec: GroupSpec) -> None:
    """Continue a former leader's quorum. If it is not recorded, the current minimum applies.

    A tree that has not all the parts that it needs has no quorum that could be continued.
    """
    if gang.record.quorum is None:
        # The former leader has chosen parts whose members exist.
        least = chosen(minima(spec), Counter(map(role_of, placed_of(gang))), Counter(map(role_of, gang.live())))
        if spec.tree is None or not missing_of(spec.tree, Counter(dict(least.roles))):
            gang.begin_quorum(least)
    reserved = [uid for uid, binding in gang.operations.bindings.items() if not binding.placeholder]
    gang.roster.choose((*gang.roster.inherited, *reserved), replace=True)
