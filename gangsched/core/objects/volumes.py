"""Objects that decide where pods with volumes run: claims, volumes, storage classes, and limits of CSI drivers.

In the core a *volume claim* is a PersistentVolumeClaim, because a plain claim is an entry of the ledger. A volume is a
PersistentVolume; a disk is a volume that a pod names directly, without a claim.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from gangsched.core.objects.pod import Pod
from gangsched.core.objects.scopes import ClusterScoped, Namespaced
from gangsched.core.objects.shape import Attachment, Labels, NodeTerm, Requirement

NOW_CALLED = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""The current name of each label of zones and regions by its former name."""
ZONE_LABELS = (*NOW_CALLED, *NOW_CALLED.values())
_ON_SEVERAL_NODES = frozenset(("ReadWriteMany", "ReadOnlyMany"))
StorageKey = tuple[str, str]
"""Namespace (empty for a cluster-scoped object) and name."""


class StorageKind(StrEnum):
    """The kinds of objects in this module, by their names in the API."""

    CLAIM = "PersistentVolumeClaim"
    VOLUME = "PersistentVolume"
    CLASS = "StorageClass"
    NODE = "CSINode"
    ATTACHMENT = "VolumeAttachment"
    DRIVER = "CSIDriver"
    CAPACITY = "CSIStorageCapacity"


class VolumeClaim(Namespaced, frozen=True, gc=False, tag=True):
    """A PersistentVolumeClaim.

    `volume` is the PersistentVolume that it names; `bound`: both name each other. `single_pod`: its access mode is
    ReadWriteOncePod. `owner` is the UID of its controller, which is a pod if it was created for an ephemeral volume.
    Its requirements for a volume are known while it is not bound: `size` in bytes, access `modes`, `block` for a volume
    without a file system, its VolumeAttributesClass (`attributes`), and `selector`. A volume is provisioned for the
    node `selected`; `ours`: gangsched has selected it.
    """

    volume: str = ""
    storage_class: str = ""
    bound: bool = False
    lost: bool = False
    terminating: bool = False
    single_pod: bool = False
    owner: str = ""
    uid: str = ""
    size: int = 0
    modes: tuple[str, ...] = ()
    block: bool = False
    attributes: str = ""
    selector: tuple[Requirement, ...] = ()
    selected: str = ""
    ours: bool = False


class Volume(ClusterScoped, frozen=True, gc=False, tag=True):
    """A PersistentVolume.

    `node_affinity` None lets every node use it. `zones` are its zone and region labels, each with the values that a
    node's label may have. `attachment` is what it counts as against the limits of nodes, None if no CSI driver attaches
    it. `in_tree` is the kind of a source whose node affinity CSI migration translates, empty for all others.
    The properties that claims ask for are known while it is `available`: no claim is bound to it, and one may be.
    `attributes` is its VolumeAttributesClass. `claimed_by` is the only claim (namespace, name, UID or an empty text)
    that may be bound to it; `ours`: gangsched has set that.
    """

    node_affinity: tuple[NodeTerm, ...] | None = None
    zones: tuple[tuple[str, tuple[str, ...]], ...] = ()
    attachment: Attachment | None = None
    in_tree: str = ""
    available: bool = False
    storage_class: str = ""
    size: int = 0
    modes: tuple[str, ...] = ()
    block: bool = False
    attributes: str = ""
    labels: Labels = ()
    claimed_by: tuple[str, str, str] | None = None
    ours: bool = False


class StorageClass(ClusterScoped, frozen=True, gc=False, tag=True):
    """A StorageClass. `waits`: its claims are bound only once a pod that uses them has a node.

    `driver` provisions its volumes. `provisions`: volumes are created for its claims, only on nodes that match one of
    `topologies` unless that is None. `in_tree`: the class names an in-tree plug-in that this driver has replaced.
    """

    driver: str = ""
    waits: bool = False
    provisions: bool = False
    topologies: tuple[NodeTerm, ...] | None = None
    in_tree: bool = False


class CsiDriver(ClusterScoped, frozen=True, gc=False, tag=True):
    """A CSIDriver. `capacity`: CSIStorageCapacity objects say where there is storage for its volumes.

    `demanding`: pods with its volumes go only to nodes that have the driver.
    """

    capacity: bool = False
    demanding: bool = False


class StorageCapacity(Namespaced, frozen=True, gc=False, tag=True):
    """A CSIStorageCapacity: the storage for volumes of one class in one segment of the cluster.

    The segment consists of the nodes that match `topology`, of none if that is None. `capacity` is the free storage,
    `largest` the size of the largest volume that can be created, both in bytes; None if not stated.
    """

    storage_class: str = ""
    topology: NodeTerm | None = None
    capacity: int | None = None
    largest: int | None = None

    @property
    def limit(self) -> int:
        """The size of the largest volume that fits by the rule of kube-scheduler; -1 if none does."""
        limit = self.capacity if self.largest is None else self.largest
        return -1 if limit is None else limit

    def helps_no_more_than(self, other: StorageCapacity) -> bool:
        """Whether every volume that fits here would also fit with the other one in its place."""
        alike = (self.storage_class, self.topology) == (other.storage_class, other.topology)
        less = other.capacity is None or (self.capacity is not None and self.capacity <= other.capacity)
        return alike and less and self.limit <= other.limit


class CsiNode(ClusterScoped, frozen=True, gc=False, tag=True):
    """The CSI drivers on the node of this name, and how many volumes it can attach of those with a limit."""

    limits: tuple[tuple[str, int], ...] = ()
    drivers: frozenset[str] = frozenset()


class VolumeAttachment(ClusterScoped, frozen=True, gc=False, tag=True):
    """A volume that the driver attaches to the node, or has attached; `volume` is empty if that has no object."""

    node: str = ""
    volume: str = ""
    driver: str = ""


StorageObject = VolumeClaim | Volume | StorageClass | CsiNode | VolumeAttachment | CsiDriver | StorageCapacity


class Wanted(Struct, frozen=True, gc=False, cache_hash=True):
    """The requirements of a claim that waits for its pod's node; claims with equal ones are interchangeable.

    If a node is `selected`, a volume is provisioned on that node alone; `ours`: gangsched has selected it. `volume` is
    the only one that may be bound to the claim, if there is one. `claim` names the claim if several known pods use it.
    """

    size: int
    storage_class: str
    modes: tuple[str, ...] = ()
    block: bool = False
    attributes: str = ""
    selector: tuple[Requirement, ...] = ()
    selected: str = ""
    volume: str = ""
    claim: tuple[str, str] = ("", "")
    ours: bool = False

    @property
    def shared(self) -> bool:
        """Whether several pods use the claim."""
        return bool(self.claim[1])

    @property
    def anywhere(self) -> bool:
        """Whether pods on several nodes may use the volume at the same time."""
        return not _ON_SEVERAL_NODES.isdisjoint(self.modes)


class Trouble(StrEnum):
    """Why a pod cannot be placed with a volume claim yet."""

    MISSING = "it does not exist"
    NOT_MADE = "it is still to be made for an ephemeral volume"
    NOT_OWNED = "it was not made for the pod"
    LOST = "its volume is lost"
    TERMINATING = "it is being deleted"
    UNBOUND = "it is not bound"
    NO_VOLUME = "its volume does not exist"
    IN_TREE = "its volume is translated for CSI drivers"


class Unready(Struct, frozen=True):
    """The first volume claim that keeps a pod from being placed. `about` is its volume or StorageClass, if any."""

    claim: str
    trouble: Trouble
    about: str = ""


def keys_of(pod: Pod) -> list[StorageKey]:
    """The pod's volume claims, without duplicates; those of its ephemeral volumes come last."""
    return [(pod.namespace, name) for name in dict.fromkeys((*pod.volume_claims, *pod.own_volume_claims))]
