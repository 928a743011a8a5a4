"""The devices that members placed on one snapshot take for claims that have none yet.

Members with equal wishes take devices of a row one after another and give them back in reverse order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from gangsched.core.constraints.allocation import allocate, usable
from gangsched.core.constraints.constraint import World
from gangsched.core.constraints.device_supply import DeviceSupply
from gangsched.core.constraints.node_affinity import NodeAffinity
from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.devices import (
    MOST_RESERVED,
    Allocation,
    DeviceKey,
    DeviceRequest,
    DeviceWishes,
    ObjectKey,
)
from gangsched.core.objects.prebindings import UseDevices

_MANY = 1 << 40
"""Stands for no limit: more members than any gang has."""
OWN: ObjectKey = ("", "")
"""Stands for a claim that only one pod uses."""


@dataclass(frozen=True, slots=True)
class Wish:
    """The wishes of one claim. `claim` is its key if several pods use it; these then get the same devices."""

    wishes: DeviceWishes
    claim: ObjectKey = OWN


Wishes = tuple[Wish, ...]
"""The wishes of one member's claims."""


class DevicePool:
    """The devices that members take on one snapshot.

    `_used` are the devices taken, `_taken` the allocations by wishes and row. `_shared` holds the allocations of claims
    that several pods use, one for each member. `_known` caches the room of nodes by wishes and devices.
    """

    def __init__(self, world: World, affinity: NodeAffinity, supply: DeviceSupply) -> None:
        self._world = world
        self._affinity = affinity
        self._supply = supply
        self._used: Counter[DeviceKey] = Counter()
        self._shared: dict[ObjectKey, list[Allocation]] = {}
        self._taken: dict[tuple[Wishes, int], list[tuple[Allocation, ...]]] = {}
        self._known: dict[Hashable, int] = {}

    def taken(self, wishes: Wishes, row: int) -> Sequence[tuple[Allocation, ...]]:
        """The allocations of the members on the row, in order."""
        return self._taken.get((wishes, row), ())

    def digest(self) -> Hashable:
        """A digest of the devices taken."""
        return frozenset(self._used.items())

    def room(self, wishes: Wishes, rows: IntArray) -> IntArray:
        """The number of members for which each row has devices, computed once for rows with equivalent devices."""
        if any(wish.claim != OWN for wish in wishes):
            return np.array([self._members(wishes, row) for row in rows.tolist()], dtype=np.int64)
        found: list[int] = []
        for row in rows.tolist():
            alike = (wishes, self._alike(wishes, row))
            if alike not in self._known:
                self._known[alike] = self._members(wishes, row)
            found.append(self._known[alike])
        return np.array(found, dtype=np.int64)

    def _alike(self, wishes: Wishes, row: int) -> Hashable:
        """All properties of the row's devices that the search considers."""
        offers = self._supply.offers(row)
        if not offers.devices:
            return ()
        asked = {match.attribute for wish in wishes for match in wish.wishes.matches}
        devices = []
        for offer in offers.devices:
            values = tuple(each for each in offer.device.attributes if each.name in asked) if asked else ()
            devices.append((values, offer.device.taints, offer.device.unsupported, self._is_in_use(offer.key)))
        requests = (each for wish in wishes for alternatives in wish.wishes.requests for each in alternatives)
        return offers.whole, tuple(devices), tuple(self._supply.selected(each, row) for each in requests)

    def _members(self, wishes: Wishes, row: int) -> int:
        """The number of members for which the row has devices, found by taking the devices and giving them back."""
        number = 0
        while (found := self.find(wishes, row)) is not None:
            before = len(self._used)
            self.push(wishes, row, found)
            number += 1
            if len(self._used) == before:
                # Further members would take no devices of their own either: they share, or have admin access.
                for _ in range(number):
                    self.pop(wishes, row)
                return max(number, self._sharers(wishes))
        for _ in range(number):
            self.pop(wishes, row)
        return number

    def shortage(self, wishes: Wishes, rows: IntArray) -> str:
        """The requests of one more member, each with the most devices for it that any of these rows has left."""
        said: list[str] = []
        for wish in wishes:
            said += [" or ".join(self._asked(each, rows) for each in either) for either in wish.wishes.requests]
            said += [f"all with the same {match.attribute}" for match in wish.wishes.matches]
        return ", ".join(dict.fromkeys(said))

    def _asked(self, request: DeviceRequest, rows: IntArray) -> str:
        free = 0
        for row in rows.tolist():
            devices = self._supply.offers(row).devices
            offers = (devices[number] for number in self._supply.selected(request, row))
            left = (
                usable(each.device, request) and (request.admin or not self._is_in_use(each.key)) for each in offers
            )
            free = max(free, sum(left))
        number = "all" if request.all else request.count
        return (
            f"{number} of DeviceClass {request.device_class} for request {request.name} (at most {free} left on a node)"
        )

    def _sharers(self, wishes: Wishes) -> int:
        """The number of pods that may still be added to the users of these claims."""
        several = [wish.claim for wish in wishes if wish.claim != OWN]
        return min([MOST_RESERVED - len(self._shared.get(key, ())) for key in several], default=_MANY)

    def find(self, wishes: Wishes, row: int) -> tuple[Allocation, ...] | None:
        """The allocations for the next member on the row; None if there are not enough devices."""
        settled = [self._settled(wish.claim) for wish in wishes]
        here = np.array([row], dtype=np.int64)
        for allocation in settled:
            terms = allocation.node_affinity if allocation is not None else None
            if terms is not None and not self._affinity.among(terms, here)[0]:
                return None
        if self._sharers(wishes) <= 0:
            return None
        open_ = [wish.wishes for wish, known in zip(wishes, settled, strict=True) if known is None]

        def selected(request: DeviceRequest) -> Sequence[int]:
            return self._supply.selected(request, row)

        found = allocate(open_, self._supply.offers(row), selected=selected, in_use=self._is_in_use)
        if found is None:
            return None
        fresh = iter(found)
        return tuple(next(fresh) if known is None else known for known in settled)

    def _settled(self, claim: ObjectKey) -> Allocation | None:
        """The devices of a claim that several pods use, if another member or pod has settled them."""
        if claim == OWN:
            return None
        if self._shared.get(claim):
            return self._shared[claim][-1]
        asked = self._world.pending_prebindings.get(("ResourceClaim", *claim), {}).values()
        return next((each.allocation for each in asked if isinstance(each, UseDevices)), None)

    def _is_in_use(self, key: DeviceKey) -> bool:
        if key in self._used:
            return True
        taken = ("Device", f"{key[0]}/{key[1]}", key[2])
        return key in self._world.devices.in_use or taken in self._world.pending_prebindings

    def push(self, wishes: Wishes, row: int, found: tuple[Allocation, ...]) -> None:
        self._taken.setdefault((wishes, row), []).append(found)
        for wish, allocation in zip(wishes, found, strict=False):
            if wish.claim != OWN:
                self._shared.setdefault(wish.claim, []).append(allocation)
            self._used.update(each.device for each in allocation.devices if not each.admin)

    def pop(self, wishes: Wishes, row: int) -> None:
        for wish, allocation in zip(wishes, self._taken[wishes, row].pop(), strict=False):
            if wish.claim != OWN:
                self._shared[wish.claim].pop()
            self._used.subtract(each.device for each in allocation.devices if not each.admin)
        self._used += Counter()

    def elsewhere(self, wishes: Wishes) -> IntArray | None:
        """The rows, besides that where devices were taken, whose devices may have changed; None if there are none."""
        if self._supply.shared or any(wish.claim != OWN for wish in wishes):
            return np.arange(len(self._world.stock.names))
        return None
