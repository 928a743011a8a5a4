"""The status of a PodGroup: its schema, and the way of `core.objects.status.GroupStatus` into the object and back.

The engine writes all of it at once and reads it once, after a start: whatever a restart must not lose stands here.
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
from gangsched.core.gang.states import Phase
from gangsched.core.objects.quantity import amount
from gangsched.core.objects.shape import Amounts
from gangsched.core.objects.status import MOST_DEMANDS, Condition, Demand, GroupStatus, Place, Reservation

Time = Annotated[str, Field(max_length=64), Format("date-time")]

ConditionReason = Annotated[
    str, Field(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
]


_LONGEST_MESSAGE = 32_768
_MOST_RESOURCES = 1024
"""Of one pod, or of several taken together: a status that is refused for them tells nothing at all."""
_LONGEST_ROLE = 253
"""As long as a role that pods name in another system's annotation may be; our own are shorter."""


class StatusPart(Part):
    """A part of the status. What a newer version has added is passed over: it is replaced by the next write."""

    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True, strict=True)


class ConditionStatus(StatusPart):
    """One aspect of the group's state, as in every Kubernetes API."""

    type: Annotated[str, Field(min_length=1, max_length=316)] = Field(
        description="Scheduled: the minimum is bound. Degraded: the group was scheduled and has fallen below it."
    )
    status: Literal["True", "False", "Unknown"] = Field(description="Whether the condition holds.")
    reason: ConditionReason = Field(description="Why, in one word for programs.")
    message: Annotated[str, Field(max_length=_LONGEST_MESSAGE)] = Field(description="Why, in a sentence for people.")
    last_transition_time: Time = Field(description="When `status` last changed.")
    observed_generation: Annotated[Int64, Field(ge=0)] = Field(
        default=0, description="Generation of the spec that the condition is about."
    )


class PlacementStatus(StatusPart):
    """Places held on one node for one role."""

    node: Annotated[str, Field(min_length=1, max_length=253)] = Field(description="Node that has the places.")
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
        description="What one place holds, by resource, as quantities.",
    )


class ReservationStatus(StatusPart):
    """Places held for the group; enough to hold them again after a restart of the operator."""

    expires: Time = Field(description="When places that nobody has taken are released.")
    placements: list[PlacementStatus] = Field(
        default_factory=list, max_length=10_000, description="The places, by node and role."
    )


class DemandStatus(StatusPart):
    """Members for which new nodes would have to be added, as many as ask for the same."""

    count: Annotated[Count, Field(ge=1)] = Field(description="Number of members; each may have a node of its own.")
    requests: dict[str, Annotated[str, Field(max_length=64, pattern=QUANTITY)]] = Field(
        default_factory=dict,
        max_length=_MOST_RESOURCES,
        description="What each of them asks for, by resource, as quantities.",
    )
    domain: Annotated[str, Field(max_length=63)] | None = Field(
        default=None,
        description="Value that those nodes need for the label spec.placement.topology.key; absent if any will do.",
    )


class PodGroupStatus(StatusPart):
    """What the operator knows of the group; written by the operator alone."""

    phase: Annotated[Phase, Strict(strict=False)] | None = Field(
        default=None,
        description="Pending: too few members, or something keeps it from being tried. Queued: complete, waits for "
        "room. Reserved: places are held. Binding: bindings are on their way. Scheduled: the minimum is bound. "
        "Running: the minimum is running. Degraded: was scheduled and fell below its minimum. TimedOut: in the "
        "back-off after a time-out. Succeeded, Failed: the run has ended.",
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
        default=None, description="Places held while not all members are bound; absent otherwise."
    )
    schedule_start_time: Time | None = Field(
        default=None, description="Since when the running clock counts towards maxScheduleTime; absent while stopped."
    )
    schedule_paused_time: Time | None = Field(
        default=None,
        description="Since when the clock stands, because a cap of the cluster has released places or keeps them from "
        "being held; absent while it runs. The time between the two has counted.",
    )
    scheduled_time: Time | None = Field(default=None, description="When the minimum was first bound in this run.")
    attempts: Count = Field(
        default=0, description="Time-outs and undone bindings of this run, plus the attempt under way."
    )
    source: Annotated[str, Field(max_length=253)] | None = Field(
        default=None, description="How the group was declared."
    )
    demand: Annotated[list[DemandStatus], Field(max_length=MOST_DEMANDS)] | None = Field(
        default=None,
        description="What must be added to the present nodes so that the minimum fits; absent while it is not room "
        "that the group waits for, or where no new node could help.",
    )


def status_to_object(status: GroupStatus) -> dict[str, Any]:
    """Return the object's part `status`, all of it; what is not so is left out.

    Times are rounded to the microsecond; a condition's to the second below, as every Kubernetes API has it.
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
        "demand": [_demand_to_object(each) for each in status.demand] or None,
    }
    return {"status": {name: value for name, value in fields.items() if value is not None}}


def status_from_object(status: Mapping[str, object]) -> GroupStatus:
    """Return the status that an object has; the empty one where it cannot be read.

    The API server keeps unreadable things out by the same schema. Should one get in nevertheless, nothing may rely on
    half of it: the state is then rebuilt from the pods alone, and the next write replaces the whole.
    """
    try:
        read = PodGroupStatus.model_validate(dict(status))
        return GroupStatus(
            phase=read.phase or "",
            conditions=tuple(map(_condition_from_object, read.conditions)),
            members=read.members,
            bound=read.bound,
            running=read.running,
            succeeded=read.succeeded,
            failed=read.failed,
            minimum=read.minimum,
            reservation=None if read.reservation is None else _reservation_from_object(read.reservation),
            schedule_start_time=_time_from_object(read.schedule_start_time),
            schedule_paused_time=_time_from_object(read.schedule_paused_time),
            scheduled_time=_time_from_object(read.scheduled_time),
            attempts=read.attempts,
            source=read.source or "",
            demand=tuple(map(_demand_from_object, read.demand or ())),
        )
    except ValueError:
        return GroupStatus()


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
    """The message within the schema's limit: one longer would have the API server refuse the whole status, for ever."""
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
