"""What a process that begins to decide takes over: from PodGroup status, and from what the pods show.

A restart, and a failover to a standby, both begin here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from gangsched.core.cluster.cache import Cluster
from gangsched.core.gang import bindings, caps, clock, ownership, placeholders, rollback
from gangsched.core.gang.declaration import declared_spec, said_minimum
from gangsched.core.gang.foreign import Foreign
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.run import Run, Transaction
from gangsched.core.gang.states import Phase
from gangsched.core.gang.terms import MOST_PLACES
from gangsched.core.gang.wants import missing_of, role_minima
from gangsched.core.objects.pod import Pod, PodPhase, member_order, role_of
from gangsched.core.objects.podgroup import Group, GroupSpec
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.status import GroupStatus, Reservation
from gangsched.core.planning.placement import classify
from gangsched.core.planning.snapshot import Snapshot

OUTAGE_S = 300.0
"""A group without a PodGroup of ours whose members were bound longer ago, and the repair deadline, is not begun."""


def adopt(gang: Gang, cluster: Cluster, *, policy: Policy, now: float) -> None:
    """Take over what the status of the gang's PodGroup remembers; without one, or before it was written, nothing."""
    if gang.group is None or not gang.group.status.phase:
        return
    group, status = gang.group, gang.group.status
    scheduled = next((condition for condition in status.conditions if condition.type == "Scheduled"), None)
    late = scheduled is not None and scheduled.reason == Reason.MEMBERS_MISSING and group.spec is not None
    gang.told.status = status
    gang.told.event = scheduled.reason if scheduled is not None else ""
    gang.phase = Phase(status.phase) if status.phase in {phase.value for phase in Phase} else Phase.PENDING
    ended = gang.phase in (Phase.SUCCEEDED, Phase.FAILED) and bool(status.scheduled_time)
    same_spec = scheduled is None or scheduled.generation == group.generation
    trying = late or bool(status.schedule_start_time or status.scheduled_time or status.reservation)
    timeouts = max(0, status.attempts - trying)
    asked_as_before = group.spec is not None and group.spec.minimum <= status.minimum
    degraded = next((each.since for each in status.conditions if each.type == "Degraded" and each.status), 0.0)
    ran_out = False
    if degraded and status.scheduled_time and group.spec is not None:
        # It has been short for so long; places that were held for members to come may have been given up since.
        gang.short_since = degraded - policy.degraded_after_s
        time_s = group.spec.max_schedule_time_s or policy.default_max_schedule_time_s
        ran_out = status.reservation is None and degraded + time_s <= now
    gang.run = Run(
        began=True,
        late=late,
        vacated=(late and same_spec and timeouts > 0 and status.reservation is None) or ran_out,
        scheduled_at=scheduled.since if late and scheduled is not None else status.scheduled_time,
        clock_start=0.0 if status.schedule_paused_time else status.schedule_start_time,
        minimum=group.spec.minimum if late and group.spec is not None else status.minimum,
        role_minima=_satisfied(group, gang.phase, gang.pods.values()) if asked_as_before else {},
        timeouts=timeouts,
        level=timeouts if same_spec else 0,
        failed_for_good=gang.phase is Phase.FAILED and not status.scheduled_time and same_spec and _was_there(gang),
        ended=ended,
        ended_well=gang.phase is Phase.SUCCEEDED,
        past={pod.uid for pod in gang.pods.values() if pod.terminal} if ended else _of_earlier_runs(gang, status),
    )
    live = gang.live()
    if (status.scheduled_time or late) and not status.succeeded and live and not any(pod.node for pod in live):
        # Nobody of that run is left: those who wait now began another one while nobody looked.
        gang.run = Run(past={pod.uid for pod in gang.pods.values() if pod.terminal})
        return
    _count_those_gone(gang, status)
    rollback.resume(gang, status, now)
    caps.resume(gang, status, policy)
    _hold_or_give_up(gang, cluster, policy=policy, now=now)


def _hold_or_give_up(gang: Gang, cluster: Cluster, *, policy: Policy, now: float) -> None:
    """Hold the places of the status again; those whose time ran out while nobody looked are given up."""
    group = gang.group
    if group is None or group.status.reservation is None:
        return
    reservation = group.status.reservation
    expires, capped = _ends(group, reservation, policy)
    if min(expires, capped) > now:
        gang.run.held_since = capped - policy.max_hold_s if _vacant(reservation) else 0.0
        _hold_again(gang, cluster, reservation, policy)
    elif capped < expires:
        caps.hold_no_longer(gang, capped, policy)
    elif group.spec is not None and _waited(gang, reservation):
        placeholders.wait_no_longer(gang, group.spec, now)


def find_begun(gang: Gang, *, foreign: Foreign, policy: Policy, now: float) -> None:
    """Find out whether a former leader has begun a quorum that was not completed; one that has failed is not."""
    # Pods that the group does without say nothing of its quorum, however long they have waited.
    ownership.guard(gang, policy.owner_guard)
    if not gang.run.began:
        gang.run.past |= _of_earlier_runs(gang, GroupStatus())
    failed = gang.run.failed_for_good or (gang.phase is Phase.FAILED and not gang.run.ended)
    if not failed and (gang.run.ended or not gang.run.scheduled_at):
        gang.inherited = _half_done(gang, now, policy)
        _count_on(gang, policy, now)
    spec = declared_spec(gang, foreign)
    if _remembers_nothing(gang) and not gang.plain and not gang.inherited:
        _recall_scheduled(gang, spec)
    if gang.inherited and spec is not None:
        _take_over(gang, spec)


def _of_earlier_runs(gang: Gang, status: GroupStatus) -> set[str]:
    """The pods, by UID, that ended in earlier runs: bound before any live member was made, and not counted in this run.

    A quorum's members are all there when it is bound. A driver that has ended, and is older than its executors, was
    counted, or lived when the status was written.
    """
    live = gang.live()
    oldest = min((pod.created for pod in live), default=float("inf"))
    ended = sorted((pod for pod in gang.pods.values() if pod.terminal), key=member_order, reverse=True)
    counted = status.succeeded + status.failed + max(0, status.members - len(live))
    return {pod.uid for number, pod in enumerate(ended) if number >= counted and pod.bound_at < oldest}


def _was_there(gang: Gang) -> bool:
    """Whether somebody is left of a run that has failed: who came while nobody led has not been told anything yet."""
    return any(pod.node or pod.told_reason for pod in gang.live())


def _remembers_nothing(gang: Gang) -> bool:
    """Whether the gang has no PodGroup of ours, or one that was only just made to hold places for members to come.

    Nobody is bound beside such places before they are in the status: whoever is bound was bound before it was made.
    """
    group = gang.group
    if group is None:
        return True
    if group.spec is None or not group.made or group.status.phase:
        return False
    return any(role.template for role in group.spec.roles)


def _waited(gang: Gang, reservation: Reservation) -> bool:
    """Whether bound members waited for others to come; the time for that ran out while nobody looked."""
    return _vacant(reservation) and any(pod.node for pod in gang.live())


def _vacant(reservation: Reservation) -> bool:
    """Whether places are held for members to come."""
    return any(place.count > len(place.pods) for place in reservation.placements)


def _ends(group: Group, reservation: Reservation, policy: Policy) -> tuple[float, float]:
    """When the places are given up, and when a cap would release them, in epoch seconds.

    maxScheduleTime may have been changed since (rule 4).
    """
    started = group.status.schedule_start_time
    if not (started and _vacant(reservation)):
        return reservation.expires, clock.NEVER
    capped = max(started, reservation.expires - policy.max_hold_s) + policy.max_hold_s
    if group.spec is None or group.spec.max_schedule_time_s is None:
        return max(reservation.expires, started + policy.default_max_schedule_time_s), capped
    return started + group.spec.max_schedule_time_s, capped


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
        if not gang.run.scheduled_at:
            _take_over(gang, gang.group.spec)
        gang.durable = frozenset(gang.bindings)
        gang.durable_asked_at = reservation.expires - policy.repair_deadline_s


def _to_come(gang: Gang, reservation: Reservation, waiting: Mapping[str, Pod]) -> Counter[str]:
    """For how many members of each role that do not exist places are worth holding: some may have come meanwhile."""
    spec = gang.group.spec if gang.group is not None else None
    if spec is None or spec.minimum > MOST_PLACES:
        return Counter()
    bound = Counter(role_of(pod) for pod in gang.live() if pod.node)
    names = {name for place in reservation.placements for name in place.pods}
    there = [waiting[name] for name in names & waiting.keys()]
    return Counter(placeholders.missing(missing_of(spec.minimum, role_minima(spec), bound), there, spec))


def _count_on(gang: Gang, policy: Policy, now: float) -> None:
    """Let the time count on for which a former leader's quorum has been partly bound, but leave half of it.

    Nobody knows for how long nobody led, which does not count (rule 1); and the quorum must have a chance.
    """
    if gang.inherited:
        first = min(gang.pods[uid].bound_at for uid in gang.inherited)
        gang.partial_since = min(now, max(first, now - rollback.lasts_s(policy) / 2))


def _take_over(gang: Gang, spec: GroupSpec) -> None:
    """A quorum that a former leader began ends under the minimum of this moment, if that is raised (rule 9)."""
    gang.transaction = Transaction(spec.minimum, role_minima(spec), gang.inherited | gang.bindings.keys())


def _satisfied(group: Group, phase: Phase, pods: Iterable[Pod]) -> dict[str, int]:
    """Each role's minimum that was last satisfied, as far as it can be known, of a group that asks for no more members.

    The status has only the total. What this very spec asks for was there if the group was told to be healthy or
    degraded; if not, what it has now is enough.
    """
    minima = role_minima(group.spec) if group.spec is not None else {}
    told = next((each for each in group.status.conditions if each.type == "Degraded"), None)
    healthy = told is not None and told.reason == Reason.HEALTHY and told.generation == group.generation
    if healthy or phase is Phase.DEGRADED:
        return minima
    there = Counter(role_of(pod) for pod in pods if pod.node and pod.phase is not PodPhase.FAILED)
    return {role: min(number, there[role]) for role, number in minima.items()}


def _half_done(gang: Gang, now: float, policy: Policy) -> set[str]:
    """The members, by UID, with which a former leader may have begun a quorum, of a group that was never scheduled.

    With a PodGroup, whose status would know if it had been scheduled, these are the members bound since it exists, and
    all of them where it was made because some were bound.
    Without one it shows in the times: those who still wait existed when the others were bound, and that is not long
    ago. Replacements of members that a scheduled group has lost are younger.
    """
    live = gang.live()
    bound = [pod for pod in live if pod.node]
    if gang.group is not None and not _remembers_nothing(gang):
        since = 0.0 if gang.group.made else gang.group.created
        return {pod.uid for pod in bound if pod.bound_at >= since}
    begun_at = min((pod.bound_at for pod in bound), default=0.0)
    if now > begun_at + OUTAGE_S + policy.repair_deadline_s:
        return set()
    # One that is leaving waited as well when the others were bound.
    not_ours = gang.run.past | gang.disowned
    waited = (pod for pod in gang.pods.values() if not (pod.node or pod.terminal or pod.uid in not_ours))
    return {pod.uid for pod in bound} if any(pod.created <= begun_at for pod in waited) else set()


def _recall_scheduled(gang: Gang, spec: GroupSpec | None) -> None:
    """Take a group without a PodGroup of ours, of which members are bound and no quorum is half done, for scheduled.

    Nothing else remembers it: a quorum is bound together, so whoever waits beside bound members came later. Where some
    come later by their template, those missing may never have been there, and it is only said what is bound (rule 11).
    """
    past = gang.run.past
    bound = [pod for pod in gang.pods.values() if pod.node and pod.uid not in past]
    says = [pod.declaration for pod in bound if pod.declaration is not None]
    minimum = said_minimum(says) if spec is None else spec.minimum
    if all(pod.terminal for pod in bound):
        # Nobody of that run is left: those who wait begin another one.
        past |= {pod.uid for pod in bound}
        return
    if minimum is None:
        return
    gang.run = Run(began=True, scheduled_at=min(pod.bound_at for pod in bound) or 1.0, minimum=minimum, past=past)
    if any(role.template for say in says for role in say.roles):
        there = sum(pod.phase is not PodPhase.FAILED for pod in bound)
        gang.run.late = there < minimum


def _count_those_gone(gang: Gang, status: GroupStatus) -> None:
    """Let members of this run that ended and no longer exist count on.

    Which roles they had is not known any more; they are taken for those that are missing.
    """
    there = [pod for pod in gang.pods.values() if pod.uid not in gang.run.past]
    succeeded = sum(pod.phase is PodPhase.SUCCEEDED for pod in there)
    failed = sum(pod.phase is PodPhase.FAILED for pod in there)
    present = Counter(role_of(pod) for pod in there if pod.node and pod.phase is not PodPhase.FAILED)
    left = max(0, status.succeeded - succeeded)
    for role, number in gang.run.role_minima.items():
        gang.run.gone_well[role] = min(left, max(0, number - present[role]))
        left -= gang.run.gone_well[role]
    gang.run.gone_well[""] += left
    gang.run.gone_badly = max(0, status.failed - failed)
