"""Devices that pods request by ResourceClaims: what claims ask for, and what they are allocated.

Source: k8s.io/api/resource/v1 at v1.37.2. `offered_devices` has what drivers offer.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from gangsched.core.objects.offered_devices import DeviceKey, DeviceTaintRule, ResourceSlice, Selector
from gangsched.core.objects.scopes import ClusterScoped, Namespaced
from gangsched.core.objects.shape import NodeTerm, Toleration

MOST_RESERVED = 256
"""The maximum number of consumers of a claim: of pods, and of PodGroups of Kubernetes whose pods share it."""

CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"
"""The devices of each class are also an extended resource, whose name is this prefix and the name of the class."""

MOST_DEVICES = 32
"""The maximum number of devices that can be allocated for a claim."""


class DeviceKind(StrEnum):
    """The kinds of objects in this module, by their names in the API."""

    SLICE = "ResourceSlice"
    CLASS = "DeviceClass"
    CLAIM = "ResourceClaim"
    TAINT_RULE = "DeviceTaintRule"


Amounts = tuple[tuple[str, int], ...]
"""Names with amounts in billionths (`quantity.billionths`), by name."""


class DeviceClass(ClusterScoped, frozen=True, gc=False, tag=True):
    """A DeviceClass: its devices are those that all `selectors` select. `config` are driver parameters, each as JSON.

    `resource` is the extended resource that its devices also provide (`spec.extendedResourceName`), empty for none.
    `made_at` is the time of its creation in epoch seconds.
    """

    selectors: tuple[Selector, ...] = ()
    config: tuple[str, ...] = ()
    resource: str = ""
    made_at: float = 0.0


class DeviceRequest(Struct, frozen=True, gc=False, cache_hash=True):
    """One request, or one alternative of a request: for `count` devices, or with `all` for every selected one.

    `name` is its name in allocation results (`request` or `request/alternative`). With `admin`, devices in use may be
    allocated too. `capacity` is what each device must have left of these capacities, in billionths.
    """

    name: str
    device_class: str
    selectors: tuple[Selector, ...] = ()
    count: int = 1
    all: bool = False
    admin: bool = False
    tolerations: tuple[Toleration, ...] = ()
    capacity: Amounts = ()


class ExtendedUse(Struct, frozen=True, gc=False, cache_hash=True):
    """An extended resource that a pod's containers request.

    If devices of a DeviceClass provide it, `requests` are the (name, count) pairs of the ResourceClaim's requests, and
    `mappings` the (container, request) pairs.
    """

    resource: str
    requests: tuple[tuple[str, int], ...] = ()
    mappings: tuple[tuple[str, str], ...] = ()


class Making(Struct, frozen=True, gc=False):
    """A ResourceClaim that gangsched creates for a pod's extended resources.

    `requests` are (name, class, count) tuples, `mappings` (container, resource, request) tuples.
    """

    requests: tuple[tuple[str, str, int], ...] = ()
    mappings: tuple[tuple[str, str, str], ...] = ()


class Match(Struct, frozen=True, gc=False, cache_hash=True):
    """All devices of these requests (of all requests if none is named) must have the same value of the attribute.

    With `distinct`, each must have another value instead.
    """

    attribute: str
    requests: tuple[str, ...] = ()
    distinct: bool = False


class ClaimConfig(Struct, frozen=True, gc=False, cache_hash=True):
    """Parameters, as JSON, for the drivers of these requests (of all requests if none is named)."""

    requests: tuple[str, ...]
    config: str


class DeviceWishes(Struct, frozen=True, gc=False, cache_hash=True):
    """The requests of a claim: for each request its alternatives, most preferred first.

    Claims created from one template have equal wishes. `unsupported` names a feature in use that this version of
    gangsched does not support, empty if there is none.
    """

    requests: tuple[tuple[DeviceRequest, ...], ...] = ()
    matches: tuple[Match, ...] = ()
    config: tuple[ClaimConfig, ...] = ()
    unsupported: str = ""

    @property
    def every(self) -> list[DeviceRequest]:
        """All requests, and all alternatives of each."""
        return [request for alternatives in self.requests for request in alternatives]


class AllocatedDevice(Struct, frozen=True, gc=False, cache_hash=True):
    """A device allocated to a claim, for one of its requests. With `admin`, other claims may have it too.

    `shared`: only a share of the device, which takes `consumed` of its capacities; `share` is its ID, empty while it is
    only planned. `binding` and `failing` are those of the device at the time of the allocation.
    """

    request: str
    device: DeviceKey
    admin: bool = False
    shared: bool = False
    share: str = ""
    consumed: Amounts = ()
    binding: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()

    @property
    def exclusive(self) -> bool:
        """Whether no other claim may have the device."""
        return not (self.admin or self.shared)


class Allocation(Struct, frozen=True, gc=False, cache_hash=True):
    """The devices of a claim. They are usable on nodes that match `node_affinity`; on every node if that is None."""

    devices: tuple[AllocatedDevice, ...] = ()
    node_affinity: tuple[NodeTerm, ...] | None = None

    @property
    def has(self) -> tuple[tuple[str, DeviceKey, str], ...]:
        """What identifies the devices: equal for the allocation that was asked for and the one that was written."""
        return tuple((device.request, device.device, device.share) for device in self.devices)


class Consumer(Struct, frozen=True, gc=False, cache_hash=True):
    """What a ResourceClaim is reserved for: a pod or, if `group`, a PodGroup of Kubernetes for all of its pods."""

    name: str
    uid: str
    group: bool = False


NOBODY = Consumer("", "")
"""Stands for the consumer of a claim that has gangsched's mark and no devices."""


class ResourceClaim(Namespaced, frozen=True, gc=False, tag=True):
    """A ResourceClaim. `owner` is the UID of the pod or PodGroup that it was created for, if any.

    `reserved` are the UIDs of its consumers, `sharing` those that are PodGroups of Kubernetes. `ours`: gangsched has
    written its allocation or a reservation. `extended`: a scheduler has created it for the extended resources of its
    owner. `conditions` are those that its drivers report as true, for each device. `group` is the name of the PodGroup
    of Kubernetes that it was created for, if any.
    """

    uid: str = ""
    wishes: DeviceWishes = DeviceWishes()
    allocation: Allocation | None = None
    reserved: tuple[str, ...] = ()
    sharing: tuple[Consumer, ...] = ()
    owner: str = ""
    terminating: bool = False
    ours: bool = False
    extended: bool = False
    conditions: tuple[tuple[DeviceKey, tuple[str, ...]], ...] = ()
    group: str = ""

    @property
    def prepared(self) -> bool:
        """Whether all conditions for which the bindings of its pods wait are true."""
        return all(set(device.binding) <= self._reported(device.device) for device in self._conditional)

    @property
    def failure(self) -> str:
        """The first condition that says that a device never gets ready; empty if there is none."""
        failed = ((set(device.failing) & self._reported(device.device), device.failing) for device in self._conditional)
        return next((name for true, names in failed for name in names if name in true), "")

    @property
    def _conditional(self) -> list[AllocatedDevice]:
        return [device for device in (self.allocation.devices if self.allocation is not None else ()) if device.binding]

    def _reported(self, device: DeviceKey) -> set[str]:
        return next((set(true) for key, true in self.conditions if key == device), set())


DeviceObject = ResourceSlice | DeviceClass | ResourceClaim | DeviceTaintRule


class ClaimTrouble(StrEnum):
    """Why a pod cannot be placed with a ResourceClaim yet."""

    MISSING = "it does not exist"
    NOT_MADE = "it is still to be made from its template"
    NOT_OWNED = "it was not made for the pod"
    NO_GROUP = "the pod names a PodGroup of Kubernetes that is not known, and that may share it"
    NOT_MADE_FOR_GROUP = "it is still to be made for the PodGroup of Kubernetes that shares it"
    NOT_OF_GROUP = "it was not made for the PodGroup of Kubernetes that shares it"
    OF_GROUP = "it was made for a PodGroup of Kubernetes that does not share it with the pod"
    TERMINATING = "it is being deleted"
    FULL = "it has as many consumers as possible"
    TWICE = "another claim has one of its devices too"
    FAILED = "one of its devices reports that it cannot be used"
    NO_CLASS = "its DeviceClass does not exist"
    UNSUPPORTED = "it asks for something that gangsched cannot honour"


class UnreadyClaim(Struct, frozen=True):
    """The first ResourceClaim that keeps a pod from being placed. `about` is its class, group or what it asks for."""

    claim: str
    trouble: ClaimTrouble
    about: str = ""
