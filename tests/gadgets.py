"""Devices in memory: the API server's side of their allocation, and objects for tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gangsched.core.objects.devices import DeviceClass, DeviceKind, DeviceRequest, DeviceWishes, Match, ResourceClaim
from gangsched.core.objects.offered_devices import Attribute, AttributeType, Device, DeviceKey, ResourceSlice
from gangsched.core.objects.prebindings import UseDevices, reserved
from gangsched.kube.cel.device_selectors import CelSelector

if TYPE_CHECKING:
    from tests.harness import Harness

DRIVER = "gpu.example.com"
GPUS = DeviceClass("gpu", (CelSelector(f"device.driver == '{DRIVER}'"),))


def gpu(name: str, model: str = "a100", *, numa: int | None = None, **fields) -> Device:
    """A device with a model and optionally a NUMA node."""
    found = [Attribute(f"{DRIVER}/model", AttributeType.STRING, model)]
    if numa is not None:
        found.append(Attribute(f"{DRIVER}/numa", AttributeType.INT, str(numa)))
    return Device(name, tuple(found), **fields)


def gpus(node: str, number: int = 1, *, per_numa: int | None = None, **fields) -> ResourceSlice:
    """The slice of a node's own pool with `number` devices, `per_numa` of them on each NUMA node."""
    devices = tuple(gpu(f"gpu-{at}", numa=None if per_numa is None else at // per_numa) for at in range(number))
    return ResourceSlice(f"{node}-gpus", DRIVER, node, **{"node": node, "devices": devices, **fields})


def asks(count: int = 1, *, name: str = "gpu", device_class: str = "gpu", where: str = "", **fields) -> DeviceRequest:
    """One request for devices that the expression selects."""
    selectors = (CelSelector(where),) if where else ()
    return DeviceRequest(name, device_class, selectors, count, **fields)


def wishes(*requests: DeviceRequest | tuple[DeviceRequest, ...], same: str = "", **fields) -> DeviceWishes:
    """A claim's requests; a tuple holds alternatives. All devices must share one value of the attribute `same`."""
    matches = (Match(f"{DRIVER}/{same}"),) if same else ()
    return DeviceWishes(tuple(each if isinstance(each, tuple) else (each,) for each in requests), matches, **fields)


def device_claim(name: str, what: DeviceWishes | None = None, **fields) -> ResourceClaim:
    """A claim in `default`, for one device by default."""
    return ResourceClaim("default", name, f"uid-{name}", wishes(asks()) if what is None else what, **fields)


class Gadgets:
    """The ResourceClaims of a harness."""

    def __init__(self, harness: Harness) -> None:
        self._harness = harness

    def claim(self, name: str) -> ResourceClaim:
        found = self._harness.devices[DeviceKind.CLAIM]["default", name]
        assert isinstance(found, ResourceClaim)
        return found

    def allocated(self) -> Mapping[str, list[DeviceKey]]:
        """The devices of each claim that has any."""
        claims = [each for each in self._harness.devices[DeviceKind.CLAIM].values() if isinstance(each, ResourceClaim)]
        return {
            each.name: [device.device for device in each.allocation.devices]
            for each in claims
            if each.allocation is not None
        }

    def write(self, what: UseDevices) -> bool:
        """Allocate and reserve the claim unless another writer was first. Returns whether both are in place."""
        claim = self._harness.devices[DeviceKind.CLAIM].get((what.namespace, what.claim))
        if what.making is not None and claim is None:
            asked = [asks(count, name=name, device_class=of) for name, of, count in what.making.requests]
            claim = device_claim(what.claim, wishes(*asked), owner=what.consumer.uid, extended=True)
        elif not isinstance(claim, ResourceClaim) or what.uid not in ("", claim.uid):
            return False
        assert isinstance(claim, ResourceClaim)
        if claim.allocation is not None and claim.allocation.has != what.allocation.has:
            return False
        allocation = claim.allocation or what.allocation
        self._harness.add(replace(reserved(claim, what), allocation=allocation, ours=True))
        return True

    def undo(self, what: UseDevices) -> None:
        """Remove the reservation; with the last one also the devices, and from a claim without devices the mark."""
        claim = self._harness.devices[DeviceKind.CLAIM].get((what.namespace, what.claim))
        if what.making is not None and isinstance(claim, ResourceClaim) and claim.uid == what.uid:
            self._harness.retract(claim)
        elif isinstance(claim, ResourceClaim) and claim.uid == what.uid and claim.ours:
            left = tuple(uid for uid in claim.reserved if uid != what.consumer.uid)
            sharing = tuple(each for each in claim.sharing if each != what.consumer)
            allocation = claim.allocation if left else None
            conditions = claim.conditions if left else ()
            undone = replace(
                claim, reserved=left, sharing=sharing, allocation=allocation, ours=bool(left), conditions=conditions
            )
            self._harness.add(undone)

    def report(self, name: str, *true: str) -> None:
        """Let the drivers report these conditions, and no others, for all devices of the claim."""
        claim = self.claim(name)
        assert claim.allocation is not None
        conditions = tuple((each.device, true) for each in claim.allocation.devices)
        self._harness.add(replace(claim, conditions=conditions))


def keys(devices: Iterable[DeviceKey]) -> list[str]:
    """Pool and name of each."""
    return [f"{pool}/{name}" for _, pool, name in devices]
