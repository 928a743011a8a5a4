"""What requests take of a device's capacities, and whether the device has that left.

Source: k8s.io/dynamic-resource-allocation/structured/internal/incubating/consumable_capacity.go at v1.37.2.
"""

from __future__ import annotations

from collections.abc import Mapping

from gangsched.core.objects.devices import Amounts, DeviceRequest
from gangsched.core.objects.offered_devices import Capacity, Device


def share(request: DeviceRequest, device: Device) -> Amounts | None:
    """What the request takes of each capacity, in billionths; None if the device can never have that.

    A device that only one request at a time may have must have it too.
    """
    asked = dict(request.capacity)
    if asked and not asked.keys() <= {each.name for each in device.shares}:
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
    size = {each.name: each.value for each in device.shares}
    return all(amount + sum(each.get(name, 0) for each in before) <= size[name] for name, amount in taken)


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
