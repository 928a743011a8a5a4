"""The room that others leave for a group is for that group, whoever is before it in the order meanwhile."""

from __future__ import annotations

import pytest

from tests.builders import node
from tests.preempting import SET, alone, cluster, end, evicted, gang, holder, is_whole
from tests.trees import leaf, members_of


def test_a_repair_does_not_take_back_what_the_lost_member_left_for_another_group():
    """Members of a native group leave one by one, and a ReplicaSet replaces them while they terminate."""
    harness = cluster(node(cpu=2), leaf("low", least=2), *members_of("low", 2, owner=SET))
    harness.add(*holder(1))
    harness.wait(5)
    assert len(harness.evicted) == 1
    harness.add(*members_of("low", 1, first=2, owner=SET))
    harness.wait(5)
    end(harness)
    assert is_whole(harness, "high", 1)
    assert len(harness.evicted) == 1


@pytest.mark.without("leaderless", why="a new leader does not know that the groups were scheduled")
def test_two_groups_whose_members_leave_one_by_one_do_not_take_the_room_by_turns():
    """A member of each was lost and is to be replaced first, but others have taken its room."""
    harness = cluster(node(cpu=4))
    for name in ("a", "b"):
        harness.add(leaf(name, least=2), *members_of(name, 2, owner=SET))
    harness.wait(5)
    harness.delete("default/a-1", "default/b-1")
    harness.add(*(alone(f"other-{at}", node="n1", scheduler="other") for at in range(2)))
    harness.add(*holder(1))
    harness.wait(5)
    harness.end_terminating()
    for name in ("a", "b"):
        harness.add(*members_of(name, 1, first=2, owner=SET))
    harness.wait(5)
    assert is_whole(harness, "high", 1)
    assert len(harness.evicted) == 1


def test_others_leave_for_a_minimum_that_was_raised_before_the_group_was_bound():
    """The group is refused more room, and others are found that leave, in the call that learns that it is bound."""
    harness = cluster(node("a", cpu=1), *gang("first", 1))
    harness.add(*holder(1, name="before"))
    harness.wait(5)
    end(harness)
    harness.withhold = lambda _: True
    harness.add(node("b", cpu=3), *gang("low", 1, pods_with={"node": "b"}), *holder(2))
    harness.wait(1)
    harness.change_spec("default/high", min_member=3)
    harness.add(holder(3)[-1])
    harness.wait(1)
    harness.withhold = lambda _: False
    harness.send_withheld()
    harness.wait(5)
    assert evicted(harness) == ["first-0", "low-0"]
    end(harness)
    assert is_whole(harness, "high", 3)
