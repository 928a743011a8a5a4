"""Devices that pods ask for by ResourceClaims: what drivers offer on nodes, what claims ask for, and what they have.

Source: k8s.io/api/resource/v1 at v1.36.3. Names of attributes and capacities are complete: those without a domain have
that of their driver.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from gangsched.core.objects.shape import NodeTerm, Toleration

ObjectKey = tuple[str, str]
"""Namespace (empty for what has none) and name."""

DeviceKey = tuple[str, str, str]
"""Driver, pool and name of a device."""

MOST_RESERVED = 256
"""So many pods can share a claim."""
CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"
"""The devices of each class are an extended resource of this prefix and the class's name too."""
MOST_DEVICES = 32
"""So many devices can be allocated for a claim."""


class DeviceKind(StrEnum):
    """The kinds of objects of this module, as the API server calls them."""

    SLICE = "ResourceSlice"
    CLASS = "DeviceClass"
    CLAIM = "ResourceClaim"


class AttributeType(StrEnum):
    """The types of attributes. OTHER is one that no expression may read: lists, and what is unknown."""

    STRING = "string"
    INT = "int"
    BOOL = "bool"
    VERSION = "version"
    OTHER = "other"


class Attribute(Struct, frozen=True, gc=False, cache_hash=True):
    """An attribute of a device; equal for equal values of one type. `value` is that of the API, as text."""

    name: str
    type: AttributeType
    value: str


class DeviceTaint(Struct, frozen=True, gc=False, cache_hash=True):
    """As in the Kubernetes API."""

    key: str
    value: str
    effect: str


class Device(Struct, frozen=True, gc=False, cache_hash=True):
    """A device. `capacity` are pairs of names and quantities.

    `beyond` names what this version of gangsched cannot honour of it, so that it is never allocated; empty for nothing.
    """

    name: str
    attributes: tuple[Attribute, ...] = ()
    capacity: tuple[tuple[str, str], ...] = ()
    taints: tuple[DeviceTaint, ...] = ()
    beyond: str = ""


class Verdict(StrEnum):
    """What a selector says of a device."""

    TRUE = "true"
    FALSE = "false"
    ERROR = "error"


class Selector(Struct, frozen=True, gc=False):
    """An expression that selects devices. The shell makes values of a subclass that knows the language."""

    expression: str

    def verdict(self, driver: str, device: Device) -> Verdict:
        """Whether it selects the device. The same for the same device, without any input or output."""
        raise NotImplementedError


class ResourceSlice(Struct, frozen=True, gc=False, tag=True):
    """A part of a pool of devices. All slices of the pool's newest generation together, `parts`, are the pool.

    Its devices can be used on one `node`, else where `node_affinity` matches, else (None) everywhere. `beyond`: where
    they can be used is said in a way that this version of gangsched does not know; then they are used nowhere.
    """

    name: str
    driver: str
    pool: str
    generation: int = 0
    parts: int = 1
    node: str = ""
    node_affinity: tuple[NodeTerm, ...] | None = None
    devices: tuple[Device, ...] = ()
    beyond: bool = False

    @property
    def key(self) -> ObjectKey:
        """The name."""
        return "", self.name


class DeviceClass(Struct, frozen=True, gc=False, tag=True):
    """A DeviceClass: all `selectors` must select a device. `config` is what drivers are told, each as JSON.

    `resource`: the extended resource that its devices are too (`spec.extendedResourceName`), empty for none. It was
    made at `made_at` seconds of Unix time.
    """

    name: str
    selectors: tuple[Selector, ...] = ()
    config: tuple[str, ...] = ()
    resource: str = ""
    made_at: float = 0.0

    @property
    def key(self) -> ObjectKey:
        """The name."""
        return "", self.name


class DeviceRequest(Struct, frozen=True, gc=False, cache_hash=True):
    """One request, or one alternative of a request: so many devices, or with `all` every one that is selected.

    `name` is what results call it (`request` or `request/alternative`). With `admin` devices in use are taken too.
    """

    name: str
    device_class: str
    selectors: tuple[Selector, ...] = ()
    count: int = 1
    all: bool = False
    admin: bool = False
    tolerations: tuple[Toleration, ...] = ()


class ExtendedUse(Struct, frozen=True, gc=False, cache_hash=True):
    """An extended resource that a pod's containers request.

    If devices of a DeviceClass are to be given for it, these are the `requests` of the ResourceClaim, each with how
    many, and the `mappings` of containers to them.
    """

    resource: str
    requests: tuple[tuple[str, int], ...] = ()
    mappings: tuple[tuple[str, str], ...] = ()


class Making(Struct, frozen=True, gc=False):
    """A ResourceClaim that gangsched makes for a pod's extended resources.

    `requests` are name, class and count, `mappings` container, resource and request.
    """

    requests: tuple[tuple[str, str, int], ...] = ()
    mappings: tuple[tuple[str, str, str], ...] = ()


class Match(Struct, frozen=True, gc=False, cache_hash=True):
    """All devices of these requests (none named: of all) must have the same value of the attribute."""

    attribute: str
    requests: tuple[str, ...] = ()


class ClaimConfig(Struct, frozen=True, gc=False, cache_hash=True):
    """What the drivers of these requests (none named: of all) are told, as JSON."""

    requests: tuple[str, ...]
    config: str


class DeviceWishes(Struct, frozen=True, gc=False, cache_hash=True):
    """What a claim asks for: for each request its alternatives, the preferred first.

    Claims made from one template ask for equal things. `beyond` names what this version of gangsched cannot honour.
    """

    requests: tuple[tuple[DeviceRequest, ...], ...] = ()
    matches: tuple[Match, ...] = ()
    config: tuple[ClaimConfig, ...] = ()
    beyond: str = ""


class AllocatedDevice(Struct, frozen=True, gc=False, cache_hash=True):
    """A device that a claim has, for one of its requests. With `admin` others may have it too."""

    request: str
    device: DeviceKey
    admin: bool = False


class Allocation(Struct, frozen=True, gc=False, cache_hash=True):
    """The devices of a claim, and where they can be used: on nodes that match; None for everywhere."""

    devices: tuple[AllocatedDevice, ...] = ()
    node_affinity: tuple[NodeTerm, ...] | None = None


class ResourceClaim(Struct, frozen=True, gc=False, tag=True):
    """A ResourceClaim. `reserved` are the UIDs of its consumers, `owner` that of the pod it was made for, if any.

    `ours`: gangsched has written its allocation or a reservation. `extended`: a scheduler has made it for the extended
    resources of its owner.
    """

    namespace: str
    name: str
    uid: str = ""
    wishes: DeviceWishes = DeviceWishes()
    allocation: Allocation | None = None
    reserved: tuple[str, ...] = ()
    owner: str = ""
    terminating: bool = False
    ours: bool = False
    extended: bool = False

    @property
    def key(self) -> ObjectKey:
        """Namespace and name."""
        return self.namespace, self.name


DeviceObject = ResourceSlice | DeviceClass | ResourceClaim


class ClaimTrouble(StrEnum):
    """Why a pod cannot be placed with a ResourceClaim yet."""

    MISSING = "it does not exist"
    NOT_MADE = "it is still to be made from its template"
    NOT_OWNED = "it was not made for the pod"
    TERMINATING = "it is being deleted"
    FULL = "as many pods as possible share it"
    TWICE = "another claim has one of its devices too"
    NO_CLASS = "its DeviceClass does not exist"
    BEYOND = "it asks for something that gangsched cannot honour"


class UnreadyClaim(Struct, frozen=True):
    """The first ResourceClaim of a pod with which it cannot be placed. `about`: its class, or what it asks for."""

    claim: str
    trouble: ClaimTrouble
    about: str = ""
