"""What is taken of devices: by claims that have them, by decided pre-bindings, and by the members of a plan.

A claim's share of a device is an amount of each of its capacities. The devices of claims that nobody uses any more,
because pods have left a snapshot, are free.

Source: `AllocatedState` and consumable_capacity.go in k8s.io/dynamic-resource-allocation/structured, and
`GatherAllocatedState` of the plug-in DynamicResources of kube-scheduler, at v1.37.2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence

from gangsched.core.constraints.device_offers import Pool
from gangsched.core.constraints.pending import Pending
from gangsched.core.inventory.device_index import Devices, Shares, add_share, count_devices
from gangsched.core.objects.devices import Allocation, Amounts, DeviceRequest, ResourceClaim
from gangsched.core.objects.offered_devices import Capacity, CounterKey, Device, DeviceKey, ObjectKey
from gangsched.core.objects.prebindings import UseDevices


class DeviceUsage:
    """What is taken on one snapshot. `size` is how much was taken there.

    `_held` are the devices taken here as a whole, `_shares` what is taken here of others, `_before` what had been
    taken of these. `_released` are the devices, and `_released_shares` the shares, of claims that nobody uses any more,
    because pods have left. `_drawn` caches what allocated devices draw from the counters of each pool.
    """

    def __init__(self, devices: Devices, pending: Pending) -> None:
        self._devices = devices
        self._pending = pending
        self._released: Counter[DeviceKey] = Counter()
        self._released_shares: Shares = {}
        self._held: Counter[DeviceKey] = Counter()
        self._shares: Shares = {}
        self._before: Mapping[DeviceKey, Counter[str]] | None = None
        self._drawn: dict[Pool, dict[CounterKey, int]] = {}
        self.size = 0

    def held(self, key: DeviceKey) -> bool:
        """Whether some claim has the whole device."""
        if key in self._held:
            return True
        taken = ("Device", f"{key[0]}/{key[1]}", key[2])
        return self._devices.in_use.get(key, 0) > self._released[key] or taken in self._pending.by_taken

    def shared(self, key: DeviceKey) -> tuple[Mapping[str, int], ...]:
        """What shares of the device take of its capacities; nothing if no claim has a share."""
        here, before = self._shares.get(key), self._taken_before().get(key)
        return tuple(shares for shares in (here, before) if shares is not None)

    def drawn(self, pool: Pool) -> Mapping[CounterKey, int]:
        """What the pool's allocated devices draw from its counters, each device once."""
        drawn = self._drawn.get(pool)
        if drawn is None:
            drawn = self._drawn[pool] = {}
            for key, consumption in pool.consumers:
                if self.held(key) or self.shared(key):
                    for counter, amount in consumption:
                        drawn[counter] = drawn.get(counter, 0) + amount
        return drawn

    def add(self, allocation: Allocation, sign: int) -> None:
        """Take the devices of the allocation (1), or give them back (-1)."""
        self.size += count_devices(self._held, self._shares, allocation.devices, sign)
        self._drawn.clear()

    def recount(self, allocations: Iterable[tuple[Allocation, int]]) -> None:
        """Count each of these allocations of claims again (1), or no longer (-1). Pre-bindings may have changed."""
        for allocation, sign in allocations:
            count_devices(self._released, self._released_shares, allocation.devices, -sign)
        self._before = None
        self._drawn.clear()

    def state(self, key: DeviceKey) -> Hashable:
        """What is taken of the device: equal while nothing of it is taken or given back."""
        return self.held(key), tuple(frozenset(shares.items()) for shares in self.shared(key))

    def digest(self) -> Hashable:
        """A digest of what is taken here."""
        shares = (
            frozenset((key, frozenset(taken.items())) for key, taken in by_device.items())
            for by_device in (self._shares, self._released_shares)
        )
        return frozenset(self._held.items()), frozenset(self._released), frozenset(self._pending.by_taken), *shares

    def _taken_before(self) -> Mapping[DeviceKey, Counter[str]]:
        """The shares of claims and of pre-bindings that no claim shows yet."""
        if self._before is None:
            self._before = self._shares_before()
        return self._before

    def _shares_before(self) -> Mapping[DeviceKey, Counter[str]]:
        devices = self._devices
        asked = {
            taken[1:]: prebinding
            for taken, by_owner in self._pending.by_taken.items()
            if taken[0] == "ResourceClaim"
            for prebinding in by_owner.values()
            if isinstance(prebinding, UseDevices) and any(device.shared for device in prebinding.allocation.devices)
        }
        if not asked and not self._released_shares:
            return devices.shares
        before: Shares = {key: Counter(taken) for key, taken in devices.shares.items()}
        for (namespace, name), prebinding in asked.items():
            if not devices.is_allocated((namespace, name)):
                for device in prebinding.allocation.devices:
                    if device.shared and not device.admin:
                        add_share(before, device, 1)
        for key, given_back in self._released_shares.items():
            before[key].subtract(given_back)
            if not before[key][""]:
                del before[key]
        return before


def share(request: DeviceRequest, device: Device) -> Amounts | None:
    """What the request takes of each capacity, in billionths; None if the device can never have that.

    A device that only one request at a time may have must have it too.
    """
    asked = dict(request.capacity)
    if asked and not asked.keys() <= {capacity.name for capacity in device.shares}:
        return None
    taken = []
    for capacity in device.shares:
        amount = _taken(asked.get(capacity.name), capacity)
        if _forbidden(amount, capacity):
            return None
        taken.append((capacity.name, amount))
    return tuple(taken)


def fits(taken: Amounts, device: Device, *before: Mapping[str, int]) -> bool:
    """Whether the device has this much left of each capacity, with what was taken `before`."""
    size = {capacity.name: capacity.value for capacity in device.shares}
    return all(amount + sum(shares.get(name, 0) for shares in before) <= size[name] for name, amount in taken)


def _taken(asked: int | None, capacity: Capacity) -> int:
    if asked is None:
        return capacity.value if capacity.default is None else capacity.default
    if capacity.least is not None:
        return _in_range(asked, capacity.least, capacity.step)
    return next((value for value in capacity.values if asked <= value), asked)


def _in_range(asked: int, least: int, step: int | None) -> int:
    """The least amount of the range that is not below the one asked for."""
    if asked < least or step is None:
        return max(asked, least)
    return least - (least - asked) // step * step


def _forbidden(amount: int, capacity: Capacity) -> bool:
    """Whether the request policy does not allow this amount."""
    if amount == capacity.default:
        return False
    if capacity.least is None:
        return bool(capacity.values) and amount not in capacity.values
    too_much = capacity.most is not None and amount > capacity.most
    return too_much or (capacity.step is not None and (amount - capacity.least) % capacity.step != 0)


class FreedClaims:
    """The pods that have left, by UID (`gone`), and the allocations of claims whose devices are free since then.

    They are free once no known pod that has not left names the claim, and nobody else has reserved it.
    """

    def __init__(self, devices: Devices) -> None:
        self.gone: frozenset[str] = frozenset()
        self._devices = devices
        self._freed: dict[ObjectKey, Allocation] = {}

    def __contains__(self, claim: ObjectKey) -> bool:
        return claim in self._freed

    def recount(self, users: Mapping[str, Sequence[ResourceClaim]], sign: int) -> list[tuple[Allocation, int]]:
        """These pods, with the claims that end with them, leave (-1) or stay after all (1).

        Returns the allocations that end with that (-1), or count again (1).
        """
        self.gone = self.gone - users.keys() if sign > 0 else self.gone | users.keys()
        before, freed = self._freed, dict(self._freed)
        for uid, claims in users.items():
            for claim in claims:
                freed.pop(claim.key, None)
                using = {uid, *self._devices.users.of(claim.key), *claim.reserved}
                if claim.allocation is not None and using <= self.gone:
                    freed[claim.key] = claim.allocation
        self._freed = freed
        ended = [(allocation, -1) for key, allocation in freed.items() if key not in before]
        return ended + [(allocation, 1) for key, allocation in before.items() if key not in freed]
