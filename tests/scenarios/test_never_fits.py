"""NeverFits is said only where it is proven: not of a cluster whose nodes are shut or incomplete for a moment."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.builders import GPU, group, node, pod, pods
from tests.harness import Harness

NOT_READY = "node.kubernetes.io/not-ready:NoSchedule"


@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        pytest.param({"taints": [NOT_READY]}, {}, id="not ready"),
        pytest.param({"taints": ["node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule"]}, {}, id="new"),
        pytest.param({"unschedulable": True}, {}, id="cordoned"),
        pytest.param({"taints": [NOT_READY]}, {"node_selector": {"zone": "a"}}, id="without its labels"),
        pytest.param({"taints": [NOT_READY]}, {"gpu": 1}, id="without its device plug-in"),
    ],
)
def test_a_group_waits_for_nodes_that_are_shut_for_a_moment_and_is_bound_once_they_are_not(fields, asked):
    harness = Harness.waited(5, node("n1", **fields), group("a", min_member=2), *pods("a", 2, **asked))
    told = harness.condition("default/a").reason, harness.pod("default/a-0").condition_reason
    harness.add(node("n1", labels={"zone": "a"}, gpu=8))
    harness.wait(15)

    assert told == ("Unschedulable", "Unschedulable")
    assert harness.bound() == ["default/a-0", "default/a-1"]


def test_a_device_plug_in_that_restarts_makes_no_group_hopeless():
    """The kubelet lists the GPUs with 0 until the plug-in has registered again."""
    harness = Harness.of(node("n1", gpu=4), group("a", min_member=1, max_schedule_time_s=999.0), pod("a-0", gpu=8))
    harness.wait(5)
    before = harness.condition("default/a").reason
    harness.add(replace(node("n1"), awaited=(GPU,)))
    harness.wait(40)
    during = harness.condition("default/a").reason
    harness.add(node("n1", gpu=8))
    harness.wait(5)

    assert (before, during) == ("NeverFits", "Unschedulable")
    assert harness.bound() == ["default/a-0"]


def test_no_group_of_equal_ones_is_told_that_it_never_fits_once_that_is_not_proven_any_more():
    """Equal groups share one try: what is true for the first must be said of all."""
    harness = Harness.of(node("n1", gpu=4))
    for name in "abc":
        harness.add(group(name, min_member=1, max_schedule_time_s=999.0), pod(f"{name}-0", group=name, gpu=8))
    harness.wait(5)
    before = [harness.condition(f"default/{name}").reason for name in "abc"]
    harness.add(replace(node("n1"), awaited=(GPU,)))
    harness.wait(40)

    assert before == ["NeverFits"] * 3
    assert [harness.condition(f"default/{name}").reason for name in "abc"] == ["Unschedulable"] * 3


@pytest.mark.parametrize("pods_first", [True, False])
def test_a_node_that_is_full_when_it_comes_counts_for_what_never_fits(pods_first):
    harness = Harness()
    harness.add(node("n0", cpu=1), group("a", min_member=1), pod("a-0", cpu=2))
    harness.wait(5)
    told = harness.condition("default/a").reason
    full, on = pod("full", group="", node="n1", cpu=2), node("n1", cpu=2)
    if pods_first:
        harness.add(full)
        harness.settle()
        harness.add(on)
    else:
        harness.add(on, full)
    harness.wait(15)
    assert told == "NeverFits"
    assert harness.condition("default/a").reason == "Unschedulable"


def test_a_full_node_that_grows_counts_for_what_never_fits():
    harness = Harness()
    full = pod("full", group="", node="n0", cpu=1)
    harness.add(node("n0", cpu=1), full, group("a", min_member=1), pod("a-0", cpu=2))
    harness.wait(5)
    told = harness.condition("default/a").reason
    harness.add(node("n0", cpu=2))
    harness.wait(15)
    assert told == "NeverFits"
    assert harness.condition("default/a").reason == "Unschedulable"


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader says TimedOut until it tries it")
def test_a_group_that_times_out_is_told_throughout_that_it_never_fits():
    """Its reason does not change with each back-off, so no list that is filtered by it flaps."""
    harness = Harness.of(node("n1"), group("a", min_member=1), pod("a-0", cpu=100))
    told = set()
    for _ in range(40):
        harness.wait(5)
        told.add((harness.status("default/a").phase, harness.condition("default/a").reason))
    assert told == {("Queued", "NeverFits"), ("TimedOut", "NeverFits")}
    assert harness.pod("default/a-0").condition_reason == "Unschedulable"
    assert [event.reason for event in harness.emitted] == ["NeverFits"]
