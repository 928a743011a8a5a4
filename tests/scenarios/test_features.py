"""Members that need a feature of their node are bound where the kubelet declares it, and wait elsewhere."""

from __future__ import annotations

import pytest

from tests.builders import group, node, pods
from tests.harness import Harness

ALL, USERS = "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"


def waiting() -> Harness:
    """Of two members one finds a node that declares both features."""
    harness = Harness()
    harness.add(node("old", cpu=8), node("newer", cpu=8, features=[ALL]), node("newest", cpu=1, features=[ALL, USERS]))
    harness.wait(20.0, group("a", min_member=2), *pods("a", 2, features=[ALL, USERS]))
    assert harness.bound() == []
    return harness


@pytest.mark.without("disorder", why="counts the nodes that were there at the last attempt")
def test_each_node_is_counted_for_the_first_feature_that_it_lacks():
    said = waiting().condition("default/a").message
    assert "Only 1 of 2 members fit" in said
    assert f"1 that do not declare the feature {ALL}" in said
    assert f"1 that do not declare the feature {USERS}" in said


def test_a_kubelet_that_declares_the_feature_wakes_the_group():
    harness = waiting()
    harness.settle(node("old", cpu=8, features=[ALL, USERS]))
    assert sorted(harness.pod(name).node for name in harness.bound()) == ["newest", "old"]
