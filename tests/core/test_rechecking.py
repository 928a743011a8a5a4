"""Which unconfirmed bindings to a node that has become worse are given up: those whose pods no longer fit together."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from gangsched.core.cluster.cache import Cluster
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.observed import Observed
from gangsched.core.gang.writes import Binding, BindState
from gangsched.core.membership.rechecking import recheck_worsened
from gangsched.core.objects.devices import AllocatedDevice, Allocation, DeviceKind, DeviceObject
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.prebindings import UseDevices
from gangsched.core.objects.shape import PodTerm, Requirement
from gangsched.core.planning.budget import Budget
from tests.builders import key, node, pod
from tests.clusters import cluster_of
from tests.gadgets import DRIVER, GPUS, device_claim, gpus

HOST = "kubernetes.io/hostname"
APP_A = PodTerm(HOST, (Requirement("app", "In", ("a",)),), ("default",))


def given_up(cluster: Cluster, *bindings: Binding) -> list[str]:
    """The names of the pods whose reservations are given up after node n0 has become worse."""
    gang = Gang(key("a"), Observed(pods={each.pod.uid: each.pod for each in bindings}))
    gang.operations.bindings = {each.pod.uid: each for each in bindings}
    members: Any = SimpleNamespace(gang_of=lambda _: gang, dirty=SimpleNamespace(note=lambda _: None))
    failed: list[Exception] = []
    changes = cluster.ledger.touched.changes
    cluster.worsen("n0")
    recheck_worsened(cluster, members, lambda _: None, lambda _, error: failed.append(error), Budget())
    assert failed == []
    released = [each for each in bindings if each.pod.uid not in gang.operations.bindings]
    assert cluster.ledger.touched.changes == changes + len(released)
    assert cluster.validate() == []
    return [each.pod.name for each in released]


def binding(member: Pod, state: BindState) -> Binding:
    return Binding(member, "n0", state=state)


@pytest.mark.parametrize("order", ["ab", "ba"])
@pytest.mark.parametrize("first", [BindState.SENT, BindState.HELD])
@pytest.mark.parametrize(
    ("terms", "lost"),
    [
        pytest.param({"affinity": [APP_A]}, 0, id="one needs the other"),
        pytest.param({"anti_affinity": [APP_A]}, 1, id="one excludes the other"),
    ],
)
def test_what_pods_ask_about_each_other_counts_in_whichever_order_they_are_tried(terms, lost, first, order):
    """Regression: a term was first asked about once another of the pods had been placed again, and missed it."""
    cluster = cluster_of(node("n0", labels={HOST: "n0"}))
    pods = {"a": pod("a", labels={"app": "a"}), "b": pod("b", **terms)}
    for each in pods.values():
        cluster.set_pod(each)
        cluster.assume(each.uid, "n0")
    several = [binding(pods["a"], first), binding(pods["b"], BindState.HELD)]
    assert len(given_up(cluster, *(several if order == "ab" else several[::-1]))) == lost


@pytest.mark.parametrize("number", [1, 2])
def test_a_device_that_one_of_the_pods_has_already_is_not_free_for_the_next(number):
    """Regression: that of an allocated claim counted as free, because its pod was looked at again itself."""
    cluster = cluster_of(node("n0"))
    pods = {name: pod(name, device_claims=[f"c-{name}"]) for name in ("a", "b")}
    has = {name: Allocation((AllocatedDevice("gpu", (DRIVER, "n0", f"gpu-{at}")),)) for at, name in enumerate("ab")}
    allocated = replace(device_claim("c-a"), allocation=has["a"], reserved=(pods["a"].uid,), ours=True)
    devices: list[DeviceObject] = [GPUS, gpus("n0", number), allocated, device_claim("c-b")]
    for each in devices:
        cluster.set_devices(DeviceKind(type(each).__name__), each.key, each)
    for name, member in pods.items():
        cluster.set_pod(member)
        consumer = cluster.devices.consumer(member, ("default", f"c-{name}"))
        cluster.assume(member.uid, "n0", (UseDevices("default", f"c-{name}", f"uid-c-{name}", consumer, has[name]),))
    lost = given_up(cluster, binding(pods["a"], BindState.SENT), binding(pods["b"], BindState.HELD))
    assert lost == (["b"] if number == 1 else [])
