"""What a refusal names for each constraint: the label, taint, port, volume, driver, claim, device or domain."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from gangsched.core.constraints import registry
from gangsched.core.constraints.constraint import NodeConstraint
from gangsched.core.constraints.naming import listed, node_terms, pod_terms
from gangsched.core.objects.devices import Allocation
from gangsched.core.objects.node import Node
from gangsched.core.objects.offered_devices import DeviceTaint
from gangsched.core.objects.reasons import NodeReason
from gangsched.core.objects.shape import Disk, HostPort, NodeTerm, PodTerm, Requirement
from gangsched.core.objects.volumes import CsiNode, StorageClass
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.placement import Ask, Placement, place
from gangsched.core.planning.refusal import Refusal
from gangsched.core.status.explanation import REASONS, refused
from tests.builders import claim, node, pod, volume
from tests.clusters import cluster_of
from tests.gadgets import GPUS, asks, device_claim, gpu, gpus, wishes
from tests.naive_devices import MEMORY, pool
from tests.verdicts import class_of, verdicts

ZONE = "topology.kubernetes.io/zone"
MADE = "csi"
TAINT = "x=bad:NoSchedule"
BAD = (DeviceTaint("x", "bad", "NoSchedule"),)
LEFT = "(at most 1 left on a node)"


def inside(zone: str) -> NodeTerm:
    return NodeTerm((Requirement("zone", "In", (zone,)),))


def later(**fields) -> StorageClass:
    return StorageClass("later", waits=True, **fields)


def wanting(name: str, **fields):
    return claim(name, storage_class="later", **fields)


def offered(name: str, zone: str):
    return volume(name, zone=zone, available=True, storage_class="later")


def zoned(*names: str) -> list[Node]:
    return [node(name, labels={"zone": name[0]}) for name in names]


def refuse(*things, members, need: int = 0) -> Refusal:
    cluster = cluster_of(*things, *members)
    assert cluster.validate() == []
    found = place(Snapshot(cluster), Ask(members=members, need=need or len(members)))
    assert isinstance(found, Refusal), found
    return found


def members(number: int = 1, **fields):
    return [pod(f"m{at}", **fields) for at in range(number)]


def each_with(what: str, number: int, **fields):
    """Members, each with its own claim."""
    return [pod(f"m{at}", **{what: [f"c{at}"], **fields}) for at in range(number)]


DEMANDED = Requirement("app", "In", ("web",))
WEB = PodTerm(topology_key="zone", selector=(DEMANDED,), namespaces=("default",))
TWO_DISKS = Disk("gcePersistentDisk", ("pd-1",))

TOLD = [
    pytest.param(
        [node("a", taints=["gpu=yes:NoSchedule"]), node("b", taints=["gpu=no:NoSchedule", "x:NoExecute"])],
        members(),
        [(2, NodeReason.TAINT, "gpu=no:NoSchedule, gpu=yes:NoSchedule")],
        "2 with a taint that is not tolerated: gpu=no:NoSchedule, gpu=yes:NoSchedule",
        id="the taints of one key",
    ),
    pytest.param(
        [node("a", taints=["gpu:NoSchedule", "x:NoExecute"]), node("b", taints=["x:NoExecute"])],
        members(tolerations=["gpu:NoSchedule"]),
        [(2, NodeReason.TAINT, "x:NoExecute")],
        "2 with a taint that is not tolerated: x:NoExecute",
        id="the first taint that is not tolerated",
    ),
    pytest.param(
        [node(f"n{at}", taints=["x:NoSchedule", f"y{at}:NoSchedule"]) for at in range(9)],
        members(),
        [(9, NodeReason.TAINT, "x:NoSchedule")],
        "",
        id="one taint beside different ones",
    ),
    pytest.param(
        [node("a", taints=["x:NoSchedule"]), node("b", taints=["y:NoSchedule"]), node("c", taints=["y:NoSchedule"])],
        members(),
        [(2, NodeReason.TAINT, "y:NoSchedule"), (1, NodeReason.TAINT, "x:NoSchedule")],
        "",
        id="each key for itself",
    ),
    pytest.param(
        [node("a", labels={"disk": "ssd"}), node("b", labels={"disk": "hdd", "arch": "x"}), node("c")],
        members(node_selector={"arch": "x", "disk": "ssd"}),
        [(2, NodeReason.AFFINITY, "nodeSelector arch=x"), (1, NodeReason.AFFINITY, "nodeSelector disk=ssd")],
        "2 not matched by nodeSelector arch=x; 1 not matched by nodeSelector disk=ssd",
        id="the first label of the nodeSelector that does not match",
    ),
    pytest.param(
        zoned("a", "b"),
        members(node_affinity=[NodeTerm((Requirement("zone", "NotIn", ("a", "b")), Requirement("gpu", "Exists")))]),
        [(2, NodeReason.AFFINITY, "node affinity zone not in (a, b) and with gpu")],
        "2 not matched by node affinity zone not in (a, b) and with gpu",
        id="node affinity",
    ),
    pytest.param(
        [node(), pod("web", node="n1", host_ports=[8080])],
        members(host_ports=[8080, HostPort(9090, "UDP", "10.0.0.1")]),
        [(1, NodeReason.HOST_PORT, "8080/TCP")],
        "1 with the host port 8080/TCP taken",
        id="a host port",
    ),
    pytest.param(
        [node(), pod("web", node="n1", host_ports=[HostPort(9090, "UDP")])],
        members(host_ports=[8080, HostPort(9090, "UDP", "10.0.0.1")]),
        [(1, NodeReason.HOST_PORT, "10.0.0.1:9090/UDP")],
        "1 with the host port 10.0.0.1:9090/UDP taken",
        id="a host port of one address",
    ),
    pytest.param(
        [node(), node("n2"), pod("user", node="n1", volume_claims=["c"]), claim("c", "v", single_pod=True), volume()],
        members(volume_claims=["c"]),
        [(2, NodeReason.VOLUME_IN_USE, "the PersistentVolumeClaim c")],
        "2 closed while another pod uses the PersistentVolumeClaim c",
        id="a claim for a single pod",
    ),
    pytest.param(
        [node(), pod("user", node="n1", disks=[TWO_DISKS])],
        members(disks=[Disk("gcePersistentDisk", ("pd-0",)), TWO_DISKS]),
        [(1, NodeReason.VOLUME_IN_USE, "the gcePersistentDisk disk pd-1")],
        "1 closed while another pod uses the gcePersistentDisk disk pd-1",
        id="a disk",
    ),
    pytest.param(
        [
            *(node(f"n{at}") for at in range(3)),
            *(CsiNode(f"n{at}", (("ebs.csi.example", at),)) for at in range(2)),
            *(volume(f"v{at}", driver="ebs.csi.example") for at in range(2)),
            *(claim(f"c{at}", f"v{at}") for at in range(2)),
            pod("full", cpu=8, node="n2"),
        ],
        each_with("volume_claims", 2),
        [
            (2, NodeReason.VOLUME_LIMIT, "ebs.csi.example (0, 1)"),
            (1, NodeReason.INSUFFICIENT, "cpu"),
        ],
        "2 where one more member would exceed the volume limit of ebs.csi.example (0, 1)",
        id="a driver and its limits",
    ),
    pytest.param(
        [
            *zoned("a", "b", "c"),
            claim("c", "pv-a"),
            claim("d", "pv-b"),
            volume("pv-a", zone="a"),
            volume("pv-b", zone="b"),
        ],
        members(volume_claims=["c", "d"]),
        [
            (2, NodeReason.VOLUME_AFFINITY, "pv-a (node affinity zone=a)"),
            (1, NodeReason.VOLUME_AFFINITY, "pv-b (node affinity zone=b)"),
        ],
        "2 where the PersistentVolume pv-a (node affinity zone=a) cannot be used",
        id="each volume that is elsewhere",
    ),
    pytest.param(
        [node(), node("n9"), wanting("c", selected="n9"), later(driver=MADE, provisions=True)],
        members(volume_claims=["c"], cpu=9),
        [
            (2, NodeReason.INSUFFICIENT, "cpu"),
            (1, NodeReason.VOLUME_AFFINITY, "that is being provisioned for node n9"),
        ],
        "1 where the PersistentVolume that is being provisioned for node n9 cannot be used",
        id="a volume that is under way",
    ),
    pytest.param(
        [
            *(node(f"{zone}1", labels={ZONE: zone}) for zone in "ab"),
            node("c1", labels={"topology.kubernetes.io/region": "r"}),
            claim("c", "pv-a"),
            volume("pv-a", zones=((ZONE, ("a",)), ("topology.kubernetes.io/region", ("r",)))),
        ],
        members(volume_claims=["c"]),
        [
            (2, NodeReason.VOLUME_ZONE, "pv-a (topology.kubernetes.io/region=r)"),
            (1, NodeReason.VOLUME_ZONE, f"pv-a ({ZONE}=a)"),
        ],
        f"1 outside the domain of the PersistentVolume pv-a ({ZONE}=a)",
        id="each zone or region of a volume",
    ),
    pytest.param(
        [
            *zoned("a", "b"),
            later(),
            *(offered(f"{zone}{at}", zone) for zone, number in (("a", 2), ("b", 1)) for at in range(number)),
            *(wanting(f"c{at}") for at in range(4)),
        ],
        each_with("volume_claims", 4),
        [(2, NodeReason.VOLUME_SHORTAGE, "later (0 of 1 left with zone=b, 0 of 2 left with zone=a)")],
        "2 without a PersistentVolume of StorageClass later (0 of 1 left with zone=b, 0 of 2 left with zone=a)",
        id="how many volumes there are where",
    ),
    pytest.param(
        [node(), later(), replace(offered("v", ""), size=1), wanting("c0", size=2)],
        each_with("volume_claims", 1),
        [(1, NodeReason.VOLUME_SHORTAGE, "later (none suitable there)")],
        "1 without a PersistentVolume of StorageClass later (none suitable there)",
        id="volumes that are too small",
    ),
    pytest.param(
        [*zoned("a"), later(), offered("v", "b"), wanting("c0")],
        each_with("volume_claims", 1),
        [(1, NodeReason.VOLUME_SHORTAGE, "later (none suitable there)")],
        "",
        id="volumes that are elsewhere",
    ),
    pytest.param(
        [*zoned("a"), later(driver=MADE, provisions=True, topologies=(inside("b"),)), wanting("c0")],
        each_with("volume_claims", 1),
        [(1, NodeReason.VOLUME_SHORTAGE, "later (provisioned only with zone=b)")],
        "1 without a PersistentVolume of StorageClass later (provisioned only with zone=b)",
        id="where volumes are provisioned",
    ),
    pytest.param(
        [
            node(),
            later(),
            StorageClass("other", waits=True),
            offered("v", ""),
            wanting("c", size=0),
            claim("d", storage_class="other", size=9),
        ],
        members(volume_claims=["c", "d"]),
        [(1, NodeReason.VOLUME_SHORTAGE, "other (none suitable there)")],
        "",
        id="the claim of several that finds no volume",
    ),
    pytest.param(
        [
            *(node(f"n{at}") for at in range(2)),
            GPUS,
            gpus("n0", 3, per_numa=2),
            *(device_claim(f"c{at}", wishes(asks(2, name="r"), same="numa")) for at in range(2)),
        ],
        each_with("device_claims", 2),
        [
            (
                2,
                NodeReason.DEVICES,
                "2 of DeviceClass gpu for request r (at most 1 left on a node), all with the same gpu.example.com/numa",
            )
        ],
        "2 without the devices that the member asks for: 2 of DeviceClass gpu for request r (at most 1 left on a node)",
        id="devices, and how many are left",
    ),
    pytest.param(
        [
            node("n0"),
            GPUS,
            replace(gpus("n0"), devices=(*(gpu(f"t{at}", taints=BAD) for at in range(2)), gpu("free"))),
            device_claim("c0", wishes(asks(2, name="r"))),
        ],
        each_with("device_claims", 1),
        [
            (
                1,
                NodeReason.DEVICES,
                f"2 of DeviceClass gpu for request r {LEFT[:-1]}, and 2 with a taint that is not tolerated: {TAINT})",
            )
        ],
        "",
        id="devices that are idle and tainted",
    ),
    pytest.param(
        [node("n0"), GPUS, gpus("n0", 2, parts=2), device_claim("c0", wishes(asks(name="r")))],
        each_with("device_claims", 1),
        [
            (
                1,
                NodeReason.DEVICES,
                "1 of DeviceClass gpu for request r (at most 0 left on a node, where a pool is incomplete)",
            )
        ],
        "",
        id="devices of a pool that is incomplete",
    ),
    pytest.param(
        [
            node("n0"),
            GPUS,
            *pool("n0", [gpu(name, counters=((MEMORY, 4),)) for name in "ab"]),
            device_claim("c0", wishes(asks(2, name="r"))),
        ],
        each_with("device_claims", 1),
        [(1, NodeReason.DEVICES, "2 of DeviceClass gpu for request r (at most 2 left on a node)")],
        "",
        id="devices each of which draws all that is left of a counter",
    ),
    pytest.param(
        [node("n0"), GPUS, gpus("n0", 1), device_claim("c0", wishes((asks(3, name="r/a"), asks(2, name="r/b"))))],
        each_with("device_claims", 1),
        [
            (
                1,
                NodeReason.DEVICES,
                f"3 of DeviceClass gpu for request r/a {LEFT} or 2 of DeviceClass gpu for request r/b {LEFT}",
            )
        ],
        "",
        id="alternatives of devices",
    ),
    pytest.param(
        [*zoned("a", "b"), GPUS, device_claim("c0", allocation=Allocation((), (inside("b"),)))],
        each_with("device_claims", 1, cpu=8, node_selector={"zone": "a"}),
        [
            (1, NodeReason.DEVICE_AFFINITY, "c0 (node affinity zone=b)"),
            (1, NodeReason.AFFINITY, "nodeSelector zone=a"),
        ],
        "1 where the devices of the ResourceClaim c0 (node affinity zone=b) cannot be used",
        id="where the devices of a claim are",
    ),
    pytest.param(
        [
            *zoned("a", "b", "c"),
            GPUS,
            *(device_claim(zone, allocation=Allocation((), (inside(zone),))) for zone in "ab"),
        ],
        members(device_claims=["a", "b"]),
        [
            (2, NodeReason.DEVICE_AFFINITY, "a (node affinity zone=a)"),
            (1, NodeReason.DEVICE_AFFINITY, "b (node affinity zone=b)"),
        ],
        "",
        id="each claim whose devices are elsewhere",
    ),
    pytest.param(
        [*zoned("a1", "a2", "b")],
        members(affinity=[WEB]),
        [(3, NodeReason.POD_AFFINITY, "zone (a, b): app=web")],
        "3 without the pods that the required pod affinity asks for in the same zone (a, b): app=web",
        id="the pods that affinity asks for",
    ),
    pytest.param(
        [*zoned("a1", "a2"), pod("w", node="a1", labels={"app": "web"})],
        members(anti_affinity=[WEB]),
        [(2, NodeReason.POD_ANTI_AFFINITY, "zone (a): app=web")],
        "2 with pods there that the required pod anti-affinity excludes from the same zone (a): app=web",
        id="the pods that anti-affinity excludes",
    ),
    pytest.param(
        [
            *zoned("a1", "a2"),
            pod("w-0", node="a1", group="shy", anti_affinity=[WEB]),
            pod("lone", node="a1", group="", anti_affinity=[WEB]),
            pod("other/x", node="a1", anti_affinity=[WEB]),
        ],
        members(labels={"app": "web"}),
        [(2, NodeReason.ANTI_AFFINITY, "zone (a): default/lone, default/shy and 1 of other namespaces")],
        "2 closed by the anti-affinity of pods in the same zone (a): default/lone, default/shy and 1 of other ",
        id="whose anti-affinity excludes the member",
    ),
]


@pytest.mark.parametrize(("there", "asking", "counted", "said"), TOLD)
def test_each_constraint_names_what_it_is_about_and_what_lacks(there, asking, counted, said):
    found = refuse(*there, members=asking)
    assert [(each.nodes, each.reason, each.resource) for each in found.obstacles] == counted
    assert said in refused(found)


def test_every_reason_that_can_be_about_something_names_it():
    """Only cordons and the number of pods name no further object."""
    silent = {
        words.reason for each in registry.CONSTRAINTS for words in each.words if "{resource}" not in words.description
    }
    assert silent == {NodeReason.UNSCHEDULABLE, NodeReason.TOO_MANY_PODS}


def test_a_gangs_own_anti_affinity_is_told_as_its_own():
    strict = pod("m0", labels={"app": "db"}, anti_affinity=[WEB])
    found = refuse(*zoned("a1", "a2"), members=[strict, pod("m1", labels={"app": "web"})])
    assert [(each.reason, each.resource) for each in found.obstacles] == [
        (NodeReason.ANTI_AFFINITY, "zone (a): members of the gang itself")
    ]


def test_a_pod_that_declares_another_group_later_leaves_nothing_behind():
    """Its anti-affinity is reported under the group that it declared first."""
    cluster = cluster_of(*zoned("a1", "a2"))
    shy = pod("w", node="a1", group="first", anti_affinity=[WEB, WEB])
    newcomer = pod("m0", labels={"app": "web"})
    cluster.set_pod(shy)
    cluster.set_pod(replace(shy, declaration=pod("w", group="second").declaration))
    found = place(Snapshot(cluster), Ask(members=[newcomer], need=1))
    assert isinstance(found, Refusal)
    assert [each.resource for each in found.obstacles] == ["zone (a): default/first"]
    assert cluster.validate() == []
    cluster.remove_pod(shy.uid)
    assert cluster.validate() == []
    assert isinstance(place(Snapshot(cluster), Ask(members=[newcomer], need=1)), Placement)


def test_it_is_told_for_how_many_members_nodes_refuse_for_which_reason():
    driver = pod("driver", node_selector={"disk": "ssd"})
    workers = [pod(f"w{at}", gpu=1) for at in range(3)]
    found = refuse(node(gpu=1), members=[driver, *workers])
    assert refused(found).endswith(
        "For 1 of 3 without a place, of 1 node: 1 not matched by nodeSelector disk=ssd. "
        "For 2 of 3 without a place, of 1 node: 1 with too little nvidia.com/gpu."
    )


def test_classes_that_nodes_refuse_alike_are_told_together():
    found = refuse(node(), members=[pod(f"m{at}", cpu=9 + at) for at in range(2)])
    assert refused(found).endswith("Of 1 node: 1 with too little cpu.")


def test_a_member_that_the_quorum_can_do_without_is_told_as_one_of_those_that_lack():
    found = refuse(node(cpu=3), members=[pod("big", cpu=9), *members(3, cpu=2)], need=2)
    assert [each.members for each in found.gaps] == [1]


@pytest.mark.parametrize(("beyond", "said"), [(0, f": k{REASONS - 1}:NoSchedule."), (2, "; 2 more reasons.")])
def test_only_the_most_frequent_reasons_are_told(beyond, said):
    nodes = [node(f"n{at}", taints=[f"k{at}:NoSchedule"]) for at in range(REASONS + beyond)]
    told = refused(refuse(*nodes, members=members()))
    assert told.count("with a taint") == REASONS
    assert told.endswith(said)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (listed(["a"]), "a"),
        (listed(["a", "b", "c", "d", "e"]), "a, b, c and 2 more"),
        (node_terms([inside("a"), inside("b")]), "zone=a or zone=b"),
        (node_terms([inside(zone) for zone in "abcde"]), "zone=a or zone=b or zone=c or 2 more"),
        (node_terms([NodeTerm((), (Requirement("metadata.name", "In", ("n1",)),))]), "metadata.name=n1"),
        (node_terms([NodeTerm((Requirement("cpus", "Gt", ("4",)),))]), "cpus Gt 4"),
        (node_terms([NodeTerm((Requirement("old", "DoesNotExist"),))]), "without old"),
        (pod_terms([WEB, replace(WEB, topology_key="host")]), "app=web"),
        (pod_terms([replace(WEB, selector=())]), "any pod"),
    ],
)
def test_terms_are_told_in_a_few_words(told, said):
    assert told == said


def test_hundreds_of_taints_and_owners_are_told_in_a_few_words():
    strict = replace(WEB, topology_key="host")
    nodes = [node(f"n{at}", labels={"host": f"n{at}"}, taints=[f"k{at}:NoSchedule"]) for at in range(400)]
    found = refuse(*nodes, members=members())
    assert sum(each.nodes for each in found.obstacles) == 400
    assert len(found.obstacles) == 64
    values = [node(f"n{at}", taints=[f"k={at}:NoSchedule"]) for at in range(400)]
    [one] = refuse(*values, members=members()).obstacles
    assert one.nodes == 400
    assert len(one.resource) < 100
    shy = [pod(f"o{at}", group=f"g{at:03}", node=f"n{at}", anti_affinity=[strict]) for at in range(200)]
    [one] = refuse(
        *(replace(each, taints=()) for each in nodes[:200]), *shy, members=members(labels={"app": "web"})
    ).obstacles
    assert one.resource == "host: default/g000, default/g001, default/g002 and 197 more"


@pytest.mark.parametrize(("there", "asking"), [each.values[:2] for each in TOLD], ids=[each.id for each in TOLD])
def test_every_node_without_room_gives_a_reason_and_no_other_does(there, asking):
    cluster = cluster_of(*there, *asking)
    snapshot = Snapshot(cluster)
    member = class_of(snapshot, asking[-1])
    for plan in snapshot.plans:
        found = [where for _, _, where in plan.refusals(member, np.arange(snapshot.size))]
        if isinstance(plan, NodeConstraint) and found:
            assert np.sum(found, axis=0).max() <= 1, "one reason for each node"
    why = verdicts(snapshot, member)
    assert {name for name, row in cluster.capacity.rows.items() if not snapshot.caps(member)[row]} == why.keys()
