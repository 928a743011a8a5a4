"""A refusal by groups of nodes: their common properties, how many members they take, and what refuses the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangsched.cli import explain_text
from gangsched.cli.group_reader import Reading
from gangsched.core.objects.declaration import GroupKey, Topology
from gangsched.core.objects.policy import Policy
from gangsched.core.status.fitting import OFFERED
from gangsched.views.diagnosis import from_cluster
from gangsched.views.nodegroups import MOST, NodeGroup
from tests.builders import group, node, pod
from tests.clusters import listed

POOL, TYPE, ZONE = "eks.amazonaws.com/nodegroup", "node.kubernetes.io/instance-type", "topology.kubernetes.io/zone"


def labels(pool="", kind="", zone=""):
    return {key: value for key, value in ((POOL, pool), (TYPE, kind), (ZONE, zone)) if value}


def many(number, name="n", **fields):
    return [node(f"{name}{at}", **fields) for at in range(number)]


def diagnose(*things):
    found = from_cluster(listed(*things), GroupKey("default", "a"), policy=Policy(), now=1_000_000.0)
    assert found is not None
    return found


def members(number, **fields):
    return [pod(f"a-{each}", **fields) for each in range(number)]


def refused(*things):
    found = diagnose(*things)
    assert found.shortfall is not None
    return found.shortfall.groups


def told(groups: list[NodeGroup]):
    return [(each.name, each.nodes, each.members) for each in groups]


def reasons(one: NodeGroup):
    return [(each.nodes, each.reason, each.resource) for each in one.obstacles]


def test_each_group_says_how_many_members_it_takes_and_what_refuses_the_rest():
    [workers, accelerated] = refused(
        *many(5, "w", cpu=3, labels=labels("workers", "m5", "a")),
        *many(4, "g", cpu=8, labels=labels("gpus", "p4", "b"), taints=["gpu=yes:NoSchedule"]),
        pod("x-0", group="x", cpu=2, node="w0", scheduler="other"),
        *(group(min_member=6), *members(6, cpu=2)),
    )
    assert (workers.name, workers.nodes, workers.members) == ("workers m5 a", 5, 4)
    assert reasons(workers) == [(5, "Insufficient", "cpu")]
    assert (accelerated.name, accelerated.nodes, accelerated.members) == ("gpus p4 b", 4, 0)
    assert reasons(accelerated) == [(4, "TaintNotTolerated", "gpu=yes:NoSchedule")]
    assert dict(accelerated.shared) == {POOL: "gpus", TYPE: "p4", ZONE: "b"}


def test_where_no_label_names_the_machine_it_is_what_nodes_offer():
    groups = refused(
        *many(4, "big", cpu=8, gpu=2, memory="64Gi"),
        *many(2, "small", cpu=2, memory="8Gi"),
        *(group(min_member=9), *members(9, gpu=1)),
    )
    assert told(groups) == [("cpu 8, nvidia.com/gpu 2", 4, 8), ("cpu 2 (small0, small1)", 2, 0)]
    assert [dict(each.shared) for each in groups] == [{OFFERED: "cpu 8, nvidia.com/gpu 2"}, {OFFERED: "cpu 2"}]


def test_former_labels_of_type_and_zone_count_and_the_first_of_several_pools():
    old = {
        "beta.kubernetes.io/instance-type": "m4",
        "failure-domain.beta.kubernetes.io/zone": "b",
        "karpenter.sh/nodepool": "k",
        POOL: "e",
    }
    groups = refused(*many(4, labels=old), *(group(min_member=9), *members(9, gpu=1)))
    assert [each.name for each in groups] == ["k m4 b"]


@pytest.mark.parametrize(
    ("nodes", "names"),
    [
        pytest.param([labels("p", "m", str(at % 9)) for at in range(45)], [f"p m {at}" for at in range(9)], id="nine"),
        pytest.param(
            [labels(f"p{at % 5}", "m", str(at % 2)) for at in range(50)],
            [f"p{at} m" for at in range(5)],
            id="ten by all labels and five by pool and type",
        ),
        pytest.param(
            [labels("p", f"m{at % 2}", str(at % 50)) for at in range(200)],
            ["p m0", "p m1"],
            id="many zones",
        ),
    ],
)
def test_as_many_groups_as_possible_are_told_apart_but_not_more_than_nine(nodes, names):
    made = [node(f"n{at}", labels=each) for at, each in enumerate(nodes)]
    groups = refused(*made, *(group(min_member=9), *members(9, gpu=1)))
    assert sorted(each.name for each in groups) == names
    assert sum(each.nodes for each in groups) == len(nodes)


def test_what_is_beyond_the_largest_groups_is_summed():
    nodes = [
        node(f"{kind}-{at}-{each}", cpu=1, labels=labels(f"{kind}{at}", f"t{kind}{at}", f"z{kind}{at}"))
        for kind, size in (("big", 3), ("small", 2))
        for at in range(MOST if kind == "big" else 4)
        for each in range(size)
    ]
    groups = refused(*nodes, *(group(min_member=40), *members(40)))
    assert len(groups) == MOST + 1
    assert told(groups)[-1] == ("8 other nodes", 8, 8)
    assert sum(each.members for each in groups) == 35
    assert reasons(groups[-1]) == [(8, "Insufficient", "cpu")]


def test_domains_are_told_of_each_group_for_itself():
    spec = group(min_member=4, topology=Topology(ZONE))
    groups = refused(
        *many(4, "a", cpu=1, labels=labels(kind="m", zone="a"), unschedulable=True),
        *many(3, "b", cpu=1, labels=labels(kind="m", zone="b")),
        *(spec, *members(4)),
    )
    assert [(each.name, each.members, reasons(each)) for each in groups] == [
        ("m a", 0, [(4, "OutsideTopologyDomain", "")]),
        ("m b (b0, b1, b2)", 3, [(3, "Insufficient", "cpu")]),
    ]


def test_members_that_are_bound_already_are_not_counted_again():
    [found] = refused(
        *many(4, cpu=1), group(min_member=6), *(pod(f"a-{at}", node="n0") for at in range(1)), *members(6)[1:]
    )
    assert (found.nodes, found.members) == (4, 3)


def test_room_that_is_kept_for_nominated_pods_takes_no_members():
    heir = pod("x-0", group="", scheduler="other", nominated_node="n0", priority=5)
    [found] = refused(*many(4, cpu=1), heir, group(min_member=4), *members(4))
    assert (found.nodes, found.members) == (4, 3)


def test_a_person_reads_a_table_within_80_columns():
    found = diagnose(
        *many(5, "w", cpu=3, labels=labels("workers", "m5.xlarge", "eu-central-1a")),
        *many(4, "g", cpu=8, labels=labels("gpus", "p4d.24xlarge", "eu-central-1b"), taints=["gpu=yes:NoSchedule"]),
        *(
            node(f"c{at}", labels=labels("gpus", "p4d.24xlarge", "eu-central-1b"), unschedulable=True)
            for at in range(2)
        ),
        *(
            node(f"d{at}", labels=labels("gpus", "p4d.24xlarge", "eu-central-1b"), taints=[f"k{at}:NoExecute"])
            for at in (1, 2)
        ),
        *(group(min_member=7), pod("a-d", node_selector={"disk": "ssd"}), *members(6, cpu=2)),
    )
    lines = list(explain_text.lines(found, Reading(group=None)))
    assert lines[-7:] == [
        "  where members fit, and what refuses 1 of the 2 others:",
        "    NODES  MEMBERS  NODE GROUP",
        "        8        0  gpus p4d.24xlarge eu-central-1b",
        "                    4 TaintNotTolerated gpu=yes:NoSchedule; 2 NodeUnschedulable;",
        "                      1 TaintNotTolerated k1:NoExecute; 1 more",
        "        5        5  workers m5.xlarge eu-central-1a",
        "                    5 Insufficient cpu",
    ]
    assert max(map(len, lines)) <= 80
    assert any(line.strip().startswith("for 1 more: 5 NodeAffinityMismatch nodeSelector disk=ssd;") for line in lines)


def test_the_page_about_waiting_groups_shows_what_is_printed():
    accelerated = {"cpu": 8, "gpu": 2, "taints": ["nvidia.com/gpu=present:NoSchedule"]}
    found = diagnose(
        *many(40, "w", cpu=4, labels=labels("workers", "m5.xlarge", "eu-central-1a")),
        *many(6, "g", labels=labels("gpus", "g5.2xlarge", "eu-central-1a"), **accelerated),
        *many(2, "h", labels=labels("gpus", "g5.2xlarge", "eu-central-1b"), **accelerated),
        *many(2, "i", labels=labels("gpus", "g5.2xlarge", "eu-central-1b"), **accelerated, unschedulable=True),
        *(pod(f"o-{at}", group="other", gpu=1, node="g0", scheduler="other") for at in range(2)),
        *(group(min_member=16), *members(16, cpu=2, gpu=1, tolerations=["nvidia.com/gpu"])),
    )
    printed = "\n".join(explain_text.lines(found, Reading(group=None))).replace("default/a:", "default/training:")
    page = Path(__file__).parents[2] / "docs" / "reasons.md"
    assert f"$ gangsched explain default/training\n{printed}\n```" in page.read_text()


def test_a_group_without_a_refusal_has_no_table():
    found = diagnose(group(min_member=2), *members(1))
    assert found.shortfall is None
    assert not any("NODE GROUP" in line for line in explain_text.lines(found, Reading(group=None)))
