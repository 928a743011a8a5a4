"""A quorum that the search neither finds nor rules out is reported as such, and asked again after a change.

Members of many sizes fill the nodes completely, so that few of the distributions fit and greedy orders miss them.
"""

from __future__ import annotations

import pytest

from gangsched.core.objects.pod import Pod
from tests.builders import group, node, pod
from tests.harness import Harness

NOT_FOUND = (100, 5, (12, 16, 16, 20, 24, 25, 25, 25, 27, 29, 31, 34, 37, 42, 43, 46, 48))
"""CPUs of each node, number of nodes, and CPUs of each member."""


def puzzle(cpu: int, number: int, sizes: tuple[int, ...]) -> tuple[Harness, list[Pod]]:
    """Nodes, and a group that needs all its members, none of which exists yet."""
    harness = Harness.of(*(node(f"n{at}", cpu=cpu) for at in range(number)), group("a", min_member=len(sizes)))
    return harness, [pod(f"a-{at:02}", group="a", cpu=size) for at, size in enumerate(sizes)]


def test_what_no_search_finds_is_told_as_not_found_and_never_as_impossible():
    harness, members = puzzle(*NOT_FOUND)
    harness.wait(5, *members)
    assert harness.bound() == []
    said = harness.condition("default/a")
    assert said.reason == "SearchExhausted"
    assert said.message.startswith("Places for 16 of 17 members were found within the limit of the search, which may")
    assert "could not take" not in said.message
    due = harness.machine.next_deadline()
    assert due is None or due > harness.now


@pytest.mark.without("all", why="counts the calls of one leader")
def test_the_machine_rests_beside_a_group_that_is_not_tried_any_more():
    """A group that was not found loses a member. Regression: its finished search made each next call due at once."""
    harness, members = puzzle(*NOT_FOUND)
    harness.wait(5, *members)
    harness.delete("default/a-00")
    harness.wait(5)
    due = harness.machine.next_deadline()
    assert due is None or due > harness.now
    assert harness.condition("default/a").reason == "GangIncomplete"
