"""Which of the nodes that accept them are chosen for a gang's members and for plain pods."""

from __future__ import annotations

from collections import Counter

import pytest

from gangsched.core.objects.declaration import Preference, Topology
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.shape import NodeTerm, Requirement
from tests.builders import group, node, pod, pods
from tests.harness import Harness

CHEAP = (Preference("cost", "Ascending"),)
SSD = NodeTerm((Requirement("disk", "In", ("ssd",)),))


def tight_and_busy(policy: Policy | None = None) -> Harness:
    """Node `busy` has the most GPUs in use, 4 of 8; `tight` has the fewest left, 1 of 4."""
    harness = Harness(policy)
    harness.add(node("busy", gpu=8), pod("old-0", group="", gpu=4, node="busy"))
    harness.add(node("tight", gpu=4), pod("old-1", group="", gpu=3, node="tight"))
    return harness


@pytest.mark.parametrize(("strategy", "chosen"), [("BestFit", "tight"), ("MostUsed", "busy")])
def test_a_gpu_pod_without_a_group_goes_where_the_setting_says(strategy, chosen):
    harness = tight_and_busy(Policy(gpu_strategy=strategy))
    harness.settle(pod("plain", group="", gpu=1))
    assert harness.pod("default/plain").node == chosen


@pytest.mark.parametrize(("strategy", "chosen"), [("BestFit", "tight"), ("MostUsed", "busy")])
@pytest.mark.without("disorder", why="asserts what one order of events leads to")
def test_a_gang_goes_where_its_strategy_says(strategy, chosen):
    harness = tight_and_busy()
    harness.settle(group("a", min_member=1, strategy=strategy), *pods("a", 1, gpu=1))
    assert harness.pod("default/a-0").node == chosen


@pytest.mark.parametrize("strategy", ["BestFit", "MostUsed"])
def test_a_gang_waits_for_gpus_that_no_node_lists_any_more_though_one_may_again(strategy):
    """Regression: the gang was set aside, because the GPUs have no amounts on any node."""
    harness = Harness.of(node("n1", taints=["node.kubernetes.io/not-ready:NoSchedule"]))
    harness.wait(3, group("a", min_member=1, strategy=strategy), *pods("a", 1, gpu=1))
    assert harness.condition("default/a").reason == Reason.UNSCHEDULABLE
    harness.wait(60, node("n1", gpu=1))
    assert harness.bound() == ["default/a-0"]


def test_quorum_further_members_and_a_replacement_all_go_to_preferred_nodes():
    harness = Harness.of(node("dear", cpu=8, labels={"cost": "9"}), pod("old", group="", cpu=4, node="dear"))
    harness.add(node("cheap", cpu=8, labels={"cost": "1"}))
    harness.settle(group("a", min_member=2, prefer=CHEAP), *pods("a", 3))
    assert [harness.pod(f"default/a-{number}").node for number in range(3)] == ["cheap"] * 3
    harness.delete("default/a-0", "default/a-1")
    harness.settle(*pods("a", 2, first=3))
    assert [harness.pod(f"default/a-{number}").node for number in (3, 4)] == ["cheap"] * 2


# What members themselves prefer of nodes counts after the group's wishes and before its strategy.


def test_spread_gives_each_node_its_turn_before_preferences_count():
    harness = Harness.settled(node("n1"), node("n2", labels={"disk": "ssd"}), node("n3"))
    harness.settle(group("a", min_member=4, strategy="Spread"), *pods("a", 4, likes={1: SSD}))
    assert Counter(harness.pod(name).node for name in harness.bound()) == {"n1": 1, "n2": 2, "n3": 1}


def test_the_wishes_of_the_group_come_before_those_of_its_pods():
    harness = Harness.settled(
        node("cheap", labels={"cost": "1"}),
        node("cheap-fast", labels={"cost": "1", "disk": "ssd"}, cpu=1),
        node("dear-fast", labels={"cost": "9", "disk": "ssd"}),
    )
    harness.settle(group("a", min_member=2, prefer=CHEAP), *pods("a", 2, likes={100: SSD}))
    assert sorted([harness.pod("default/a-0").node, harness.pod("default/a-1").node]) == ["cheap", "cheap-fast"]


def test_the_domain_is_chosen_before_preferences_count():
    """The gang goes to the fuller zone; within it, the preferred node comes first."""
    zones = [node(f"{zone}-{at}", cpu=4, labels={"zone": zone}) for zone in "ab" for at in range(2)]
    harness = Harness.settled(
        *zones, pod("old-0", group="", cpu=2, node="a-0"), pod("old-1", group="", cpu=2, node="a-1")
    )
    harness.add(node("b-0", cpu=4, labels={"zone": "b", "disk": "ssd"}))
    harness.add(node("a-1", cpu=4, labels={"zone": "a", "disk": "ssd"}))
    harness.settle(group("a", min_member=1, topology=Topology("zone")), *pods("a", 1, likes={1: SSD}))
    assert harness.pod("default/a-0").node == "a-1"
