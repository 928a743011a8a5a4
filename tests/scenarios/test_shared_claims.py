"""ResourceClaims that a PodGroup of Kubernetes shares: one claim, allocated once, reserved for the group.

The stories of upstream are those of k8s.io/kubernetes v1.37.2: test/integration/dra/workload_resource_claims.go and
pod_group.go, and the cases of groups in pkg/scheduler/framework/plugins/dynamicresources/dynamicresources_test.go. The
line of the case is in the name of its row.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from gangsched.core.objects.devices import AllocatedDevice, Allocation, Consumer, DeviceKind, ResourceClaim
from gangsched.core.objects.effects import Prebind, UndoPrebinding
from gangsched.core.objects.offered_devices import ResourceSlice
from gangsched.core.objects.pod import DeviceUse, Pod
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.core.objects.results import BindRefused, Refused
from gangsched.core.objects.shape import NodeTerm, Requirement
from gangsched.kube.dialects.dialect_table import DEFAULT
from tests.builders import group, node, pod
from tests.gadgets import DRIVER, GPUS, device_claim, gpu, gpus
from tests.harness import Course, Harness
from tests.served import served_group

GROUP = Consumer("g", "uid-g", group=True)
NAMED = {"name": "shared", "resourceClaimName": "c"}
MADE = {"name": "shared", "resourceClaimTemplateName": "t"}


@pytest.fixture
def harness(course: Course) -> Harness:  # noqa: ARG001 - the course is set before the harness is made
    return Harness()


def native(*claims: dict[str, Any], least: int | None = None, uid: str = "uid-g", name: str = "g") -> ForeignGroup:
    """The PodGroup of the policy gang with this minimum, else basic."""
    policy: dict[str, Any] = {"basic": {}} if least is None else {"gang": {"minCount": least}}
    spec = {"schedulingPolicy": policy, "resourceClaims": list(claims)}
    return served_group("native", name, spec, uid=uid, creationTimestamp="1970-01-12T13:46:40Z")


def shared(claim: str = "c", template: str = "", group: str = "g", name: str = "shared") -> DeviceUse:
    return DeviceUse(name, claim, template, group)


def member(name: str, *uses: DeviceUse, group: str = "g", **fields: Any) -> Pod:
    said = DEFAULT.declaration({}, {}, pod=name, scheduling_group=group)
    return pod(f"default/{name}", declaration=said, device_claims=uses or (shared(group=group),), **fields)


def members(number: int, *uses: DeviceUse, first: int = 0, **fields: Any) -> list[Pod]:
    return [member(f"p-{at}", *uses, **fields) for at in range(first, first + number)]


def here(name: str) -> tuple[NodeTerm, ...]:
    return (NodeTerm(fields=(Requirement("metadata.name", "In", (name,)),)),)


def on(name: str, device: str = "gpu-0") -> Allocation:
    return Allocation((AllocatedDevice("gpu", (DRIVER, name, device)),), here(name))


def reserved_for(*groups: Consumer, **fields: Any) -> dict[str, Any]:
    return {"reserved": tuple(each.uid for each in groups), "sharing": groups, **fields}


def controller(harness: Harness) -> None:
    """kube-controller-manager: releases claims of pods and PodGroups that are gone, and their devices with the last."""
    there = {*harness.pods, *(each.uid for each in harness.foreign.values())}
    for claim in list(harness.devices[DeviceKind.CLAIM].values()):
        assert isinstance(claim, ResourceClaim)
        left = tuple(uid for uid in claim.reserved if uid in there)
        if left != claim.reserved:
            sharing = tuple(each for each in claim.sharing if each.uid in there)
            allocation = claim.allocation if left else None
            harness.add(replace(claim, reserved=left, sharing=sharing, allocation=allocation))


def claims_without_their_group(harness: Harness) -> list[str]:
    """The claims that are allocated or reserved for a PodGroup of which no pod is bound, or for two consumers."""
    claims = [each for each in harness.devices[DeviceKind.CLAIM].values() if isinstance(each, ResourceClaim)]
    bound = {use.claim for each in harness.pods.values() if each.node for use in each.device_claims}
    ours = [each for each in claims if each.ours and (each.allocation is not None or each.reserved)]
    return [each.name for each in ours if each.name not in bound or len(each.reserved) != 1]


def writes(harness: Harness) -> int:
    return sum(isinstance(each, Prebind) for each in harness.effects)


def undone(harness: Harness) -> int:
    return sum(isinstance(each, UndoPrebinding) for each in harness.effects)


def told(harness: Harness, name: str = "p-0") -> tuple[str, str]:
    found = harness.pod(f"default/{name}")
    return found.condition_reason, found.condition_message


# The stories of upstream's test/integration/dra/workload_resource_claims.go


def test_workload_resource_claims_38_from_the_first_pod_to_the_end_of_the_group(harness: Harness) -> None:
    """A basic group; each pod uses the group's claim, and an ordinary one that both pods name."""
    own = shared("own", name="own")
    harness.add(node("n", cpu="8"), native(NAMED))
    harness.add(GPUS, gpus("n", 2), device_claim("c"), device_claim("own"))
    harness.settle(member("p-1", shared(), own))
    assert harness.bound() == ["default/p-1"]
    assert harness.gadgets.claim("own").reserved == ("uid-default/p-1",)
    assert harness.gadgets.claim("c").reserved == ("uid-g",)
    assert harness.gadgets.claim("c").sharing == (GROUP,)

    harness.settle(member("p-2", shared(), own))
    assert harness.gadgets.claim("own").reserved == ("uid-default/p-1", "uid-default/p-2")
    assert harness.gadgets.claim("c").reserved == ("uid-g",)

    harness.delete("default/p-1")
    controller(harness)
    harness.wait(15)
    assert harness.gadgets.claim("own").reserved == ("uid-default/p-2",)
    assert harness.gadgets.claim("c").reserved == ("uid-g",)

    harness.delete("default/p-2")
    controller(harness)
    harness.wait(15)
    assert harness.gadgets.claim("own").reserved == ()
    assert harness.gadgets.claim("c").reserved == ("uid-g",)

    harness.delete_foreign("native", "default/g")
    controller(harness)
    harness.wait(15)
    assert harness.gadgets.allocated() == {}
    assert not harness.gadgets.claim("c").ours


def test_with_the_gate_off_the_api_server_drops_the_groups_claims_and_pods_reserve_for_themselves(
    harness: Harness,
) -> None:
    harness.add(node("n", cpu="8"), native(least=2))
    harness.add(GPUS, gpus("n", 2), device_claim("c"))
    harness.settle(*members(2))
    assert len(harness.bound()) == 2
    assert set(harness.gadgets.claim("c").reserved) == {"uid-default/p-0", "uid-default/p-1"}


# The stories of upstream's test/integration/dra/pod_group.go

KINDS = {"ordinary": ((), shared()), "by name": ((NAMED,), shared()), "by template": ((MADE,), shared(template="t"))}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("least", "number"),
    [(2, 2), (20, 20), (2, 5), (None, 2), (None, 20)],
    ids=["gang-2-of-2", "gang-20-of-20", "gang-2-of-5", "basic-2", "basic-20"],
)
def test_pod_group_all_pods_of_the_group_share_one_claim_on_the_node_of_its_device(
    harness: Harness, least: int | None, number: int, kind: str
) -> None:
    claims, use = KINDS[kind]
    owner = "uid-g" if kind == "by template" else ""
    harness.add(*(node(name, cpu="32") for name in ("n0", "n1")), native(*claims, least=least))
    harness.add(GPUS, gpus("n1", 1), device_claim("c", owner=owner, group="g" if owner else ""))
    harness.settle(*members(number, use))
    assert len(harness.bound()) == number
    assert {harness.pod(name).node for name in harness.bound()} == {"n1"}
    assert len(harness.gadgets.claim("c").reserved) == (1 if claims else number)
    assert undone(harness) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_pod_group_incompatible_node_selectors(harness: Harness, kind: str) -> None:
    """Upstream takes the device of the first pod's node, and leaves it with the claim until a later attempt fails."""
    claims, use = KINDS[kind]
    owner = "uid-g" if kind == "by template" else ""
    harness.add(*(node(name, cpu="8", labels={"n": name}) for name in ("n0", "n1")), native(*claims, least=2))
    harness.add(GPUS, gpus("n0", 1), gpus("n1", 1), device_claim("c", owner=owner, group="g" if owner else ""))
    harness.wait(10, *(member(f"p-{at}", use, node_selector={"n": f"n{at}"}) for at in range(2)))
    assert harness.bound() == []
    assert harness.gadgets.allocated() == {}
    assert told(harness)[0] == told(harness, "p-1")[0] == "Unschedulable"


# The cases of upstream's dynamicresources_test.go


@pytest.mark.parametrize(
    "claim",
    [
        device_claim("c"),
        device_claim("c", allocation=on("n")),
        device_claim("c", allocation=on("n"), **reserved_for(GROUP)),
        device_claim("c", allocation=on("n"), reserved=("somebody",)),
    ],
    ids=["1489 by name", "allocated", "1609 reserved", "reserved for another"],
)
def test_it_is_allocated_and_reserved_once_for_the_group(harness: Harness, claim: ResourceClaim) -> None:
    harness.add(node("n", cpu="8"), native(NAMED, least=3))
    harness.add(GPUS, gpus("n", 1), claim)
    harness.settle(*members(3))
    assert len(harness.bound()) == 3
    assert harness.gadgets.claim("c").reserved == tuple(dict.fromkeys((*claim.reserved, "uid-g")))
    assert harness.gadgets.allocated() == {"c": [(DRIVER, "n", "gpu-0")]}


@pytest.mark.without("all", why="a new leader asks again for what the watch does not show yet")
def test_only_one_member_writes_it(harness: Harness) -> None:
    harness.add(node("n", cpu="32"), native(NAMED, least=20))
    harness.add(GPUS, gpus("n", 1), device_claim("c"))
    harness.settle(*members(25))
    assert len(harness.bound()) == 25
    assert writes(harness) == 1


def test_2210_a_failed_binding_leaves_the_claim_with_the_group_while_it_is_tried_again(harness: Harness) -> None:
    busy = {"default/p-1"}

    def refuse(effect: Any) -> BindRefused | None:
        name = f"{effect.namespace}/{effect.name}"
        return BindRefused(effect.uid, effect.node, Refused.UNAVAILABLE, "busy") if name in busy else None

    harness.refuse_bind = refuse
    harness.add(node("n", cpu="8"), native(NAMED, least=2))
    harness.add(GPUS, gpus("n", 1), device_claim("c"))
    harness.wait(10, *members(2))
    assert harness.bound() == ["default/p-0"]
    assert harness.gadgets.claim("c").reserved == ("uid-g",)
    busy.clear()
    harness.wait(10)
    assert len(harness.bound()) == 2
    assert undone(harness) == 0


@pytest.mark.parametrize(
    ("bound", "scheduler"),
    [(0, "gangsched"), (1, "gangsched"), (0, "other")],
    ids=["2234 nobody is bound", "2319 a member is", "another scheduler has members"],
)
def test_a_group_that_cannot_use_its_claim_gives_it_back_unless_a_member_is_bound(
    harness: Harness, bound: int, scheduler: str
) -> None:
    """Its pods of an earlier run are gone; those of this run fit only elsewhere."""
    harness.add(node("n", cpu="1"), native(NAMED, least=3))
    harness.add(GPUS, gpus("n", 1), device_claim("c", allocation=on("n"), ours=True, **reserved_for(GROUP)))
    harness.wait(10, *members(bound, node="n", first=10), *members(3), member("p-x", scheduler=scheduler))
    claim, released = harness.gadgets.claim("c"), not bound and scheduler == "gangsched"
    assert (claim.allocation is None, claim.reserved == (), not claim.ours) == (released,) * 3


def test_2284_a_group_that_can_use_its_claim_only_elsewhere_gets_it_there(harness: Harness) -> None:
    harness.add(node("small", cpu="1"), node("big", cpu="8"), native(NAMED, least=3))
    old = device_claim("c", allocation=on("small"), ours=True, **reserved_for(GROUP))
    harness.add(GPUS, gpus("small", 1), gpus("big", 1), old)
    harness.wait(60, *members(3))
    assert {harness.pod(name).node for name in harness.bound()} == {"big"}
    assert len(harness.bound()) == 3
    assert harness.gadgets.allocated() == {"c": [(DRIVER, "big", "gpu-0")]}


def test_a_claim_that_another_has_allocated_for_the_group_stays_as_it_is(harness: Harness) -> None:
    harness.add(node("small", cpu="1"), node("big", cpu="8"), native(NAMED, least=3))
    harness.add(GPUS, gpus("small", 1), device_claim("c", allocation=on("small"), **reserved_for(GROUP)))
    harness.wait(10, *members(3))
    assert harness.bound() == []
    assert harness.gadgets.claim("c").reserved == ("uid-g",)
    assert "devices of the ResourceClaim c" in told(harness)[1] or "node affinity" in told(harness)[1]


# Upstream: test/e2e/dra/dra.go, device taints with group claims


# What a group's claim needs before its members are placed


def test_members_wait_until_the_controller_has_made_the_groups_claim(harness: Harness) -> None:
    harness.add(node("n", cpu="8"), native(MADE, least=2))
    harness.add(GPUS, gpus("n", 1))
    harness.wait(3, *members(2, shared("", "t")))
    assert harness.bound() == []
    reason, message = told(harness)
    assert reason == "ResourceClaimNotReady"
    assert "kube-controller-manager has yet to create" in message
    assert "the PodGroup g" in message
    harness.add(device_claim("c", owner="uid-g", group="g"))
    harness.settle(*members(2, shared("c", "t")))
    assert len(harness.bound()) == 2
    assert harness.gadgets.claim("c").sharing == (GROUP,)


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        (device_claim("c", owner="uid-default/p-0"), "was not made for the PodGroup g"),
        (device_claim("c", owner="uid-of-an-earlier-g", group="g"), "was not made for the PodGroup g"),
        (device_claim("c", owner="uid-g", group="g", terminating=True), "is being deleted"),
        (device_claim("c", owner="uid-g", group="g", reserved=tuple(map(str, range(256)))), "reserved for 256"),
    ],
    ids=["the controller's gate is off", "of an earlier group", "being deleted", "full"],
)
def test_what_is_wrong_with_a_groups_claim_is_said(harness: Harness, claim: ResourceClaim, said: str) -> None:
    harness.add(node("n", cpu="8"), native(MADE, least=2))
    harness.add(GPUS, gpus("n", 1), claim)
    harness.wait(3, *members(2, shared("c", "t")))
    assert harness.bound() == []
    assert told(harness)[0] == "ResourceClaimNotReady"
    assert said in told(harness)[1]
    harness.wait(31, device_claim("c", owner="uid-g", group="g"))
    assert len(harness.bound()) == 2


@pytest.mark.parametrize(
    "use",
    [shared(name="another"), shared("d"), shared("c", "t"), shared("c", "", group="h")],
    ids=["name", "claim", "template", "group"],
)
def test_a_pods_claim_is_the_groups_only_if_name_claim_and_template_are_the_same(
    harness: Harness, use: DeviceUse
) -> None:
    harness.add(node("n", cpu="8"), native(NAMED), native(name="h", uid="uid-h"))
    claims = [device_claim(name, owner="uid-default/p-0" if use.template else "") for name in ("c", "d")]
    harness.add(GPUS, gpus("n", 2), *claims)
    harness.settle(member("p-0", use, group=use.group))
    assert harness.gadgets.claim(use.claim).reserved == ("uid-default/p-0",)


def test_a_pod_that_is_grouped_by_another_dialect_shares_the_claims_of_the_native_group_that_it_names(
    harness: Harness,
) -> None:
    """Its gang is that of its label; the claim is the PodGroup's, because kubelet and controller go by that."""
    harness.add(node("n", cpu="8"), group("default/own", min_member=2))
    harness.add(GPUS, gpus("n", 1), device_claim("c"))
    harness.wait(3, *(pod(f"default/p-{at}", group="own", device_claims=[shared()]) for at in range(2)))
    assert harness.bound() == []
    assert told(harness)[0] == "ResourceClaimNotReady"
    assert "the PodGroup g of scheduling.k8s.io" in told(harness)[1]
    harness.settle(native(NAMED))
    assert len(harness.bound()) == 2
    assert harness.gadgets.claim("c").reserved == ("uid-g",)


# All or nothing


def test_more_than_256_members_share_it_because_only_the_group_reserves_it(harness: Harness) -> None:
    harness.add(node("n", cpu=1000, pods=1000), native(NAMED, least=300))
    harness.add(GPUS, gpus("n", 1), device_claim("c", reserved=tuple(map(str, range(255)))))
    harness.wait(10, *members(300))
    assert len(harness.bound()) == 300


@pytest.mark.parametrize(("room", "bound"), [(254, 5), (255, 3)])
def test_of_two_groups_only_one_gets_the_last_reservation(harness: Harness, room: int, bound: int) -> None:
    harness.add(node("n", cpu="8"), native(NAMED, least=3), native(NAMED, least=2, name="h", uid="uid-h"))
    others = tuple(map(str, range(room)))
    harness.add(GPUS, gpus("n", 1), device_claim("c", allocation=on("n"), reserved=others))
    harness.wait(10, *members(3), *(member(f"z-{at}", shared(group="h"), group="h", created=9.0) for at in range(2)))
    assert len(harness.bound()) == bound
    assert len(harness.gadgets.claim("c").reserved) == 256


def of_zone(zone: str, number: int = 1) -> ResourceSlice:
    """Devices that every node of the zone can use."""
    inside = NodeTerm((Requirement("zone", "In", (zone,)),))
    devices = tuple(gpu(f"gpu-{at}") for at in range(number))
    return ResourceSlice(zone, DRIVER, zone, node_affinity=(inside,), devices=devices)


def test_no_member_is_bound_before_the_claim_is_allocated_and_it_is_taken_back_with_the_hope_for_the_group(
    harness: Harness,
) -> None:
    """A second claim of the group is never written."""
    second = {"name": "second", "resourceClaimName": "d"}
    harness.add(node("n", cpu="8"), native(NAMED, second, least=2))
    harness.add(GPUS, gpus("n", 2), device_claim("c"), device_claim("d"))
    harness.lose_prebinding = lambda effect: getattr(effect.prebinding, "claim", "") == "d"
    uses = shared(), shared("d", name="second")
    harness.wait(3, *members(2, *uses))
    assert list(harness.gadgets.allocated()) == ["c"]
    assert harness.bound() == []
    harness.delete("default/p-1")
    harness.wait(10)
    assert harness.gadgets.allocated() == {}
    assert not harness.gadgets.claim("c").ours
    harness.lose_prebinding = lambda _: False
    harness.wait(31, member("p-1", *uses))
    assert len(harness.bound()) == 2


@pytest.mark.parametrize("again", ["", "made again"])
def test_a_group_that_is_deleted_before_it_is_bound_leaves_nothing(harness: Harness, again: str) -> None:
    """Its pods stay; the PodGroup may come back under its name."""
    second = {"name": "second", "resourceClaimName": "d"}
    harness.add(node("n", cpu="8"), native(NAMED, second, least=2))
    harness.add(GPUS, gpus("n", 2), device_claim("c"), device_claim("d"))
    harness.lose_prebinding = lambda effect: getattr(effect.prebinding, "claim", "") == "d"
    harness.wait(3, *members(2, shared(), shared("d", name="second")))
    assert list(harness.gadgets.allocated()) == ["c"]
    harness.delete_foreign("native", "default/g")
    if again:
        harness.lose_prebinding = lambda _: False
        harness.add(native(NAMED, second, least=2, uid="uid-again"))
    controller(harness)
    harness.wait(31)
    if again:
        assert len(harness.bound()) == 2
        assert {harness.gadgets.claim(name).reserved for name in "cd"} == {("uid-again",)}
    else:
        assert harness.bound() == []
        assert harness.gadgets.allocated() == {}


def test_a_device_that_another_scheduler_has_allocated_too_withdraws_the_groups(harness: Harness) -> None:
    second = {"name": "second", "resourceClaimName": "d"}
    harness.add(node("n", cpu="8"), native(NAMED, second, least=2))
    harness.add(GPUS, gpus("n", 2), device_claim("c"), device_claim("d"))
    harness.lose_prebinding = lambda effect: getattr(effect.prebinding, "claim", "") == "d"
    harness.wait(3, *members(2, shared(), shared("d", name="second")))
    [(_, pool, device)] = harness.gadgets.allocated()["c"]
    harness.add(device_claim("else", allocation=on(pool, device), reserved=("somebody",)))
    harness.lose_prebinding = lambda _: False
    harness.wait(30)
    assert harness.bound() == []
    assert list(harness.gadgets.allocated()) == ["else"]


def test_a_group_keeps_its_claim_between_two_runs(harness: Harness) -> None:
    """As with kube-scheduler: a claim is released when the group ends, not when its pods do."""
    harness.add(*(node(name, cpu="2") for name in ("n0", "n1")), native(NAMED, least=2))
    harness.add(GPUS, gpus("n0", 1), gpus("n1", 1), device_claim("c"))
    harness.settle(*members(2))
    before = harness.gadgets.allocated()
    for name in harness.bound():
        harness.delete(name)
    harness.wait(30)
    assert harness.gadgets.allocated() == before
    harness.settle(*members(2, first=2))
    assert len(harness.bound("default/p")) == 2
    assert harness.gadgets.allocated() == before
    assert undone(harness) == 0
