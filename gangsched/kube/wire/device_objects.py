"""ResourceSlices, DeviceClasses and ResourceClaims (resource.k8s.io/v1) as the API server sends them."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from gangsched.core.objects.quantity import Quantity
from gangsched.kube import wire

GROUP, VERSION = "resource.k8s.io", "v1"
GROUPS = ("scheduling.k8s.io", "podgroups")
"""API group and resource of the PodGroups that may share a claim."""
EXTENDED = "resource.kubernetes.io/extended-resource-claim"
"""The annotation of claims that a scheduler has created for extended resources."""


class AttributeValue(Struct, gc=False):
    text: str | None = field(name="string", default=None)
    number: int | None = field(name="int", default=None)
    truth: bool | None = field(name="bool", default=None)
    version: str | None = None


class ValidRange(Struct, gc=False):
    least: Quantity | None = field(name="min", default=None)
    most: Quantity | None = field(name="max", default=None)
    step: Quantity | None = None


class RequestPolicy(Struct, gc=False, rename="camel"):
    default: Quantity | None = None
    valid_values: list[Quantity] | None = None
    valid_range: ValidRange | None = None


class Capacity(Struct, gc=False, rename="camel"):
    value: Quantity = "0"
    request_policy: RequestPolicy | None = None


class Counter(Struct, gc=False):
    value: Quantity = "0"


class CounterSet(Struct, gc=False):
    name: str = ""
    counters: dict[str, Counter] | None = None


class CounterConsumption(Struct, gc=False, rename="camel"):
    counter_set: str = ""
    counters: dict[str, Counter] | None = None


class Device(Struct, gc=False, rename="camel"):
    name: str
    attributes: dict[str, AttributeValue] | None = None
    capacity: dict[str, Capacity] | None = None
    taints: list[wire.Taint] | None = None
    consumes_counters: list[CounterConsumption] | None = None
    allow_multiple_allocations: bool | None = None
    node_name: str | None = None
    node_selector: wire.NodeSelector | None = None
    all_nodes: bool | None = None
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] | None = None
    binds_to_node: bool | None = None


class Pool(Struct, gc=False, rename="camel"):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 1


class SliceSpec(Struct, gc=False, rename="camel"):
    driver: str = ""
    pool: Pool = field(default_factory=Pool)
    node_name: str | None = None
    node_selector: wire.NodeSelector | None = None
    all_nodes: bool | None = None
    devices: list[Device] | None = None
    per_device_node_selection: bool | None = None
    shared_counters: list[CounterSet] | None = None


class ResourceSlice(Struct, gc=False):
    metadata: wire.Meta
    spec: SliceSpec = field(default_factory=SliceSpec)


class DeviceTaintSelector(Struct, gc=False):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class TaintRuleSpec(Struct, gc=False, rename="camel"):
    device_selector: DeviceTaintSelector | None = None
    taint: wire.Taint = field(default_factory=wire.Taint)


class DeviceTaintRule(Struct, gc=False):
    metadata: wire.Meta
    spec: TaintRuleSpec = field(default_factory=TaintRuleSpec)


class CelExpression(Struct, gc=False):
    expression: str = ""


class Selector(Struct, gc=False):
    cel: CelExpression | None = None


class ClassSpec(Struct, gc=False, rename="camel"):
    selectors: list[Selector] | None = None
    config: list[dict[str, Any]] | None = None
    extended_resource_name: str | None = None


class DeviceClass(Struct, gc=False):
    metadata: wire.Meta
    spec: ClassSpec = field(default_factory=ClassSpec)


class Request(Struct, gc=False, rename="camel"):
    """The content of `exactly`, or one alternative of `firstAvailable`."""

    name: str = ""
    device_class_name: str = ""
    selectors: list[Selector] | None = None
    allocation_mode: str | None = None
    count: int | None = None
    admin_access: bool | None = None
    tolerations: list[wire.Toleration] | None = None
    capacity: wire.Resources | None = None
    derived_attributes: list[wire.Present] | None = None


class DeviceRequest(Struct, gc=False, rename="camel"):
    name: str = ""
    exactly: Request | None = None
    first_available: list[Request] | None = None


class Constraint(Struct, gc=False, rename="camel"):
    requests: list[str] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class Devices(Struct, gc=False):
    requests: list[DeviceRequest] | None = None
    constraints: list[Constraint] | None = None
    config: list[dict[str, Any]] | None = None


class ClaimSpec(Struct, gc=False):
    devices: Devices = field(default_factory=Devices)


class Result(Struct, gc=False, rename="camel"):
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    share_id: str | None = field(name="shareID", default=None)
    consumed_capacity: dict[str, Quantity] | None = None
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] | None = None


class Results(Struct, gc=False):
    results: list[Result] | None = None


class Allocation(Struct, gc=False, rename="camel"):
    devices: Results = field(default_factory=Results)
    node_selector: wire.NodeSelector | None = None


class Consumer(Struct, gc=False, rename="camel"):
    uid: str = ""
    api_group: str = ""
    resource: str = ""
    name: str = ""


class DeviceStatus(Struct, gc=False):
    driver: str = ""
    pool: str = ""
    device: str = ""
    conditions: list[wire.ConditionState] | None = None


class ClaimStatus(Struct, gc=False, rename="camel"):
    allocation: Allocation | None = None
    devices: list[DeviceStatus] | None = None
    reserved_for: list[Consumer] | None = None


class ResourceClaim(Struct, gc=False):
    metadata: wire.Meta
    spec: ClaimSpec = field(default_factory=ClaimSpec)
    status: ClaimStatus | None = None
