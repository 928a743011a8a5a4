"""Devices as drivers offer them in ResourceSlices: what requests may select, share and draw on, and where.

Source: k8s.io/api/resource/v1 at v1.37.2. Names of attributes and capacities are fully
qualified: a name without a domain gets that of its driver.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from gangsched.core.objects.scopes import ClusterScoped
from gangsched.core.objects.shape import NodeTerm

ObjectKey = tuple[str, str]
"""Namespace (empty for a cluster-scoped object) and name."""

DeviceKey = tuple[str, str, str]
"""Driver, pool and name of a device."""


class AttributeType(StrEnum):
    """The types of attributes. OTHER stands for types that no expression may read: lists, and unknown ones."""

    STRING = "string"
    INT = "int"
    BOOL = "bool"
    VERSION = "version"
    OTHER = "other"


class Attribute(Struct, frozen=True, gc=False, cache_hash=True):
    """An attribute of a device; equal values of one type compare equal. `value` is the API's value, as text."""

    name: str
    type: AttributeType
    value: str


class DeviceTaint(Struct, frozen=True, gc=False, cache_hash=True):
    """As in the Kubernetes API."""

    key: str
    value: str
    effect: str


CounterKey = tuple[str, str]
"""A counter of a pool: the name of its set, and its own."""


class Capacity(Struct, frozen=True, gc=False, cache_hash=True):
    """A capacity of a device, by its name in the slice, which requests must repeat exactly; amounts are in billionths.

    The rest is its request policy. A share takes `default` if the request does not name the capacity (all of `value` if
    that is None); otherwise it takes the request rounded up to the next of `values`, or to `least` and from there in
    steps of `step`, and at most `most`.
    """

    name: str
    value: int
    default: int | None = None
    values: tuple[int, ...] = ()
    least: int | None = None
    most: int | None = None
    step: int | None = None


class Device(Struct, frozen=True, gc=False, cache_hash=True):
    """A device. `capacity` holds (name, quantity) pairs for expressions, `shares` what requests can have of it.

    `counters` are the amounts that it takes of the counters of its pool while it is allocated. With `multiple`, several
    requests may have it at a time, each a share of its capacities. `node`, `node_affinity` and `everywhere` say where
    it can be used if its slice leaves that to its devices. `binding` are the conditions that must be true before a pod
    with the device is bound, `failing` those that say that they never will be; with `binds_to_node` the device can be
    used only on the node for which it was allocated.
    """

    name: str
    attributes: tuple[Attribute, ...] = ()
    capacity: tuple[tuple[str, str], ...] = ()
    taints: tuple[DeviceTaint, ...] = ()
    shares: tuple[Capacity, ...] = ()
    counters: tuple[tuple[CounterKey, int], ...] = ()
    multiple: bool = False
    node: str = ""
    node_affinity: tuple[NodeTerm, ...] | None = None
    everywhere: bool = False
    binding: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()
    binds_to_node: bool = False


class SelectorResult(StrEnum):
    """The result of a selector for a device."""

    TRUE = "true"
    FALSE = "false"
    ERROR = "error"


class Selector(Struct, frozen=True, gc=False):
    """An expression that selects devices. The shell creates instances of a subclass that evaluates the language."""

    expression: str

    def evaluate(self, driver: str, device: Device) -> SelectorResult:
        """Whether it selects the device. Always the same for the same device, and without I/O."""
        raise NotImplementedError

    def failure(self) -> str:
        """What is said of the expression where it cannot be evaluated."""
        return self.expression


class ResourceSlice(ClusterScoped, frozen=True, gc=False, tag=True):
    """A part of a pool of devices. The pool consists of all slices of its newest generation, `parts` in number.

    The devices are usable on one `node`, or on nodes that match `node_affinity`, or on every node if that is None; with
    `per_device` each device says that itself. A slice with `counters` has no devices, but the counters of its pool with
    their amounts in billionths. `unsupported`: the slice limits the nodes in a way that this version of gangsched does
    not know, and its devices are used nowhere.
    """

    driver: str
    pool: str
    generation: int = 0
    parts: int = 1
    node: str = ""
    node_affinity: tuple[NodeTerm, ...] | None = None
    devices: tuple[Device, ...] = ()
    unsupported: bool = False
    per_device: bool = False
    counters: tuple[tuple[CounterKey, int], ...] = ()


class DeviceTaintRule(ClusterScoped, frozen=True, gc=False, tag=True):
    """A taint for all devices with this driver, pool and name, each of which matters only if it is not empty."""

    taint: DeviceTaint
    driver: str = ""
    pool: str = ""
    device: str = ""

    def tainted(self, part: ResourceSlice) -> ResourceSlice:
        """The slice with the taint on those of its devices that the rule is for."""
        if self.driver not in ("", part.driver) or self.pool not in ("", part.pool):
            return part
        devices = (
            replace(device, taints=(*device.taints, self.taint)) if self.device in ("", device.name) else device
            for device in part.devices
        )
        return replace(part, devices=tuple(devices))


def tainted(part: ResourceSlice, rules: Iterable[DeviceTaintRule]) -> ResourceSlice:
    """The slice with the taints of these rules."""
    for rule in rules:
        part = rule.tainted(part)
    return part
