"""Finds the devices that nodes offer, those that requests select, and the expressions that cannot be evaluated.

The results are cached until slices, classes or nodes change.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gangsched.core.constraints.allocation import Offer, Offers
from gangsched.core.constraints.device_store import DeviceStore
from gangsched.core.constraints.node_affinity import NodeAffinity
from gangsched.core.constraints.nodes import Nodes
from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.devices import DeviceRequest, DeviceWishes, ResourceSlice, SelectorResult

_NOTHING = Offers()
_KEPT = 1 << 20
"""Limit for the number of cached results, some of claims that no longer exist; at the limit all are dropped."""


class DeviceSupply:
    """The devices on offer, by row. `shared`: some devices can be used on several nodes."""

    def __init__(self, devices: DeviceStore, nodes: Nodes, affinity: NodeAffinity) -> None:
        self.shared = False
        self._devices = devices
        self._nodes = nodes
        self._affinity = affinity
        self._known_at = (-1, -1)
        self._offers: dict[int, Offers] = {}
        self._selected: dict[tuple[DeviceRequest, int], tuple[int, ...]] = {}
        self._failing: dict[tuple[DeviceRequest, int], str] = {}

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
        found = self._selected.get((request, row))
        if found is None:
            if len(self._selected) >= _KEPT:
                self._selected.clear()
                self._failing.clear()
            found = tuple(at for at, offer in enumerate(offers.devices) if self._selects(request, offer, row))
            self._selected[request, row] = found
        return found

    def failure(self, wishes: DeviceWishes) -> str:
        """The first expression that cannot be evaluated for some device on some node; empty if there is none."""
        rows = self.rows().tolist()
        for request in (each for alternatives in wishes.requests for each in alternatives):
            for row in rows:
                self.selected(request, row)
                if (request, row) in self._failing:
                    return self._failing[request, row]
        return ""

    def _selects(self, request: DeviceRequest, offer: Offer, row: int) -> bool:
        device_class = self._devices.device_class(request.device_class)
        if device_class is None:
            return False
        for selector in (*device_class.selectors, *request.selectors):
            result = selector.evaluate(offer.key[0], offer.device)
            if result is SelectorResult.ERROR:
                self._failing.setdefault((request, row), selector.expression)
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
        offered: dict[int, list[Offer]] = {}
        broken: set[int] = set()
        self.shared = False
        everywhere = np.flatnonzero(self._nodes.there(np.arange(self._nodes.size)))
        for parts, complete in self._devices.pools():
            by_row: dict[int, list[Offer]] = {}
            for part in parts:
                for row in self._usable(part, everywhere):
                    by_row.setdefault(row, []).extend(_offers(part))
            for row, offers in by_row.items():
                if complete and len({offer.key for offer in offers}) == len(offers):
                    offered.setdefault(row, []).extend(offers)
                else:
                    offered.setdefault(row, [])
                    broken.add(row)
        self._offers = {row: Offers(tuple(offers), row not in broken) for row, offers in offered.items()}

    def _usable(self, part: ResourceSlice, everywhere: IntArray) -> list[int]:
        """The rows where the slice's devices can be used; sets `shared` unless that is a single node."""
        if part.unsupported:
            return []
        if part.node:
            rows: list[int] = everywhere[self._nodes.names.among((part.node,), everywhere)].tolist()
            return rows
        self.shared = True
        if part.node_affinity is None:
            return list(map(int, everywhere))
        return list(map(int, everywhere[self._affinity.among(part.node_affinity, everywhere)]))


def _offers(part: ResourceSlice) -> list[Offer]:
    return [Offer((part.driver, part.pool, device.name), device, part) for device in part.devices]
