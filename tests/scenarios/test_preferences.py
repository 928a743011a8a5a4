"""Members' preferences rank the nodes that accept them: after the group's own preferences, before its strategy."""

from __future__ import annotations

from collections import Counter

import pytest

from gangsched.core.objects.declaration import Preference, Topology
from gangsched.core.objects.shape import NodeTerm, Requirement
from tests.builders import group, node, pod, pods
from tests.harness import Harness

SSD = NodeTerm((Requirement("disk", "In", ("ssd",)),))
CHEAP = (Preference("cost", "Ascending"),)
STRATEGIES = ["Pack", "Spread", "MinimalFragmentation", "BestFit", "MostUsed"]


def chosen(harness: Harness, name: str = "default/a-0") -> str:
    return harness.pod(name).node


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("better", "likes", "taints"),
    [
        pytest.param({"labels": {"disk": "ssd"}}, {1: SSD}, [], id="preferred node affinity"),
        pytest.param({}, {}, ["old:PreferNoSchedule"], id="PreferNoSchedule"),
    ],
)
def test_a_member_goes_to_the_node_that_it_prefers_under_each_strategy(strategy, better, likes, taints):
    harness = Harness.settled(node("n1", taints=taints), node("n2", **better), node("n3", taints=taints))
    harness.add(group("a", min_member=1, strategy=strategy), *pods("a", 1, likes=likes))
    harness.settle()
    assert chosen(harness) == "n2"


@pytest.mark.parametrize("strategy", ["Pack", "BestFit", "MostUsed"])
def test_a_preference_comes_before_the_strategy(strategy):
    harness = Harness.settled(
        node("busy"), node("empty", labels={"disk": "ssd"}), pod("old", group="", cpu=4, node="busy")
    )
    harness.add(group("a", min_member=2, strategy=strategy), *pods("a", 2, likes={1: SSD}))
    harness.settle()
    assert {chosen(harness), chosen(harness, "default/a-1")} == {"empty"}


def test_spread_gives_each_node_its_turn_before_preferences_count():
    harness = Harness.settled(node("n1"), node("n2", labels={"disk": "ssd"}), node("n3"))
    harness.add(group("a", min_member=4, strategy="Spread"), *pods("a", 4, likes={1: SSD}))
    harness.settle()
    assert Counter(harness.pod(name).node for name in harness.bound()) == {"n1": 1, "n2": 2, "n3": 1}


def test_the_wishes_of_the_group_come_before_those_of_its_pods():
    harness = Harness.settled(
        node("cheap", labels={"cost": "1"}),
        node("cheap-fast", labels={"cost": "1", "disk": "ssd"}, cpu=1),
        node("dear-fast", labels={"cost": "9", "disk": "ssd"}),
    )
    harness.add(group("a", min_member=2, prefer=CHEAP), *pods("a", 2, likes={100: SSD}))
    harness.settle()
    assert sorted([chosen(harness), chosen(harness, "default/a-1")]) == ["cheap", "cheap-fast"]


def test_a_taint_outweighs_affinity_as_for_kube_scheduler():
    harness = Harness.settled(node("fast", labels={"disk": "ssd"}, taints=["old:PreferNoSchedule"]), node("slow"))
    harness.add(group("a", min_member=1), *pods("a", 1, likes={100: SSD}))
    harness.settle()
    assert chosen(harness) == "slow"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_preference_is_no_condition_and_does_not_keep_a_gang_from_fitting(strategy):
    """The four small members prefer the only node that takes the large one."""
    harness = Harness.settled(node("large", cpu=4, labels={"disk": "ssd"}), node("n1", cpu=2), node("n2", cpu=2))
    small = pods("a", 4, likes={100: SSD})
    harness.add(group("a", min_member=5, strategy=strategy), *small, pod("a-large", cpu=4, created=9.0))
    harness.settle()
    assert len(harness.bound("default/a-")) == 5


def test_a_pod_without_a_group_goes_where_it_prefers():
    harness = Harness.settled(
        node("busy"), node("empty", labels={"disk": "ssd"}), pod("old", group="", cpu=4, node="busy")
    )
    harness.add(pod("plain", group="", likes={1: SSD}))
    harness.settle()
    assert chosen(harness, "default/plain") == "empty"


def test_the_domain_is_chosen_before_preferences_count():
    """The gang goes to the fuller zone; within it, the preferred node comes first."""
    zones = [node(f"{zone}-{at}", cpu=4, labels={"zone": zone}) for zone in "ab" for at in range(2)]
    harness = Harness.settled(
        *zones, pod("old-0", group="", cpu=2, node="a-0"), pod("old-1", group="", cpu=2, node="a-1")
    )
    harness.add(node("b-0", cpu=4, labels={"zone": "b", "disk": "ssd"}))
    harness.add(node("a-1", cpu=4, labels={"zone": "a", "disk": "ssd"}))
    harness.add(group("a", min_member=1, topology=Topology("zone")), *pods("a", 1, likes={1: SSD}))
    harness.settle()
    assert chosen(harness) == "a-1"
