"""Converts ResourceSlices, DeviceClasses and ResourceClaims to values of the core, and defines how they are listed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from sys import intern
from typing import Any

import msgspec

from gangsched.config.dialects import CustomResource
from gangsched.core.objects.devices import (
    AllocatedDevice,
    Allocation,
    Amounts,
    ClaimConfig,
    Consumer,
    DeviceClass,
    DeviceKind,
    DeviceObject,
    DeviceRequest,
    DeviceWishes,
    Match,
    ResourceClaim,
)
from gangsched.core.objects.events import DeviceObjectGone, DeviceObjectSeen, DeviceObjectsReplaced
from gangsched.core.objects.offered_devices import (
    Attribute,
    AttributeType,
    Capacity,
    Device,
    DeviceKey,
    DeviceTaint,
    DeviceTaintRule,
    ResourceSlice,
    Selector,
)
from gangsched.core.objects.quantity import Quantity, billionths
from gangsched.kube import wire
from gangsched.kube.cel.device_selectors import CelSelector
from gangsched.kube.client.resource import Resource, Sent, reading
from gangsched.kube.foreign.watch import Subject
from gangsched.kube.reading.storage_values import MARK
from gangsched.kube.terms.node_terms import node_terms, toleration
from gangsched.kube.terms.sharing import sharing
from gangsched.kube.wire import device_objects as device_wire
from gangsched.kube.wire.device_objects import EXTENDED, GROUP, GROUPS, VERSION

_shared_wishes = sharing()
"""Claims of one template are equal."""


def slice_(resource_slice: device_wire.ResourceSlice) -> ResourceSlice:
    """The core's value for a ResourceSlice."""
    spec = resource_slice.spec
    slice_wide = bool(spec.node_name or spec.all_nodes or spec.node_selector)
    return ResourceSlice(
        name=resource_slice.metadata.name or "",
        driver=intern(spec.driver),
        pool=intern(spec.pool.name),
        generation=spec.pool.generation,
        parts=spec.pool.resource_slice_count,
        node=intern(spec.node_name or ""),
        node_affinity=node_terms(spec.node_selector),
        devices=tuple(_device(device, spec.driver) for device in spec.devices or ()),
        unsupported=not (slice_wide or spec.per_device_node_selection or spec.shared_counters),
        per_device=not slice_wide and bool(spec.per_device_node_selection),
        counters=tuple(
            ((counter_set.name, name), billionths(counter.value))
            for counter_set in spec.shared_counters or ()
            for name, counter in sorted((counter_set.counters or {}).items())
        ),
    )


def _device(device: device_wire.Device, driver: str) -> Device:
    capacity = sorted((device.capacity or {}).items())
    return Device(
        name=device.name,
        attributes=tuple(sorted(_attributes(device.attributes or {}, driver), key=lambda attribute: attribute.name)),
        capacity=tuple(sorted((_full(name, driver), str(entry.value)) for name, entry in capacity)),
        taints=tuple(map(_taint, device.taints or ())),
        shares=tuple(_capacity(name, entry) for name, entry in capacity),
        counters=tuple(
            ((consumption.counter_set, name), billionths(counter.value))
            for consumption in device.consumes_counters or ()
            for name, counter in sorted((consumption.counters or {}).items())
        ),
        multiple=bool(device.allow_multiple_allocations),
        node=intern(device.node_name or ""),
        node_affinity=node_terms(device.node_selector),
        everywhere=bool(device.all_nodes),
        binding=tuple(device.binding_conditions or ()),
        failing=tuple(device.binding_failure_conditions or ()),
        binds_to_node=bool(device.binds_to_node),
    )


def _capacity(name: str, capacity: device_wire.Capacity) -> Capacity:
    policy = capacity.request_policy or device_wire.RequestPolicy()
    range_ = policy.valid_range or device_wire.ValidRange()
    return Capacity(
        name,
        billionths(capacity.value),
        default=_amount(policy.default),
        values=tuple(map(billionths, policy.valid_values or ())),
        least=_amount(range_.least),
        most=_amount(range_.most),
        step=_amount(range_.step),
    )


def _amount(quantity: Quantity | None) -> int | None:
    return None if quantity is None else billionths(quantity)


def _amounts(quantities: Mapping[str, Quantity] | None) -> Amounts:
    return tuple(sorted((name, billionths(quantity)) for name, quantity in (quantities or {}).items()))


def _attributes(attributes: Mapping[str, device_wire.AttributeValue], driver: str) -> Iterator[Attribute]:
    for name, value in attributes.items():
        full = intern(_full(name, driver))
        if value.text is not None:
            yield Attribute(full, AttributeType.STRING, value.text)
        elif value.number is not None:
            yield Attribute(full, AttributeType.INT, str(value.number))
        elif value.truth is not None:
            yield Attribute(full, AttributeType.BOOL, "true" if value.truth else "false")
        elif value.version is not None:
            yield Attribute(full, AttributeType.VERSION, value.version)
        else:
            yield Attribute(full, AttributeType.OTHER, "")


def _full(name: str, driver: str) -> str:
    return name if "/" in name else f"{driver}/{name}"


def _taint(taint: wire.Taint) -> DeviceTaint:
    return DeviceTaint(taint.key, taint.value or "", taint.effect)


def taint_rule(rule: device_wire.DeviceTaintRule) -> DeviceTaintRule:
    """The core's value for a DeviceTaintRule, which the API serves by default since Kubernetes 1.37."""
    selector = rule.spec.device_selector or device_wire.DeviceTaintSelector()
    return DeviceTaintRule(
        rule.metadata.name or "",
        _taint(rule.spec.taint),
        selector.driver or "",
        selector.pool or "",
        selector.device or "",
    )


def device_class(class_: device_wire.DeviceClass) -> DeviceClass:
    """The core's value for a DeviceClass."""
    created = class_.metadata.creation_timestamp
    return DeviceClass(
        name=class_.metadata.name or "",
        selectors=_selectors(class_.spec.selectors),
        config=tuple(map(_json, class_.spec.config or ())),
        resource=class_.spec.extended_resource_name or "",
        made_at=created.timestamp() if created is not None else 0.0,
    )


def claim(resource_claim: device_wire.ResourceClaim) -> ResourceClaim:
    """The core's value for a ResourceClaim."""
    meta, status = resource_claim.metadata, resource_claim.status or device_wire.ClaimStatus()
    owner = next((owner for owner in meta.owner_references or () if owner.controller), wire.Owner())
    of_group = owner.kind == "PodGroup" and owner.api_version.startswith(f"{GROUPS[0]}/")
    return ResourceClaim(
        namespace=intern(meta.namespace or "default"),
        name=meta.name or "",
        uid=meta.uid or "",
        wishes=_shared_wishes(_wishes(resource_claim.spec.devices)),
        allocation=_allocation(status.allocation) if status.allocation is not None else None,
        reserved=tuple(reference.uid for reference in status.reserved_for or ()),
        sharing=tuple(
            Consumer(reference.name, reference.uid, group=True)
            for reference in status.reserved_for or ()
            if (reference.api_group, reference.resource) == GROUPS
        ),
        owner=owner.uid,
        terminating=meta.deletion_timestamp is not None,
        ours=MARK in (meta.annotations or {}),
        extended=(meta.annotations or {}).get(EXTENDED) == "true",
        conditions=tuple(map(_reported, status.devices or ())),
        group=owner.name if of_group else "",
    )


def _reported(status: device_wire.DeviceStatus) -> tuple[DeviceKey, tuple[str, ...]]:
    true = tuple(condition.type for condition in status.conditions or () if condition.status == "True")
    return (intern(status.driver), intern(status.pool), status.device), true


def _wishes(devices: device_wire.Devices) -> DeviceWishes:
    return DeviceWishes(
        requests=tuple(tuple(_alternatives(request)) for request in devices.requests or ()),
        matches=tuple(
            Match(
                constraint.match_attribute or constraint.distinct_attribute or "",
                tuple(constraint.requests or ()),
                distinct=not constraint.match_attribute,
            )
            for constraint in devices.constraints or ()
        ),
        config=tuple(
            ClaimConfig(
                tuple(entry.get("requests") or ()), _json({name: entry[name] for name in entry if name != "requests"})
            )
            for entry in devices.config or ()
        ),
        unsupported=_beyond(devices),
    )


def _beyond(devices: device_wire.Devices) -> str:
    """The first feature of a claim that gangsched does not support, described for a person; empty if there is none."""
    for request in devices.requests or ():
        alternatives = [*(request.first_available or ()), *([request.exactly] if request.exactly is not None else [])]
        if not alternatives:
            return f"an unknown kind of request ({request.name})"
        for alternative in alternatives:
            if alternative.derived_attributes:
                return "derived attributes"
            if alternative.allocation_mode not in (None, "", "ExactCount", "All"):
                return f"the allocation mode {alternative.allocation_mode}"
    if any(
        not (constraint.match_attribute or constraint.distinct_attribute) for constraint in devices.constraints or ()
    ):
        return "a constraint other than matchAttribute and distinctAttribute"
    return ""


def _alternatives(request: device_wire.DeviceRequest) -> Iterator[DeviceRequest]:
    if request.exactly is not None:
        yield _request(request.exactly, request.name)
    for alternative in request.first_available or ():
        yield _request(alternative, f"{request.name}/{alternative.name}")


def _request(request: device_wire.Request, name: str) -> DeviceRequest:
    return DeviceRequest(
        name=name,
        device_class=request.device_class_name,
        selectors=_selectors(request.selectors),
        count=1 if request.count is None else request.count,
        all=request.allocation_mode == "All",
        admin=bool(request.admin_access),
        tolerations=tuple(map(toleration, request.tolerations or ())),
        capacity=_amounts(request.capacity.requests) if request.capacity is not None else (),
    )


def _selectors(selectors: Iterable[device_wire.Selector] | None) -> tuple[Selector, ...]:
    """The selectors; one of an unknown kind has an empty expression, which cannot be evaluated."""
    return tuple(
        CelSelector(selector.cel.expression if selector.cel is not None else "") for selector in selectors or ()
    )


def _allocation(allocation: device_wire.Allocation) -> Allocation:
    return Allocation(
        tuple(
            AllocatedDevice(
                result.request,
                (intern(result.driver), intern(result.pool), result.device),
                admin=bool(result.admin_access),
                shared=result.share_id is not None,
                share=result.share_id or "",
                consumed=_amounts(result.consumed_capacity),
                binding=tuple(result.binding_conditions or ()),
                failing=tuple(result.binding_failure_conditions or ()),
            )
            for result in allocation.devices.results or ()
        ),
        node_terms(allocation.node_selector),
    )


def _json(value: dict[str, Any]) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


def _listed(
    kind: DeviceKind, plural: str, form: type[Sent], value: Callable[[Sent], DeviceObject]
) -> Resource[DeviceObject]:
    return Resource[DeviceObject](
        name=plural,
        path=f"/apis/{GROUP}/{VERSION}/{plural}",
        read=reading(form, value),
        form=form,
        seen=lambda item: DeviceObjectSeen(kind, item),
        gone=lambda meta: DeviceObjectGone(kind, (meta.namespace or "", meta.name or "")),
        replaced=lambda items: DeviceObjectsReplaced(kind, items),
        optional=True,
    )


DEVICES = {
    DeviceKind.CLASS: _listed(DeviceKind.CLASS, "deviceclasses", device_wire.DeviceClass, device_class),
    DeviceKind.SLICE: _listed(DeviceKind.SLICE, "resourceslices", device_wire.ResourceSlice, slice_),
    DeviceKind.TAINT_RULE: _listed(DeviceKind.TAINT_RULE, "devicetaintrules", device_wire.DeviceTaintRule, taint_rule),
    DeviceKind.CLAIM: _listed(DeviceKind.CLAIM, "resourceclaims", device_wire.ResourceClaim, claim),
}
"""The resources that decide where pods with devices can run, by kind."""


def subject(kind: DeviceKind) -> Subject:
    """The kind as the subject of a `ForeignWatch`: an API server need not serve it.

    While the kind cannot be read, pods that need it wait.
    """
    nothing = DeviceObjectsReplaced(kind, ())
    return Subject(
        dialect=GROUP,
        kind=CustomResource(group=GROUP, versions=(VERSION,), plural=DEVICES[kind].name),
        resource=lambda _: DEVICES[kind],
        absent=nothing,
        hidden=lambda _, **__: nothing,
        without="pods with ResourceClaims wait",
    )
