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
    Attribute,
    AttributeType,
    ClaimConfig,
    Device,
    DeviceClass,
    DeviceKind,
    DeviceObject,
    DeviceRequest,
    DeviceTaint,
    DeviceWishes,
    Match,
    ResourceClaim,
    ResourceSlice,
    Selector,
)
from gangsched.core.objects.events import DeviceObjectGone, DeviceObjectSeen, DeviceObjectsReplaced
from gangsched.kube import device_wire, wire
from gangsched.kube.cel import CelSelector
from gangsched.kube.device_wire import EXTENDED, GROUP, VERSION
from gangsched.kube.foreign import Subject
from gangsched.kube.node_terms import node_term, toleration
from gangsched.kube.resources import Resource, Sent, reading
from gangsched.kube.storage import MARK

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
        unsupported=not known or bool(spec.shared_counters),
    )


def _device(found: device_wire.Device, driver: str) -> Device:
    beyond = ""
    if found.consumes_counters:
        beyond = "consumesCounters"
    elif found.allow_multiple_allocations:
        beyond = "allowMultipleAllocations"
    elif found.binding_conditions:
        beyond = "bindingConditions"
    return Device(
        name=found.name,
        attributes=tuple(sorted(_attributes(found.attributes or {}, driver), key=lambda each: each.name)),
        capacity=tuple(sorted((_full(name, driver), each.value) for name, each in (found.capacity or {}).items())),
        taints=tuple(DeviceTaint(each.key, each.value or "", each.effect) for each in found.taints or ()),
        unsupported=beyond,
    )


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
    of_group = owner.kind == "PodGroup" and owner.api_version.startswith("scheduling.k8s.io/")
    return ResourceClaim(
        namespace=intern(meta.namespace or "default"),
        name=meta.name or "",
        uid=meta.uid or "",
        wishes=_kept_wishes(_wishes(found.spec.devices)),
        allocation=_allocation(status.allocation) if status.allocation is not None else None,
        reserved=tuple(each.uid for each in status.reserved_for or ()),
        owner=owner.uid,
        terminating=meta.deletion_timestamp is not None,
        ours=MARK in (meta.annotations or {}),
        extended=(meta.annotations or {}).get(EXTENDED) == "true",
        group=owner.name if of_group else "",
    )


def _wishes(found: device_wire.Devices) -> DeviceWishes:
    return DeviceWishes(
        requests=tuple(tuple(_alternatives(each)) for each in found.requests or ()),
        matches=tuple(
            Match(each.match_attribute or "", tuple(each.requests or ())) for each in found.constraints or ()
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
            if each.capacity is not None:
                return "a part of a device's capacity (capacity.requests)"
            if each.allocation_mode not in (None, "", "ExactCount", "All"):
                return f"the allocation mode {each.allocation_mode}"
    if any(not each.match_attribute for each in found.constraints or ()):
        return "a constraint other than matchAttribute"
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
                admin=bool(each.admin_access) or each.share_id is not None,
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
        seen=lambda found: DeviceObjectSeen(kind, found),
        gone=lambda meta: DeviceObjectGone(kind, (meta.namespace or "", meta.name or "")),
        replaced=lambda found: DeviceObjectsReplaced(kind, found),
        optional=True,
    )


DEVICES = {
    DeviceKind.CLASS: _listed(DeviceKind.CLASS, "deviceclasses", device_wire.DeviceClass, device_class),
    DeviceKind.SLICE: _listed(DeviceKind.SLICE, "resourceslices", device_wire.ResourceSlice, slice_),
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
