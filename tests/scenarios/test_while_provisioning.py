"""Members come and go while the volumes of others are being provisioned: nobody waits for ever, and nothing spins."""

from __future__ import annotations

import pytest

from gangsched.core.objects.pod import Pod, PodPhase
from gangsched.core.objects.podgroup import OnDegraded
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.volumes import StorageClass
from tests.builders import group, node, pod, pods
from tests.harness import Harness
from tests.scenarios.test_late_members import labelled, replica, stateful_set
from tests.scenarios.test_unbegun import add_with_volume, provision
from tests.trees import inner, leaf, members_of


def add_waiting(harness: Harness, *members: Pod) -> None:
    """Members whose volumes are not provisioned yet."""
    harness.disks.busy = True
    harness.add(StorageClass("fast", "csi", waits=True, provisions=True))
    for each in members:
        add_with_volume(harness, each)


@pytest.mark.without("restarts", "standbys", why="to a new leader, of whose run nothing is bound, three are needed")
@pytest.mark.parametrize("on_degraded", [OnDegraded.REPAIR, OnDegraded.IGNORE])
@pytest.mark.parametrize("first", ["part", "bound"])
def test_what_is_left_of_a_part_replaces_a_lost_member(on_degraded: OnDegraded, first: str) -> None:
    """Regression: it was placed, and released as no whole part, in each call."""
    harness = Harness.settled(node(cpu=9), group("a", min_member=1, on_degraded=on_degraded), *pods("a", 1))
    harness.change_spec("default/a", min_member=3)
    add_waiting(harness, *pods("a", 2, first=1))
    harness.wait(5)
    assert harness.bound() == ["default/a-0"]
    gone = ["default/a-2", "default/a-0"]
    for name in gone if first == "part" else reversed(gone):
        harness.delete(name)
        harness.wait(3)
    provision(harness, wait_s=10)
    assert harness.bound() == ["default/a-1"]


@pytest.mark.parametrize("least", [None, 1, 2])
def test_a_lost_part_of_a_tree_with_a_success_is_replaced(least: int | None) -> None:
    """Regression: one was needed and two were placed, so that both were released and placed again, in each call."""
    harness = Harness.of(
        node(cpu=8), inner("root", least=least), leaf("a", "root", least=2), leaf("b", "root", least=2)
    )
    harness.add(*members_of("b", 2))
    if least == 2:
        harness.add(*members_of("a", 2))
    harness.settle()
    harness.change("default/b-0", phase=PodPhase.SUCCEEDED)
    harness.change("default/b-1", phase=PodPhase.FAILED)
    add_waiting(harness, *members_of("b", 2, first=2))
    harness.wait(10)
    provision(harness, wait_s=10)
    assert harness.bound("default/b-") == ["default/b-2", "default/b-3"]


@pytest.mark.parametrize("ready", [False, True], ids=["late", "at-once"])
def test_a_member_is_bound_beside_those_whose_places_a_cap_has_released(*, ready: bool) -> None:
    """Regression: it kept its place for ever and was never bound, as the rest of the quorum had no places."""
    harness = labelled(Harness(Policy(max_hold_s=15.0)))
    harness.wait(20, node("n", cpu=4), stateful_set(replicas=4), replica(0))
    assert harness.bound("default/web-") == ["default/web-0"]
    harness.wait(60, *(pod(f"rival-{at}", group="", node="n", scheduler="other") for at in range(2)))
    add_waiting(harness, replica(1, created=harness.now))
    if not ready:
        harness.wait(30)
    provision(harness, wait_s=600)
    assert harness.bound("default/web-") == ["default/web-0", "default/web-1"]


@pytest.mark.parametrize("beside", [0, 1], ids=["none-bound", "one-bound"])
def test_a_member_above_the_minimum_takes_the_part_of_one_that_is_gone(beside: int) -> None:
    """Regression: it counted as one of the quorum, so that no other was placed, but the quorum still waited for one.

    With a member that was bound before, by another scheduler, it waited for ever.
    """
    harness = Harness.settled(node(cpu=9), group("a", min_member=2 + beside))
    harness.add(*pods("a", beside, first=7, node="n1"))
    add_waiting(harness, *pods("a", 3))
    harness.wait(3)
    harness.delete("default/a-0")
    harness.wait(3)
    provision(harness, wait_s=60)
    assert harness.bound()[:2] == ["default/a-1", "default/a-2"]
