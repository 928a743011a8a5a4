"""The schema of a PodGroup's status, which contains everything that must survive a restart."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, Strict

from gangsched.api.role_template import QUANTITY
from gangsched.api.schema import Count, Format, Int64, ListMap, PodGroupPart
from gangsched.core.objects.expected_start import Basis, Unknown
from gangsched.core.objects.record import Outcome, Phase
from gangsched.core.objects.status import (
    LONGEST_HELP,
    LONGEST_SHARED,
    MOST_DEMANDS,
    MOST_FITTING,
    MOST_HELPS,
    PREEMPTION,
    TIME,
)

Time = Annotated[str, Field(max_length=64), Format("date-time")]

ConditionReason = Annotated[
    str, Field(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
]


LONGEST_MESSAGE = 32_768
_MOST_RESOURCES = 1024
"""Largest number of resources, of one pod or of several together. The limit is generous, because above it the API
server refuses the status."""
MOST_ROLES = 128
_LONGEST_ROLE = 253
"""The longest role in another system's annotations; our own are shorter."""
_LONGEST_WORD = 63
"""The longest word for programs that a newer version might write."""
Word = Annotated[str, Field(max_length=_LONGEST_WORD)]


class StatusPart(PodGroupPart):
    """A part of the status. Fields of a newer version are ignored; the next write removes them."""

    model_config = ConfigDict(extra="ignore")


class ConditionStatus(StatusPart):
    """One aspect of the group's state, as in every Kubernetes API."""

    type: Annotated[str, Field(min_length=1, max_length=316)] = Field(
        description="Scheduled: the minimum is bound. Degraded: the group was scheduled and has fallen below it."
    )
    status: Literal["True", "False", "Unknown"] = Field(description="Whether the condition holds.")
    reason: ConditionReason = Field(description="Reason, in one word for programs.")
    message: Annotated[str, Field(max_length=LONGEST_MESSAGE)] = Field(description="Reason, in a sentence for people.")
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
    kind: Annotated[str, Field(min_length=1, max_length=_LONGEST_WORD)] | None = Field(
        default=None,
        description=f"{PREEMPTION}: members of groups of lower priority have to leave before the places can be used. "
        f"{TIME}: they are free once others have ended by themselves. Absent for places that are free.",
    )
    start: Time | None = Field(
        default=None,
        description="When others will have ended, so that the places can be used; absent if nobody knows, or if nobody "
        "is waited for.",
    )


class PreemptedStatus(StatusPart):
    """All members are evicted, so that another group gets their places."""

    at: Time = Field(description="When it was decided.")
    cause: Annotated[str, Field(min_length=1, max_length=_LONGEST_WORD)] = Field(
        description="Why, in one word for programs. Priority: the other group has a higher priority. Overdue: the "
        "declared run time is over, and the other group has waited for long."
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


class FittingStatus(StatusPart):
    """Nodes of one kind on which members fit."""

    members: Count = Field(description="Number of members that fit there.")
    nodes: Count = Field(description="Number of nodes that they would be on.")
    shared: dict[Annotated[str, Field(max_length=317)], Annotated[str, Field(max_length=LONGEST_SHARED)]] = Field(
        default_factory=dict,
        max_length=3,
        description="What these nodes share: their labels for pool, type of machine and zone; without a label of the "
        "type, `allocatable` has the CPU and the devices of one node. Empty for nodes of several kinds.",
    )


class ExpectedStartStatus(StatusPart):
    """When a group that waits for room will probably start. It is no promise, and nothing is reserved for it."""

    earliest: Time | None = Field(
        default=None,
        description="The earliest start, if others end when they have declared to, or else take as long as the last "
        "runs of their owners; absent if not known, and if others have limits alone, which they need not use.",
    )
    latest: Time | None = Field(
        default=None,
        description="The start if others use all of their limits; who comes later may delay it. Absent if not known.",
    )
    basis: Word | None = Field(
        default=None,
        description="The weakest of what the earliest start relies on: "
        + ", ".join(Basis)
        + ". Room: there is some already, once those ahead have theirs. Victims: others are evicted for the group. "
        "Limits: others reach their limits. Declared: others end when they have declared to. History: others take as "
        "long as the last runs of their owners.",
    )
    unknown: Word | None = Field(
        default=None,
        description="Why the earliest or the latest start is not known: "
        + ", ".join(Unknown)
        + ". `gangsched explain` says it in a sentence.",
    )
    decides: Annotated[str, Field(max_length=253)] | None = Field(
        default=None,
        description="The group or pod of this namespace whose unknown end, or whose place ahead, makes it so.",
    )


ByRole = Annotated[dict[Annotated[str, Field(max_length=_LONGEST_ROLE)], Count], Field(max_length=MOST_ROLES)]
"""Numbers of members by role; those without a role have the empty name."""


class MinimaStatus(StatusPart):
    """The number of members that a quorum needs."""

    total: Count = Field(description="Members of all roles together.")
    roles: ByRole = Field(default_factory=dict, description="Members of each role.")


class CapStatus(StatusPart):
    """A limit of the cluster that prevents the reservation of places for members that do not exist yet."""

    reason: ConditionReason = Field(description="The limit, in one word for programs.")
    message: Annotated[str, Field(max_length=LONGEST_MESSAGE)] = Field(description="Reason, in a sentence for people.")
    retry_time: Time | None = Field(default=None, description="No places are reserved again before this time.")


_LONGEST_NAME = 253


class WorkloadStatus(StatusPart):
    """The object whose controller created the members."""

    kind: Annotated[str, Field(min_length=1, max_length=63)] = Field(
        description="Kind, as the operator's setting `workloads` names it."
    )
    name: Annotated[str, Field(min_length=1, max_length=_LONGEST_NAME)] = Field(description="Name.")
    uid: Annotated[str, Field(max_length=_LONGEST_NAME)] = Field(
        default="", description="UID; empty if the members do not name it."
    )


class RecordStatus(StatusPart):
    """The operator's own record of the group and its run, in addition to the other fields of the status."""

    run_start_time: Time | None = Field(default=None, description="When the run's first live member was seen.")
    outcome: Annotated[Outcome, Strict(strict=False)] = Field(
        default=Outcome.NONE,
        description="Succeeded, Failed: result of the run. Undecided: it ended because its members were deleted, or "
        "more members will follow. OutOfTime: it timed out under timeoutPolicy Fail.",
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
    undone: Annotated[str, Field(max_length=LONGEST_MESSAGE)] = Field(
        default="", description="What happened to the last quorum whose bindings were rolled back."
    )
    displaced_by: Annotated[str, Field(max_length=_LONGEST_WORD)] = Field(
        default="", description="The cause for which all members were evicted, until they are placed again."
    )
    leader_succeeded: bool = Field(
        default=False, description="Whether the leading member, whose success is that of the group, has succeeded."
    )
    member_failed: bool = Field(
        default=False, description="Whether a member has failed since the minimum was last bound."
    )
    workload: WorkloadStatus | None = Field(
        default=None, description="The object whose controller created the members, if the operator watches its kind."
    )
    places_expired: bool = Field(
        default=False, description="Whether the reservation of places for missing members has expired."
    )
    hold_start_time: Time | None = Field(
        default=None, description="Since when unused places are reserved for members that do not exist yet."
    )
    holds_released: Count = Field(default=0, description="How often places were released at the end of maxHoldTime.")
    settled_time: Time | None = Field(
        default=None, description="Members bound before this time belong to no unfinished quorum; they stay bound."
    )
    pre_bind_start_time: Time | None = Field(
        default=None, description="Since when members wait for their volumes and devices; maxScheduleTime is paused."
    )
    pre_bind_clock_time: Time | None = Field(default=None, description="scheduleStartTime at that time.")
    cap: CapStatus | None = Field(default=None, description="The limit that prevents the reservation of places.")


class PodGroupStatus(StatusPart):
    """The observed state of the group. Only the operator writes it."""

    phase: Annotated[Phase, Strict(strict=False)] | None = Field(
        default=None,
        description="Pending: too few members, or the group cannot be tried. Queued: complete, waits for room. "
        "Reserved: places are reserved. Binding: bindings are in flight. Scheduled: the minimum is bound. Running: the "
        "minimum is running. Degraded: was scheduled and fell below its minimum. TimedOut: in the back-off after a "
        "time-out. Succeeded, Failed: the run has ended. Suspended: no member is left, because their workload is "
        "suspended or scaled to 0.",
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
    preempted: PreemptedStatus | None = Field(
        default=None, description="Why all members are being evicted for another group; absent if they are not."
    )
    preemptions: Annotated[Count, Field(ge=1)] | None = Field(
        default=None,
        description="How often the group was preempted, in this and its earlier runs; absent before the first time.",
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
    running_time: Time | None = Field(default=None, description="When the minimum was first seen running in this run.")
    finished_time: Time | None = Field(
        default=None, description="Since when the phase has been Succeeded or Failed; absent in any other phase."
    )
    attempts: Count = Field(default=0, description="Time-outs and rollbacks of this run, plus the current attempt.")
    source: Annotated[str, Field(max_length=253)] | None = Field(
        default=None, description="How the group was declared."
    )
    scheduler: Annotated[str, Field(max_length=253)] | None = Field(
        default=None,
        description="The schedulerName of the installation that wrote this status; absent if that serves `gangsched`.",
    )
    record: RecordStatus | None = Field(
        default=None, description="State that a restarted operator continues with; for the operator's own use."
    )
    demand: Annotated[list[DemandStatus], Field(max_length=MOST_DEMANDS)] | None = Field(
        default=None,
        description="Resources to add to the present nodes so that the minimum fits; absent if the group does not wait "
        "for room, or if no new node could help.",
    )
    fitting: Annotated[list[FittingStatus], Field(max_length=MOST_FITTING)] | None = Field(
        default=None,
        description="Where members fit if as many as possible are placed; absent if none fits, or if the group does "
        "not wait for room.",
    )
    expected_start: ExpectedStartStatus | None = Field(
        default=None, description="When the group will probably start; absent if it does not wait for room."
    )
    helps: Annotated[list[Annotated[str, Field(max_length=LONGEST_HELP)]], Field(max_length=MOST_HELPS)] | None = Field(
        default=None,
        description="What would help, a clause for each remedy; absent if the group does not wait for room.",
    )
