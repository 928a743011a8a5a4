"""What is told of groups in a namespace that is being deleted, where the API server refuses new pods and bindings."""

from __future__ import annotations

import pytest

from gangsched.core.objects.events import NamespaceGone
from tests.builders import group, node, pod, pods
from tests.harness import Harness

REASON = "NamespaceTerminating"


def told(harness: Harness, name: str) -> tuple[str, str]:
    """The reason of the group's condition, and its message."""
    (said,) = [each for each in harness.status(name).conditions if each.type == "Scheduled"]
    return said.reason, said.message


@pytest.mark.parametrize("members", [1, 2], ids=["incomplete", "without room"])
def test_a_group_that_waits_says_that_its_namespace_is_being_deleted(members):
    """Regression: it said that a member is missing, or that it does not fit."""
    harness = Harness.of(node("n1", cpu=1))
    harness.label_namespace("x", {})
    harness.wait(5, group("x/a", min_member=2), *pods("a", members, namespace="x"))
    assert told(harness, "x/a")[0] != REASON
    harness.terminate_namespace("x")
    harness.wait(5)
    assert told(harness, "x/a")[0] == REASON
    assert "Namespace x is being deleted" in told(harness, "x/a")[1]
    harness.wait(5, node("n2", cpu=9))
    assert harness.bound("x/") == []


def test_what_comes_later_is_not_tried_there_and_others_are():
    harness = Harness.of(node("n1", cpu=9))
    harness.label_namespace("x", {})
    harness.terminate_namespace("x")
    for namespace in ("x", "y"):
        harness.add(group(f"{namespace}/a", min_member=2), *pods("a", 2, namespace=namespace))
        harness.add(pod(f"{namespace}/alone", group=""))
    harness.settle()
    harness.wait(5)
    assert harness.bound() == ["y/a-0", "y/a-1", "y/alone"]
    assert told(harness, "x/a")[0] == REASON


def test_in_a_namespace_of_the_same_name_that_is_made_later_it_is_bound():
    harness = Harness.of(node("n1", cpu=9))
    harness.label_namespace("x", {})
    harness.terminate_namespace("x")
    harness.settle(group("x/a", min_member=2), *pods("a", 2, namespace="x"))
    del harness.namespaces["x"]
    harness.report(NamespaceGone("x"))
    harness.label_namespace("x", {})
    harness.wait(5)
    assert len(harness.bound("x/a")) == 2


def test_a_group_that_runs_is_left_alone():
    harness = Harness.of(node("n1", cpu=9))
    harness.label_namespace("x", {})
    harness.settle(group("x/a", min_member=2), *pods("a", 2, namespace="x"))
    harness.terminate_namespace("x")
    harness.wait(60)
    assert len(harness.bound("x/a")) == 2
    assert harness.evicted == []
    assert told(harness, "x/a")[0] != REASON
