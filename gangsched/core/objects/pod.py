"""A pod as the core sees it."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from gangsched.core.objects.declaration import Declaration
from gangsched.core.objects.devices import ExtendedUse
from gangsched.core.objects.shape import Labels, Shape, Soft
from gangsched.core.objects.workload import Workload


def role_of(pod: Pod) -> str:
    """The role that the pod names, empty without one."""
    return pod.declaration.role if pod.declaration else ""


def member_order(pod: Pod) -> tuple[int, float, str]:
    """The sort key of the order in which members without a node are tried (contract rule 8).

    The highest pod priority comes first, then the earliest creation time, then the name.
    """
    return (-pod.priority, pod.created, pod.name)


def by_age(pod: Pod) -> tuple[float, str]:
    """The sort key that puts the oldest pod first; it says who speaks for a group, not who is placed first."""
    return (pod.created, pod.name)


class PodPhase(StrEnum):
    """`status.phase` of a pod."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


class Owner(Struct, frozen=True, gc=False, cache_hash=True):
    """The controller that created a pod and would replace it; `api_group` is empty for kinds of the core API."""

    kind: str
    name: str
    uid: str
    api_group: str = ""


class DeviceUse(Struct, frozen=True, gc=False, cache_hash=True):
    """A ResourceClaim that a pod uses, or that a PodGroup of Kubernetes shares; `name` is its name in their specs.

    If it is created from a `template`, for this pod or for its PodGroup, `claim` is empty until then. `group` is the
    PodGroup of Kubernetes that the pod names, and that may share the claim; empty if it names none.
    """

    name: str
    claim: str = ""
    template: str = ""
    group: str = ""

    @property
    def asked(self) -> tuple[str, str, str]:
        """Its name, and the claim or the template that the spec names: equal for the uses of a shared claim."""
        return self.name, "" if self.template else self.claim, self.template


class Failure(Struct, frozen=True, gc=False):
    """How a pod failed: its message, when (epoch seconds, 0.0 if unknown), and how long its containers ran."""

    message: str
    at: float = 0.0
    ran_s: float = 0.0


class Lifetime(Struct, frozen=True, gc=False):
    """How a pod may begin, runs and ends. It often changes alone, for which no gang is looked at again.

    The cluster and what was observed of a gang have the present one, what was concluded from that perhaps a former one.

    `preempts`: other pods may be preempted for it. `start` is when its kubelet accepted it (epoch seconds), 0.0 before
    that. `ready`: its condition Ready is True. `grace_s` is how many seconds it gets to end, and `deadline_s` how many
    it may run from its start on, None for no limit. `expected_s` is how many its annotation says it will run, None
    without one. `not_started` is why a container of it waits, such as ImagePullBackOff; empty if none waits.
    """

    preempts: bool = True
    start: float = 0.0
    ready: bool = False
    grace_s: int = 30
    deadline_s: int | None = None
    expected_s: float | None = None
    not_started: str = ""


class Pod(Struct, frozen=True, gc=False):
    """A pod as the scheduler sees it. `node` is empty while unbound; `declaration` None means a plain pod.

    A pod without a name is a placeholder for a member that does not exist yet.

    `volume_claims` names the PersistentVolumeClaims that it uses, `own_volume_claims` those that are created for its
    ephemeral volumes, which it must own. `device_claims` are its ResourceClaims, `extended` the extended resources that
    it requests.

    `condition_reason` and `condition_message` are those of the pod's present `PodScheduled=False` condition, which need
    not be written again; empty without one. `rejected`: it failed because the kubelet refused to admit it. `failure` is
    how it failed; None if it has not, or if that is unknown. `bound_at` is when it was bound, 0.0 if unknown. `soft`
    are its soft constraints, None if it has none. `workload` is the object of a recognised controller that it belongs
    to, None if there is none. `gone_by` is when a terminating pod should be gone, at the end of its grace period; 0.0
    if unknown. `lifetime` is one object for all pods that are alike in it.
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
    volume_claims: tuple[str, ...] = ()
    own_volume_claims: tuple[str, ...] = ()
    device_claims: tuple[DeviceUse, ...] = ()
    extended: tuple[ExtendedUse, ...] = ()
    owner: Owner | None = None
    condition_reason: str = ""
    condition_message: str = ""
    rejected: bool = False
    bound_at: float = 0.0
    soft: Soft | None = None
    workload: Workload | None = None
    failure: Failure | None = None
    gone_by: float = 0.0
    lifetime: Lifetime = Lifetime()

    @property
    def uses_claims(self) -> bool:
        """Whether it uses any PersistentVolumeClaim."""
        return bool(self.volume_claims or self.own_volume_claims)

    @property
    def restricts(self) -> bool:
        """Whether it may restrict or attract others by more than its requests: by a volume, a port or a term."""
        shape, claims = self.shape, self.volume_claims or self.own_volume_claims
        terms = shape.affinity or shape.anti_affinity or (self.soft is not None and self.soft.pod_terms)
        return bool(terms or claims or shape.host_ports or shape.disks)

    @property
    def uses_devices(self) -> bool:
        """Whether it uses a ResourceClaim, or a resource for which one may be created."""
        return bool(self.device_claims or self.extended)

    @property
    def bound_by(self) -> float:
        """When it was bound at the latest, as its kubelet accepts it only then; 0.0 if that is unknown."""
        return self.bound_at or self.lifetime.start

    def differs(self, other: Pod) -> bool:
        """Whether the pods differ in more than their lifetime, or in what counts of that before they are on a node."""
        if self == other:
            return False
        return self.promise != other.promise or self != replace(other, lifetime=self.lifetime)

    @property
    def promise(self) -> tuple[int | None, float | None] | None:
        """By what a pod without a node says that it ends: it decides where the pod may be beside reservations."""
        return None if self.node else (self.lifetime.deadline_s, self.lifetime.expected_s)

    def belongs_as(self, other: Pod) -> bool:
        """Whether the pods say the same of where they belong."""
        mine, others = (self.declaration, self.workload), (other.declaration, other.workload)
        return self.scheduler == other.scheduler and mine == others

    @property
    def terminal(self) -> bool:
        """Whether the pod has ended and holds nothing on its node any more."""
        return self.phase is PodPhase.SUCCEEDED or self.phase is PodPhase.FAILED
