"""Groups that have begun to leave for a plan that has ended, or for that of a former leader: they are counted on.

Whether a group has begun is open while evictions are on their way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import pytest

from gangsched.core.objects.effects import EvictPod
from gangsched.core.objects.results import EvictionRefused, Spared
from tests.builders import node
from tests.harness import Harness
from tests.preempting import alone, cluster, end, evicted, gang, holder, is_whole, names, record, victims

LOW = names("low-a", range(3)) + names("low-b", range(2))


def unavailable(*but: str, why: Spared = Spared.UNAVAILABLE) -> Callable[[EvictPod], EvictionRefused | None]:
    """Refuse for now to evict all pods but these."""
    return lambda effect: None if effect.name in but else EvictionRefused(effect.uid, why, "no")


def full() -> Harness:
    """Two groups and a pod leave for a group of six; a larger group would leave only if these did not suffice."""
    return cluster(node(cpu=13), *gang("low-a", 3), *gang("low-b", 2), alone("lone"), *gang("dear", 7))


@pytest.mark.parametrize("gone", [(), ("low-a-1",), ("low-a-0", "low-b-1", "lone")], ids=len)
def test_a_new_leader_counts_on_groups_that_are_marked_and_asks_nobody_else_to_leave(gone: Collection[str]) -> None:
    """The former leader was killed between the marks and the last eviction. Marked groups leave in any case, but their
    members did not terminate yet, so that the new plan asked a further group to leave."""
    harness = full()
    harness.refuse_eviction = unavailable(*gone)
    assert victims(harness, *holder(6)) == sorted(gone)
    assert record(harness, "low-a").preempted_at
    assert record(harness, "low-b").preempted_at
    harness.restart()
    harness.wait(2)
    harness.refuse_eviction = lambda _: None
    harness.wait(20)
    assert evicted(harness) == sorted([*LOW, "lone"])
    end(harness)
    assert is_whole(harness, "high", 6)
    assert is_whole(harness, "dear", 7)


@pytest.mark.parametrize(
    "late", [("low-a-0",), ("low-a-0", "low-b-0"), ("low-a-1", "low-a-2", "low-b-1"), LOW], ids=len
)
def test_a_new_leader_counts_on_members_whose_evictions_are_answered_before_the_watch_shows_them(
    late: Collection[str],
) -> None:
    """With the last answer the group's run is over; who was not shown to terminate by then counted as gone, so that
    the new plan asked a further group to leave."""
    harness = full()
    harness.refuse_eviction = unavailable()
    assert victims(harness, *holder(6)) == []
    harness.refuse_eviction = lambda _: None
    harness.eviction_is_shown_after_s = lambda effect: 2.0 if effect.name in late else 0.0
    harness.restart()
    harness.wait(20)
    assert evicted(harness) == sorted([*LOW, "lone"])
    end(harness)
    assert is_whole(harness, "high", 6)
    assert is_whole(harness, "dear", 7)


def test_a_group_that_changes_while_others_leave_for_it_asks_nobody_else_to_leave() -> None:
    """A member joins while a part of the groups that leave has yet to be evicted: its plan ends as Changed."""
    harness = full()
    harness.refuse_eviction = unavailable("low-a-0", "low-b-0", "lone")
    assert victims(harness, *holder(6)) == ["lone", "low-a-0", "low-b-0"]
    harness.wait(2, *holder(7, least=6)[1:])
    harness.refuse_eviction = lambda _: None
    harness.wait(20)
    assert evicted(harness) == sorted([*LOW, "lone"])
    end(harness)
    assert is_whole(harness, "high", 6)
    assert is_whole(harness, "dear", 7)


@pytest.mark.parametrize("why", [Spared.FORBIDDEN, Spared.BUDGET])
@pytest.mark.without("all", why="the story is about one change of leader")
def test_others_leave_where_a_marked_group_cannot_be_evicted_under_the_new_leader(why: Spared) -> None:
    harness = cluster(node("n1", cpu=4), *gang("low", 4))
    harness.wait(1000)
    harness.settle(node("n2", cpu=4), *gang("young", 4))
    harness.refuse_eviction = unavailable()
    assert victims(harness, *holder(4)) == []
    assert record(harness, "young").preempted_at
    harness.restart()
    harness.refuse_eviction = unavailable(*names("low", range(4)), why=why)
    harness.wait(150)
    assert evicted(harness) == names("low", range(4))
    end(harness)
    assert is_whole(harness, "high", 4)
    assert is_whole(harness, "young", 4)
    assert record(harness, "young").preempted_at == 0


def refused_at_once(why: Spared) -> Harness:
    """A plan has ended because one eviction is refused for good; the others are on their way."""
    harness = cluster(node(cpu=4), *gang("low", 4))
    harness.refuse_eviction = unavailable(why=why)
    harness.eviction_takes_s = lambda effect: 0.0 if effect.name == "low-0" else 2.0
    assert victims(harness, *holder(4), wait_s=1) == []
    return harness


@pytest.mark.without("all", why="the story is about evictions that one leader has on their way")
@pytest.mark.parametrize("why", [Spared.FORBIDDEN, Spared.BUDGET, Spared.UNAVAILABLE])
def test_a_group_stays_if_all_its_evictions_on_their_way_are_refused_after_the_plan_has_ended(why: Spared) -> None:
    """It stayed marked and was asked again and again for 65 s. Evicted in that time, it would have left in vain."""
    harness = refused_at_once(Spared.FORBIDDEN)
    harness.refuse_eviction = unavailable(why=why)
    harness.wait(3)
    assert record(harness, "low").preempted_at == 0
    assert record(harness, "low").preemptions == 0
    harness.refuse_eviction = lambda _: None
    harness.wait(60)
    assert evicted(harness) == []
    assert is_whole(harness, "low", 4)


@pytest.mark.without("all", why="the story is about evictions that one leader has on their way")
def test_a_group_leaves_if_one_of_its_evictions_on_their_way_is_accepted_after_the_plan_has_ended() -> None:
    harness = refused_at_once(Spared.FORBIDDEN)
    harness.refuse_eviction = unavailable("low-3")
    harness.wait(3)
    assert evicted(harness) == ["low-3"]
    assert record(harness, "low").preempted_at
    harness.refuse_eviction = lambda _: None
    harness.wait(30)
    assert evicted(harness) == names("low", range(4))
    end(harness)
    assert is_whole(harness, "high", 4)


@pytest.mark.without("restarts", "standbys", "leaderless", why="the story is about one change of leader")
def test_room_that_a_former_leader_has_reserved_is_given_to_who_comes_first_once_its_group_falls_in_the_order() -> None:
    """Regression: who had been refused before was not tried again. Without budgets no other plan is looked for."""
    harness = cluster(node(cpu=2), *gang("low-a", 1), *gang("low-b", 1))
    assert victims(harness, *holder(2)) == ["low-a-0", "low-b-0"]
    harness.hide_budgets("403")
    harness.restart()
    harness.delete("default/low-a-0")
    harness.wait(2, *gang("mid", 1, priority_class="mid"))
    assert not is_whole(harness, "mid", 1)
    harness.change_spec("default/high", priority_class="")
    harness.wait(2)
    assert is_whole(harness, "mid", 1)
