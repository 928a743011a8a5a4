"""A PodGroup and its spec, and the declarations in other systems' objects."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from gangsched.core.objects.declaration import GroupKey, Level, Preference, Role, Topology
from gangsched.core.objects.pod import DeviceUse, Pod
from gangsched.core.objects.record import Minima
from gangsched.core.objects.shape import Amounts
from gangsched.core.objects.status import GroupStatus
from gangsched.core.objects.workload import WorkloadFacts


class TimeoutPolicy(StrEnum):
    """What follows a time-out: a back-off and another attempt, or permanent failure."""

    RETRY = "Retry"
    FAIL = "Fail"


class OnDegraded(StrEnum):
    """What follows when a scheduled group falls below its minimum."""

    REPAIR = "Repair"
    RESTART = "Restart"
    IGNORE = "Ignore"


class GroupSpec(Struct, frozen=True, gc=False, cache_hash=True):
    """What a PodGroup asks for. `not_built` names fields in use that this version refuses rather than ignores.

    `min_resources` must be free in all before the first member is bound, if another system's object says so: the whole
    group will need as much, though its other members may be created later. `device_claims` are the ResourceClaims that
    its members share. `preempted_whole`: all members are preempted together, not one by one. Without `preempts` it
    preempts nobody, whatever its PriorityClass says. `expected_s` is how many seconds it says it will run once it is
    scheduled, None if it does not say. `tree` is what is needed of the roles if that is
    not the minimum of each of them: a role is then needed with its minimum or not at all. `levels` confine some of the
    roles inside `topology`, outer ones first.
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
    device_claims: tuple[DeviceUse, ...] = ()
    preempted_whole: bool = False
    preempts: bool = True
    expected_s: float | None = None
    not_built: tuple[str, ...] = ()
    tree: Minima | None = None
    levels: tuple[Level, ...] = ()

    @property
    def where(self) -> tuple[object, ...]:
        """What decides where members go, and how much is held for those to come."""
        return self.topology, {role.name: role.template for role in self.roles}

    @property
    def minimum(self) -> int:
        """The least number of members that must be bound together: max(minMember, sum of the roles' minima)."""
        if self.tree is not None:
            return self.tree.total
        return max(self.min_member, sum(role.min_member for role in self.roles))


class Group(Struct, frozen=True, gc=False):
    """A PodGroup object. If its spec could not be read, `error` is a sentence for users and `spec` is None.

    `made`: the operator created it for a group that its pods declare; it says no more than they do. `scheduler` is the
    schedulerName of its annotation, which decides to which installation the group belongs if its pods do not
    (`core.declarations.installation`). `owner` is the UID of the object that owns it, its controller first; empty if
    none does.
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
    owner: str = ""


class ForeignPhase(StrEnum):
    """A phase that gangsched may write to another system's object, for controllers that wait for it."""

    INQUEUE = "Inqueue"
    """Pods may be created."""
    RUNNING = "Running"
    """The minimum is bound."""
    COMPLETED = "Completed"
    """The run has succeeded."""


class SeenPhase(Struct, frozen=True, gc=False, tag=True):
    """The phase in the status of another system's object, empty if there is none; `ours`: no other client wrote it.

    The API server records the writer, so a restart loses nothing.
    """

    text: str = ""
    ours: bool = False


class GroupCondition(Struct, frozen=True, gc=False):
    """Whether a native PodGroup was scheduled, in its status, as kube-scheduler says it: True for ever once it was.

    `generation` is that of the spec that was looked at. `since`: when the last member was bound, if it was scheduled;
    0.0 if that is unknown. It becomes a later time once few of the members of that time live.
    """

    scheduled: bool
    reason: str
    message: str = ""
    generation: int = 0
    since: float = 0.0

    def knew(self, pod: Pod) -> bool:
        """Whether the pod existed at the condition's time, if that is known; times have a resolution of one second."""
        return not self.since or self.since >= int(pod.created)

    def differs_in_words(self, other: GroupCondition) -> bool:
        """Whether both say the same of the same time, but for the message and the generation."""
        same = (self.scheduled, self.reason, self.since) == (other.scheduled, other.reason, other.since)
        return self != other and same


class SeenCondition(Struct, frozen=True, gc=False, tag=True):
    """The condition in the status of a native PodGroup, None if there is none.

    `version` is the API's version in which the object was read, `generation` that of its spec, 0 if the API server
    does not count them. `changed`: the spec was changed after the object was created, as far as that shows it.
    `writable`: gangsched may write the condition.
    """

    condition: GroupCondition | None = None
    version: str = ""
    generation: int = 0
    changed: bool = False
    writable: bool = True

    @property
    def scheduled(self) -> bool:
        """Whether the condition says that the group was scheduled."""
        return self.condition is not None and self.condition.scheduled

    def is_older(self, than: Pod) -> bool:
        """Whether the condition says that the group was scheduled before this pod existed."""
        return self.condition is not None and self.condition.scheduled and not self.condition.knew(than)

    def takes(self, wanted: GroupCondition) -> bool:
        """Whether this condition may be written: another one, which takes no True back.

        True changes only its generation, once the group has what a changed spec asks for, and its time, once other
        members are bound than those for which it was written.
        """
        if self.condition is not None and self.condition.scheduled:
            newer = wanted.generation > self.condition.generation or wanted.since > self.condition.since
            return wanted.scheduled and newer
        return self.condition != wanted

    @property
    def may_be_raised(self) -> bool:
        """Whether the group may never have had the minimum that it asks for now.

        It had that of the generation for which its condition is True. When its members were bound says nothing, as all
        of them may have been replaced since.
        """
        if self.condition is not None and self.condition.scheduled and self.condition.generation:
            return self.condition.generation < self.generation
        return self.changed


class ForeignGroup(Struct, frozen=True, gc=False):
    """The declaration, in its `dialect`, that another system's object makes for the group of its name.

    `error` is as in `Group`. With `workload` it is a controller's object: `dialect` is the name of its kind, and `spec`
    applies to each of its gangs. `phase` is the phase or condition there, if it is of a kind that gangsched may write
    unless another client does; `written` tells whether it may in this object.
    `made_for` is the UID of the object whose controller made it; empty if it has none. `ignored` are the fields that it
    sets and that are not honoured. `parent` is the object above it in a tree of groups, empty for a root: only the root
    declares a group, and in an object of the dialect COMPOSITE the spec's `min_member` counts the objects below it.
    """

    dialect: str
    key: GroupKey
    uid: str
    created: float
    spec: GroupSpec | None
    error: str = ""
    workload: WorkloadFacts | None = None
    phase: SeenPhase | SeenCondition | None = None
    made_for: str = ""
    ignored: tuple[str, ...] = ()
    parent: str = ""

    @property
    def written(self) -> bool:
        """Whether gangsched may write the phase or condition that was read."""
        return self.phase.writable if isinstance(self.phase, SeenCondition) else self.phase is not None


def without_status(group: ForeignGroup | None) -> ForeignGroup | None:
    """The object as its users wrote it, without the phase or condition that gangsched itself may write."""
    return group if group is None or group.phase is None else replace(group, phase=None)


def decisive(workload: ForeignGroup | None) -> object:
    """The parts of a workload's object that decide whether its pods are gangs, and whether these say their size."""
    if workload is None or workload.workload is None:
        return None
    return (
        workload.uid,
        workload.workload.gang,
        workload.workload.least is not None,
        workload.workload.remedy,
        workload.workload.not_yet,
        workload.spec.min_member if workload.spec is not None else None,
    )
