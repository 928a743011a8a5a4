"""NeverFits is a promise: it is said only where it is proven, and nothing that passes proves anything."""

from __future__ import annotations

import pytest
from msgspec.structs import replace as renewed

from gangsched.core.objects.declaration import Topology
from gangsched.core.objects.devices import AllocatedDevice, Allocation, DeviceClass, DeviceKind, DeviceRequest
from gangsched.core.objects.node import Node
from gangsched.core.objects.offered_devices import Device
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.shape import NodeTerm, PodTerm, Requirement, Spread
from gangsched.core.objects.volumes import StorageClass
from gangsched.core.planning import budget as units
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.placement import Ask, place
from gangsched.core.planning.refusal import Refusal
from tests.builders import GPU, claim, node, pod, volume
from tests.clusters import Thing, provide
from tests.gadgets import DRIVER, GPUS, asks, device_claim, gpu, gpus, wishes

NOT_READY = "node.kubernetes.io/not-ready:NoSchedule"
PASSING = [
    NOT_READY,
    "node.kubernetes.io/not-ready:NoExecute",
    "node.kubernetes.io/unreachable:NoExecute",
    "node.kubernetes.io/unschedulable:NoSchedule",
    "node.kubernetes.io/memory-pressure:NoSchedule",
    "node.kubernetes.io/disk-pressure:NoSchedule",
    "node.kubernetes.io/pid-pressure:NoSchedule",
    "node.kubernetes.io/network-unavailable:NoSchedule",
    "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
    "node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule",
    "node.cloudprovider.kubernetes.io/shutdown:NoSchedule",
    "node.cilium.io/agent-not-ready=true:NoExecute",
    "ebs.csi.aws.com/agent-not-ready:NoExecute",
    "karpenter.sh/unregistered:NoExecute",
    "karpenter.sh/disrupted:NoSchedule",
    "startup-taint.cluster-autoscaler.kubernetes.io/gpu:NoSchedule",
    "status-taint.cluster-autoscaler.kubernetes.io/x:NoSchedule",
    "ToBeDeletedByClusterAutoscaler=1:NoSchedule",
    "readiness.k8s.io/network:NoSchedule",
]
LASTING = ["dedicated=gpu:NoSchedule", "nvidia.com/gpu=present:NoSchedule", "node-role.kubernetes.io/master:NoSchedule"]
APP = {"app": "web"}
WEB = (Requirement("app", "In", ("web",)),)
ZONE = "zone"
HAS = AllocatedDevice("gpu", (DRIVER, "n1", "gpu-0"))
HAS_SHARE = AllocatedDevice("gpu", (DRIVER, "n1", "gpu-0"), shared=True, share="s", consumed=(("memory", 1),))
IN_ZONE = PodTerm(ZONE, WEB, ("default",))


def reason(cluster, members, **terms):
    found = place(Snapshot(cluster), Ask(members=members, need=len(members), **terms))
    assert isinstance(found, Refusal)
    return found.reason


@pytest.mark.parametrize("text", PASSING)
def test_a_taint_that_is_lifted_by_whoever_set_it_proves_nothing(cluster_of, text):
    assert reason(cluster_of(node("n1", taints=[text])), [pod("a-0")]) is Reason.UNSCHEDULABLE


@pytest.mark.parametrize("text", LASTING)
def test_a_taint_that_stays_proves_that_the_node_takes_nobody_without_a_toleration(cluster_of, text):
    assert reason(cluster_of(node("n1", taints=[text])), [pod("a-0")]) is Reason.NEVER_FITS
    assert reason(cluster_of(node("n1", taints=[text, NOT_READY])), [pod("a-0")]) is Reason.NEVER_FITS


def test_a_proof_is_found_however_much_the_call_has_done_before(cluster_of):
    snapshot = Snapshot(cluster_of(node("n1", cpu=4)))
    snapshot.budget.charge(units.DIAGNOSIS)
    found = place(snapshot, Ask(members=[pod("a-0", cpu=5)], need=1))
    assert isinstance(found, Refusal)
    assert found.never


def test_a_cordon_proves_nothing_and_a_cordoned_node_is_no_larger_for_it(cluster_of):
    cluster = cluster_of(node("n1", cpu=4, unschedulable=True))
    assert reason(cluster, [pod("a-0", cpu=4)]) is Reason.UNSCHEDULABLE
    assert reason(cluster, [pod("a-0", cpu=5)]) is Reason.NEVER_FITS


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param({"node_selector": {"disk": "ssd"}}, id="a label"),
        pytest.param({"node_affinity": [NodeTerm((Requirement("disk", "Exists"),))]}, id="node affinity"),
        pytest.param({"gpu": 1}, id="a device plug-in's resource"),
        pytest.param({"requests": {"cpu": 1, "rdma/hca": 1}}, id="a resource that nobody offers"),
        pytest.param({"features": ["Some"]}, id="a feature of the kubelet"),
        pytest.param({"affinity": [IN_ZONE], "labels": APP}, id="a domain of pod affinity"),
        pytest.param({"spread": [Spread(IN_ZONE, 1)], "labels": APP}, id="a domain of topology spread"),
    ],
)
def test_what_a_node_lacks_may_come_while_it_is_being_started(cluster_of, asked):
    members = [pod("a-0", **asked)]
    assert reason(cluster_of(node("n1")), members) is Reason.NEVER_FITS
    assert reason(cluster_of(node("n1", taints=[NOT_READY])), members) is Reason.UNSCHEDULABLE


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param({"cpu": 99}, id="its cpu"),
        pytest.param({"node_selector": {"disk": "ssd"}}, id="a label that it has"),
        pytest.param(
            {"node_affinity": [NodeTerm(fields=(Requirement("metadata.name", "In", ("n2",)),))]}, id="its name"
        ),
    ],
)
def test_what_a_node_says_of_itself_counts_while_it_is_being_started(cluster_of, asked):
    cluster = cluster_of(node("n1", labels={"disk": "hdd"}, taints=[NOT_READY]))
    assert reason(cluster, [pod("a-0", **asked)]) is Reason.NEVER_FITS


def test_a_node_that_has_reported_nothing_yet_may_take_anything(cluster_of):
    assert reason(cluster_of(Node("n1")), [pod("a-0", cpu=99)]) is Reason.UNSCHEDULABLE


def test_a_required_domain_may_get_a_node_that_is_being_started(cluster_of):
    racked = [node("n1", cpu=2, labels={"rack": "a"}), node("n2", cpu=2, labels={"rack": "b"})]
    members, wanted = [pod(f"a-{at}", cpu=1) for at in range(3)], Topology("rack")
    assert reason(cluster_of(*racked), members, topology=wanted) is Reason.NEVER_FITS
    assert reason(cluster_of(*racked, node("n3", taints=[NOT_READY])), members, topology=wanted) is Reason.UNSCHEDULABLE


def test_a_resource_whose_plug_in_is_away_comes_back(cluster_of):
    away = renewed(node("n1"), awaited=(GPU,))
    assert reason(cluster_of(away), [pod("a-0", gpu=8)]) is Reason.UNSCHEDULABLE
    assert reason(cluster_of(away), [pod("a-0", cpu=99, gpu=8)]) is Reason.NEVER_FITS


def test_spread_is_no_proof_while_a_domain_may_still_count(cluster_of):
    """With minDomains 2 a single zone takes one; a second zone is shut and does not count."""
    term = Spread(IN_ZONE, 1, min_domains=2, honors_taints=True)
    members = [pod(f"a-{at}", spread=[term], labels=APP) for at in range(2)]
    one, other = node("n1", labels={ZONE: "a"}), node("n2", labels={ZONE: "b"}, taints=[NOT_READY])
    assert reason(cluster_of(one), members) is Reason.NEVER_FITS
    assert reason(cluster_of(one, other), members) is Reason.UNSCHEDULABLE
    assert reason(cluster_of(one, Node("n3")), members) is Reason.UNSCHEDULABLE


def test_spread_is_no_proof_where_others_are_counted_that_may_go(cluster_of):
    """Two zones with room for two members in the first and one in the second, and pods of others in the first."""
    members = [pod(f"a-{at}", spread=[Spread(IN_ZONE, 1)], labels=APP) for at in range(4)]
    zones = node("n1", labels={ZONE: "a"}), node("n2", cpu=1, labels={ZONE: "b"})
    other = pod("web", group="", cpu=0, node="n1", labels=APP)
    assert reason(cluster_of(*zones), members) is Reason.NEVER_FITS
    assert reason(cluster_of(*zones, other), members) is Reason.UNSCHEDULABLE


def test_a_volume_that_cannot_be_used_on_any_node_is_a_proof_and_a_claim_to_be_bound_is_none(cluster_of):
    bound: list[Thing] = [volume("v", zone="b"), claim("data", volume="v")]
    waiting: list[Thing] = [StorageClass("late", waits=True), claim("data", storage_class="late")]
    members, near = [pod("a-0", volume_claims=["data"])], node("n1", labels={ZONE: "a"})
    assert reason(provide(cluster_of(near), *bound), members) is Reason.NEVER_FITS
    assert reason(provide(cluster_of(node("n1", taints=[NOT_READY])), *bound), members) is Reason.UNSCHEDULABLE
    assert reason(provide(cluster_of(near), *waiting), members) is Reason.UNSCHEDULABLE


def using(number, claim_name="c"):
    return [pod(f"a-{at}", device_claims=[f"{claim_name}-{at}"]) for at in range(number)]


def claims(number, what):
    return [device_claim(f"c-{at}", what) for at in range(number)]


@pytest.mark.parametrize(
    ("what", "devices", "number"),
    [
        pytest.param(wishes(asks(2)), gpus("n1", 1), 1, id="too few"),
        pytest.param(wishes(asks(2)), gpus("n1", 3), 2, id="too few for all members"),
        pytest.param(wishes(asks(2), asks(1, name="more")), gpus("n1", 5), 2, id="too few for several requests"),
        pytest.param(
            wishes((asks(3, name="a"), asks(2, name="b"))), gpus("n1", 3), 2, id="with the smaller alternative"
        ),
        pytest.param(wishes(asks(where="false")), gpus("n1", 3), 1, id="none is selected"),
        pytest.param(wishes(asks(all=True, where="false")), gpus("n1", 3), 1, id="all, and none is selected"),
        pytest.param(wishes(asks(3, admin=True)), gpus("n1", 2), 1, id="admin access"),
    ],
)
def test_too_few_devices_are_a_proof_on_a_node_that_is_settled(cluster_of, what, devices, number):
    objects = [GPUS, devices, *claims(number, what)]
    settled, unsettled = cluster_of(node("n1")), cluster_of(node("n1", taints=[NOT_READY]))
    assert reason(provide(settled, *objects), using(number)) is Reason.NEVER_FITS
    assert reason(provide(unsettled, *objects), using(number)) is Reason.UNSCHEDULABLE


@pytest.mark.parametrize(
    ("what", "devices"),
    [
        pytest.param(wishes(asks(2)), gpus("n1", 1, parts=2), id="a pool that is incomplete"),
        pytest.param(
            wishes(asks(3)),
            gpus("n1", devices=(gpu("one"), gpu("two", multiple=True))),
            id="a device that can be allocated several times",
        ),
        pytest.param(wishes(asks(where="device.nothing")), gpus("n1", 1), id="an expression that fails"),
        pytest.param(wishes(asks(2), same="numa"), gpus("n1", 4, per_numa=1), id="what devices must have in common"),
    ],
)
def test_what_is_not_there_or_can_be_shared_proves_nothing_of_devices(cluster_of, what, devices):
    cluster = provide(cluster_of(node("n1")), GPUS, devices, *claims(1, what))
    assert reason(cluster, using(1)) is not Reason.NEVER_FITS


def test_devices_that_several_nodes_can_use_are_no_proof(cluster_of):
    shared = renewed(gpus("net", 1), node="")
    cluster = provide(cluster_of(node("n1"), node("n2")), GPUS, shared, *claims(2, wishes(asks())))
    assert reason(cluster, using(2)) is Reason.UNSCHEDULABLE


THREE = [node("n1"), node("n2"), node("n3")]


@pytest.mark.parametrize("has", [HAS, HAS_SHARE], ids=["a device", "a share of one"])
def test_devices_of_a_pool_that_nobody_offers_come_back(cluster_of, has):
    """dra-driver-nvidia-gpu#330: while a driver restarts, the kubelet withdraws the slices of its node."""
    other = device_claim("other", allocation=Allocation((has,)), reserved=("x",))
    objects = GPUS, gpus("n2", 1), other, *claims(2, wishes(asks()))
    assert reason(provide(cluster_of(*THREE), *objects), using(2)) is Reason.UNSCHEDULABLE
    assert reason(provide(cluster_of(*THREE[1:]), *objects), using(2)) is Reason.NEVER_FITS, "its node is gone"


@pytest.mark.parametrize("where", ["n1", ""])
def test_a_pool_that_was_withdrawn_comes_back_though_nothing_of_it_was_in_use(cluster_of, where):
    withdrawn, objects = renewed(gpus("n1", 1), node=where), (GPUS, gpus("n2", 1), *claims(3, wishes(asks())))
    cluster = provide(cluster_of(*THREE), withdrawn, *objects)
    cluster.set_devices(DeviceKind.SLICE, withdrawn.key, None)
    assert cluster.devices.contradictions(()) == []
    assert reason(cluster, using(2)) is Reason.UNSCHEDULABLE
    assert reason(provide(cluster, gpus("n1", 1)), using(3)) is Reason.NEVER_FITS


def test_a_resource_that_some_nodes_list_and_devices_provide_elsewhere_proves_nothing(cluster_of):
    """kubernetes#130653: kube-scheduler decides for each node which of them serves the pod."""
    provider = DeviceClass("gpu", resource=GPU)
    cluster = provide(cluster_of(node("n1", gpu=1), node("n2")), gpus("n2", 1))
    members = [pod(f"a-{at}", gpu=1) for at in range(2)]
    assert reason(cluster, members) is Reason.NEVER_FITS
    assert reason(provide(cluster, provider), members) is Reason.UNSCHEDULABLE
    assert reason(cluster, [pod("a-0", cpu=99, gpu=1)]) is Reason.NEVER_FITS


def test_a_new_property_of_devices_is_noticed_here():
    """If a device can serve several members at once, `device_proof` must not count it once. Look at it, then here."""
    assert Device.__struct_fields__ == (
        *("name", "attributes", "capacity", "taints", "shares", "counters", "multiple"),
        *("node", "node_affinity", "everywhere", "binding", "failing", "binds_to_node"),
    )
    assert DeviceRequest.__struct_fields__ == (
        *("name", "device_class", "selectors", "count", "all", "admin", "tolerations", "capacity"),
    )
