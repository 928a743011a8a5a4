"""Rule 5 and design rule 6: a refused group costs nothing until something could help it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gangsched.core.objects.pod import PodPhase
from gangsched.core.objects.shape import PodTerm, Requirement
from tests.builders import GPU, group, node, pod, pods, taint
from tests.harness import Harness


def tried(harness: Harness) -> int:
    """How many times the machine has refused a group or pod so far."""
    return sum(harness.machine.stats().refusals.values())


@pytest.fixture
def harness() -> Harness:
    """A GPU group of two and a CPU group of two that find no room on full nodes."""
    harness = Harness.of(node("cpu", cpu=4, labels={"disk": "hdd"}), node("gpu", cpu=8, gpu=2))
    harness.add(pod("busy-0", cpu=3, group="", node="cpu"), pod("busy-1", cpu=1, group="", node="cpu"))
    harness.settle(pod("busy-gpu", cpu=7, gpu=2, group="", node="gpu"))
    harness.add(group("g", min_member=2, max_schedule_time_s=9999.0), *pods("g", 2, gpu=1))
    harness.add(
        group("c", min_member=2, max_schedule_time_s=9999.0), *pods("c", 2, cpu=2, node_selector={"disk": "hdd"})
    )
    harness.wait(5)
    assert harness.machine.stats().parked == 2
    assert tried(harness) == 2
    return harness


def test_time_alone_wakes_nobody(harness):
    harness.wait(1000)
    assert tried(harness) == 2


@pytest.mark.without("restarts", "standbys", why="counts what one leader does")
def test_a_pod_that_ends_wakes_only_who_could_use_its_room(harness):
    harness.delete("default/busy-0")
    harness.settle()
    assert tried(harness) == 3
    assert harness.bound("default/g-") == []


def test_a_gpu_group_is_not_planned_again_when_a_cpu_pod_ends(harness):
    harness.change("default/busy-1", phase=PodPhase.SUCCEEDED)
    harness.settle()
    assert tried(harness) == 2


@pytest.mark.without("restarts", "standbys", why="counts what one leader does")
def test_a_cpu_group_that_only_another_node_accepts_is_not_planned_again_when_a_gpu_pod_ends(harness):
    harness.delete("default/busy-gpu")
    harness.settle()
    assert len(harness.bound("default/g-")) == 2
    assert tried(harness) == 2


@pytest.mark.parametrize(
    "newcomer",
    [
        node("n9", cpu=64, labels={"disk": "ssd"}),
        node("n9", cpu=64, labels={"disk": "hdd"}, taints=[taint("a:NoSchedule")]),
        node("n9", cpu=64, labels={"disk": "hdd"}, unschedulable=True),
        node("n9", cpu=1, labels={"disk": "hdd"}),
        pod("new", group="", node="gpu", scheduler="other"),
        group("h", min_member=3),
    ],
)
def test_what_cannot_help_wakes_nobody(harness, newcomer):
    harness.wait(5, newcomer)
    assert tried(harness) == 2


@pytest.mark.parametrize(("cpu", "bound", "refusals"), [(8, 2, 2), (6, 0, 3), (5, 0, 2)])
@pytest.mark.without("restarts", "standbys", "leaderless", why="counts what one leader does")
def test_a_node_that_grows_helps_if_one_more_member_fits(harness, cpu, bound, refusals):
    harness.settle(node("cpu", cpu=cpu, labels={"disk": "hdd"}))
    assert len(harness.bound("default/c-")) == bound
    assert tried(harness) == refusals


def test_a_taint_that_is_lifted_a_cordon_that_ends_and_a_label_that_comes_help(harness):
    for before, after in (
        (node("t", labels={"disk": "hdd"}, taints=[taint("a:NoSchedule")]), node("t", labels={"disk": "hdd"})),
        (node("u", labels={"disk": "hdd"}, unschedulable=True), node("u", labels={"disk": "hdd"})),
        (node("v"), node("v", labels={"disk": "hdd"})),
    ):
        harness.settle(before)
        assert harness.bound("default/c-") == []
        harness.settle(after)
        assert len(harness.bound("default/c-")) == 2
        harness.delete("default/c-0", "default/c-1")
        harness.settle()
        # In any other order of events, the pods would be bound before the node is cordoned.
        harness.settle(replace(after, unschedulable=True))
        harness.settle(*pods("c", 2, cpu=2, node_selector={"disk": "hdd"}))


@pytest.mark.parametrize("happens", ["its pod goes", "members are relabelled out of its reach"])
def test_anti_affinity_that_leaves_wakes_who_was_kept_out_by_it(happens):
    term = PodTerm("host", (Requirement("app", "In", ("x",)),), namespaces=("default",))
    harness = Harness.of(node(labels={"host": "h"}), pod("keeper", group="", node="n1", anti_affinity=[term]))
    harness.wait(5, group("a", min_member=2, max_schedule_time_s=9999.0), *pods("a", 2, labels={"app": "x"}))
    assert harness.bound("default/a-") == []
    assert "closed by the anti-affinity of pods in the same " in harness.condition("default/a").message
    if happens == "its pod goes":
        harness.delete("default/keeper")
    else:
        harness.change("default/a-0", labels=())
        harness.change("default/a-1", labels=())
    harness.settle()
    assert len(harness.bound("default/a-")) == 2


def test_a_resource_that_no_node_had_wakes_who_asked_for_it_when_it_appears():
    harness = Harness.waited(5, node("n1"), group("a", min_member=1, max_schedule_time_s=9999.0), *pods("a", 1, gpu=1))
    assert harness.bound() == []
    harness.settle(node("n1", extra={GPU: 1}))
    assert len(harness.bound()) == 1


@pytest.mark.without("all", why="only its size is new; small groups take the courses")
@pytest.mark.slow
def test_a_thousand_parked_pods_cause_no_deadline():
    harness = Harness.waited(5, node(cpu=1), *(pod(f"p{number}", cpu=2, group="") for number in range(1000)))
    assert harness.machine.next_deadline() is None
    assert harness.machine.stats().parked == 1000
