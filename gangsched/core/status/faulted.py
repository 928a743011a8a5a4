"""What people are told of a gang whose logic failed: as little as can be said without that logic."""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from gangsched.core.gang.agreement import Hindrance
from gangsched.core.gang.census import Census
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.lifecycle import Assessment
from gangsched.core.gang.states import WAITING, Facts
from gangsched.core.gang.terms import NO_TERMS
from gangsched.core.gang.wants import Want
from gangsched.core.gang.writes import BindState
from gangsched.core.objects.effects import Effect, EmitEvent, PatchPodCondition, PatchStatus
from gangsched.core.objects.faults import Step
from gangsched.core.objects.pod import Pod, PodPhase, member_order
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import NO_RECORD, Phase
from gangsched.core.objects.status import Condition, GroupStatus

_DOING = {
    Step.EVENT: "hearing of it",
    Step.RECOVERY: "reading its status",
    Step.UPKEEP: "bringing it up to date",
    Step.CYCLE: "placing it",
    Step.TELLING: "writing its status",
    Step.DEMAND: "finding out what nodes it lacks",
    Step.ROLLBACK: "rolling it back",
}
_NO_FACTS = Facts(
    complete=False,
    held=False,
    binding=False,
    quorum_running=False,
    was_scheduled=False,
    degraded=False,
    backing_off=False,
    failed_for_good=False,
    ended_well=False,
    ended_badly=False,
)
_SCHEDULED = frozenset({Reason.SCHEDULED, Reason.MEMBERS_MISSING, Reason.SUCCEEDED, Reason.GANG_FAILED})
"""Reasons of the condition Scheduled of a gang that was scheduled."""


def message_of(step: Step, error: str, *, parked_s: float, evicted: bool) -> str:
    """What has failed, what becomes of the group, and what a person should do; it stays the same while it is parked."""
    return (
        f"gangsched failed with {error} while {_DOING[step]}, which is a defect of gangsched: "
        f"{'its bound members are evicted and ' if evicted else ''}the group is left alone for {parked_s:g}s, or until "
        "its spec or members change; look for the traceback in gangsched's log and report it."
    )


def last_status(gang: Gang) -> GroupStatus:
    """What the status of the gang's PodGroup says, or will say once the last write is through."""
    observed = gang.group.status if gang.group is not None else GroupStatus()
    return gang.told.status or observed


def was_scheduled(status: GroupStatus) -> bool:
    """Whether the gang counts as scheduled by its status."""
    return bool(status.scheduled_time) or any(each.reason == Reason.MEMBERS_MISSING for each in status.conditions)


def bound(gang: Gang) -> list[Pod]:
    """The members that have a node, or whose binding the server has confirmed."""
    confirmed = {uid for uid, binding in gang.bindings.items() if binding.state is BindState.BOUND}
    return [pod for pod in gang.live() if pod.node or pod.uid in confirmed]


def status_of(gang: Gang, message: str, *, scheduled: bool, known: bool, now: float) -> GroupStatus:
    """The last status with the fault in it.

    A group that was scheduled stays so, and is Degraded by the fault. Of any other the clock is cleared and no place is
    held; the attempt under way is not counted. If its minimum is `known` it is Degraded while a part of it is bound.
    """
    last, there = last_status(gang), bound(gang)
    record = last.record or NO_RECORD
    status = replace(
        last,
        members=len(gang.live()),
        bound=len(there),
        running=sum(pod.phase is PodPhase.RUNNING for pod in there),
        reservation=None,
        demand=(),
    )
    degraded = _condition(gang, "Degraded", Reason.INTERNAL_ERROR, message, status=True, now=now)
    if scheduled:
        kept = [each for each in last.conditions if each.type == "Scheduled" and each.reason in _SCHEDULED]
        if not kept:
            kept = [_condition(gang, "Scheduled", Reason.SCHEDULED, "The minimum is bound.", status=True, now=now)]
        phase = Phase.SCHEDULED if last.phase in ("", *WAITING) else record.phase
        return replace(status, record=replace(record, phase=phase), conditions=(*kept, degraded))
    fault = _condition(gang, "Scheduled", Reason.INTERNAL_ERROR, message, status=False, now=now)
    trying = last.schedule_start_time or last.schedule_paused_time or last.reservation
    partly = known and bool(there)
    waiting = Phase.FAILED if last.phase == Phase.FAILED else Phase.PENDING
    return replace(
        status,
        record=replace(record, phase=Phase.DEGRADED if partly else waiting, clock_start=0.0, capped=None),
        conditions=(fault, degraded) if partly else (fault,),
        attempts=max(0, last.attempts - bool(trying)),
    )


def tell(gang: Gang, status: GroupStatus, message: str, *, first: bool, interval_s: float, now: float) -> list[Effect]:
    """Write this status if it says something new, or other numbers and it is time; at the `first` time an Event too."""
    told, effects = gang.told, list[Effect]()
    if (
        gang.group is not None
        and told.write_again_at <= now
        and _is_owed(gang, status, due=told.message_at + interval_s, now=now)
    ):
        effects.append(PatchStatus(gang.key, gang.group.uid, status))
        told.wrote(status, gang.resource_version, None)
        told.said_message(now)
    if first:
        effects += _event(gang, message)
    for pod in gang.live():
        said, at = told.members.get(pod.uid, (pod.told_reason, float("-inf")))
        lost = pod.told_reason != Reason.INTERNAL_ERROR and now >= at + interval_s
        if not pod.node and pod.uid not in gang.bindings and (said != Reason.INTERNAL_ERROR or lost):
            told.said_to_member(pod.uid, Reason.INTERNAL_ERROR, now)
            since = 0.0 if pod.told_reason else now
            effects.append(PatchPodCondition(pod.uid, pod.namespace, pod.name, Reason.INTERNAL_ERROR, message, since))
    return effects


def _condition(gang: Gang, kind: str, reason: Reason, message: str, *, status: bool, now: float) -> Condition:
    before = next((each for each in last_status(gang).conditions if each.type == kind), None)
    since = before.since if before is not None and before.status is status else now
    generation = gang.group.generation if gang.group is not None else 0
    return Condition(kind, status, reason, message, since, generation)


def _is_owed(gang: Gang, status: GroupStatus, *, due: float, now: float) -> bool:
    last = last_status(gang)
    said = (status.phase, status.conditions) == (last.phase, last.conditions)
    return gang.told.unwritten or not said or (now >= due and status != last)


def _event(gang: Gang, message: str) -> list[Effect]:
    oldest = min(gang.live(), key=member_order, default=None)
    if gang.group is not None:
        kind, name, uid = "PodGroup", gang.key.name, gang.group.uid
    elif oldest is not None:
        kind, name, uid = "Pod", oldest.name, oldest.uid
    else:
        return []
    return [EmitEvent(kind, gang.key.namespace, name, uid, "Warning", Reason.INTERNAL_ERROR, "Scheduling", message)]


def assessment_of(gang: Gang, message: str, *, due: float) -> Assessment:
    """What others read of a parked gang: that it wants nothing, and why."""
    waiting = [pod for pod in gang.live() if not pod.node and pod.uid not in gang.bindings]
    census = Census(
        live=gang.live(), bound=bound(gang), waiting=waiting, running=0, bound_roles=Counter(), done_roles=Counter()
    )
    return Assessment(
        census=census,
        terms=NO_TERMS,
        hindrance=Hindrance(Reason.INTERNAL_ERROR, message),
        facts=_NO_FACTS,
        want=Want(),
        minimum=0,
        missing=0,
        missing_roles={},
        surplus=(),
        due=due,
        timed_out=False,
        newly_scheduled=False,
    )
