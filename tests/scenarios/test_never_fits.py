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
    harness.wait(15, node("n1", labels={"zone": "a"}, gpu=8))

    assert told == ("Unschedulable", "Unschedulable")
    assert harness.bound() == ["default/a-0", "default/a-1"]


def test_a_device_plug_in_that_restarts_makes_no_group_hopeless():
    """The kubelet lists the GPUs with 0 until the plug-in has registered again."""
    harness = Harness.of(node("n1", gpu=4), group("a", min_member=1, max_schedule_time_s=999.0), pod("a-0", gpu=8))
    harness.wait(5)
    before = harness.condition("default/a").reason
    harness.wait(40, replace(node("n1"), awaited=(GPU,)))
    during = harness.condition("default/a").reason
    harness.wait(5, node("n1", gpu=8))

    assert (before, during) == ("NeverFits", "Unschedulable")
    assert harness.bound() == ["default/a-0"]
