"""What the views say of nodes, groups and the whole cluster."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from gangsched.core.machine import Machine
from gangsched.core.objects.events import GroupsReplaced, NodesReplaced, PodsReplaced, Synced
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import Group
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.record import Phase, Record
from gangsched.core.objects.status import PREEMPTION, GroupStatus, Place, Reservation
from gangsched.views import cluster_overview, group_row, group_rows, node_usage
from gangsched.views.group_row import Ask
from gangsched.views.node_usage import MOST_LABELS as MOST
from gangsched.views.node_usage import State, topology
from tests.builders import GPU, amounts, group, node, pod
from tests.preempting import cluster, gang, holder

NOW = 1_000_000.0


def machine(*pods: Pod, nodes: Iterable[Node] = (), groups: Iterable[Group] = ()) -> Machine:
    """A machine that has seen these, and decided nothing."""
    found = Machine(Policy())
    found.handle([NodesReplaced(tuple(nodes)), GroupsReplaced(tuple(groups)), PodsReplaced(tuple(pods)), Synced()], NOW)
    return found


def parts(seen: Machine) -> list[tuple[str, State, int, int]]:
    [usage] = node_usage.usages(seen)
    return [(str(part.gang), part.state, part.number, part.amounts[GPU]) for part in usage.parts]


def test_pods_of_a_gang_are_told_apart_by_what_they_do():
    seen = machine(
        pod("a-0", group="a", node="n1", gpu=1, phase="Running", ready=True),
        pod("a-1", group="a", node="n1", gpu=1),
        pod("a-2", group="a", node="n1", gpu=1, phase="Running", terminating=True),
        pod("a-3", group="a", node="n1", gpu=1, phase="Running", not_started="CrashLoopBackOff"),
        pod("x", node="n1", gpu=2, group="", phase="Running"),
        nodes=[node("n1", cpu="64", gpu=8)],
    )
    assert parts(seen) == [
        ("default/a", State.RUNNING, 1, 1),
        ("default/a", State.STARTING, 2, 2),
        ("default/a", State.LEAVING, 1, 1),
        ("None", State.RUNNING, 1, 2),
    ]
    [usage] = node_usage.usages(seen)
    assert (usage.pods, usage.gangs) == (5, {("default", "a", ""): 4})


@pytest.mark.parametrize(("kind", "state", "free"), [("", State.HELD, 4), (PREEMPTION, State.RESERVED, 4)])
def test_places_that_are_kept_say_for_what(kind, state, free):
    place = Place("n1", "", 2, (), amounts({"cpu": "1", GPU: 2}))
    status = GroupStatus(Record(phase=Phase.RESERVED), reservation=Reservation(NOW + 60, (place,), kind))
    seen = machine(nodes=[node("n1", cpu="64", gpu=8)], groups=[group("a", min_member=2, status=status)])
    assert parts(seen) == [("default/a", state, 2, 4)]
    totals = cluster_overview.look(seen).totals
    assert totals.free[GPU] == free
    assert (totals.held[GPU], totals.reserved[GPU]) == ((4, 0) if state is State.HELD else (0, 4))


def test_a_closed_node_has_nothing_free():
    seen = machine(nodes=[node("n1", cpu="4", unschedulable=True), node("n2", cpu="2")])
    totals = cluster_overview.look(seen).totals
    assert (totals.allocatable["cpu"], totals.free["cpu"]) == (6000, 2000)


def test_what_is_reserved_may_still_be_occupied():
    """Free, requested and reserved amounts may overlap; what is free is never negative."""
    harness = cluster(node("n1", cpu="64", gpu=8), *gang("low", 2, pods_with={"gpu": 4}))
    harness.run_pods()
    harness.wait(3, *holder(2, pods_with={"gpu": 4}))
    assert [part[1] for part in parts(harness.machine)] == [State.RESERVED, State.LEAVING]
    totals = cluster_overview.look(harness.machine).totals
    assert (totals.requested[GPU], totals.reserved[GPU], totals.free[GPU]) == (8, 8, 0)


def test_a_group_says_what_it_asks_for_and_what_its_members_do():
    """The reason of a container that waits, and that of a pod without a node, are told member by member."""
    seen = machine(
        pod("a-0", group="a", node="n1", phase="Running", ready=True),
        pod("a-1", group="a", node="n1", not_started="ImagePullBackOff"),
        pod("a-2", group="a", node="n1", phase="Running", not_started="CrashLoopBackOff"),
        pod("a-3", group="a", cpu=99, condition_reason="Unschedulable"),
        pod("a-4", group="a", cpu=99, gated=True),
        pod("a-5", group="a", node="n1", phase="Running"),
        nodes=[node("n1", cpu="4")],
        groups=[group("a", min_member=4)],
    )
    [row] = group_rows.rows(seen)
    assert [tuple(member) for member in row.roster] == [
        ("a-0", "n1", "Running", ""),
        ("a-1", "n1", "Starting", "ImagePullBackOff"),
        ("a-2", "n1", "Starting", "CrashLoopBackOff"),
        ("a-3", "", "Pending", "Unschedulable"),
        ("a-4", "", "Pending", "SchedulingGated"),
        ("a-5", "n1", "Running", "NotReady"),
    ]
    assert (row.bound, row.running) == (4, 2)
    assert row.asks == (Ask(4, amounts({"cpu": "1"})), Ask(1, amounts({"cpu": "99"})))
    assert group_row.as_object(row)["asks"] == [
        {"members": 4, "requests": {"cpu": "1"}},
        {"members": 1, "requests": {"cpu": "99"}},
    ]


def test_the_timeline_of_a_gang_ends_with_it():
    """A finished gang was shown as if it ran until now."""
    record = Record(phase=Phase.SUCCEEDED, scheduled_at=NOW + 1, running_at=NOW + 2)
    ended = group("a", min_member=1, created=NOW, status=GroupStatus(record, finished_at=NOW + 9))
    [row] = group_rows.rows(machine(groups=[ended]))
    stages = [(moment.stage.value, moment.at - NOW) for moment in row.moments]
    assert stages == [("created", 0), ("scheduled", 1), ("running", 2), ("ended", 9)]


def test_labels_that_name_a_place_are_told_and_no_others():
    said = {
        "topology.kubernetes.io/zone": "z1",
        "failure-domain.beta.kubernetes.io/zone": "z1",
        "example.com/rack": "r7",
        "cloud.google.com/gke-nodepool": "p",
        "karpenter.sh/nodepool": "q",
        "node.kubernetes.io/instance-type": "m5",
        "kubernetes.io/hostname": "n1",
        "feature.node.kubernetes.io/cpu-model": "6",
        "example.com/browser": "no",
    }
    assert sorted(topology(node("n1", labels=said))) == [
        "cloud.google.com/gke-nodepool",
        "example.com/rack",
        "karpenter.sh/nodepool",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/zone",
    ]
    assert len(topology(node("n1", labels={f"rack-{at}": "x" for at in range(99)}))) == MOST


def test_groups_run_or_wait():
    first, second = gang("first", 2, pods_with={"gpu": 4}), gang("second", 1, pods_with={"gpu": 1})
    harness = cluster(node("n1", cpu="64", gpu=8), *first, *second)
    harness.wait(2)
    totals = cluster_overview.look(harness.machine).totals
    assert (totals.groups, totals.running, totals.waiting, totals.starting) == (2, 0, 1, 2)
    harness.run_pods(prefix="default/first")
    harness.wait(2)
    totals = cluster_overview.look(harness.machine).totals
    assert (totals.groups, totals.running, totals.waiting, totals.starting) == (2, 1, 1, 0)
