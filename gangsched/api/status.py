"""The status of a PodGroup: its schema, and the conversion of `core.objects.status.GroupStatus` to it and back.

The engine always writes the whole status and reads it once after a start. The status has everything that a restart must
not lose.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, Strict
from pydantic.alias_generators import to_camel

from gangsched.api.schema import MAX_COUNT, Count, Format, Int64, ListMap, Part
from gangsched.api.shapes import requests_to_object
from gangsched.api.template import QUANTITY
from gangsched.api.times import format_time, parse_time
from gangsched.core.objects.quantity import amount
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import Capped, Counts, Minima, Outcome, Phase, Record
from gangsched.core.objects.shape import Amounts
from gangsched.core.objects.status import MOST_DEMANDS, Condition, Demand, GroupStatus, Place, Reservation

Time = Annotated[str, Field(max_length=64), Format("date-time")]

ConditionReason = Annotated[
    str, Field(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
]


_LONGEST_MESSAGE = 32_768
_MOST_RESOURCES = 1024
"""Of one pod or of several together. The limit is generous, because above it the API server refuses the status."""
_MOST_ROLES = 128
_LONGEST_ROLE = 253
"""The longest role in another system's annotations; our own are shorter."""


class StatusPart(Part):
    """A part of the status. Fields of a newer version are ignored; the next write removes them."""

    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True, strict=True)


class ConditionStatus(StatusPart):
    """One aspect of the group's state, as in every Kubernetes API."""

    type: Annotated[str, Field(min_length=1, max_length=316)] = Field(
        description="Scheduled: the minimum is bound. Degraded: the group was scheduled and has fallen below it."
    )
    status: Literal["True", "False", "Unknown"] = Field(description="Whether the condition holds.")
    reason: ConditionReason = Field(description="Reason, in one word for programs.")
    message: Annotated[str, Field(max_length=_LONGEST_MESSAGE)] = Field(description="Reason, in a sentence for people.")
    last_transition_time: Time = Field(description="When `status` last changed.")
    observed_generation: Annotated[Int64, Field(ge=0)] = Field(
        default=0, description="Generation of the spec that the condition refers to."
    )


class PlacementStatus(StatusPart):
    """Places reserved on one node for one role."""

    node: Annotated[str, Field(min_length=1, max_length=253)] = Field(description="Node with the places.")
    role: Annotated[str, Field(max_length=_LONGEST_ROLE)] = Field(
        default="", description="Role whose members they are for; empty for members without a role."
    )
    count: Count = Field(description="Number of places.")
    pods: list[Annotated[str, Field(max_length=253)]] = Field(
        default_factory=list, max_length=10_000, description="Names of the pods that the places are for, if they exist."
    )
    requests: dict[str, Annotated[str, Field(max_length=64, pattern=QUANTITY)]] = Field(
        default_factory=dict,
        max_length=_MOST_RESOURCES,
        description="What one place reserves, by resource, as quantities.",
    )


class ReservationStatus(StatusPart):
    """Places reserved for the group, so that the operator can reserve them again after a restart."""

    expires: Time = Field(description="When unused places are released.")
    placements: list[PlacementStatus] = Field(
        default_factory=list, max_length=10_000, description="The places, by node and role."
    )


class DemandStatus(StatusPart):
    """Members with equal requests that need new nodes."""

    count: Annotated[Count, Field(ge=1)] = Field(description="Number of members; each may have a node of its own.")
    requests: dict[str, Annotated[str, Field(max_length=64, pattern=QUANTITY)]] = Field(
        default_factory=dict,
        max_length=_MOST_RESOURCES,
        description="Requests of each of them, by resource, as quantities.",
    )
    domain: Annotated[str, Field(max_length=63)] | None = Field(
        default=None,
        description="Value that those nodes need for the label spec.placement.topology.key; absent if any value fits.",
    )


ByRole = Annotated[dict[Annotated[str, Field(max_length=_LONGEST_ROLE)], Count], Field(max_length=_MOST_ROLES)]
"""Numbers of members by role; those without a role have the empty name."""


class MinimaStatus(StatusPart):
    """The number of members that a quorum needs."""

    total: Count = Field(description="In all.")
    roles: ByRole = Field(default_factory=dict, description="Of each role.")


class CapStatus(StatusPart):
    """A limit of the cluster that prevents the reservation of places for members that do not exist yet."""

    reason: ConditionReason = Field(description="The limit, in one word for programs.")
    message: Annotated[str, Field(max_length=_LONGEST_MESSAGE)] = Field(description="Reason, in a sentence for people.")
    retry_time: Time | None = Field(default=None, description="No places are reserved again before this time.")


class RecordStatus(StatusPart):
    """The operator's own record of the group and its run, in addition to the other fields of the status."""

    run_start_time: Time | None = Field(default=None, description="When the run's first live member was seen.")
    outcome: Annotated[Outcome, Strict(strict=False)] = Field(
        default=Outcome.NONE,
        description="Succeeded, Failed: result of the run. OutOfTime: it timed out under timeoutPolicy Fail.",
    )
    incomplete_time: Time | None = Field(
        default=None,
        description="Since when the group counts as scheduled with its bound members only, because the reservation of "
        "places for missing members expired before the group was complete.",
    )
    quorum: MinimaStatus | None = Field(
        default=None, description="The minimum that the current quorum was decided with."
    )
    quorum_succeeded: ByRole = Field(
        default_factory=dict, description="Members of the current quorum that have succeeded meanwhile, by role."
    )
    role_minimums: ByRole = Field(default_factory=dict, description="The minimum of each role that was last satisfied.")
    role_successes: ByRole = Field(default_factory=dict, description="Members that have succeeded, by role.")
    timeouts: Count = Field(default=0, description="Time-outs and rollbacks of this run.")
    backoff_level: Count = Field(default=0, description="How often the back-off was doubled.")
    retry_time: Time | None = Field(default=None, description="When the back-off ends.")
    undone: Annotated[str, Field(max_length=_LONGEST_MESSAGE)] = Field(
        default="", description="What happened to the last quorum whose bindings were rolled back."
    )
    leader_succeeded: bool = Field(
        default=False, description="Whether the leading member has succeeded, whose success is that of the group."
    )
    places_expired: bool = Field(
        default=False, description="Whether the reservation of places for missing members has expired."
    )
    hold_start_time: Time | None = Field(
        default=None, description="Since when unused places are reserved for members that do not exist yet."
    )
    holds_released: Count = Field(default=0, description="How often places were released at the end of maxHoldTime.")
    settled_time: Time | None = Field(
        default=None, description="Members that were bound before this belong to no quorum under way; they stay bound."
    )
    cap: CapStatus | None = Field(default=None, description="The limit that prevents the reservation of places.")


class PodGroupStatus(StatusPart):
    """The observed state of the group. Only the operator writes it."""

    phase: Annotated[Phase, Strict(strict=False)] | None = Field(
        default=None,
        description="Pending: too few members, or the group cannot be tried. Queued: complete, waits for room. "
        "Reserved: places are reserved. Binding: bindings are in flight. Scheduled: the minimum is bound. Running: the "
        "minimum is running. Degraded: was scheduled and fell below its minimum. TimedOut: in the back-off after a "
        "time-out. Succeeded, Failed: the run has ended.",
    )
    conditions: Annotated[list[ConditionStatus], Field(max_length=16), ListMap("type")] = Field(
        default_factory=list, description="Scheduled and Degraded, each with a reason and a message."
    )
    members: Count = Field(default=0, description="Number of members.")
    bound: Count = Field(default=0, description="Members that have a node.")
    running: Count = Field(default=0, description="Members that are running.")
    succeeded: Count = Field(default=0, description="Members of this run that have succeeded.")
    failed: Count = Field(default=0, description="Members of this run that have failed.")
    minimum: Count = Field(default=0, description="The minimum that was last satisfied; 0 before the first time.")
    reservation: ReservationStatus | None = Field(
        default=None, description="Places reserved while not all members are bound; absent otherwise."
    )
    schedule_start_time: Time | None = Field(
        default=None, description="Since when the clock of maxScheduleTime counts; absent while it is stopped."
    )
    schedule_paused_time: Time | None = Field(
        default=None,
        description="When the clock was paused, because a limit of the cluster released places or prevents their "
        "reservation; absent while it runs. The time from scheduleStartTime to this has counted.",
    )
    scheduled_time: Time | None = Field(default=None, description="When the minimum was first bound in this run.")
    attempts: Count = Field(default=0, description="Time-outs and rollbacks of this run, plus the current attempt.")
    source: Annotated[str, Field(max_length=253)] | None = Field(
        default=None, description="How the group was declared."
    )
    record: RecordStatus | None = Field(
        default=None, description="State that a restarted operator continues with; for the operator's own use."
    )
    demand: Annotated[list[DemandStatus], Field(max_length=MOST_DEMANDS)] | None = Field(
        default=None,
        description="Resources to add to the present nodes so that the minimum fits; absent if the group does not wait "
        "for room, or if no new node could help.",
    )


def status_to_object(status: GroupStatus) -> dict[str, Any]:
    """Return the whole `status` of the object, without empty fields.

    Times are rounded to the microsecond; those of conditions are cut to the second, as in every Kubernetes API.
    """
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
        "scheduleStartTime": _time_to_object(status.schedule_start_time),
        "schedulePausedTime": _time_to_object(status.schedule_paused_time),
        "scheduledTime": _time_to_object(status.scheduled_time),
        "attempts": min(status.attempts, MAX_COUNT),
        "source": status.source or None,
        "record": None if status.record is None else _record_to_object(status.record) or None,
        "demand": [_demand_to_object(each) for each in status.demand] or None,
    }
    return {"status": {name: value for name, value in fields.items() if value is not None}}


def status_from_object(status: Mapping[str, object]) -> GroupStatus:
    """Return the status of an object; an empty one if it is unreadable.

    The API server refuses an unreadable status with the same schema. If it accepts one nevertheless, no part of it is
    used: the state is rebuilt from the pods alone, and the next write replaces the whole status.
    """
    try:
        read = PodGroupStatus.model_validate(dict(status))
        return GroupStatus(
            record=_record_from_object(read),
            conditions=tuple(map(_condition_from_object, read.conditions)),
            members=read.members,
            bound=read.bound,
            running=read.running,
            reservation=None if read.reservation is None else _reservation_from_object(read.reservation),
            attempts=read.attempts,
            source=read.source or "",
            demand=tuple(map(_demand_from_object, read.demand or ())),
        )
    except ValueError:
        return GroupStatus()


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
        "undone": _shortened(record.undone),
        "leaderSucceeded": record.led,
        "placesExpired": record.vacated,
        "holdStartTime": _time_to_object(record.held_since),
        "holdsReleased": min(record.caps, MAX_COUNT),
        "settledTime": _time_to_object(record.settled_at),
        "cap": None if record.capped is None else _cap_to_object(record.capped),
    }
    return {name: value for name, value in fields.items() if value}


def _record_from_object(read: PodGroupStatus) -> Record | None:
    """The record; None before the status was first written."""
    kept = read.record or RecordStatus()
    scheduled_at, late_at = _time_from_object(read.scheduled_time), _time_from_object(kept.incomplete_time)
    paused_at, clock_start = _time_from_object(read.schedule_paused_time), _time_from_object(read.schedule_start_time)
    capped = None
    if kept.cap is not None:
        capped = Capped(
            reason=Reason(kept.cap.reason),
            note=kept.cap.message,
            until=_time_from_object(kept.cap.retry_time),
            paused_at=paused_at,
            ran_s=round(paused_at - clock_start, 6) if paused_at else 0.0,
        )
    successes = _counts_from_object(kept.role_successes)
    record = Record(
        phase=read.phase or Phase.PENDING,
        # An older version did not write runStartTime. Its status has one of the others if a run had begun to wait.
        run_start=_time_from_object(kept.run_start_time) or scheduled_at or clock_start,
        outcome=kept.outcome or _outcome_of(read.phase, scheduled=bool(scheduled_at)),
        scheduled_at=late_at or scheduled_at,
        late=bool(late_at),
        clock_start=0.0 if paused_at else clock_start,
        quorum=None
        if kept.quorum is None
        else Minima(total=kept.quorum.total, roles=_counts_from_object(kept.quorum.roles)),
        quorum_done=_counts_from_object(kept.quorum_succeeded),
        satisfied=Minima(total=read.minimum, roles=_counts_from_object(kept.role_minimums)),
        timeouts=kept.timeouts,
        level=kept.backoff_level,
        retry_at=_time_from_object(kept.retry_time),
        undone=kept.undone,
        succeeded=successes or ((("", read.succeeded),) if read.succeeded else ()),
        failed=read.failed,
        led=kept.leader_succeeded,
        vacated=kept.places_expired,
        held_since=_time_from_object(kept.hold_start_time),
        capped=capped,
        caps=kept.holds_released,
        settled_at=_time_from_object(kept.settled_time),
    )
    return record if read.phase is not None else None


def _outcome_of(phase: Phase | None, *, scheduled: bool) -> Outcome:
    """The outcome according to a status of an older version, which did not write it."""
    if phase is Phase.FAILED:
        return Outcome.FAILED if scheduled else Outcome.OUT_OF_TIME
    return Outcome.SUCCEEDED if phase is Phase.SUCCEEDED else Outcome.NONE


def _cap_to_object(capped: Capped) -> dict[str, Any]:
    until = {"retryTime": _time_to_object(capped.until)} if capped.until else {}
    return {"reason": capped.reason, "message": _shortened(capped.note)} | until


def _counts_to_object(counts: Counts) -> dict[str, int]:
    """Numbers by role, within the schema's limit, because pods may name any number of undeclared roles."""
    kept = dict(counts[:_MOST_ROLES] if len(counts) <= _MOST_ROLES else counts[: _MOST_ROLES - 1])
    others = sum(number for _, number in counts[len(kept) :])
    if others:
        kept[""] = kept.get("", 0) + others
    return {role: min(number, MAX_COUNT) for role, number in kept.items()}


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
    return message if len(message) <= _LONGEST_MESSAGE else message[: _LONGEST_MESSAGE - 1] + "…"


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
    return {"expires": format_time(reservation.expires), "placements": placements}


def _reservation_from_object(reservation: ReservationStatus) -> Reservation:
    return Reservation(
        expires=parse_time(reservation.expires),
        placements=tuple(
            Place(
                node=place.node,
                role=place.role,
                count=place.count,
                pods=tuple(place.pods),
                requests=_amounts(place.requests),
            )
            for place in reservation.placements
        ),
    )


def _demand_to_object(demand: Demand) -> dict[str, Any]:
    domain = {"domain": demand.domain} if demand.domain else {}
    return {"count": demand.count, "requests": requests_to_object(demand.requests)} | domain


def _demand_from_object(demand: DemandStatus) -> Demand:
    return Demand(count=demand.count, requests=_amounts(demand.requests), domain=demand.domain or "")


def _amounts(requests: Mapping[str, str]) -> Amounts:
    amounts = ((name, amount(name, quantity)) for name, quantity in sorted(requests.items()))
    return tuple((name, value) for name, value in amounts if value)
