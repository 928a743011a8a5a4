"""Which of the nodes that accept them are chosen for a gang's members and for plain pods."""

from __future__ import annotations

import pytest

from gangsched.core.objects.declaration import Preference
from gangsched.core.objects.policy import Policy
from tests.builders import group, node, pod, pods
from tests.harness import Harness

CHEAP = (Preference("cost", "Ascending"),)


def tight_and_busy(policy: Policy | None = None) -> Harness:
    """Node `busy` has the most GPUs in use, 4 of 8; `tight` has the fewest left, 1 of 4."""
    harness = Harness(policy)
    harness.add(node("busy", gpu=8), pod("old-0", group="", gpu=4, node="busy"))
    harness.add(node("tight", gpu=4), pod("old-1", group="", gpu=3, node="tight"))
    return harness


@pytest.mark.parametrize(("strategy", "chosen"), [("BestFit", "tight"), ("MostUsed", "busy")])
def test_a_gpu_pod_without_a_group_goes_where_the_setting_says(strategy, chosen):
    harness = tight_and_busy(Policy(gpu_strategy=strategy))
    harness.add(pod("plain", group="", gpu=1))
    harness.settle()
    assert harness.pod("default/plain").node == chosen


@pytest.mark.parametrize(("strategy", "chosen"), [("BestFit", "tight"), ("MostUsed", "busy")])
@pytest.mark.without("disorder", why="asserts what one order of events leads to")
def test_a_gang_goes_where_its_strategy_says(strategy, chosen):
    harness = tight_and_busy()
    harness.add(group("a", min_member=1, strategy=strategy), *pods("a", 1, gpu=1))
    harness.settle()
    assert harness.pod("default/a-0").node == chosen


def test_minimal_fragmentation_leaves_the_nearly_empty_node_alone():
    harness = Harness.of(node("n1", cpu=4), node("n2", cpu=2), node("n3", cpu=40))
    harness.add(group("a", min_member=5, strategy="MinimalFragmentation"), *pods("a", 5))
    harness.settle()
    assert sorted(harness.pod(name).node for name in harness.bound("default/a-")) == ["n1"] * 4 + ["n2"]


def test_quorum_further_members_and_a_replacement_all_go_to_preferred_nodes():
    harness = Harness.of(node("dear", cpu=8, labels={"cost": "9"}), pod("old", group="", cpu=4, node="dear"))
    harness.add(node("cheap", cpu=8, labels={"cost": "1"}))
    harness.add(group("a", min_member=2, prefer=CHEAP), *pods("a", 3))
    harness.settle()
    assert [harness.pod(f"default/a-{number}").node for number in range(3)] == ["cheap"] * 3
    harness.delete("default/a-0", "default/a-1")
    harness.add(*pods("a", 2, first=3))
    harness.settle()
    assert [harness.pod(f"default/a-{number}").node for number in (3, 4)] == ["cheap"] * 2
