"""A quorum that the search neither finds nor rules out is searched for with more steps, and reported as such.

Members of many sizes fill the nodes completely, so that few of the distributions fit and greedy orders miss them.
"""

from __future__ import annotations

import pytest

from gangsched.core.objects.pod import Pod
from tests.builders import group, node, pod, pods
from tests.harness import Harness

FOUND_WITH_FOUR_TIMES = (97, 4, (18, 18, 19, 22, 23, 25, 26, 32, 36, 38, 41, 42, 48))
FOUND_WITH_SIXTEEN_TIMES = (100, 5, (15, 17, 18, 21, 23, 24, 24, 29, 36, 37, 38, 40, 40, 45, 45, 48))
NEVER_FOUND = (100, 5, (12, 16, 16, 20, 24, 25, 25, 25, 27, 29, 31, 34, 37, 42, 43, 46, 48))
"""CPUs of each node, number of nodes, and CPUs of each member."""


def puzzle(cpu: int, number: int, sizes: tuple[int, ...]) -> tuple[Harness, list[Pod]]:
    """Nodes, and a group that needs all its members, none of which exists yet."""
    harness = Harness()
    harness.add(*(node(f"n{at}", cpu=cpu) for at in range(number)), group("a", min_member=len(sizes)))
    return harness, [pod(f"a-{at:02}", group="a", cpu=size) for at, size in enumerate(sizes)]


@pytest.mark.parametrize("given", [FOUND_WITH_FOUR_TIMES, FOUND_WITH_SIXTEEN_TIMES], ids=["4 times", "16 times"])
def test_what_the_first_search_misses_is_found_by_a_longer_one_and_bound_whole(given):
    harness, members = puzzle(*given)
    harness.add(*members)
    harness.settle(rounds=200)
    assert len(harness.bound()) == len(members)


def test_what_no_search_finds_is_told_as_not_found_and_never_as_impossible():
    harness, members = puzzle(*NEVER_FOUND)
    harness.add(*members)
    harness.wait(5)
    assert harness.bound() == []
    said = harness.condition("default/a")
    assert said.reason == "SearchExhausted"
    assert said.message.startswith("Places for 16 of 17 members were found within the limit of the search, which may")
    assert "could not take" not in said.message
    due = harness.machine.next_deadline()
    assert due is None or due > harness.now


def test_a_node_more_wakes_a_group_that_was_not_found():
    harness, members = puzzle(*NEVER_FOUND)
    harness.add(*members)
    harness.wait(5)
    harness.add(node("n9", cpu=100))
    harness.settle(rounds=200)
    assert len(harness.bound()) == len(members)


@pytest.mark.without("all", why="counts the calls of one leader")
def test_others_are_bound_at_once_while_a_long_search_goes_on():
    harness, members = puzzle(*NEVER_FOUND)
    harness.add(node("other", cpu=4, labels={"for": "b"}), *members)
    harness.step()
    harness.add(group("b", min_member=2), *pods("b", 2, cpu=2, node_selector={"for": "b"}))
    harness.step()
    harness.step()
    assert len(harness.bound("default/b-")) == 2
    due = harness.machine.next_deadline()
    assert due is not None
    assert due <= harness.now
    assert harness.bound("default/a-") == []


def test_a_search_ends_with_its_group():
    harness, members = puzzle(*NEVER_FOUND)
    harness.add(*members)
    harness.step()
    harness.delete(*(f"default/{each.name}" for each in members))
    harness.delete_group("default/a")
    harness.settle(rounds=200)
    assert harness.machine.validate() == []
