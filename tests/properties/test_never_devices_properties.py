"""NeverFits is a promise about devices too: whatever is incomplete, tainted or in use may turn out to help."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from gangsched.core.cluster.cache import Cluster
from gangsched.core.objects.devices import AllocatedDevice, Allocation, DeviceKind, DeviceRequest, DeviceWishes
from gangsched.core.objects.offered_devices import DeviceTaint, ResourceSlice
from gangsched.core.objects.pod import Pod
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.placement import Ask, place
from gangsched.core.planning.refusal import Refusal
from tests.builders import node, pod
from tests.effort import examples
from tests.gadgets import DRIVER, GPUS, asks, device_claim, gpu, wishes

MODELS = ("a100", "h100")
Devices = list[tuple[str, bool]]
"""The models of devices, and whether each may be allocated any number of times."""
Free = dict[str, Devices]
"""The devices by node."""


@st.composite
def device_problems(draw: st.DrawFn) -> tuple[Cluster, list[Pod], list[DeviceWishes], Free]:
    """Two or three nodes with devices, of which some are in use, tainted or shared, and members with claims.

    Returns also what the nodes may have one day.
    """
    cluster, later = Cluster(), Free()
    cluster.set_devices(DeviceKind.CLASS, GPUS.key, GPUS)
    for name in ("n0", "n1", "n2")[: draw(st.integers(1, 3))]:
        starting = draw(st.integers(0, 5)) == 0
        cluster.set_node(node(name, taints=["node.kubernetes.io/not-ready:NoExecute"] if starting else []))
        devices, parts = [], draw(st.sampled_from((1, 1, 1, 2)))
        for at in range(draw(st.integers(0, 3))):
            taints = (DeviceTaint("unwell", "", "NoSchedule"),) if draw(st.integers(0, 4)) == 0 else ()
            multiple = draw(st.integers(0, 9)) == 0
            model = draw(st.sampled_from(MODELS))
            devices.append(gpu(f"gpu-{at}", model, taints=taints, multiple=multiple))
            later.setdefault(name, []).append((model, multiple))
        part = ResourceSlice(f"{name}-gpus", DRIVER, name, parts=parts, node=name, devices=tuple(devices))
        cluster.set_devices(DeviceKind.SLICE, part.key, part)
        come = draw(st.lists(st.sampled_from(MODELS), max_size=3)) if starting or parts > 1 else []
        later.setdefault(name, []).extend((model, False) for model in come)
        for at, device in enumerate(devices):
            if draw(st.integers(0, 4)) == 0:
                key = (DRIVER, name, device.name)
                used = device_claim(f"used-{name}-{at}", allocation=Allocation((AllocatedDevice("gpu", key),)))
                cluster.set_devices(DeviceKind.CLAIM, used.key, used)
    asked = [
        wishes(*(draw(alternatives(at)) for at in range(draw(st.integers(1, 2)))))
        for _ in range(draw(st.integers(1, 2)))
    ]
    members, wanted = [], []
    for at in range(draw(st.integers(1, 3))):
        what = draw(st.sampled_from(asked))
        claim = device_claim(f"c-{at}", what)
        cluster.set_devices(DeviceKind.CLAIM, claim.key, claim)
        members.append(pod(f"m-{at}", created=float(at), cpu=0, device_claims=[f"c-{at}"]))
        cluster.set_pod(members[-1])
        wanted.append(what)
    return cluster, members, wanted, later


@st.composite
def alternatives(draw: st.DrawFn, number: int) -> tuple[DeviceRequest, ...]:
    """One request of a claim."""
    found = []
    for at in range(draw(st.integers(1, 2))):
        model = draw(st.sampled_from(("", *MODELS)))
        where = f"device.attributes['{DRIVER}'].model == '{model}'" if model else ""
        found.append(asks(draw(st.integers(1, 3)), name=f"r{number}/a{at}", where=where))
    return tuple(found)


@given(device_problems(), st.data())
@settings(max_examples=examples(150))
def test_what_is_said_never_to_get_its_devices_does_not_get_them_later_either(problem, data):
    cluster, members, wanted, later = problem
    need = data.draw(st.integers(1, len(members)))
    found = place(Snapshot(cluster), Ask(members=members, need=need))
    never = isinstance(found, Refusal) and found.never
    event(f"{'never' if never else type(found).__name__}")
    assume(never)
    assert not any(served(chosen, later) for chosen in combinations(wanted, need))


def served(wanted: Sequence[DeviceWishes], free: Free) -> bool:
    """Whether each of these claims gets its devices, all on one node, trying every choice."""
    if not wanted:
        return True
    first, *others = wanted
    return any(served(others, free | {name: left}) for name in free for left in _after(first.requests, free[name]))


def _after(requests: Sequence[Sequence[DeviceRequest]], there: Devices) -> Iterator[Devices]:
    """What is left on the node after each way to serve these requests."""
    if not requests:
        yield there
        return
    for request in requests[0]:
        fitting = [at for at, (model, _) in enumerate(there) if _selects(request, model)]
        for chosen in combinations(fitting, request.count):
            left = [each for at, each in enumerate(there) if at not in chosen or each[1]]
            yield from _after(requests[1:], left)
        if any(there[at][1] for at in fitting):
            yield from _after(requests[1:], there)


def _selects(request: DeviceRequest, model: str) -> bool:
    return all(f"'{model}'" in selector.expression for selector in request.selectors)
