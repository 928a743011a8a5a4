"""Devices with counters and shares, members that ask for them, and a naive search that tries every way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from gangsched.core.objects.devices import DeviceRequest, DeviceWishes
from gangsched.core.objects.offered_devices import Capacity, Device, ResourceSlice
from tests.gadgets import DRIVER, asks, gpu, gpus, wishes

MEMORY = ("set", "memory")
LEFT = 4
"""What there is of the counter of each pool."""


@st.composite
def devices_with_more(draw) -> tuple[Device, ...]:
    """Up to four devices: some in one of two kinds, some with counters of which there are four, some shared."""
    made = []
    for at in range(draw(st.integers(1, 4))):
        fields: dict[str, Any] = {}
        if draw(st.booleans()):
            fields["counters"] = ((MEMORY, draw(st.integers(1, 3))),)
        if draw(st.booleans()):
            size = draw(st.integers(1, 3))
            fields |= {"shares": (Capacity("m", size),), "multiple": draw(st.booleans())}
        # A device that is shared without a capacity can be had any number of times, which the search cannot count.
        fields["multiple"] = bool(fields.get("multiple") and fields["shares"])
        made.append(gpu(f"{at}", numa=draw(st.integers(0, 1)), **fields))
    return tuple(made)


@st.composite
def wide_devices(draw) -> list[Device]:
    """Such devices, each usable on one of two nodes or on both."""
    places: list[dict[str, Any]] = [{"node": "n0"}, {"node": "n1"}, {"everywhere": True}]
    return [replace(each, **draw(st.sampled_from(places))) for each in draw(devices_with_more())]


@st.composite
def member_wishes(draw) -> DeviceWishes:
    """Devices of one kind or any, one or two of them, with a share of capacity or not, and perhaps a lesser choice."""
    alternatives = []
    for at in range(draw(st.integers(1, 2))):
        where = draw(st.sampled_from(["", "0", "1"]))
        expression = f"device.attributes['{DRIVER}'].numa == {where}" if where else ""
        capacity = draw(st.sampled_from([(), (), (("m", 1),)]))
        count = draw(st.integers(1, 2))
        alternatives.append(asks(count, name=f"r/{at}", where=expression, capacity=capacity))
    return wishes(tuple(alternatives))


def ways(what: DeviceWishes, devices: Sequence[Device], taken: Counter[str]) -> list[Counter[str]]:
    """What is taken after each way to give one member its devices: by device, and by counter ""."""
    found = []
    for request in what.requests[0]:
        [*expressions] = [each.expression for each in request.selectors]
        fitting = [each for each in devices if not expressions or f"== {_numa(each)}" in expressions[0]]
        for chosen in combinations(fitting, request.count):
            after = Counter(taken)
            if all(_given(request, each, after) for each in chosen):
                found.append(after)
    return found


def _numa(device: Device) -> str:
    return next(each.value for each in device.attributes if each.name == f"{DRIVER}/numa")


def _given(request: DeviceRequest, device: Device, taken: Counter[str]) -> bool:
    """Give the device, or a share of it, and note what that takes; False if that is not left."""
    asked, size = dict(request.capacity), {each.name: each.value for each in device.shares}
    share = asked.get("m", size.get("m", 0))
    if not asked.keys() <= size.keys() or share > size.get("m", 0) - (taken[device.name] if device.multiple else 0):
        return False
    if not device.multiple and taken[device.name]:
        return False
    if not (device.multiple and size and taken[device.name]):
        # A device that is shared without a capacity is counted once, but must have its counters left each time.
        amount = sum(each for _, each in device.counters)
        if device.counters and taken[""] + amount > LEFT:
            return False
        taken[""] += amount
    taken[device.name] += share if device.multiple and size else 1
    return True


def together(members: Sequence[DeviceWishes], devices: Sequence[Device], taken: Counter[str]) -> bool:
    """Whether there is a way to give all members their devices, by trying each."""
    return apart([(each, devices) for each in members], taken)


def apart(members: Sequence[tuple[DeviceWishes, Sequence[Device]]], taken: Counter[str]) -> bool:
    """The same where each member has its own choice of the devices of one pool, those of its node."""
    if not members:
        return True
    (what, devices), *others = members
    return any(apart(others, after) for after in ways(what, devices, taken))


def pool(node: str, devices: Sequence[Device]) -> list[ResourceSlice]:
    """The node's pool of these devices, with its counter."""
    source = ResourceSlice(f"{node}-counters", DRIVER, node, parts=2, node=node, counters=((MEMORY, LEFT),))
    return [gpus(node, devices=tuple(devices), parts=2), source]


def wide_pool(devices: Sequence[Device]) -> list[ResourceSlice]:
    """A pool of devices each of which says on which nodes it can be used; each has a slice of its own."""
    parts = len(devices) + 1
    source = ResourceSlice("counters", DRIVER, "wide", parts=parts, counters=((MEMORY, LEFT),))
    alone = (ResourceSlice(f"of-{each.name}", DRIVER, "wide", parts=parts, devices=(each,)) for each in devices)
    return [source, *(replace(each, per_device=True) for each in alone)]
