"""The devices that a node offers, as a search for an allocation sees them."""

from __future__ import annotations

from collections.abc import Mapping

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
