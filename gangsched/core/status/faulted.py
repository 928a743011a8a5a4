"""The status of a gang whose logic failed, as far as it is known without running that logic."""

from __future__ import annotations

from collections.abc import Hashable

from msgspec.structs import replace

from gangsched.core.declarations.minima import minima
from gangsched.core.declarations.terms import NO_TERMS, Hindrance
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang, take_census
from gangsched.core.gang.states import WAITING
from gangsched.core.gang.written import MemberCondition
from gangsched.core.objects.duration import format_duration
from gangsched.core.objects.effects import Effect, PatchPodCondition, PatchStatus
from gangsched.core.objects.faults import FaultyStep
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import NO_RECORD, Minima, Phase
from gangsched.core.objects.status import Condition, GroupStatus
from gangsched.core.status.gang_events import emit

_DOING = {
    FaultyStep.EVENT: "applying one of its events",
    FaultyStep.RECOVERY: "reading its status",
    FaultyStep.UPKEEP: "reconciling it",
    FaultyStep.CYCLE: "placing it",
    FaultyStep.STATUS: "writing its status",
    FaultyStep.DEMAND: "computing what nodes it needs",
    FaultyStep.ROLLBACK: "rolling it back",
}
_SCHEDULED = frozenset({Reason.SCHEDULED, Reason.MEMBERS_MISSING, Reason.SUCCEEDED, Reason.GANG_FAILED})
"""Reasons of the condition Scheduled on a gang that was scheduled."""


def message_of(step: FaultyStep, error: str, *, parked_s: float, evicted: bool) -> str:
    """What failed, what happens to the group, and what to do; the message does not change while the group is parked."""
    return (
        f"gangsched failed with {error} while {_DOING[step]}, which is a bug in gangsched: "
        f"{'its bound members are evicted and ' if evicted else ''}the group is not tried again for "
        f"{format_duration(parked_s)}, or until its spec or members change; look for the "
        "traceback in gangsched's log and report it."
    )


def last_status(gang: Gang) -> GroupStatus:
    """The status of the gang's PodGroup: the last one written, or the observed one if none was."""
    observed = gang.observed.group.status if gang.observed.group is not None else GroupStatus()
    return gang.written.status or observed


def was_scheduled(status: GroupStatus) -> bool:
    """Whether the gang counts as scheduled by this status."""
    return bool(status.scheduled_time) or any(told.reason == Reason.MEMBERS_MISSING for told in status.conditions)


def minima_of(gang: Gang) -> Minima:
    """What the gang's quorum needs; 0 where that is unknown."""
    if gang.record.quorum is not None:
        return gang.record.quorum
    if gang.observed.group is not None and gang.observed.group.spec is not None:
        return minima(gang.observed.group.spec)
    says = [pod.declaration for pod in gang.observed.pods.values() if pod.declaration is not None]
    return Minima(max((say.min_member or 0 for say in says), default=0))


def spec_of(gang: Gang) -> Hashable:
    """The spec of the gang's PodGroup, as a value to compare."""
    return (
        None
        if gang.observed.group is None
        else (gang.observed.group.uid, gang.observed.group.spec, gang.observed.group.error)
    )


def members_of(gang: Gang) -> Hashable:
    """The properties of its members that the gang's logic depends on, as a value to compare."""
    return frozenset((pod.uid, pod.shape, pod.declaration, pod.labels) for pod in gang.live())


def status_of(gang: Gang, message: str, *, scheduled: bool, known: bool, now: float) -> GroupStatus:
    """The last status, with the fault in its conditions.

    A group that was scheduled stays scheduled, and is Degraded by the fault. Any other has no running clock and no
    reservation, and its current attempt is not counted; if its minimum is `known`, it is Degraded while partly bound.
    """
    last, census = last_status(gang), take_census(gang, gang.live())
    record = last.record or NO_RECORD
    status = replace(
        last,
        members=len(census.live),
        bound=len(census.bound),
        running=census.running,
        reservation=None,
        demand=(),
        fitting=(),
        helps=(),
        expected=None,
    )
    degraded = _condition(gang, "Degraded", Reason.INTERNAL_ERROR, message, status=True, now=now)
    if scheduled:
        kept = last.condition("Scheduled")
        if kept is None or kept.reason not in _SCHEDULED:
            kept = _condition(gang, "Scheduled", Reason.SCHEDULED, "The minimum is bound.", status=True, now=now)
        phase = Phase.SCHEDULED if last.phase in ("", *WAITING) else record.phase
        return replace(status, record=replace(record, phase=phase), conditions=(kept, degraded))
    fault = _condition(gang, "Scheduled", Reason.INTERNAL_ERROR, message, status=False, now=now)
    trying = last.schedule_start_time or last.schedule_paused_time or last.reservation
    partly = known and bool(census.bound)
    waiting = Phase.FAILED if last.phase == Phase.FAILED else Phase.PENDING
    return replace(
        status,
        record=replace(record, phase=Phase.DEGRADED if partly else waiting, clock_start=0.0, capped=None),
        conditions=(fault, degraded) if partly else (fault,),
        finished_at=last.finished_at if waiting is Phase.FAILED and not partly else 0.0,
        attempts=max(0, last.attempts - bool(trying)),
    )


def write(gang: Gang, status: GroupStatus, message: str, *, first: bool, interval_s: float, now: float) -> list[Effect]:
    """Write this status if it has news, or only new numbers and `interval_s` has passed; `first`: emit an Event too."""
    written, effects = gang.written, list[Effect]()
    if (
        gang.observed.group is not None
        and written.write_again_at <= now
        and _is_owed(gang, status, due=written.message_at + interval_s, now=now)
    ):
        effects.append(PatchStatus(gang.key, gang.observed.group.uid, status))
        written.wrote(status, gang.observed.resource_version, None)
        written.message_written(now)
    if first:
        effects += emit(gang, assessment_of(gang, message, due=now), Reason.INTERNAL_ERROR, message)
    for pod in gang.live():
        told = written.members.get(pod.uid, MemberCondition(pod.condition_reason, float("-inf")))
        lost = pod.condition_reason != Reason.INTERNAL_ERROR and now >= told.at + interval_s
        if not pod.node and pod.uid not in gang.operations.bindings and (told.reason != Reason.INTERNAL_ERROR or lost):
            written.member_condition_written(pod.uid, MemberCondition(Reason.INTERNAL_ERROR, now))
            since = 0.0 if pod.condition_reason else now
            effects.append(PatchPodCondition(pod.uid, pod.namespace, pod.name, Reason.INTERNAL_ERROR, message, since))
    return effects


def _condition(gang: Gang, kind: str, reason: Reason, message: str, *, status: bool, now: float) -> Condition:
    before = last_status(gang).condition(kind)
    since = before.since if before is not None and before.status is status else now
    return Condition(kind, status, reason, message, since, gang.observed.generation)


def _is_owed(gang: Gang, status: GroupStatus, *, due: float, now: float) -> bool:
    last = last_status(gang)
    unchanged = (status.phase, status.conditions) == (last.phase, last.conditions)
    return gang.written.unwritten or not unchanged or (now >= due and status != last)


def assessment_of(gang: Gang, message: str, *, due: float) -> Assessment:
    """The assessment of a parked gang: it wants nothing, and why."""
    return Assessment(
        census=take_census(gang, gang.live()),
        terms=replace(NO_TERMS, hindrance=Hindrance(Reason.INTERNAL_ERROR, message)),
        due=due,
    )
