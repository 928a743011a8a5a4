"""Counts and durations in messages: no count exceeds its total, and durations read the way people write them."""

from __future__ import annotations

import re

import pytest

from gangsched.core.objects.declaration import Role
from gangsched.core.objects.podgroup import TimeoutPolicy
from tests.builders import group, node, pod, pods
from tests.harness import Harness
from tests.told import miscounted

ROLES = (Role("ps", 1), Role("w", 0))


def test_more_members_than_the_minimum_of_which_a_role_is_missing_are_counted_without_it():
    harness = Harness()
    harness.add(group("a", min_member=1, roles=ROLES), *pods("a", 4, role="w"), node())
    harness.wait(2)
    assert harness.condition("default/a").message == "4 members exist; missing by role: 1 of role ps."


def test_more_members_than_the_minimum_are_bound_beside_it():
    harness = Harness()
    harness.add(group("a", min_member=2), *pods("a", 4), node())
    harness.wait(40)
    assert harness.condition("default/a").message == "4 members are bound or done; 2 needed."


def test_more_members_than_the_minimum_are_left_of_a_degraded_group():
    harness = Harness()
    harness.add(group("a", min_member=1, roles=ROLES), pod("a-ps", role="ps"), *pods("a", 3, role="w"), node())
    harness.settle()
    harness.delete("default/a-ps")
    harness.wait(4)
    assert harness.condition("default/a", "Degraded").message.startswith("3 members are left; a replacement is bound")


@pytest.mark.without("leaderless", why="asserts exact times")
@pytest.mark.parametrize("policy", TimeoutPolicy)
@pytest.mark.parametrize(("seconds", "said"), [(2, "2s"), (90, "90s"), (600, "10m"), (5400, "1h30m")])
def test_the_time_that_a_group_may_wait_is_told_as_people_write_it(policy, seconds, said):
    harness = Harness()
    harness.add(group("a", min_member=2, max_schedule_time_s=float(seconds), timeout_policy=policy), *pods("a", 2))
    harness.add(node(cpu=1))
    harness.wait(seconds + 2)
    assert re.match(f"No room within {said}[;,] ", harness.condition("default/a").message)


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ("4 of 1 member exists; it waits.", True),
        ("The run ended with 7 of 5 members succeeded.", True),
        ("3 of 3 members exist.", False),
        ("For 1 of 3 without a place, of 1 node: 1 with too little cpu.", False),
        ("cpu 2500m of 10", False),
        ("12 of 10Gi", False),
        ("of pod-12 of 3 groups", False),
    ],
)
def test_the_harness_finds_a_count_above_its_total_in_every_message(said, wrong):
    assert bool(miscounted([said])) is wrong
