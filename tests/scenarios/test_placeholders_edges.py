"""Reservations for future members, in states that the soak test produced."""

from __future__ import annotations

from typing import Any

import pytest

from gangsched.core.objects.declaration import Role
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import Group
from tests.builders import group, node, pod, shape
from tests.harness import Harness

TIME_S = 20.0


def app(**spec: Any) -> Group:
    """A group of a chief and two workers that are created later, all of 1 CPU."""
    roles = (Role("chief", 1), Role("worker", 2, template=shape(1)))
    return group("a", min_member=3, roles=roles, max_schedule_time_s=TIME_S, **spec)


def chief(**fields: Any) -> Pod:
    return pod("chief", role="chief", **fields)


def worker(number: int, **fields: Any) -> Pod:
    return pod(f"worker-{number}", role="worker", **fields)


@pytest.mark.without("leaderless", why="a new leader has the whole time to complete a part")
def test_places_that_were_lost_are_held_again_beside_a_spared_member_once_there_is_room():
    harness = Harness.settled(node("n1", cpu=1), node("n2", cpu=2), app(), chief())
    on = harness.pod("default/chief").node
    other = "n2" if on == "n1" else "n1"
    harness.delete_node(other)
    harness.wait(60)
    assert harness.condition("default/a", "Degraded").reason == "PartlyBound"
    harness.add(node("n3", cpu=2))
    harness.wait(TIME_S / 2)
    assert harness.status("default/a").reservation is not None


def test_a_role_that_is_lost_while_nobody_looks_is_degraded_and_holds_no_further_member_up():
    roles = (Role("chief", 1), Role("worker", 1))
    harness = Harness.settled(node("n1", cpu=8), group("a", min_member=1, roles=roles), chief(), worker(1), worker(2))
    harness.run_pods()
    harness.wait(3)
    assert harness.status("default/a").phase == "Running"
    del harness.pods[harness.pod("default/chief").uid]
    harness.add(worker(3))
    harness.restart()
    harness.wait(4)
    assert "default/worker-3" in harness.bound()
    assert harness.status("default/a").phase == "Degraded"
    assert harness.condition("default/a", "Degraded").reason == "MembersMissing"


@pytest.mark.parametrize("restarted", [False, True])
def test_members_with_gates_are_of_the_next_run_when_the_last_member_without_goes(restarted):
    harness = Harness()
    gated = [pod(f"worker-{number}", gated=True) for number in (1, 2)]
    harness.add(node("n1", cpu=8), group("a", min_member=2), pod("first"), *gated)
    harness.wait(2)
    harness.delete("default/first")
    harness.wait(2)
    if restarted:
        harness.restart()
        harness.wait(2)
    for each in gated:
        harness.change(f"default/{each.name}", gated=False)
    harness.settle()
    assert harness.bound() == ["default/worker-1", "default/worker-2"]
