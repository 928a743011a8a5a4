"""What a process that begins to decide goes on with: the record in the PodGroup's status, and the places in it.

A restart, and a failover to a standby, both begin here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from gangsched.core.cluster.cache import Cluster
from gangsched.core.gang import bindings, caps, clock, placeholders, rollback
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.hindrances import MOST_PLACES
from gangsched.core.gang.wants import minima, missing_of, role_minima
from gangsched.core.objects.pod import Pod, PodPhase, role_of
from gangsched.core.objects.podgroup import Group, GroupSpec
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.record import Outcome, Record
from gangsched.core.objects.status import Reservation
from gangsched.core.planning.placement import classify
from gangsched.core.planning.snapshot import Snapshot


def adopt(gang: Gang, cluster: Cluster, *, policy: Policy, now: float) -> None:
    """Go on with the record in the status of the gang's PodGroup; without one nothing is taken over."""
    record = gang.group.status.record if gang.group is not None else None
    if gang.group is None or record is None:
        return
    status = gang.group.status
    told = {condition.type: condition for condition in status.conditions}
    gang.recall(record)
    gang.told.recall(status, told["Scheduled"].reason if "Scheduled" in told else "")
    if "Scheduled" in told and told["Scheduled"].generation != gang.group.generation:
        clock.begin_anew(gang)
    if "Degraded" in told and told["Degraded"].status and gang.record.scheduled_at:
        gang.note_shortness(told["Degraded"].since - policy.degraded_after_s)
    gang.roster.begin_run(pod.uid for pod in gang.pods.values() if _is_past(record, pod))
    if _another_has_begun(gang):
        gang.begin_run(pod.uid for pod in gang.pods.values() if pod.terminal)
        return
    _count_ended(gang)
    rollback.resume(gang, status, now)
    _hold_or_give_up(gang, cluster, policy=policy, now=now)


def _is_past(record: Record, pod: Pod) -> bool:
    """Whether the pod ended before the run began; times of pods are whole seconds."""
    return pod.terminal and (record.ended or max(pod.bound_at, pod.created) < int(record.run_start))


def _another_has_begun(gang: Gang) -> bool:
    """Whether nobody of the recorded run is left, and who lives came while nobody led, which nothing else shows."""
    live = gang.live()
    if not live or any(pod.node for pod in live):
        return False
    if gang.record.outcome is Outcome.OUT_OF_TIME:
        # Those who waited then have been told so.
        return not any(pod.told_reason for pod in live)
    return bool(gang.record.scheduled_at) and not gang.record.successes


def _count_ended(gang: Gang) -> None:
    """Count who has ended while nobody led: of each role there are as many as before, or as are there now."""
    ended = [pod for pod in gang.pods.values() if pod.terminal and pod.uid not in gang.roster.past]
    there = Counter(role_of(pod) for pod in ended if pod.phase is PodPhase.SUCCEEDED)
    succeeded = there | Counter(dict(gang.record.succeeded))
    failed = sum(pod.phase is PodPhase.FAILED for pod in ended)
    gang.note(succeeded=tuple(sorted(succeeded.items())), failed=max(failed, gang.record.failed))
    gang.roster.count(*(pod.uid for pod in ended))


def _hold_or_give_up(gang: Gang, cluster: Cluster, *, policy: Policy, now: float) -> None:
    """Hold the places of the status again; those whose time ran out while nobody looked are given up."""
    group = gang.group
    if group is None or group.status.reservation is None:
        return
    reservation = group.status.reservation
    expires, capped = _expires(group, reservation, policy), clock.NEVER
    if _vacant(reservation) and gang.record.held_since:
        capped = gang.record.held_since + policy.max_hold_s
    if min(expires, capped) > now:
        _hold_again(gang, cluster, reservation, policy)
    elif capped < expires:
        caps.hold_no_longer(gang, capped, policy)
    elif group.spec is not None and _waited(gang, reservation):
        placeholders.wait_no_longer(gang, group.spec, now)


def _waited(gang: Gang, reservation: Reservation) -> bool:
    """Whether bound members waited for others to come; the time for that ran out while nobody looked."""
    return _vacant(reservation) and any(pod.node for pod in gang.live())


def _vacant(reservation: Reservation) -> bool:
    """Whether places are held for members to come."""
    return any(place.count > len(place.pods) for place in reservation.placements)


def _expires(group: Group, reservation: Reservation, policy: Policy) -> float:
    """When the places are given up, in epoch seconds; maxScheduleTime may have been changed since (rule 4)."""
    started = group.status.schedule_start_time
    if not (started and _vacant(reservation)):
        return reservation.expires
    if group.spec is None or group.spec.max_schedule_time_s is None:
        return max(reservation.expires, started + policy.default_max_schedule_time_s)
    return started + group.spec.max_schedule_time_s


def _hold_again(gang: Gang, cluster: Cluster, reservation: Reservation, policy: Policy) -> None:
    """Assume the places that were held before the restart, for pods that still wait, or are to come, and still fit."""
    waiting = {pod.name: pod for pod in gang.live() if not pod.node}
    left = _to_come(gang, reservation, waiting)
    if not caps.may_hold_again(gang, cluster, reservation, policy):
        left.clear()
    snapshot = Snapshot(cluster)
    for place in reservation.placements:
        row = cluster.capacity.rows.get(place.node)
        pods = [waiting.pop(name) for name in place.pods if name in waiting]
        vacant = min(place.count - len(place.pods), left[place.role])
        if vacant > 0:
            left[place.role] -= vacant
            pods += placeholders.again(gang, place, vacant)
        if row is None:
            continue
        for pod in pods:
            member = classify(snapshot, [pod])[pod.uid]
            if snapshot.fits(member, row):
                snapshot.take(row, member, 1)
                bindings.begin(gang, cluster, [(pod, place.node)], held=True)
    if gang.bindings and gang.group is not None and gang.group.spec is not None:
        if not gang.record.scheduled_at:
            take_over(gang, gang.group.spec)
        gang.durability.found(gang.bindings, asked_at=reservation.expires - policy.repair_deadline_s)


def _to_come(gang: Gang, reservation: Reservation, waiting: Mapping[str, Pod]) -> Counter[str]:
    """For how many members of each role that do not exist places are worth holding: some may have come meanwhile."""
    spec = gang.group.spec if gang.group is not None else None
    if spec is None or spec.minimum > MOST_PLACES:
        return Counter()
    bound = Counter(role_of(pod) for pod in gang.live() if pod.node)
    names = {name for place in reservation.placements for name in place.pods}
    there = [waiting[name] for name in names & waiting.keys()]
    return Counter(placeholders.missing(missing_of(spec.minimum, role_minima(spec), bound), there, spec))


def take_over(gang: Gang, spec: GroupSpec) -> None:
    """Go on with a former leader's quorum; one that is not recorded ends under the minimum of this moment."""
    if gang.record.quorum is None:
        gang.begin_quorum(minima(spec))
    there = [uid for uid, binding in gang.bindings.items() if not binding.vacant]
    gang.roster.choose((*gang.roster.inherited, *there), anew=True)
