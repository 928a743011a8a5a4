"""The room that others leave for a group is for that group, whoever is before it in the order meanwhile."""

from __future__ import annotations

import pytest

from gangsched.core.contention.pace import KEPT_S
from gangsched.core.planning.leaving import Search
from tests.builders import node
from tests.harness import Harness
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


def loses_a_node(harness: Harness) -> None:
    """Of two victims one has left, the node of the other is cordoned, and a later group waits."""
    harness.add(*gang("late", 1, pods_with={"cpu": 2}))
    first, second = sorted(where for plan in harness.machine.plans.values() for _, where in plan.places)
    harness.delete(f"default/low{first[1:]}-0")
    harness.wait(5, node(second, cpu=2, unschedulable=True))


def three_nodes(*, priority: int | None = None, **preemption: int) -> Harness:
    """Three groups of this priority, each on a node; a group waits that needs two of these nodes."""
    harness = cluster(*(node(f"n{at}", cpu=2) for at in range(3)), **preemption)
    for at in range(3):
        harness.add(*gang(f"low{at}", 1, priority=priority, pods_with={"cpu": 2, "node": f"n{at}"}))
    harness.settle()
    harness.wait(5, *holder(2, pods_with={"cpu": 2}))
    return harness


KEEPING = pytest.mark.without("restarts", "standbys", why="a new leader does not know what was kept for a lost plan")


@KEEPING
def test_what_others_have_left_is_kept_also_if_nobody_was_found_before(monkeypatch):
    """Regression: that held for the search after the lost plan too, unless it ended in one call."""
    harness = three_nodes(priority=500)
    assert harness.evicted == []
    for at in range(3):
        harness.change_spec(f"default/low{at}", priority=0)
    harness.wait(5)
    assert len(harness.evicted) == 2
    go_on, left = Search.go_on, iter(range(3))
    monkeypatch.setattr(Search, "go_on", lambda *given: None if next(left, None) is not None else go_on(*given))
    loses_a_node(harness)
    assert len(harness.evicted) == 3
    assert harness.bound("default/late") == []
    end(harness)
    assert is_whole(harness, "high", 2)


@KEEPING
def test_what_others_have_left_is_not_kept_for_as_long_as_nobody_may_be_evicted():
    """Regression: at one eviction a minute it was kept for minutes."""
    harness = three_nodes(victims_per_minute=1)
    harness.wait(60)
    assert len(harness.evicted) == 2
    loses_a_node(harness)
    assert harness.bound("default/late") == []
    harness.wait(KEPT_S)
    assert len(harness.evicted) == 2
    assert is_whole(harness, "late", 1)
