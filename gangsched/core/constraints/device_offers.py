"""The devices that a node offers, as a search for an allocation sees them, and which slices of a pool it can rely on.

Source: `GatherPools` in k8s.io/dynamic-resource-allocation/structured/internal/incubating at v1.37.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from gangsched.core.objects.offered_devices import CounterKey, Device, DeviceKey, ResourceSlice

Consumption = tuple[tuple[CounterKey, int], ...]
"""Amounts of counters, in billionths."""


class Pool(Struct, frozen=True, eq=False):
    """The counters of a pool with their amounts, and what its devices consume, wherever they can be used."""

    counters: Mapping[CounterKey, int]
    consumers: tuple[tuple[DeviceKey, Consumption], ...]


NO_COUNTERS = Pool({}, ())
"""A pool without counters."""


class Offer(Struct, frozen=True):
    """A device that can be used on a node, and the slice that lists it."""

    key: DeviceKey
    device: Device
    part: ResourceSlice
    pool: Pool = NO_COUNTERS


class Offers(Struct, frozen=True):
    """All devices that can be used on a node. `whole`: no pool there is incomplete or contradicts itself."""

    devices: tuple[Offer, ...] = ()
    whole: bool = True


class PoolView(Struct, frozen=True, eq=False):
    """The slices of the pool whose devices the node may use, by name.

    `broken`: the pool is incomplete or contradicts itself, and gives nothing. `late`: it has devices that must be made
    ready before a pod with them is bound, so it comes after all other pools.
    """

    parts: tuple[ResourceSlice, ...] = ()
    pool: Pool = NO_COUNTERS
    broken: bool = False
    late: bool = False


_BROKEN = PoolView(broken=True)


def view(slices: Sequence[ResourceSlice], relevant: Sequence[ResourceSlice]) -> PoolView | None:
    """The pool with these slices, of all generations, where these are `relevant` on the node.

    Counters of slices of other nodes count too. None if the node sees only slices that were replaced elsewhere.
    """
    generation = max(part.generation for part in relevant)
    mine = [part for part in relevant if part.generation == generation]
    everyone = mine
    if not _complete(mine, len(mine)):
        if any(part.generation > generation for part in slices):
            return None
        everyone = [part for part in slices if part.generation == generation]
        if not _complete(mine, len(everyone)):
            return _BROKEN
    return _BROKEN if _contradicts_itself(mine, everyone) else _whole(mine, everyone)


def _complete(parts: Iterable[ResourceSlice], number: int) -> bool:
    return all(number == part.parts for part in parts)


def _contradicts_itself(mine: Sequence[ResourceSlice], everyone: Sequence[ResourceSlice]) -> bool:
    """Whether devices or sets of counters have the same name, or a device consumes a counter that does not exist."""
    devices = [device.name for part in mine for device in part.devices]
    sets = [name for part in everyone for name in {counter[0] for counter, _ in part.counters}]
    counters = {counter for part in everyone for counter, _ in part.counters}
    consumed = {counter for part in everyone for device in part.devices for counter, _ in device.counters}
    return len(set(devices)) < len(devices) or len(set(sets)) < len(sets) or not consumed <= counters


def _whole(mine: Sequence[ResourceSlice], everyone: Sequence[ResourceSlice]) -> PoolView:
    consumers = tuple(
        ((part.driver, part.pool, device.name), device.counters)
        for part in everyone
        for device in part.devices
        if device.counters
    )
    parts = tuple(part for part in mine if not part.counters)
    counters = dict(pair for part in everyone for pair in part.counters)
    late = any(device.binding for part in parts for device in part.devices)
    return PoolView(parts, Pool(counters, consumers), late=late)
