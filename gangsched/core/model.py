"""The values that the core reasons about: nodes, pods, groups and their parts.

All of them are immutable: a change in the cluster arrives as a new value that replaces the old one. Amounts are plain
integers, cpu in millicores and every other resource in whole units (bytes, devices), as kube-scheduler counts them.
Times are seconds since the epoch as floats.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

Amounts = tuple[tuple[str, int], ...]
"""Resource amounts: (resource name, amount) pairs sorted by name, without zeros."""

Labels = tuple[tuple[str, str], ...]
"""Label pairs sorted by key."""


class GroupKey(NamedTuple):
    """Names a group in the cluster; `pod_uid` is set for a plain pod, which is ordered and placed as a group of one."""

    namespace: str
    name: str
    pod_uid: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Requirement(Struct, frozen=True, gc=False, cache_hash=True):
    """One expression of a label selector or node selector term.

    `operator` is one of In, NotIn, Exists, DoesNotExist, Gt, Lt as in the Kubernetes API; any other never matches.
    """

    key: str
    operator: str
    values: tuple[str, ...] = ()


class NodeTerm(Struct, frozen=True, gc=False, cache_hash=True):
    """A node selector term: all expressions on labels and all on fields (`metadata.name`) must hold.

    A term without any expression matches nothing.
    """

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


class Toleration(Struct, frozen=True, gc=False, cache_hash=True):
    """As in the Kubernetes API; empty strings where the manifest leaves a field out."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class Taint(Struct, frozen=True, gc=False, cache_hash=True):
    """As in the Kubernetes API."""

    key: str
    effect: str
    value: str = ""


class HostPort(Struct, frozen=True, gc=False, cache_hash=True):
    """A port a pod takes on its node; defaults are filled in (`TCP`, `0.0.0.0`)."""

    port: int
    protocol: str = "TCP"
    ip: str = "0.0.0.0"  # noqa: S104 - the API's wildcard address as data, nothing listens


class PodTerm(Struct, frozen=True, gc=False, cache_hash=True):
    """One required anti-affinity term of an existing pod.

    `selector` None matches no pod, an empty tuple matches all. `namespaces` names namespaces outright;
    `namespace_selector` None adds none, an empty tuple adds all. The owner's own namespace is already in `namespaces`
    where the manifest gave neither.
    """

    topology_key: str
    selector: tuple[Requirement, ...] | None
    namespaces: tuple[str, ...] = ()
    namespace_selector: tuple[Requirement, ...] | None = None


class Shape(Struct, frozen=True, gc=False, cache_hash=True):
    """The scheduling signature: everything about a pod itself that decides which nodes take it.

    Pods of one shape are interchangeable to the planner, so feasibility is computed once for a shape and all nodes.
    `node_affinity` None means no required affinity; an empty tuple matches no node. `unsupported` names constraints
    (as a person would find them in the pod's spec) that gangsched cannot honour and therefore refuses.
    """

    requests: Amounts = ()
    node_selector: Labels = ()
    node_affinity: tuple[NodeTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    unsupported: tuple[str, ...] = ()


class PodPhase(StrEnum):
    """`status.phase` of a pod."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


OWN_DIALECT = "gangsched"
"""The dialect that nobody else speaks: a pod that uses it means gangsched."""


class Preference(Struct, frozen=True, gc=False, cache_hash=True):
    """A wish for nodes by one of their labels: by `order` of its values, or by `values`, the most preferred first.

    `order` is Ascending or Descending, and empty where there are `values`.
    """

    key: str
    order: str = ""
    values: tuple[str, ...] = ()


class Topology(Struct, frozen=True, gc=False, cache_hash=True):
    """All members in one domain of this node label; not `required`: several domains where one has no room for all."""

    key: str
    required: bool = True


class Placing(Struct, frozen=True, gc=False, cache_hash=True):
    """How nodes are chosen among those that take a member: by a strategy's name, by wishes, within a domain."""

    strategy: str = "Pack"
    prefer: tuple[Preference, ...] = ()
    topology: Topology | None = None


PACKED = Placing()


class Role(Struct, frozen=True, gc=False, cache_hash=True):
    """A named part of a group with a minimum of its own.

    `template` is the shape of members that do not exist yet, for which places are held; None: there are none to hold.
    `like_declarer`: its selectors and tolerations are those of the pod that declares it. `prefer` are wishes for nodes
    that come before the group's.
    """

    name: str
    min_member: int = 0
    max_member: int | None = None
    template: Shape | None = None
    like_declarer: bool = False
    prefer: tuple[Preference, ...] = ()


class Keys(Struct, frozen=True, gc=False, cache_hash=True):
    """Where a dialect says what, in words for a person; empty for what it cannot say.

    `kind` is the kind of object that says a group's terms where its pods do not.
    """

    group: str = "the label gangsched.io/pod-group"
    minimum: str = "the annotation gangsched.io/min-member"
    time: str = "the annotation gangsched.io/max-schedule-time"
    role: str = "the label gangsched.io/role"
    kind: str = "PodGroup"


OWN_KEYS = Keys()


class Declaration(Struct, frozen=True, gc=False, cache_hash=True):
    """What a pod itself says of its group, by labels and annotations, and in which dialect (`source`, `keys`).

    `min_member` and `max_schedule_time_s` are None where the pod does not say. With `roles` the minimum is their sum,
    and one more for each member that lists roles and has none itself. Each time-out lasts up to `jitter_s` longer;
    `default_time_s` is how long it lasts where nobody says, None for the operator's default.
    `leading` is the role whose member's success is the group's, empty if all of the minimum must succeed. `placement`
    is where members go unless a PodGroup says so. `in_turn`: groups of one instance group wait for each other's turn.
    `error` is a sentence for a person where something is unreadable (the numbers are None then), `contradiction` one
    where two dialects on the pod differ. `objects` names the dialects whose own objects of the group's name say its
    terms; with `open_roles` a role that the group does not list is no mistake.
    """

    group: str
    role: str = ""
    min_member: int | None = None
    max_schedule_time_s: float | None = None
    error: str = ""
    source: str = OWN_DIALECT
    roles: tuple[Role, ...] = ()
    jitter_s: float = 0.0
    default_time_s: float | None = None
    contradiction: str = ""
    keys: Keys = OWN_KEYS
    leading: str = ""
    placement: Placing = PACKED
    in_turn: bool = False
    objects: tuple[str, ...] = ()
    open_roles: bool = False


class Owner(Struct, frozen=True, gc=False, cache_hash=True):
    """The controller that made a pod and would make it again; `api_group` is empty for kinds of the core API."""

    kind: str
    name: str
    uid: str
    api_group: str = ""


class Pod(Struct, frozen=True, gc=False):
    """A pod as the scheduler sees it. `node` is empty while unbound; `declaration` None means a plain pod.

    One without a name stands for a member that does not exist yet.

    `told_reason` and `told_message` are those of the pod's present `PodScheduled=False` condition, empty without one:
    what need not be written again. `rejected`: it failed because the kubelet would not admit it to its node. `bound_at`
    is when it was bound, 0.0 if that is not known.
    """

    uid: str
    namespace: str
    name: str
    shape: Shape
    created: float
    scheduler: str
    phase: PodPhase = PodPhase.PENDING
    node: str = ""
    nominated_node: str = ""
    terminating: bool = False
    gated: bool = False
    priority: int = 0
    declaration: Declaration | None = None
    labels: Labels = ()
    anti_affinity: tuple[PodTerm, ...] = ()
    owner: Owner | None = None
    told_reason: str = ""
    told_message: str = ""
    rejected: bool = False
    bound_at: float = 0.0

    @property
    def terminal(self) -> bool:
        """Whether the pod has ended and holds nothing on its node any more."""
        return self.phase is PodPhase.SUCCEEDED or self.phase is PodPhase.FAILED


class Node(Struct, frozen=True, gc=False):
    """A node: what it can give and whom it accepts. Readiness shows only through taints, as for kube-scheduler."""

    name: str
    allocatable: Amounts = ()
    labels: Labels = ()
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class TimeoutPolicy(StrEnum):
    """What follows a time-out: back-off and another attempt, or the end."""

    RETRY = "Retry"
    FAIL = "Fail"


class OnDegraded(StrEnum):
    """What follows when a scheduled group falls below its minimum."""

    REPAIR = "Repair"
    RESTART = "Restart"
    IGNORE = "Ignore"


class GroupSpec(Struct, frozen=True, gc=False, cache_hash=True):
    """What a PodGroup asks for. `not_built` names fields in use that this version refuses rather than ignores."""

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
    not_built: tuple[str, ...] = ()

    @property
    def minimum(self) -> int:
        """The least number of members that must be bound together: max(minMember, sum of the roles' minima)."""
        return max(self.min_member, sum(role.min_member for role in self.roles))


class Place(Struct, frozen=True, gc=False, cache_hash=True):
    """Places held on one node for one role: `pods` are names, `requests` what each of them takes."""

    node: str
    role: str
    count: int
    pods: tuple[str, ...]
    requests: Amounts


class Reservation(Struct, frozen=True, gc=False, cache_hash=True):
    """Places held durably, as `status.reservation` says them."""

    expires: float
    placements: tuple[Place, ...]


class Condition(Struct, frozen=True, gc=False, cache_hash=True):
    """A condition of a PodGroup; `since` is its lastTransitionTime."""

    type: str
    status: bool
    reason: str
    message: str
    since: float
    generation: int = 0


MOST_DEMANDS = 64
"""A status lists at most so many demands."""


class Demand(Struct, frozen=True, gc=False, cache_hash=True):
    """So many members for which new nodes would have to be added, each asking for `requests`.

    `domain` is the value of the label spec.placement.topology that those nodes must have, empty where any will do.
    """

    count: int
    requests: Amounts
    domain: str = ""


class GroupStatus(Struct, frozen=True, gc=False, cache_hash=True):
    """`status` of a PodGroup, as written by the engine and read back after a restart. Times are 0.0 where unset."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    members: int = 0
    bound: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    minimum: int = 0
    reservation: Reservation | None = None
    schedule_start_time: float = 0.0
    schedule_paused_time: float = 0.0
    scheduled_time: float = 0.0
    attempts: int = 0
    source: str = ""
    demand: tuple[Demand, ...] = ()


class Group(Struct, frozen=True, gc=False):
    """A PodGroup object. `error` is a sentence for a person where its spec could not be read; `spec` is None then.

    `made`: the operator has made it for a group that its pods declare; it says no more than they do.
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


class ForeignGroup(Struct, frozen=True, gc=False):
    """What another system's object declares, in its `dialect`, of the group of its name. `error` as for `Group`."""

    dialect: str
    key: GroupKey
    uid: str
    created: float
    spec: GroupSpec | None
    error: str = ""
