"""The devices that a member gets, rule by rule, and compared with a naive search over all choices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain, combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from gangsched.core.cluster.cache import Cluster
from gangsched.core.constraints.allocation import MOST_STEPS, allocate
from gangsched.core.constraints.candidates import Errand
from gangsched.core.constraints.constraint import Member, Plan
from gangsched.core.constraints.device_allocations import configured
from gangsched.core.constraints.device_offers import Offer, Offers, Pool
from gangsched.core.constraints.device_usage import DeviceUsage
from gangsched.core.constraints.pending import Pending
from gangsched.core.inventory.device_index import Devices
from gangsched.core.inventory.device_users import made_key
from gangsched.core.objects.declaration import NATIVE
from gangsched.core.objects.devices import (
    AllocatedDevice,
    Allocation,
    ClaimConfig,
    Consumer,
    DeviceClass,
    DeviceKind,
    DeviceRequest,
    DeviceWishes,
    Making,
    Match,
)
from gangsched.core.objects.offered_devices import (
    Attribute,
    AttributeType,
    Capacity,
    Device,
    DeviceTaint,
    ResourceSlice,
)
from gangsched.core.objects.pod import DeviceUse, PodPhase
from gangsched.core.objects.podgroup import ForeignGroup, GroupSpec
from gangsched.core.objects.prebindings import ClaimConfigured, PrebindingState, UseDevices
from gangsched.core.objects.shape import NodeTerm, Requirement, Toleration
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.filling import classify
from tests.builders import key, node, pod
from tests.clusters import cluster_of
from tests.gadgets import DRIVER, GPUS, asks, device_claim, gpu, gpus, wishes
from tests.naive_devices import MEMORY, apart, devices_with_more, member_wishes, pool, together, wide_devices, wide_pool

TAINTED = (DeviceTaint("k", "v", "NoSchedule"),)
ADMIN = asks(name="admin", admin=True)


def on_node(*devices: Device, whole: bool = True, **fields) -> Offers:
    part = ResourceSlice("s", DRIVER, "p", **{"node": "n", **fields})
    return Offers(tuple(Offer((DRIVER, "p", each.name), each, part) for each in devices), whole)


def allocated(
    *what: DeviceWishes, offers: Offers, selected: Sequence[int], used: str = ""
) -> tuple[Allocation, ...] | None:
    usage = DeviceUsage(Devices(), Pending({}))
    usage.add(Allocation(tuple(AllocatedDevice("", (DRIVER, "p", name)) for name in used.split())), 1)
    errands = [Errand(each, offers, lambda _: selected, "n") for each in what]
    return allocate(errands, usage).allocations


def found(*what: DeviceWishes, offers: Offers, used: str = "", none: str = "") -> list[str] | None:
    """The device names of each claim while those of `used` are in use; requests do not select those of `none`."""
    numbers = [at for at, offer in enumerate(offers.devices) if offer.device.name not in none.split()]
    result = allocated(*what, offers=offers, selected=numbers, used=used)
    return None if result is None else [" ".join(each.device[2] for each in claim.devices) for claim in result]


A, B, C = gpu("a", numa=0), gpu("b", numa=1), gpu("c", numa=1)
THREE = on_node(A, B, C)


@pytest.mark.parametrize(
    ("what", "fields", "got"),
    [
        ([wishes(asks(2))], {}, ["a b"]),
        ([wishes(asks(2))], {"used": "a"}, ["b c"]),
        ([wishes(asks(2))], {"none": "a"}, ["b c"]),
        ([wishes(asks()), wishes(asks(2))], {}, ["a", "b c"]),
        ([wishes(asks(2), same="numa")], {}, ["b c"]),
        (
            [replace(wishes(asks(1, name="x"), asks(2, name="y")), matches=(Match(f"{DRIVER}/numa", ("y",)),))],
            {},
            ["a b c"],
        ),
        ([wishes((asks(4, name="g/four"), asks(3, name="g/three")))], {}, ["a b c"]),
        ([wishes((asks(2, name="g/a"), asks(1, name="g/b")), asks(2, name="h"))], {}, ["a b c"]),
        (
            [replace(wishes((asks(2, name="g/x"),)), matches=(Match(f"{DRIVER}/numa", ("g",)),))],
            {},
            ["b c"],
        ),
        (
            [replace(wishes((asks(2, name="g/x"),)), matches=(Match(f"{DRIVER}/numa", ("g/y",)),))],
            {},
            ["a b"],
        ),
        ([wishes(asks(all=True))], {}, ["a b c"]),
        ([wishes(asks(all=True))], {"none": "b"}, ["a c"]),
        ([wishes(asks(all=True))], {"none": "a b c"}, None),
        ([wishes(asks(all=True))], {"used": "c"}, None),
        ([wishes((asks(all=True, name="g/all"), asks(name="g/one")), same="numa")], {}, None),
        ([wishes((asks(name="g/one"), asks(all=True, name="g/all")), same="numa")], {}, ["a"]),
        ([wishes((asks(all=True, name="g/all"), asks(name="g/one")), same="numa")], {"used": "a"}, ["b"]),
        ([wishes(ADMIN)], {"used": "a b c"}, ["a"]),
        ([wishes(asks(3)), wishes(ADMIN)], {}, ["a b c", "a"]),
        ([wishes(replace(ADMIN, all=True))], {"used": "a"}, ["a b c"]),
    ],
)
def test_what_claims_get(what, fields, got):
    assert found(*what, offers=THREE, **fields) == got


@pytest.mark.parametrize(("left", "taken"), [(10, True), (9, False)])
def test_a_request_for_all_devices_needs_its_share_of_each(left, taken):
    shares = (Capacity("memory", 80),)
    devices = [gpu(name, multiple=True, shares=shares) for name in "ab"]
    usage = DeviceUsage(Devices(), Pending({}))
    share = AllocatedDevice("r", (DRIVER, "p", "a"), shared=True, consumed=(("memory", 80 - left),))
    usage.add(Allocation((share,)), 1)
    errand = Errand(wishes(asks(all=True, capacity=(("memory", 10),))), on_node(*devices), lambda _: (0, 1))
    assert (allocate([errand], usage).allocations is not None) == taken


def test_all_devices_must_satisfy_the_matches_even_if_they_have_no_capacity_left():
    """As for kube-scheduler: then no alternative is tried."""
    shares = (Capacity("memory", 80),)
    devices = [gpu(name, numa=at, multiple=True, shares=shares) for at, name in enumerate("ab")]
    usage = DeviceUsage(Devices(), Pending({}))
    usage.add(Allocation((AllocatedDevice("r", (DRIVER, "p", "b"), shared=True, consumed=(("memory", 80),)),)), 1)
    for same, got in (("", True), ("numa", False)):
        asked = wishes((asks(all=True, name="g/all"), asks(name="g/one")), same=same)
        errand = Errand(asked, on_node(*devices), lambda _: (0, 1))
        assert (allocate([errand], usage).allocations is not None) is got


@pytest.mark.parametrize(("left", "claims", "fits"), [(3, 3, True), (2, 1, False)])
def test_of_the_claims_that_share_a_device_the_first_draws_its_counters(left, claims, fits):
    device, key = gpu("a", multiple=True, counters=((MEMORY, 3),)), (DRIVER, "p", "a")
    counted = Pool({MEMORY: left}, ((key, device.counters),))
    offers = Offers((Offer(key, device, ResourceSlice("s", DRIVER, "p", node="n"), counted),))
    assert (allocated(*[wishes(asks())] * claims, offers=offers, selected=[0]) is not None) is fits


@pytest.mark.parametrize(
    ("requests", "got"),
    [(("g",), ()), (("g/x",), ()), ((), ()), (("g", "h"), ()), (("h",), None), (("g/y",), None)],
)
def test_parameters_for_all_requests_that_have_devices_name_none(requests, got):
    """Of a claim whose only request has the alternatives x and y, and gets x; `got` None: they are left out."""
    asked = replace(wishes((asks(name="g/x"), asks(name="g/y"))), config=(ClaimConfig(requests, "{}"),))
    chosen = Allocation((AllocatedDevice("g/x", (DRIVER, "p", "a")),))
    devices = Devices()
    devices.set(DeviceKind.CLASS, ("", "gpu"), DeviceClass("gpu", config=("{}",)))
    written = configured(device_claim("c", asked), chosen, devices)
    of_claim = [] if got is None else [ClaimConfigured("FromClaim", got, "{}")]
    assert [*written] == [ClaimConfigured("FromClass", (), "{}"), *of_claim]


def test_parameters_for_some_requests_name_them():
    asked = replace(wishes(asks(name="g"), asks(name="h")), config=(ClaimConfig(("h",), "{}"),))
    chosen = Allocation(tuple(AllocatedDevice(name, (DRIVER, "p", name)) for name in "gh"))
    assert [*configured(device_claim("c", asked), chosen, Devices())] == [ClaimConfigured("FromClaim", ("h",), "{}")]


def test_all_devices_are_not_known_while_a_pool_is_incomplete():
    assert found(wishes(asks(all=True)), offers=on_node(A, whole=False)) is None
    assert found(wishes((asks(name="g/a"), asks(all=True, name="g/b"))), offers=on_node(A, whole=False)) is None
    assert found(wishes(asks()), offers=on_node(A, whole=False)) == ["a"]


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration("k", "Exists"), True),
        (Toleration("", "Exists"), True),
        (Toleration("k", "", "v"), True),
        (Toleration("k", "Equal", "v", "NoSchedule"), True),
        (Toleration("k", "Equal", "w"), False),
        (Toleration("k", "Exists", "", "NoExecute"), False),
        (Toleration("l", "Exists"), False),
        (Toleration("k", "Gt", "v"), False),
    ],
)
def test_taints_of_devices(toleration, tolerated):
    device = replace(A, taints=TAINTED)
    assert found(wishes(asks()), offers=on_node(device)) is None
    got = found(wishes(asks(tolerations=(toleration,))), offers=on_node(device))
    assert got == (["a"] if tolerated else None)
    assert found(wishes(asks()), offers=on_node(replace(A, taints=(DeviceTaint("k", "", "None"),)))) == ["a"]


def test_no_claim_gets_more_than_32_devices():
    offers = on_node(*(gpu(f"{at}") for at in range(40)))
    assert found(wishes(asks(33)), offers=offers) is None
    assert found(wishes(asks(20, name="x"), asks(13, name="y")), offers=offers) is None
    assert found(wishes(asks(32)), offers=offers) is not None
    assert found(wishes((asks(33, name="x/a"), asks(1, name="x/b"))), offers=offers) == ["0"]


def test_a_search_that_takes_too_long_ends():
    devices = [gpu(f"{at}", numa=at) for at in range(64)]
    what = [wishes(asks(3)) for _ in range(10)] + [wishes(asks(2), same="numa")]
    assert MOST_STEPS < 64**3
    assert found(*what, offers=on_node(*devices)) is None


def test_the_only_pair_of_a_numa_node_is_found_wherever_the_first_short_search_ends():
    for number in range(2, 34):
        devices = [gpu(f"{at}", numa=min(at, number - 2)) for at in range(number)]
        assert found(wishes(asks(2), same="numa"), offers=on_node(*devices)) == [f"{number - 2} {number - 1}"]


def test_where_devices_can_be_used():
    [everywhere] = allocated(wishes(asks()), offers=on_node(A, node=""), selected=[0]) or ()
    assert everywhere.node_affinity is None
    zone, rack = Requirement("zone", "In", ("a",)), Requirement("rack", "Exists")
    parts = [
        ResourceSlice(name, DRIVER, "p", node_affinity=(NodeTerm(expressions),))
        for name, expressions in (("s", (zone,)), ("t", (zone, rack)))
    ]
    offers = Offers(tuple(Offer((DRIVER, "p", part.name), A, part) for part in parts))
    [both] = allocated(wishes(asks(2)), offers=offers, selected=[0, 1]) or ()
    assert both.node_affinity == (NodeTerm((zone, rack)),)


# Against a naive search

REQUESTS = st.builds(
    DeviceRequest,
    st.sampled_from(["x", "y"]),
    st.just("gpu"),
    st.just(()),
    st.integers(1, 2),
    st.booleans(),
    st.booleans(),
)


@st.composite
def claim_wishes(draw):
    requests = []
    for at in range(draw(st.integers(1, 2))):
        alternatives = draw(st.lists(REQUESTS, min_size=1, max_size=2))
        named = [replace(each, name=f"r{at}/{number}") for number, each in enumerate(alternatives)]
        requests.append(tuple(named))
    names = draw(st.sampled_from([(), ("r0",), ("r1", "r0/0")]))
    matches = (Match(f"{DRIVER}/numa", names),) if draw(st.booleans()) else ()
    return DeviceWishes(tuple(requests), matches)


def solvable(what: list[DeviceWishes], offers: Offers, used: set[str]) -> bool:
    """Whether any choice of alternatives and devices meets all rules, by trying each."""
    devices = [offer.device for offer in offers.devices]
    flat = [(claim, alternatives) for claim, each in enumerate(what) for alternatives in each.requests]
    for chosen in product(*(alternatives for _, alternatives in flat)):
        sets = [[devices] if each.all else list(map(list, combinations(devices, each.count))) for each in chosen]
        for picked in product(*sets):
            if devices and _allowed(list(zip([claim for claim, _ in flat], chosen, picked, strict=True)), what, used):
                return True
    return False


def _allowed(picks, what: list[DeviceWishes], used: set[str]) -> bool:
    held: list[tuple[int, str]] = []
    for claim, request, devices in picks:
        for device in devices:
            others = [holder for holder, name in held if name == device.name]
            if (claim in others) if request.admin else (others or device.name in used):
                return False
            held.append((claim, device.name))
    for claim, each in enumerate(what):
        for match in each.matches:
            values = {
                next((a.value for a in device.attributes if a.name == match.attribute), None)
                for holder, request, devices in picks
                if holder == claim
                and (not match.requests or {request.name, request.name.partition("/")[0]} & {*match.requests})
                for device in devices
            }
            if None in values or len(values) > 1:
                return False
    return True


@given(
    st.lists(st.sampled_from([None, 0, 1]), max_size=4),
    st.lists(claim_wishes(), min_size=1, max_size=2),
    st.sets(st.sampled_from("0123")),
)
def test_devices_are_found_exactly_if_there_is_any_choice(numas, what, used):
    offers = on_node(*(gpu(f"{at}", numa=numa) for at, numa in enumerate(numas)))
    got = found(*what, offers=offers, used=" ".join(used)) is not None
    some_way = solvable(what, offers, used)
    if any(each.matches and any(request.all for request in chain(*each.requests)) for each in what):
        assert some_way or not got, "where all devices are asked for, those that break a match end the search"
    else:
        assert got == some_way


# On a snapshot


def world(*objects, nodes: int = 2) -> Cluster:
    return cluster_of(*(node(f"n{at}", cpu="64") for at in range(nodes)), GPUS, *objects)


def room_of(cluster: Cluster, *members) -> list[int]:
    for each in members:
        cluster.set_pod(each)
    snapshot = Snapshot(cluster)
    [kind] = {*classify(snapshot, members).values()}
    [plan] = [each for each in snapshot.plans if type(each).__name__ == "_DevicesPlan"]
    rows = np.arange(len(cluster.capacity.names))
    room = plan.room(kind, rows)
    mask = plan.mask(kind, rows)
    assert room is not None
    assert mask is not None
    return list(map(int, np.where(mask, room, 0)))


def rooms(plan: Plan, kind: Member) -> list[int]:
    room = plan.room(kind, np.arange(2))
    assert room is not None
    return list(map(int, room))


def users(*names: str):
    return [pod(f"default/a-{name}", device_claims=[name]) for name in names]


def test_many_members_with_a_claim_each_are_one_class():
    names = [f"{at}" for at in range(500)]
    cluster = world(gpus("n0", 300), *(device_claim(name) for name in names))
    assert room_of(cluster, *users(*names)) == [300, 0]


def test_devices_in_use_leave_no_room():
    had = Allocation((AllocatedDevice("gpu", (DRIVER, "n0", "gpu-0")),))
    watched = Allocation((AllocatedDevice("gpu", (DRIVER, "n0", "gpu-1"), admin=True),))
    others = [device_claim("x", allocation=had), device_claim("y", allocation=watched)]
    assert room_of(world(gpus("n0", 3), device_claim("a"), *others), *users("a")) == [2, 0]


@pytest.mark.parametrize(("is_written", "room"), [(False, 1), (True, 0)])
def test_a_device_that_only_a_pre_binding_takes_is_free_without_its_pod_whoever_else_names_the_claim(is_written, room):
    """Two pods name one claim; the one with the pre-binding that allocates it leaves, the other stays.

    Once the claim is allocated, it keeps its device for the other.
    """
    first, other, asked = users("c")[0], pod("other", node="n1", device_claims=["c"]), users("d")[0]
    had = Allocation((AllocatedDevice("gpu", (DRIVER, "n0", "gpu-0")),))
    made = device_claim("c", allocation=had, reserved=(first.uid,)) if is_written else device_claim("c")
    cluster = world(gpus("n0"), made, device_claim("d"))
    for each in (first, other, asked):
        cluster.set_pod(each)
    cluster.assume(first.uid, "n0", (UseDevices("default", "c", "uid-c", Consumer(first.name, first.uid), had),))
    snapshot = Snapshot(cluster)
    kind = classify(snapshot, [asked])[asked.uid]
    assert snapshot.caps(kind).tolist() == [0, 0]
    snapshot.leave([cluster.ledger.claims[first.uid]])
    assert snapshot.caps(kind).tolist() == [room, 0]
    snapshot.stay([cluster.ledger.claims[first.uid]])
    assert snapshot.caps(kind).tolist() == [0, 0]


def test_only_the_newest_generation_of_a_pool_counts_and_only_if_it_is_complete():
    old = gpus("n0", 3)
    new = replace(old, name="new", generation=1, devices=old.devices[:1])
    assert room_of(world(old, new, device_claim("a")), *users("a")) == [1, 0]
    assert room_of(world(old, replace(new, parts=2), device_claim("a")), *users("a")) == [0, 0]
    parts = [replace(old, name=f"p{at}", parts=2, devices=(gpu(f"d{at}"),)) for at in range(2)]
    assert room_of(world(*parts, device_claim("a")), *users("a")) == [2, 0]
    assert room_of(world(parts[0], replace(parts[1], devices=parts[0].devices), device_claim("a")), *users("a")) == [
        0,
        0,
    ]


def test_all_devices_can_be_asked_for_only_where_each_pool_of_the_node_is_complete():
    claim = device_claim("a", wishes(asks(all=True)))
    other = replace(gpus("n0"), name="other", pool="other")
    assert room_of(world(gpus("n0"), gpus("n1"), other, claim), *users("a")) == [1, 1]
    assert room_of(world(gpus("n0"), gpus("n1"), replace(other, parts=2), claim), *users("a")) == [0, 1]


def test_devices_that_all_nodes_can_use_are_shared_by_them():
    cluster = world(replace(gpus("net", 3), node=""), *map(device_claim, "abcd"))
    assert room_of(cluster, *users(*"abcd")) == [3, 3]
    snapshot = Snapshot(cluster)
    members = [cluster.pods[f"uid-default/a-{name}"] for name in "abcd"]
    [kind] = {*classify(snapshot, members).values()}
    [plan] = [each for each in snapshot.plans if type(each).__name__ == "_DevicesPlan"]
    assert plan.couples(kind, kind)
    before = plan.digest(snapshot.own)
    first = np.array([0], dtype=np.int64)
    took = plan.take(kind, first, np.array([2]))
    assert took is not None
    assert took.tolist() == [0, 1]
    assert rooms(plan, kind) == [1, 1]
    plan.take(kind, first, np.array([-2]))
    assert rooms(plan, kind) == [3, 3]
    assert plan.digest(snapshot.own) == before


def test_an_attribute_of_another_type_is_another_value():
    text = Device("t", (Attribute(f"{DRIVER}/numa", AttributeType.STRING, "0"),))
    assert found(wishes(asks(2), same="numa"), offers=on_node(A, text)) is None


def test_as_many_pods_share_a_claim_as_can_be_reserved():
    members = [pod(f"default/a-{at}", device_claims=["c"]) for at in range(300)]
    cluster = world(gpus("n0", 1), device_claim("c"))
    assert room_of(cluster, *members) == [256, 0]
    snapshot = Snapshot(cluster)
    [kind] = {*classify(snapshot, members).values()}
    [plan] = [each for each in snapshot.plans if type(each).__name__ == "_DevicesPlan"]
    plan.take(kind, np.array([0], dtype=np.int64), np.array([256]))
    assert rooms(plan, kind) == [0, 0]


HAD = Allocation((AllocatedDevice("gpu", (DRIVER, "n0", "gpu-0")),))
OTHER = Allocation((AllocatedDevice("gpu", (DRIVER, "n0", "gpu-1")),))


@pytest.mark.parametrize(
    ("claims", "standing"),
    [
        ([], PrebindingState.LOST),
        ([device_claim("c")], PrebindingState.OPEN),
        ([device_claim("c", terminating=True)], PrebindingState.LOST),
        ([device_claim("c", allocation=HAD)], PrebindingState.OPEN),
        ([device_claim("c", allocation=HAD, reserved=("p",))], PrebindingState.DONE),
        ([device_claim("c", allocation=OTHER, reserved=("p",))], PrebindingState.LOST),
        ([device_claim("c", allocation=HAD, reserved=tuple(map(str, range(256))))], PrebindingState.LOST),
        ([device_claim("c"), device_claim("d", allocation=HAD)], PrebindingState.LOST),
        ([device_claim("c", allocation=HAD, reserved=("p",)), device_claim("d", allocation=HAD)], PrebindingState.LOST),
    ],
)
def test_how_far_an_allocation_has_come(claims, standing):
    asked = UseDevices("default", "c", "uid-c", Consumer("pod", "p"), HAD)
    assert world(*claims).prebindings.state_of(asked) is standing
    assert world(*claims).prebindings.state_of(replace(asked, uid="another")) is PrebindingState.LOST


def test_the_newest_class_provides_an_extended_resource_and_of_two_the_first_by_name():
    old, new = DeviceClass("a", resource="example.com/gpu", made_at=1.0), DeviceClass("c", resource="example.com/gpu")
    cluster = world(old, replace(new, made_at=2.0), replace(new, name="b", made_at=2.0))
    provided = {name: of for name, of in cluster.devices.provided.items() if of != "gpu"}
    prefix = "deviceclass.resource.kubernetes.io/"
    assert provided == {"example.com/gpu": "b", f"{prefix}a": "a", f"{prefix}b": "b", f"{prefix}c": "c"}
    cluster.set_devices(DeviceKind.CLASS, ("", "b"), None)
    assert cluster.devices.provided["example.com/gpu"] == "c"


def of_pod(**fields):
    return device_claim("c", owner="p", extended=True, ours=True, **fields)


@pytest.mark.parametrize(
    ("claims", "standing"),
    [
        ([], PrebindingState.OPEN),
        ([of_pod()], PrebindingState.OPEN),
        ([replace(of_pod(), uid="another")], PrebindingState.OPEN),
        ([of_pod(allocation=HAD, reserved=("p",))], PrebindingState.DONE),
        ([of_pod(allocation=OTHER)], PrebindingState.LOST),
        ([of_pod(terminating=True)], PrebindingState.LOST),
        ([replace(of_pod(), owner="q")], PrebindingState.LOST),
        ([device_claim("d", allocation=HAD)], PrebindingState.LOST),
    ],
)
def test_how_far_a_claim_has_come_that_is_made_for_its_pod(claims, standing):
    asked = UseDevices("default", "c", "", Consumer("pod", "p"), HAD, making=Making())
    assert world(*claims).prebindings.state_of(asked) is standing


@pytest.mark.parametrize(
    ("of_its_pod", "left"),
    [({}, True), ({"node": "n0"}, False), ({"phase": "Failed"}, False), (None, False)],
)
def test_a_claim_that_was_made_is_left_over_while_its_pod_has_no_node(of_its_pod, left):
    """The claim of a deleted pod is deleted by the garbage collector."""
    cluster = world()
    if of_its_pod is not None:
        cluster.set_pod(pod("default/pod", uid="p", requests={"example.com/gpu": 1}, **of_its_pod))
    claim = replace(of_pod(allocation=HAD, reserved=("p",)), name="pod-extended-resources-p")
    cluster.set_devices(DeviceKind.CLAIM, claim.key, claim)
    expected = [UseDevices("default", claim.name, "uid-c", Consumer("pod", "p"), HAD, making=Making())]
    assert cluster.prebindings.shown({"gangsched"}) == (expected if left else [])


GROUP = Consumer("g", "uid-g", group=True)
AGAIN = Consumer("g", "uid-of-another-g", group=True)


def of_group(*consumers: Consumer, **fields):
    uids = tuple(each.uid for each in consumers)
    return device_claim("c", allocation=HAD, reserved=uids, sharing=consumers, ours=True, **fields)


@pytest.mark.parametrize(
    ("claim", "group", "standing"),
    [
        (device_claim("c"), "uid-g", PrebindingState.OPEN),
        (device_claim("c", allocation=HAD), "uid-g", PrebindingState.OPEN),
        (of_group(GROUP), "uid-g", PrebindingState.DONE),
        (of_group(AGAIN), "uid-g", PrebindingState.OPEN),
        (of_group(GROUP), "", PrebindingState.LOST),
        (of_group(GROUP), "uid-of-another-g", PrebindingState.LOST),
    ],
    ids=["nothing", "allocated", "reserved", "reserved for an earlier group", "the group is gone", "another group"],
)
def test_how_far_a_claim_has_come_that_a_group_shares(claim, group, standing):
    cluster = world(claim)
    if group:
        declared = ForeignGroup(NATIVE, key("default/g"), group, 0.0, GroupSpec(1))
        cluster.devices.set_group(("default", "g"), declared)
    assert cluster.prebindings.state_of(UseDevices("default", "c", "uid-c", GROUP, HAD)) is standing


def sharer(name: str, claim: str = "c", group: str = "g", **fields):
    return pod(f"default/{name}", device_claims=[DeviceUse("shared", claim, "", group)], **fields)


@pytest.mark.parametrize(
    ("pods", "left"),
    [
        ([], False),
        ([sharer("a")], True),
        ([sharer("a"), sharer("b", node="n0")], False),
        ([sharer("a"), sharer("b", node="n0", phase="Succeeded")], True),
        ([sharer("a", phase="Failed")], False),
        ([sharer("a"), sharer("b", scheduler="other")], False),
        ([sharer("a", group="h")], False),
        ([sharer("a"), sharer("b", group="h", node="n0")], True),
        ([sharer("a", claim="d")], False),
        ([sharer("a"), sharer("b", claim="d", node="n0")], True),
    ],
)
def test_a_groups_reservation_is_left_over_while_its_pods_wait_and_none_has_a_node(pods, left):
    """kube-controller-manager releases the claims of a PodGroup that is gone."""
    for order in (pods, pods[::-1]):
        cluster = world(of_group(GROUP))
        for each in order:
            cluster.set_pod(replace(each, node="", phase=PodPhase.PENDING))
            cluster.set_pod(each)
        expected = [UseDevices("default", "c", "uid-c", GROUP, HAD)] if left else []
        assert list(cluster.prebindings.shown({"gangsched"})) == expected
        assert cluster.devices.contradictions(cluster.pods.values()) == []
        for each in order:
            cluster.remove_pod(each.uid)
        assert list(cluster.prebindings.shown({"gangsched"})) == []


def test_a_made_claim_is_named_after_its_pod_and_no_longer_than_the_api_server_allows():
    assert made_key(pod("default/a", uid="12345678-9")) == ("default", "a-extended-resources-12345678")
    _, name = made_key(pod("default/" + "a" * 199 + ".b" * 20, uid="12345678-9"))
    assert name == "a" * 199 + "-extended-resources-12345678"


# Several members on one node, against a naive search


@given(devices_with_more(), st.lists(member_wishes(), min_size=1, max_size=3), st.data())
def test_members_on_a_node_get_devices_exactly_if_there_is_a_way_for_all_of_them(devices, kinds, data):
    wanted = [data.draw(st.sampled_from(kinds)) for _ in range(data.draw(st.integers(1, 4)))]
    names = [f"{at}" for at in range(len(wanted))]
    claims = [device_claim(name, what) for name, what in zip(names, wanted, strict=True)]
    cluster = world(*pool("n0", devices), *claims)
    pods = users(*names)
    for each in pods:
        cluster.set_pod(each)
    snapshot = Snapshot(cluster)
    classes = classify(snapshot, pods)
    before = snapshot.digest((("zone", "none"),))
    number = 0
    for each in pods:
        if not snapshot.caps(classes[each.uid])[0]:
            break
        snapshot.take(0, classes[each.uid], 1)
        number += 1
    assert together(wanted[:number], devices, Counter())
    if number < len(pods):
        assert not together(wanted[: number + 1], devices, Counter())
    snapshot.undo(0)
    assert snapshot.digest((("zone", "none"),)) == before


_DRAWING: dict[str, Any] = {"numa": 0, "counters": ((MEMORY, 3),)}


@given(wide_devices(), st.lists(st.tuples(member_wishes(), st.integers(0, 1)), min_size=2, max_size=3))
@example(
    [gpu("a", node="n0", **_DRAWING), gpu("b", numa=0, node="n0"), gpu("c", node="n1", **_DRAWING)],
    [(wishes(asks()), 0), (wishes(asks()), 0), (wishes(asks()), 1)],
)
def test_members_on_two_nodes_get_devices_of_one_pool_exactly_if_there_is_a_way(devices, wanted):
    """Each node may see other devices of the pool; its counters are drawn by all of them."""
    names = [f"{at}" for at in range(len(wanted))]
    claims = [device_claim(name, what) for name, (what, _) in zip(names, wanted, strict=True)]
    cluster = world(*wide_pool(devices), *claims)
    pods = users(*names)
    for each in pods:
        cluster.set_pod(each)
    snapshot = Snapshot(cluster)
    classes = classify(snapshot, pods)
    asked = [(what, [each for each in devices if each.node in ("", f"n{row}")]) for what, row in wanted]
    for number, (each, (_, row)) in enumerate(zip(pods, wanted, strict=True), 1):
        room = snapshot.caps(classes[each.uid])[row]
        assert bool(room) == apart(asked[:number], Counter())
        if not room:
            break
        snapshot.take(row, classes[each.uid], 1)


def test_a_device_that_any_number_of_claims_may_share_has_room_for_all_pods_of_the_node():
    """Regression: the members for which such a device has room were counted without end."""
    anyone = gpu("gpu-0", multiple=True)
    cluster = world(gpus("n0", devices=(anyone,)), device_claim("0"), nodes=1)
    assert room_of(cluster, *users("0")) == [dict(cluster.nodes["n0"].allocatable)["pods"]]
