"""What is written with the devices of a claim: the IDs of shares, and the parameters for drivers."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from uuid import UUID, uuid5

from msgspec.structs import replace

from gangsched.core.inventory.device_index import Devices
from gangsched.core.objects.devices import Allocation, ResourceClaim
from gangsched.core.objects.prebindings import ClaimConfigured

_SHARES = UUID("c4a3f6a8-6f0e-4f6b-9d53-0c2b6a5f9e17")
"""The namespace of the IDs of shares."""


def configured(claim: ResourceClaim, allocation: Allocation, devices: Devices) -> tuple[ClaimConfigured, ...]:
    """The configuration for the drivers of the devices: first that of their classes, then that of the claim."""
    chosen = dict.fromkeys(device.request for device in allocation.devices)
    entries = []
    by_class: dict[str, list[str]] = {}
    for request in claim.wishes.every:
        if request.name in chosen:
            by_class.setdefault(request.device_class, []).append(request.name)
    for name, requests in by_class.items():
        device_class = devices.device_class(name)
        configs = device_class.config if device_class is not None else ()
        entries += [ClaimConfigured("FromClass", tuple(requests), config) for config in configs]
    names = {*chosen, *(name.partition("/")[0] for name in chosen)}
    asked = [entry for entry in claim.wishes.config if not entry.requests or names.intersection(entry.requests)]
    entries += [ClaimConfigured("FromClaim", entry.requests, entry.config) for entry in asked]
    return tuple(replace(entry, requests=()) if _for_all(entry.requests, chosen) else entry for entry in entries)


def _for_all(requests: Collection[str], chosen: Iterable[str]) -> bool:
    """Whether these are all requests that have devices, each alternative by itself or by its request.

    Then none needs to be named, as in kube-scheduler since 1.37.
    """
    return all({name, name.partition("/")[0]}.intersection(requests) for name in chosen)


def identified(allocation: Allocation, claim: ResourceClaim) -> Allocation:
    """The allocation with an ID for each share of a device: the same for all pods that use the claim."""
    if not any(device.shared for device in allocation.devices):
        return allocation
    key = f"{claim.namespace}/{claim.name}/{claim.uid}"
    devices = (
        replace(device, share=str(uuid5(_SHARES, f"{key}/{at}/{'/'.join(device.device)}"))) if device.shared else device
        for at, device in enumerate(allocation.devices)
    )
    return replace(allocation, devices=tuple(devices))
