"""The conversion of `core.objects.status.GroupStatus` to the status of a PodGroup and back.

The engine always writes the whole status and reads it once after a start.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar

from gangsched.api.podgroup_status import (
    LONGEST_MESSAGE,
    MOST_ROLES,
    ConditionStatus,
    DemandStatus,
    ExpectedStartStatus,
    FittingStatus,
    PodGroupStatus,
    RecordStatus,
    ReservationStatus,
)
from gangsched.api.schema import MAX_COUNT
from gangsched.api.template_shapes import requests_from_object, requests_to_object
from gangsched.api.times import format_if_set, format_time, parse_time
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.expected_start import Basis, ExpectedStart, Unknown
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import NO_RECORD, Capped, Counts, Minima, Outcome, Phase, Record
from gangsched.core.objects.status import Condition, Demand, Fitting, GroupStatus, Place, Reservation
from gangsched.core.objects.wording import shortened
from gangsched.core.objects.workload import Workload

WordT = TypeVar("WordT", bound=StrEnum)


def status_to_object(status: GroupStatus) -> dict[str, Any]:
    """Return the whole `status` of the object, without empty fields.

    Times are rounded to the microsecond; those of conditions are cut to the second, as in every Kubernetes API.
    """
    record = status.record or NO_RECORD
    fields = {
        "phase": status.phase or None,
        "conditions": [_condition_to_object(condition) for condition in status.conditions],
        "members": status.members,
        "bound": status.bound,
        "running": status.running,
        "succeeded": min(status.succeeded, MAX_COUNT),
        "failed": min(status.failed, MAX_COUNT),
        "minimum": status.minimum,
        "reservation": None if status.reservation is None else _reservation_to_object(status.reservation),
        "preempted": _preempted_to_object(record),
        "preemptions": min(record.preemptions, MAX_COUNT) or None,
        "scheduleStartTime": _time_to_object(status.schedule_start_time),
        "schedulePausedTime": _time_to_object(status.schedule_paused_time),
        "scheduledTime": _time_to_object(status.scheduled_time),
        "runningTime": _time_to_object(status.running_time),
        "finishedTime": _time_to_object(status.finished_at),
        "attempts": min(status.attempts, MAX_COUNT),
        "source": status.source or None,
        "scheduler": status.scheduler or None,
        "record": None if status.record is None else _record_to_object(status.record) or None,
        "demand": [_demand_to_object(demand) for demand in status.demand] or None,
        "fitting": [_fitting_to_object(fitting) for fitting in status.fitting] or None,
        "helps": list(status.helps) or None,
        "expectedStart": None if status.expected is None else _expected_to_object(status.expected),
    }
    return {"status": {name: value for name, value in fields.items() if value is not None}}


def status_from_object(status: Mapping[str, object]) -> GroupStatus:
    """Return the status of an object; an empty one if it is unreadable.

    The API server refuses an unreadable status with the same schema. If it accepts one nevertheless, no part of it is
    used: the state is rebuilt from the pods alone, and the next write replaces the whole status.
    """
    try:
        parsed = PodGroupStatus.model_validate(dict(status))
        return GroupStatus(
            record=_record_from_object(parsed),
            conditions=tuple(map(_condition_from_object, parsed.conditions)),
            members=parsed.members,
            bound=parsed.bound,
            running=parsed.running,
            reservation=None if parsed.reservation is None else _reservation_from_object(parsed.reservation),
            attempts=parsed.attempts,
            source=parsed.source or "",
            scheduler=parsed.scheduler or "",
            finished_at=_time_from_object(parsed.finished_time),
            demand=tuple(map(_demand_from_object, parsed.demand or ())),
            fitting=tuple(map(_fitting_from_object, parsed.fitting or ())),
            helps=tuple(parsed.helps or ()),
            expected=None if parsed.expected_start is None else _expected_from_object(parsed.expected_start),
        )
    except ValueError:
        return GroupStatus()


def _expected_to_object(expected: ExpectedStart) -> dict[str, Any]:
    fields = {
        "earliest": format_if_set(expected.earliest),
        "latest": format_if_set(expected.latest),
        "basis": expected.basis,
        "unknown": expected.why,
        "decides": expected.decides.name if expected.decides is not None else None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _expected_from_object(stored: ExpectedStartStatus) -> ExpectedStart:
    """The expected start. Words that only a newer version knows are left out."""
    return ExpectedStart(
        _time_from_object(stored.earliest),
        _time_from_object(stored.latest),
        _word(Basis, stored.basis),
        _word(Unknown, stored.unknown),
        GroupKey("", stored.decides) if stored.decides else None,
    )


def _word(known: type[WordT], stored: str | None) -> WordT | None:
    return next((word for word in known if word == stored), None)


def _record_to_object(record: Record) -> dict[str, Any]:
    """The parts of the record that are not in other fields of the status."""
    fields = {
        "runStartTime": _time_to_object(record.run_start),
        "outcome": record.outcome or None,
        "incompleteTime": _time_to_object(record.scheduled_at) if record.late else None,
        "quorum": None
        if record.quorum is None
        else {"total": min(record.quorum.total, MAX_COUNT), "roles": _counts_to_object(record.quorum.roles)},
        "quorumSucceeded": _counts_to_object(record.quorum_done),
        "roleMinimums": _counts_to_object(record.satisfied.roles),
        "roleSuccesses": _counts_to_object(record.succeeded),
        "timeouts": min(record.timeouts, MAX_COUNT),
        "backoffLevel": min(record.level, MAX_COUNT),
        "retryTime": _time_to_object(record.retry_at),
        "undone": _shortened(record.rollback_note),
        "displacedBy": "" if record.preempted_at else record.preempted_by,
        "leaderSucceeded": record.led,
        "memberFailed": record.damaged,
        "workload": None if record.workload is None else _workload_to_object(record.workload),
        "placesExpired": record.placeholders_expired,
        "holdStartTime": _time_to_object(record.held_since),
        "holdsReleased": min(record.caps, MAX_COUNT),
        "settledTime": _time_to_object(record.settled_at),
        "preBindStartTime": _time_to_object(record.prebinding_at),
        "preBindClockTime": _time_to_object(record.prebinding_clock),
        "cap": None if record.capped is None else _cap_to_object(record.capped),
    }
    return {name: value for name, value in fields.items() if value}


def _record_from_object(status: PodGroupStatus) -> Record | None:
    """The record; None before the status was first written."""
    stored = status.record or RecordStatus()
    scheduled_at, late_at = _time_from_object(status.scheduled_time), _time_from_object(stored.incomplete_time)
    paused_at, clock_start = (
        _time_from_object(status.schedule_paused_time),
        _time_from_object(status.schedule_start_time),
    )
    capped = None
    if stored.cap is not None:
        capped = Capped(
            reason=Reason(stored.cap.reason),
            note=stored.cap.message,
            until=_time_from_object(stored.cap.retry_time),
            paused_at=paused_at,
            ran_s=round(paused_at - clock_start, 6) if paused_at else 0.0,
        )
    successes = _counts_from_object(stored.role_successes)
    record = Record(
        phase=status.phase or Phase.PENDING,
        # An older version did not write runStartTime. Its status has one of the others if a run had begun to wait.
        run_start=_time_from_object(stored.run_start_time) or scheduled_at or clock_start,
        outcome=stored.outcome or _outcome_of(status.phase, scheduled=bool(scheduled_at)),
        scheduled_at=late_at or scheduled_at,
        late=bool(late_at),
        running_at=_time_from_object(status.running_time),
        clock_start=0.0 if paused_at else clock_start,
        quorum=None
        if stored.quorum is None
        else Minima(total=stored.quorum.total, roles=_counts_from_object(stored.quorum.roles)),
        quorum_done=_counts_from_object(stored.quorum_succeeded),
        satisfied=Minima(total=status.minimum, roles=_counts_from_object(stored.role_minimums)),
        timeouts=stored.timeouts,
        level=stored.backoff_level,
        retry_at=_time_from_object(stored.retry_time),
        rollback_note=stored.undone,
        succeeded=successes or ((("", status.succeeded),) if status.succeeded else ()),
        failed=status.failed,
        led=stored.leader_succeeded,
        damaged=stored.member_failed,
        workload=None
        if stored.workload is None
        else Workload(stored.workload.kind, stored.workload.name, None, stored.workload.uid),
        placeholders_expired=stored.places_expired,
        held_since=_time_from_object(stored.hold_start_time),
        capped=capped,
        caps=stored.holds_released,
        settled_at=_time_from_object(stored.settled_time),
        prebinding_at=_time_from_object(stored.pre_bind_start_time),
        prebinding_clock=_time_from_object(stored.pre_bind_clock_time),
        preempted_at=0.0 if status.preempted is None else parse_time(status.preempted.at),
        preempted_by=stored.displaced_by if status.preempted is None else status.preempted.cause,
        preemptions=status.preemptions or 0,
    )
    return record if status.phase is not None else None


def _outcome_of(phase: Phase | None, *, scheduled: bool) -> Outcome:
    """The outcome according to a status of an older version, which did not write it."""
    if phase is Phase.FAILED:
        return Outcome.FAILED if scheduled else Outcome.OUT_OF_TIME
    return Outcome.SUCCEEDED if phase is Phase.SUCCEEDED else Outcome.NONE


def _preempted_to_object(record: Record) -> dict[str, str] | None:
    if not record.preempted_at:
        return None
    return {"at": format_time(record.preempted_at), "cause": record.preempted_by}


def _cap_to_object(capped: Capped) -> dict[str, Any]:
    until = {"retryTime": _time_to_object(capped.until)} if capped.until else {}
    return {"reason": capped.reason, "message": _shortened(capped.note)} | until


def _workload_to_object(workload: Workload) -> dict[str, str]:
    uid = {"uid": workload.uid} if workload.uid else {}
    return {"kind": workload.kind, "name": workload.name} | uid


def _counts_to_object(counts: Counts) -> dict[str, int]:
    """Numbers by role, within the schema's limit, because pods may name any number of undeclared roles."""
    by_role = dict(counts[:MOST_ROLES] if len(counts) <= MOST_ROLES else counts[: MOST_ROLES - 1])
    others = sum(number for _, number in counts[len(by_role) :])
    if others:
        by_role[""] = by_role.get("", 0) + others
    return {role: min(number, MAX_COUNT) for role, number in by_role.items()}


def _counts_from_object(counts: Mapping[str, int]) -> Counts:
    return tuple(sorted(counts.items()))


def _time_to_object(seconds: float) -> str | None:
    return format_time(seconds) if seconds else None


def _time_from_object(text: str | None) -> float:
    return parse_time(text) if text else 0.0


def _condition_to_object(condition: Condition) -> dict[str, Any]:
    return {
        "type": condition.type,
        "status": "True" if condition.status else "False",
        "reason": condition.reason,
        "message": _shortened(condition.message),
        "lastTransitionTime": format_time(condition.since, to_the_second=True),
        "observedGeneration": condition.generation,
    }


def _shortened(message: str) -> str:
    """The message within the schema's limit. With a longer one the API server would refuse the whole status."""
    return shortened(message, LONGEST_MESSAGE)


def _condition_from_object(condition: ConditionStatus) -> Condition:
    return Condition(
        type=condition.type,
        status=condition.status == "True",
        reason=condition.reason,
        message=condition.message,
        since=parse_time(condition.last_transition_time),
        generation=condition.observed_generation,
    )


def _reservation_to_object(reservation: Reservation) -> dict[str, Any]:
    placements = [
        {
            "node": place.node,
            "role": place.role,
            "count": place.count,
            "pods": list(place.pods),
            "requests": requests_to_object(place.requests),
        }
        for place in reservation.placements
    ]
    kind = {"kind": reservation.kind} if reservation.kind else {}
    start = {"start": format_time(reservation.start)} if reservation.start else {}
    return {"expires": format_time(reservation.expires), "placements": placements} | kind | start


def _reservation_from_object(reservation: ReservationStatus) -> Reservation:
    return Reservation(
        expires=parse_time(reservation.expires),
        placements=tuple(
            Place(
                node=place.node,
                role=place.role,
                count=place.count,
                pods=tuple(place.pods),
                requests=requests_from_object(place.requests),
            )
            for place in reservation.placements
        ),
        kind=reservation.kind or "",
        start=0.0 if reservation.start is None else parse_time(reservation.start),
    )


def _demand_to_object(demand: Demand) -> dict[str, Any]:
    domain = {"domain": demand.domain} if demand.domain else {}
    return {"count": demand.count, "requests": requests_to_object(demand.requests)} | domain


def _fitting_to_object(fitting: Fitting) -> dict[str, Any]:
    shared = {"shared": dict(fitting.shared)} if fitting.shared else {}
    return {"members": fitting.members, "nodes": fitting.nodes} | shared


def _fitting_from_object(fitting: FittingStatus) -> Fitting:
    return Fitting(members=fitting.members, nodes=fitting.nodes, shared=tuple(sorted(fitting.shared.items())))


def _demand_from_object(demand: DemandStatus) -> Demand:
    return Demand(count=demand.count, requests=requests_from_object(demand.requests), domain=demand.domain or "")
