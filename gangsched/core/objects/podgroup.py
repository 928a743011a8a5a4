"""A PodGroup's spec and object, and what another system's object declares."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from gangsched.core.objects.declaration import GroupKey, Preference, Role, Topology
from gangsched.core.objects.shape import Amounts
from gangsched.core.objects.status import GroupStatus
from gangsched.core.objects.workload import WorkloadFacts


class TimeoutPolicy(StrEnum):
    """What follows a time-out: a back-off and another attempt, or failure for good."""

    RETRY = "Retry"
    FAIL = "Fail"


class OnDegraded(StrEnum):
    """What follows when a scheduled group falls below its minimum."""

    REPAIR = "Repair"
    RESTART = "Restart"
    IGNORE = "Ignore"


class GroupSpec(Struct, frozen=True, gc=False, cache_hash=True):
    """What a PodGroup asks for. `not_built` names fields in use that this version refuses rather than ignores.

    `min_resources` are what the members that must be bound together request in all, if another system's object says it:
    there may have to be more of them than `min_member`.
    """

    min_member: int
    max_member: int | None = None
    max_schedule_time_s: float | None = None
    timeout_policy: TimeoutPolicy = TimeoutPolicy.RETRY
    priority: int | None = None
    priority_class: str = ""
    roles: tuple[Role, ...] = ()
    strategy: str = "Pack"
    prefer: tuple[Preference, ...] = ()
    topology: Topology | None = None
    on_degraded: OnDegraded = OnDegraded.REPAIR
    min_resources: Amounts = ()
    not_built: tuple[str, ...] = ()

    @property
    def minimum(self) -> int:
        """The least number of members that must be bound together: max(minMember, sum of the roles' minima)."""
        return max(self.min_member, sum(role.min_member for role in self.roles))


class Group(Struct, frozen=True, gc=False):
    """A PodGroup object. `error` is a sentence for a person where its spec could not be read; `spec` is None then.

    `made`: the operator created it for a group that its pods declare; it says no more than they do. `scheduler` is the
    schedulerName of its annotation, which decides whose it is if its pods do not (`core.declarations.installation`).
    """

    key: GroupKey
    uid: str
    resource_version: str
    generation: int
    created: float
    spec: GroupSpec | None
    status: GroupStatus = GroupStatus()
    error: str = ""
    made: bool = False
    scheduler: str = ""


class ForeignPhase(StrEnum):
    """A phase that gangsched may write to another system's object, for controllers that wait for it."""

    INQUEUE = "Inqueue"
    """Pods may be created."""
    RUNNING = "Running"
    """The minimum is bound."""
    COMPLETED = "Completed"
    """The run has succeeded."""


class SeenPhase(Struct, frozen=True, gc=False):
    """The phase in the status of another system's object, empty if there is none; `ours`: nobody else has written it.

    Whose phase it is the API server knows, so a restart forgets nothing.
    """

    text: str = ""
    ours: bool = False


class ForeignGroup(Struct, frozen=True, gc=False):
    """What another system's object declares, in its `dialect`, of the group of its name. `error` as for `Group`.

    With `workload` it is a controller's object: `dialect` is the name of its kind, `spec` that of each of its gangs.
    With `phase` gangsched writes that of the object, where nobody else does.
    """

    dialect: str
    key: GroupKey
    uid: str
    created: float
    spec: GroupSpec | None
    error: str = ""
    workload: WorkloadFacts | None = None
    phase: SeenPhase | None = None
