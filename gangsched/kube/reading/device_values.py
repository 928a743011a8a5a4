"""Converts ResourceSlices, DeviceClasses and ResourceClaims to values of the core, and defines how they are listed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
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
from gangsched.kube.terms.node_terms import node_term, toleration
from gangsched.kube.wire import device_objects as device_wire
from gangsched.kube.wire.device_objects import EXTENDED, GROUP, GROUPS, VERSION

_KEPT = 1024


def slice_(found: device_wire.ResourceSlice) -> ResourceSlice:
    """The core's value for a ResourceSlice."""
    spec = found.spec
    known = bool(spec.node_name or spec.all_nodes or spec.node_selector)
    terms = spec.node_selector.node_selector_terms or () if spec.node_selector is not None else None
    return ResourceSlice(
        name=found.metadata.name or "",
        driver=intern(spec.driver),
        pool=intern(spec.pool.name),
        generation=spec.pool.generation,
        parts=spec.pool.resource_slice_count,
        node=intern(spec.node_name or ""),
        node_affinity=None if terms is None else tuple(map(node_term, terms)),
        devices=tuple(_device(each, spec.driver) for each in spec.devices or ()),
        unsupported=not (known or spec.per_device_node_selection or spec.shared_counters),
        per_device=not known and bool(spec.per_device_node_selection),
        counters=tuple(
            ((each.name, name), billionths(counter.value))
            for each in spec.shared_counters or ()
            for name, counter in sorted((each.counters or {}).items())
        ),
    )


def _device(found: device_wire.Device, driver: str) -> Device:
    capacity = sorted((found.capacity or {}).items())
    terms = found.node_selector.node_selector_terms or () if found.node_selector is not None else None
    return Device(
        name=found.name,
        attributes=tuple(sorted(_attributes(found.attributes or {}, driver), key=lambda each: each.name)),
        capacity=tuple(sorted((_full(name, driver), str(each.value)) for name, each in capacity)),
        taints=tuple(map(_taint, found.taints or ())),
        shares=tuple(_capacity(name, each) for name, each in capacity),
        counters=tuple(
            ((each.counter_set, name), billionths(counter.value))
            for each in found.consumes_counters or ()
            for name, counter in sorted((each.counters or {}).items())
        ),
        multiple=bool(found.allow_multiple_allocations),
        node=intern(found.node_name or ""),
        node_affinity=None if terms is None else tuple(map(node_term, terms)),
        everywhere=bool(found.all_nodes),
        binding=tuple(found.binding_conditions or ()),
        failing=tuple(found.binding_failure_conditions or ()),
        binds_to_node=bool(found.binds_to_node),
    )


def _capacity(name: str, found: device_wire.Capacity) -> Capacity:
    policy = found.request_policy or device_wire.RequestPolicy()
    range_ = policy.valid_range or device_wire.ValidRange()
    return Capacity(
        name,
        billionths(found.value),
        default=_amount(policy.default),
        values=tuple(map(billionths, policy.valid_values or ())),
        least=_amount(range_.least),
        most=_amount(range_.most),
        step=_amount(range_.step),
    )


def _amount(found: Quantity | None) -> int | None:
    return None if found is None else billionths(found)


def _amounts(found: Mapping[str, Quantity] | None) -> Amounts:
    return tuple(sorted((name, billionths(each)) for name, each in (found or {}).items()))


def _attributes(found: Mapping[str, device_wire.AttributeValue], driver: str) -> Iterator[Attribute]:
    for name, value in found.items():
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


def _taint(found: device_wire.DeviceTaint) -> DeviceTaint:
    return DeviceTaint(found.key, found.value or "", found.effect)


def taint_rule(found: device_wire.DeviceTaintRule) -> DeviceTaintRule:
    """The core's value for a DeviceTaintRule, which the API serves by default since Kubernetes 1.37."""
    which = found.spec.device_selector or device_wire.DeviceTaintSelector()
    return DeviceTaintRule(
        found.metadata.name or "", _taint(found.spec.taint), which.driver or "", which.pool or "", which.device or ""
    )


def device_class(found: device_wire.DeviceClass) -> DeviceClass:
    """The core's value for a DeviceClass."""
    made = found.metadata.creation_timestamp
    return DeviceClass(
        name=found.metadata.name or "",
        selectors=_selectors(found.spec.selectors),
        config=tuple(map(_json, found.spec.config or ())),
        resource=found.spec.extended_resource_name or "",
        made_at=made.timestamp() if made is not None else 0.0,
    )


def claim(found: device_wire.ResourceClaim) -> ResourceClaim:
    """The core's value for a ResourceClaim."""
    meta, status = found.metadata, found.status or device_wire.ClaimStatus()
    owner = next((owner for owner in meta.owner_references or () if owner.controller), wire.Owner())
    of_group = owner.kind == "PodGroup" and owner.api_version.startswith(f"{GROUPS[0]}/")
    return ResourceClaim(
        namespace=intern(meta.namespace or "default"),
        name=meta.name or "",
        uid=meta.uid or "",
        wishes=_kept_wishes(_wishes(found.spec.devices)),
        allocation=_allocation(status.allocation) if status.allocation is not None else None,
        reserved=tuple(each.uid for each in status.reserved_for or ()),
        sharing=tuple(
            Consumer(each.name, each.uid, group=True)
            for each in status.reserved_for or ()
            if (each.api_group, each.resource) == GROUPS
        ),
        owner=owner.uid,
        terminating=meta.deletion_timestamp is not None,
        ours=MARK in (meta.annotations or {}),
        extended=(meta.annotations or {}).get(EXTENDED) == "true",
        conditions=tuple(map(_reported, status.devices or ())),
        group=owner.name if of_group else "",
    )


def _reported(found: device_wire.DeviceStatus) -> tuple[DeviceKey, tuple[str, ...]]:
    true = tuple(each.type for each in found.conditions or () if each.status == "True")
    return (intern(found.driver), intern(found.pool), found.device), true


def _wishes(found: device_wire.Devices) -> DeviceWishes:
    return DeviceWishes(
        requests=tuple(tuple(_alternatives(each)) for each in found.requests or ()),
        matches=tuple(
            Match(
                each.match_attribute or each.distinct_attribute or "",
                tuple(each.requests or ()),
                distinct=not each.match_attribute,
            )
            for each in found.constraints or ()
        ),
        config=tuple(
            ClaimConfig(
                tuple(each.get("requests") or ()), _json({name: each[name] for name in each if name != "requests"})
            )
            for each in found.config or ()
        ),
        unsupported=_beyond(found),
    )


def _beyond(found: device_wire.Devices) -> str:
    """The first feature of a claim that gangsched does not support, described for a person; empty if there is none."""
    for request in found.requests or ():
        alternatives = [*(request.first_available or ()), *([request.exactly] if request.exactly is not None else [])]
        if not alternatives:
            return f"an unknown kind of request ({request.name})"
        for each in alternatives:
            if each.derived_attributes:
                return "derived attributes"
            if each.allocation_mode not in (None, "", "ExactCount", "All"):
                return f"the allocation mode {each.allocation_mode}"
    if any(not (each.match_attribute or each.distinct_attribute) for each in found.constraints or ()):
        return "a constraint other than matchAttribute and distinctAttribute"
    return ""


def _alternatives(found: device_wire.DeviceRequest) -> Iterator[DeviceRequest]:
    if found.exactly is not None:
        yield _request(found.exactly, found.name)
    for each in found.first_available or ():
        yield _request(each, f"{found.name}/{each.name}")


def _request(found: device_wire.Request, name: str) -> DeviceRequest:
    return DeviceRequest(
        name=name,
        device_class=found.device_class_name,
        selectors=_selectors(found.selectors),
        count=1 if found.count is None else found.count,
        all=found.allocation_mode == "All",
        admin=bool(found.admin_access),
        tolerations=tuple(map(toleration, found.tolerations or ())),
        capacity=_amounts(found.capacity.requests) if found.capacity is not None else (),
    )


def _selectors(found: Iterable[device_wire.Selector] | None) -> tuple[Selector, ...]:
    """The selectors; one of an unknown kind has an empty expression, which cannot be evaluated."""
    return tuple(CelSelector(each.cel.expression if each.cel is not None else "") for each in found or ())


def _allocation(found: device_wire.Allocation) -> Allocation:
    terms = found.node_selector.node_selector_terms or () if found.node_selector is not None else None
    return Allocation(
        tuple(
            AllocatedDevice(
                each.request,
                (intern(each.driver), intern(each.pool), each.device),
                admin=bool(each.admin_access),
                shared=each.share_id is not None,
                share=each.share_id or "",
                consumed=_amounts(each.consumed_capacity),
                binding=tuple(each.binding_conditions or ()),
                failing=tuple(each.binding_failure_conditions or ()),
            )
            for each in found.devices.results or ()
        ),
        None if terms is None else tuple(map(node_term, terms)),
    )


def _json(found: dict[str, Any]) -> str:
    return msgspec.json.encode(found, order="sorted").decode()


@lru_cache(maxsize=_KEPT)
def _kept_wishes(found: DeviceWishes) -> DeviceWishes:
    """A shared instance equal to this value, from the `_KEPT` most recently used: claims of one template are equal."""
    return found


def _listed(
    kind: DeviceKind, plural: str, form: type[Sent], value: Callable[[Sent], DeviceObject]
) -> Resource[DeviceObject]:
    return Resource[DeviceObject](
        name=plural,
        path=f"/apis/{GROUP}/{VERSION}/{plural}",
        read=reading(form, value),
        form=form,
        seen=lambda found: DeviceObjectSeen(kind, found),
        gone=lambda meta: DeviceObjectGone(kind, (meta.namespace or "", meta.name or "")),
        replaced=lambda found: DeviceObjectsReplaced(kind, found),
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
