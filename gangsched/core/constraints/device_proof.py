"""What is certain about the devices of nodes, whatever is in use: how many members they could ever serve at most.

It knows neither matches, nor counters, nor what members of different classes take from each other, all of which only
make devices scarcer. Where anything is unknown there is no limit: a claim that is not ready, a pool that is incomplete
or whose slices are gone, an expression that cannot be evaluated, a node that is not settled. Nor is there one where a
device can be allocated several times.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from gangsched.core.constraints.constraint import Member, Plan, SeesAlike, World
from gangsched.core.constraints.device_supply import DeviceSupply
from gangsched.core.constraints.device_wishes import OWN, UsesDevices, Wishes
from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.devices import DeviceRequest

_ANY_NUMBER = 1 << 31


class MostDevices(SeesAlike[Plan]):
    """The most members that the devices of each row could serve."""

    def __init__(self, world: World, supply: DeviceSupply, of: Plan) -> None:
        self._world = world
        self._supply = supply
        super().__init__(of)

    @cached_property
    def _withdrawn(self) -> frozenset[str]:
        return self._world.devices.withdrawn()

    def room(self, member: Member, rows: IntArray) -> IntArray | None:
        """The number of members that have all devices that they ask for, if nothing else is scarce."""
        seen = member.sight(UsesDevices)
        if seen is None or not seen.wishes or not seen.ready:
            return None
        if "" in self._withdrawn or any(self._supply.failure(wish.wishes) for wish in seen.wishes):
            return None
        room: IntArray = np.full(len(rows), _ANY_NUMBER, dtype=np.int64)
        known = ~self._world.nodes.unsettled(rows)
        if self._withdrawn:
            known &= ~self._world.nodes.names.among(tuple(self._withdrawn), rows)
        for at in np.flatnonzero(known).tolist():
            room[at] = self._most(seen.wishes, int(rows[at]))
        return room

    def _most(self, wishes: Wishes, row: int) -> int:
        offers = self._supply.offers(row)
        if not offers.whole:
            return _ANY_NUMBER
        taken, useful = 0, set[int]()
        for wish in wishes:
            for alternatives in wish.wishes.requests:
                least = min(self._least(request, row) for request in alternatives)
                if least > len(offers.devices):
                    return 0
                if wish.claim == OWN and not any(request.admin for request in alternatives):
                    taken += least
                    useful.update(*(self._supply.selected(request, row) for request in alternatives))
        if any(offers.devices[at].device.multiple for at in useful):
            return _ANY_NUMBER
        return len(useful) // taken if taken else _ANY_NUMBER

    def _least(self, request: DeviceRequest, row: int) -> int:
        """The fewest devices that the request takes; more than there are if too few are selected."""
        selected: Sequence[int] = self._supply.selected(request, row)
        if any(self._supply.offers(row).devices[at].device.multiple for at in selected):
            return 1
        least = max(1, len(selected) if request.all else request.count)
        return least if least <= len(selected) else len(self._supply.offers(row).devices) + 1
