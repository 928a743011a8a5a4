"""Groups that have begun to leave for a plan that has ended, or for that of a former leader: they are counted on."""

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


def test_a_group_that_changes_while_others_leave_for_it_asks_nobody_else_to_leave() -> None:
    """A member joins while a part of the groups that leave has yet to be evicted: its plan ends as Changed."""
    harness = full()
    harness.refuse_eviction = unavailable("low-a-0", "low-b-0", "lone")
    assert victims(harness, *holder(6)) == ["lone", "low-a-0", "low-b-0"]
    harness.add(*holder(7, least=6)[1:])
    harness.wait(2)
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
    harness.add(node("n2", cpu=4), *gang("young", 4))
    harness.settle()
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
