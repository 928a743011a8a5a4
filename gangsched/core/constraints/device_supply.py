"""Finds the devices that nodes offer, those that requests select, and the expressions that cannot be evaluated.

The results are cached until slices, classes or nodes change.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gangsched.core.constraints.device_offers import Offer, Offers, PoolView, view
from gangsched.core.constraints.node_affinity import NodeAffinity
from gangsched.core.constraints.node_rows import Nodes
from gangsched.core.inventory.device_index import Devices
from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.devices import DeviceRequest, DeviceWishes
from gangsched.core.objects.offered_devices import Device, ResourceSlice, Selector, SelectorResult

_NOTHING = Offers()
_Choice = tuple[str, tuple[Selector, ...], int]
"""All by which devices are selected: the class and the expressions of a request, and the row."""
_KEPT = 1 << 20
"""Limit for the number of cached results, some of claims that no longer exist; at the limit all are dropped."""


class DeviceSupply:
    """The devices on offer, by row. `shared`: some devices can be used on several nodes."""

    def __init__(self, devices: Devices, nodes: Nodes, affinity: NodeAffinity) -> None:
        self.shared = False
        self._devices = devices
        self._nodes = nodes
        self._affinity = affinity
        self._known_at = (-1, -1)
        self._offers: dict[int, Offers] = {}
        self._selected: dict[_Choice, tuple[int, ...]] = {}
        self._failing: dict[_Choice, str] = {}
        self._only_on: dict[tuple[str, str], frozenset[int]] = {}

    def offers(self, row: int) -> Offers:
        """The devices that can be used on the row's node."""
        self._renew()
        return self._offers.get(row, _NOTHING)

    def rows(self) -> IntArray:
        """The rows whose nodes offer devices, or have a pool that is incomplete or contradicts itself."""
        self._renew()
        return np.array(sorted(self._offers), dtype=np.int64)

    def selected(self, request: DeviceRequest, row: int) -> Sequence[int]:
        """The row's offers, by number, that the request and its class select."""
        offers = self.offers(row)
        choice = _choice(request, row)
        numbers = self._selected.get(choice)
        if numbers is None:
            if len(self._selected) >= _KEPT:
                self._selected.clear()
                self._failing.clear()
            numbers = tuple(at for at, offer in enumerate(offers.devices) if self._selects(request, offer, row))
            self._selected[choice] = numbers
        return numbers

    def failure(self, wishes: DeviceWishes) -> str:
        """The first expression that cannot be evaluated for some device on some node; empty if there is none."""
        rows = self.rows().tolist()
        for request in wishes.every:
            for row in rows:
                self.selected(request, row)
                if (failure := self._failing.get(_choice(request, row))) is not None:
                    return failure
        return ""

    def _selects(self, request: DeviceRequest, offer: Offer, row: int) -> bool:
        device_class = self._devices.device_class(request.device_class)
        if device_class is None:
            return False
        for selector in (*device_class.selectors, *request.selectors):
            result = selector.evaluate(offer.key[0], offer.device)
            if result is SelectorResult.ERROR:
                self._failing.setdefault(_choice(request, row), selector.failure())
            if result is not SelectorResult.TRUE:
                return False
        return True

    def _renew(self) -> None:
        """Rebuild the offers and drop cached results if slices, classes or nodes have changed."""
        now = (self._devices.generation, self._nodes.generation)
        if self._known_at == now:
            return
        self._known_at = now
        self._selected.clear()
        self._failing.clear()
        self.shared = False
        everywhere = np.flatnonzero(self._nodes.among_first(self._nodes.size))
        seen: dict[int, list[PoolView]] = {}
        for slices in self._devices.pools():
            for row, pool in self._views(slices, everywhere).items():
                seen.setdefault(row, []).append(pool)
        self._offers = {row: self._in_order(pools, row) for row, pools in seen.items()}
        self._only_on.clear()

    def _views(self, slices: Sequence[ResourceSlice], everywhere: IntArray) -> dict[int, PoolView]:
        """The pool as each row sees it for which it has slices."""
        by_row: dict[int, tuple[int, ...]] = {}
        for at, part in enumerate(slices):
            for row in self._usable(part, everywhere):
                by_row[row] = (*by_row.get(row, ()), at)
        self.shared |= any(part.counters for part in slices) and len(by_row) > 1
        views = {seen: view(slices, [slices[at] for at in seen]) for seen in {*by_row.values()}}
        return {row: pool for row, seen in by_row.items() if (pool := views[seen]) is not None}

    def _usable(self, part: ResourceSlice, everywhere: IntArray) -> list[int]:
        """The rows where the slice counts; sets `shared` if several of them can use its devices."""
        if part.unsupported:
            return []
        if part.node:
            return self._where(part, everywhere)
        self.shared |= bool(part.devices)
        if not part.per_device:
            return self._where(part, everywhere)
        rows: set[int] = set()
        for device in part.devices:
            somewhere = device.node or device.everywhere or device.node_affinity is not None
            here = self._where(device, everywhere) if somewhere else []
            self._only_on[part.name, device.name] = frozenset(here)
            rows.update(here)
        return sorted(rows)

    def _where(self, place: ResourceSlice | Device, everywhere: IntArray) -> list[int]:
        mask = None
        if place.node:
            mask = self._nodes.names.among((place.node,), everywhere)
        elif place.node_affinity is not None:
            mask = self._affinity.among(place.node_affinity, everywhere)
        rows: list[int] = (everywhere if mask is None else everywhere[mask]).tolist()
        return rows

    def _in_order(self, pools: Sequence[PoolView], row: int) -> Offers:
        """The devices that the pools offer the row; those of pools with devices that must be made ready come last."""
        ordered = sorted(pools, key=lambda pool: pool.late)
        offers = (
            Offer((part.driver, part.pool, device.name), device, part, pool.pool)
            for pool in ordered
            for part in pool.parts
            for device in part.devices
            if not part.per_device or row in self._only_on[part.name, device.name]
        )
        return Offers(tuple(offers), not any(pool.broken for pool in pools))


def _choice(request: DeviceRequest, row: int) -> _Choice:
    return request.device_class, request.selectors, row
