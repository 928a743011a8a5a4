"""How a plan of preemption ends: its group starts, or it is given up, and whoever has not begun to leave stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from gangsched.core.objects.effects import EvictPod, PatchStatus
from gangsched.core.objects.results import EvictionRefused, Spared, StatusRefused
from gangsched.core.planning.leaving import Search
from tests.builders import node, pod
from tests.harness import Harness
from tests.preempting import GRACE_S, alone, cluster, end, evicted, gang, holder, is_whole, names, record, victims

EXPIRES_S = GRACE_S + 60
REFUSED_S = 60
PASSED_S = 300


def unmarked(*names: str) -> Callable[[PatchStatus], StatusRefused | None]:
    """Refuse to write the statuses of these groups."""
    return lambda effect: StatusRefused(effect.key, stale=False) if effect.key.name in names else None


def spared(*prefixes: str, why: Spared = Spared.BUDGET) -> Callable[[EvictPod], EvictionRefused | None]:
    """Refuse to evict pods whose names begin so."""
    return lambda effect: EvictionRefused(effect.uid, why, "no") if effect.name.startswith(prefixes) else None


def nothing_is_open(harness: Harness) -> bool:
    """Whether no plan is open, here and in statuses, and nobody is to leave."""
    statuses = [found.status for found in harness.groups.values()]
    kinds = [status.reservation.kind for status in statuses if status.reservation is not None]
    marks = [status.record for status in statuses if status.record is not None and status.record.preempted_at]
    return not (harness.machine.cluster.ledger.reserved or any(kinds) or marks)


def names_of(harness: Harness, name: str) -> list[str]:
    """The names of all pods of a group."""
    return [f"{each.namespace}/{each.name}" for each in harness.pods.values() if each.name.startswith(f"{name}-")]


# Whoever need not leave after all


def goes(harness: Harness) -> None:
    harness.delete(*names_of(harness, "high"))
    harness.delete_group("default/high")


CHANGES: dict[str, Callable[[Harness], None]] = {
    "room comes free": lambda harness: harness.delete(*harness.bound("default/equal-")),
    "its group vanishes": goes,
    "its group loses its class": lambda harness: harness.change_spec("default/high", priority_class=""),
    "its class preempts no more": lambda harness: harness.put_class("high", 100, preempts=False),
    "its class is worth less than the victim": lambda harness: harness.put_class("high", -5),
    "the victim gets more important": lambda harness: harness.change_spec("default/low", priority=500),
    "the node is cordoned": lambda harness: harness.add(replace(harness.nodes["n1"], unschedulable=True)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_nobody_leaves_if_between_the_plan_and_the_evictions(change: Callable[[Harness], None]):
    """The victim is planned, but its mark cannot be written yet."""
    harness = cluster(node("n1", cpu=4), *gang("low", 4))
    harness.settle(node("n2", cpu=4), *gang("equal", 4, priority=100))
    harness.refuse_status = unmarked("low")
    assert victims(harness, *holder(4)) == []
    change(harness)
    harness.wait(5)
    harness.refuse_status = lambda _: None
    harness.wait(EXPIRES_S)
    assert evicted(harness) == []
    assert is_whole(harness, "low", 4)
    assert record(harness, "low").preemptions == 0
    assert harness.events("Preempted") == []
    assert nothing_is_open(harness)


@pytest.mark.parametrize("who", ["surplus", "a pod without a group"])
def test_whose_eviction_was_refused_stays_if_room_comes_free_meanwhile(who):
    low = gang("low", 2, least=1) if who == "surplus" else [alone("low-1"), *gang("other", 1)]
    harness = cluster(node("n1", cpu=2), node("n2", cpu=2), *low, *gang("equal", 2, priority=100))
    harness.refuse_eviction = spared("low", why=Spared.UNAVAILABLE)
    assert victims(harness, *holder(1)) == []
    harness.delete("default/equal-0")
    harness.wait(5)
    assert is_whole(harness, "high", 1)
    harness.refuse_eviction = lambda _: None
    harness.wait(120)
    assert evicted(harness) == []


def test_the_rest_stays_once_enough_have_left_by_themselves():
    harness = cluster(node(cpu=4), *(each for at in range(4) for each in gang(f"low{at}", 1)))
    harness.refuse_status = unmarked("low0", "low1", "low2", "low3")
    assert victims(harness, *holder(2)) == []
    harness.delete("default/low0-0", "default/low3-0")
    harness.refuse_status = lambda _: None
    harness.wait(60)
    assert is_whole(harness, "high", 2)
    assert evicted(harness) == []
    assert nothing_is_open(harness)


def test_who_ends_by_itself_is_not_evicted():
    harness = cluster(node(cpu=4), *gang("low", 4))
    harness.refuse_status = unmarked("low")
    assert victims(harness, *holder(4)) == []
    harness.delete(*harness.bound("default/low-"))
    harness.refuse_status = lambda _: None
    harness.wait(5)
    assert is_whole(harness, "high", 4)
    assert evicted(harness) == []
    assert nothing_is_open(harness)


@pytest.mark.without("restarts", "standbys", why="a new leader evicts a group that is marked")
def test_a_group_that_ends_by_itself_is_marked_no_more_while_another_is_not_marked_yet():
    """Regression: it was marked in each call, which was due at once, and each time counted as preempted."""
    harness = cluster(node("n1", cpu=2), *gang("low0", 2))
    harness.add(node("n2", cpu=2), *gang("low1", 2))
    harness.settle()
    harness.refuse_status = unmarked("low1")
    assert victims(harness, *holder(4)) == []
    harness.delete("default/low0-0", "default/low0-1")
    harness.wait(5)
    harness.refuse_status = lambda _: None
    harness.wait(30)
    assert evicted(harness) == ["low1-0", "low1-1"]
    end(harness)
    assert is_whole(harness, "high", 4)
    assert nothing_is_open(harness)


# Whoever does not leave


@pytest.mark.parametrize(
    ("why", "seconds"), [(Spared.BUDGET, REFUSED_S), (Spared.UNAVAILABLE, REFUSED_S), (Spared.FORBIDDEN, 0)]
)
@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader counts the time of refusals anew")
def test_another_leaves_where_one_is_refused_for_good(why, seconds):
    harness = cluster(node("n1", cpu=4), *gang("low", 4))
    harness.wait(1000)
    harness.settle(node("n2", cpu=4), *gang("young", 4))
    harness.refuse_eviction = spared("young", why=why)
    assert victims(harness, *holder(4), wait_s=max(5, seconds - 5)) == ([] if seconds else names("low", range(4)))
    harness.wait(15)
    assert evicted(harness) == names("low", range(4))
    end(harness)
    assert is_whole(harness, "high", 4)
    assert is_whole(harness, "young", 4)


@pytest.mark.parametrize("why", [Spared.BUDGET, Spared.FORBIDDEN])
def test_nobody_else_leaves_where_only_one_could_and_it_is_refused_for_good(why):
    harness = cluster(node("n1", cpu=4), node("n2", cpu=4), *gang("low", 4), *gang("equal", 4, priority=100))
    harness.refuse_eviction = spared("low", why=why)
    assert victims(harness, *holder(4), wait_s=90) == []
    assert is_whole(harness, "low", 4)
    assert not harness.bound("default/high-")


@pytest.mark.without("restarts", "standbys", why="a new leader finishes what is marked")
@pytest.mark.parametrize("why", [Spared.BUDGET, Spared.FORBIDDEN])
def test_a_group_of_which_nobody_was_evicted_stays_and_is_marked_no_more(why):
    harness = cluster(node("n1", cpu=4), *gang("low", 4))
    harness.refuse_eviction = spared("low", why=why)
    assert victims(harness, *holder(4), wait_s=70) == []
    harness.delete(*names_of(harness, "high"))
    harness.delete_group("default/high")
    harness.wait(5)
    harness.refuse_eviction = lambda _: None
    harness.wait(400)
    assert evicted(harness) == []
    assert nothing_is_open(harness)


def test_a_group_that_has_begun_to_leave_leaves_as_a_whole_though_its_last_member_is_refused_for_long():
    harness = cluster(node("n1", cpu=4), *gang("low", 4))
    harness.refuse_eviction = spared("low-3")
    assert victims(harness, *holder(4), wait_s=90) == names("low", range(3))
    end(harness)
    harness.refuse_eviction = lambda _: None
    harness.wait(100)
    assert evicted(harness) == names("low", range(4))
    end(harness)
    assert is_whole(harness, "high", 4)


def test_others_leave_once_those_who_terminate_for_ever_are_overdue():
    harness = cluster(node("n1", cpu=4), *gang("low", 4))
    harness.wait(1000)
    harness.settle(node("n2", cpu=4), *gang("young", 4))
    assert victims(harness, *holder(4)) == names("young", range(4))
    harness.wait(EXPIRES_S - 10)
    assert evicted(harness) == names("young", range(4))
    harness.wait(60)
    assert evicted(harness) == names("low", range(4)) + names("young", range(4))
    harness.delete(*(name for name in harness.bound("default/low-")))
    harness.wait(5)
    assert is_whole(harness, "high", 4)
    assert nothing_is_open(harness)


# Several holders


def test_two_groups_preempt_others_at_once():
    harness = cluster(node("n1", cpu=4), node("n2", cpu=4), *gang("a", 4), *gang("b", 4))
    assert len(victims(harness, *holder(4), *holder(4, name="next"))) == 8
    assert len(harness.machine.cluster.ledger.reserved) == 2
    end(harness)
    assert is_whole(harness, "high", 4)
    assert is_whole(harness, "next", 4)


def test_of_two_groups_that_need_the_same_room_the_first_gets_it_and_the_other_waits():
    harness = cluster(node("n1", cpu=4), *gang("low", 4))
    found = victims(harness, *holder(4, created=1.0), *holder(4, name="next", created=2.0))
    assert found == names("low", range(4))
    end(harness)
    assert is_whole(harness, "high", 4)
    assert not harness.bound("default/next-")
    assert len(harness.evicted) == 4


def test_what_a_group_leaves_beside_its_victor_is_for_the_next():
    harness = cluster(node("n1", cpu=4), *gang("low", 4))
    assert len(victims(harness, *holder(2, created=1.0), *holder(2, name="next", created=2.0))) == 4
    end(harness)
    assert is_whole(harness, "high", 2)
    assert is_whole(harness, "next", 2)


# The holder


def test_the_room_of_a_group_that_vanishes_is_for_others():
    harness = cluster(node("n1", cpu=4), *gang("low", 4))
    assert len(victims(harness, *holder(4))) == 4
    harness.delete(*names_of(harness, "high"))
    harness.delete_group("default/high")
    harness.wait(5)
    assert nothing_is_open(harness) or record(harness, "low").preempted_at
    harness.end_terminating()
    harness.wait(5, *gang("low", 8)[5:])
    assert is_whole(harness, "low", 4)
    assert nothing_is_open(harness)


def test_a_group_that_is_changed_is_planned_anew():
    harness = cluster(node("n1", cpu=4), node("n2", cpu=4), *gang("a", 4), *gang("b", 4))
    assert len(victims(harness, *holder(8, least=4))) == 4
    harness.change_spec("default/high", min_member=8)
    harness.wait(5)
    assert len(harness.evicted) == 8
    end(harness)
    assert is_whole(harness, "high", 8)


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader begins the back-off anew")
def test_a_foreign_pod_that_takes_the_room_makes_the_group_wait_longer_each_time():
    harness = cluster(node("n0", cpu=4), *gang("low0", 4))
    for at in (1, 2):
        harness.wait(1000)
        harness.add(node(f"n{at}", cpu=4), *gang(f"low{at}", 4))
    harness.settle()
    harness.wait(5, *holder(4))
    for at, pause_s in ((2, 10), (1, 20)):
        assert sorted({name.split("-")[0] for name in evicted(harness)}) == [f"low{each}" for each in range(at, 3)]
        harness.end_terminating()
        harness.wait(pause_s - 1, pod(f"thief{at}", group="", cpu=4, scheduler="other", node=f"n{at}"))
        assert len(harness.evicted) == 4 * (3 - at)
        assert nothing_is_open(harness)
        harness.wait(3)
        assert len(harness.evicted) == 4 * (4 - at)
    end(harness)
    assert is_whole(harness, "high", 4)


def in_vain() -> Harness:
    """Another scheduler took the room for which a group had left; that group is back on another node."""
    harness = cluster(node("n1", cpu=4), *gang("low", 4))
    assert len(victims(harness, *holder(4))) == 4
    harness.end_terminating()
    harness.add(pod("thief", group="", cpu=4, scheduler="other", node="n1"))
    harness.add(node("n2", cpu=4), *gang("low", 8, pods_with={"node": "n2"})[5:])
    return harness


SLOW: dict[str, Any] = {"grace_s": 3600, "node": "n1"}


def half_taken(*things: Any) -> Harness:
    """A group of 4 CPUs waits for one of two to leave a node of 4, which takes an hour; so much else is there."""
    harness = cluster(node("n1", cpu=4), *gang("slow", 2, pods_with=SLOW), *things)
    assert victims(harness, *holder(4)) == ["slow-0", "slow-1"]
    return harness


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader begins the back-off anew")
def test_room_that_a_foreign_pod_takes_before_all_have_left_is_lost_at_once():
    """Regression: the group waited for the hour that the last of them took, and another minute."""
    harness = half_taken(node("n2", cpu=4), *gang("low", 4, pods_with={"node": "n2"}))
    harness.wait(5, pod("thief", group="", cpu=2, scheduler="other", node="n1"))
    assert harness.machine.plans == {}
    assert harness.machine.stats().ended["RoomLost"] == 1
    assert victims(harness, wait_s=3) == []
    assert len(victims(harness, wait_s=5)) == 4
    harness.delete(*(f"default/low-{at}" for at in range(4)))
    harness.wait(5)
    assert is_whole(harness, "high", 4)


def test_a_new_leader_does_not_wait_for_room_that_was_taken_while_nobody_led():
    """Regression: the places of the former leader stayed reserved until its plan would have expired."""
    harness = half_taken()
    harness.add(pod("thief", group="", cpu=2, scheduler="other", node="n1"))
    harness.restart()
    harness.wait(5)
    assert harness.machine.plans == {}
    assert harness.condition("default/high").reason == "Unschedulable"


def test_room_that_a_group_before_this_one_takes_before_all_have_left_is_lost_at_once():
    """The group counts on those who leave already, and on room elsewhere: nobody else leaves for it."""
    harness = half_taken()
    harness.add(*gang("first", 2, priority=1000))
    harness.wait(5)
    assert is_whole(harness, "first", 2)
    assert harness.machine.plans == {}
    harness.wait(5, node("n2", cpu=2), *gang("low", 2, pods_with={"node": "n2"}), node("n3", cpu=2))
    (plan,) = harness.machine.plans.values()
    assert sorted(where for _, where in plan.places) == ["n1", "n1", "n3", "n3"]
    assert len(harness.evicted) == 2
    harness.delete("default/slow-0", "default/slow-1")
    harness.wait(5)
    assert is_whole(harness, "high", 4)


@pytest.mark.parametrize("calls", [0, 3])
@pytest.mark.without("restarts", "standbys", why="a new leader does not know what was kept for a plan that has ended")
def test_what_others_have_left_is_kept_until_the_next_plan_is_found(monkeypatch, calls):
    """Regression: it was anybody's for a moment once a node of a plan was lost, and had to be left once more. Later it
    was kept, but only for a call, and a search may need more.
    """
    harness = cluster(*(node(f"n{at}", cpu=2) for at in range(3)))
    harness.settle(*(each for at in range(3) for each in gang(f"low{at}", 1, pods_with={"cpu": 2, "node": f"n{at}"})))
    assert len(victims(harness, *holder(2, pods_with={"cpu": 2}))) == 2
    harness.add(*gang("late", 1, pods_with={"cpu": 2}))
    first, second = sorted(where for plan in harness.machine.plans.values() for _, where in plan.places)
    harness.delete(f"default/low{first[1:]}-0")
    go_on, left = Search.go_on, iter(range(calls))
    monkeypatch.setattr(Search, "go_on", lambda *given: None if next(left, None) is not None else go_on(*given))
    harness.wait(5, node(second, cpu=2, unschedulable=True))
    assert len(harness.evicted) == 3
    assert harness.bound("default/late") == []
    end(harness)
    assert is_whole(harness, "high", 2)


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader does not know who left in vain")
def test_who_left_in_vain_for_a_group_is_evicted_for_it_again_only_later():
    harness = in_vain()
    harness.wait(PASSED_S - 10)
    assert len(harness.evicted) == 4
    harness.wait(20)
    assert len(harness.evicted) == 8
    end(harness)
    assert is_whole(harness, "high", 4)


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader does not know who left in vain")
def test_who_left_in_vain_for_a_group_is_evicted_for_another():
    harness = in_vain()
    harness.wait(PASSED_S - 10)
    assert len(victims(harness, *holder(4, name="next", created=harness.now), wait_s=5)) == 4
    end(harness)
    assert is_whole(harness, "high", 4), "it is before the other in the order"


def test_a_node_that_is_lost_ends_the_plan():
    harness = cluster(node("n1", cpu=4), *gang("low", 4))
    assert len(victims(harness, *holder(4))) == 4
    harness.delete_node("n1")
    harness.end_terminating()
    harness.wait(5)
    assert nothing_is_open(harness)
    harness.wait(60, node("n3", cpu=4))
    assert is_whole(harness, "high", 4)
