"""What follows from preemption: clocks, pace, who comes back, and that nothing else acts on those who leave."""

from __future__ import annotations

import pytest

from gangsched.core.objects.podgroup import OnDegraded, TimeoutPolicy
from gangsched.core.objects.record import Outcome
from tests.builders import node, pods
from tests.preempting import SET, cluster, end, evicted, gang, holder, is_whole, names, record, victims
from tests.scenarios.test_restarts import Race

MINUTE_S = 60.0


def low_again(first: int, count: int = 4, **fields):
    """Members of the group `low` that a controller has created again."""
    return pods("low", count, first=first, owner=SET, **fields)


# Pace


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader counts the delay anew")
def test_a_group_preempts_once_the_delay_is_over():
    harness = cluster(node(cpu=4), *gang("low", 4), delay_s=20)
    assert victims(harness, *holder(4), wait_s=19) == []
    harness.wait(5)
    assert evicted(harness) == names("low", range(4))


def test_room_that_an_autoscaler_adds_within_the_delay_spares_everybody():
    harness = cluster(node(cpu=4), *gang("low", 4), delay_s=60)
    assert victims(harness, *holder(4), wait_s=5) == []
    harness.wait(120, node("added", cpu=4))
    assert is_whole(harness, "high", 4)
    assert evicted(harness) == []


@pytest.mark.without("leaderless", why="asserts times")
def test_a_group_is_protected_until_it_has_run_for_long_enough_and_twice_as_long_after_each_preemption():
    harness = cluster(node(cpu=4), *gang("low", 4), min_runtime_s=100)
    for run, protected_s in enumerate((100, 200)):
        before = len(harness.evicted)
        harness.wait(protected_s - 20, *holder(4, name=f"high{run}"))
        assert len(harness.evicted) == before
        harness.wait(40)
        assert len(harness.evicted) == before + 4
        assert record(harness, "low").preemptions == run + 1
        end(harness)
        assert is_whole(harness, f"high{run}", 4)
        harness.delete(*harness.bound(f"default/high{run}-"))
        harness.delete_group(f"default/high{run}")
        harness.wait(2, *low_again(4 * (run + 1)))
        assert is_whole(harness, "low", 4)


@pytest.mark.without("restarts", "standbys", why="the story is long")
def test_protection_ends_after_an_hour_however_often_a_group_was_preempted():
    harness = cluster(node(cpu=4), *gang("low", 4), min_runtime_s=1800)
    for run in range(3):
        harness.wait(3700, *holder(4, name=f"high{run}"))
        assert len(harness.evicted) == 4 * (run + 1)
        end(harness)
        harness.delete(*harness.bound(f"default/high{run}-"))
        harness.delete_group(f"default/high{run}")
        harness.wait(2, *low_again(4 * (run + 1)))
        assert is_whole(harness, "low", 4)


@pytest.mark.without("restarts", "standbys", "leaderless", why="the bucket of a new leader is empty")
def test_no_more_pods_are_evicted_in_a_minute_than_the_settings_allow():
    harness = cluster(victims_per_minute=6)
    for at in range(4):
        harness.add(node(f"n{at}", cpu=2), *gang(f"low{at}", 2))
    harness.settle()
    for at in range(4):
        harness.add(*holder(2, name=f"high{at}"))
    for _ in range(60):
        harness.wait(1)
        harness.end_terminating()
    assert 2 <= len(harness.evicted) <= 8
    harness.wait(MINUTE_S)
    assert len(harness.evicted) == 8


# Who comes back


def test_who_was_preempted_comes_back_and_waits_behind_the_group():
    harness = cluster(node(cpu=4), *gang("low", 4))
    assert len(victims(harness, *holder(4))) == 4
    harness.delete("default/low-0", "default/low-1")
    harness.wait(5, *low_again(4, 2))
    assert not harness.bound("default/low-4")
    end(harness)
    harness.wait(5, *low_again(6, 2))
    assert is_whole(harness, "high", 4)
    assert not harness.bound("default/low-")
    harness.wait(5, node("n2", cpu=4))
    assert is_whole(harness, "low", 4)
    assert len(harness.evicted) == 4
    assert record(harness, "low").preemptions == 1


def test_who_was_preempted_is_planned_elsewhere_at_once():
    harness = cluster(node("n1", cpu=4, labels={"big": "yes"}), *gang("low", 4))
    harness.settle(node("n2", cpu=4))
    assert len(victims(harness, *holder(4, pods_with={"node_selector": {"big": "yes"}}))) == 4
    harness.delete(*harness.bound("default/low-"))
    harness.wait(5, *low_again(4))
    assert {harness.pod(name).node for name in harness.bound("default/low-")} == {"n2"}
    assert {harness.pod(name).node for name in harness.bound("default/high-")} == {"n1"}


def test_small_groups_that_arrive_in_the_window_do_not_take_the_room():
    harness = cluster(node(cpu=8), *gang("low", 8))
    assert len(victims(harness, *holder(8))) == 8
    for at in range(8):
        harness.delete(f"default/low-{at}")
        harness.wait(1, *gang(f"small{at}", 1, priority=50))
        assert not harness.bound("default/small")
    harness.wait(5)
    assert is_whole(harness, "high", 8)
    assert len(harness.evicted) == 8


def test_room_that_victims_will_leave_is_not_kept_twice():
    harness = cluster(node(cpu=8), *gang("low", 6))
    assert len(victims(harness, *holder(4))) == 6
    harness.wait(5, *gang("small", 2))
    assert is_whole(harness, "small", 2)
    end(harness)
    assert is_whole(harness, "high", 4)


def test_a_group_of_more_importance_than_the_holder_takes_what_it_needs():
    harness = cluster(node(cpu=8), *gang("low", 8))
    assert len(victims(harness, *holder(8))) == 8
    harness.settle(*gang("top", 8, priority=200))
    end(harness)
    assert is_whole(harness, "top", 8)
    assert not harness.bound("default/high-")


# Clocks


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader pauses the clock anew")
def test_the_clock_stands_still_while_others_end_at_most_once_in_an_attempt():
    slow = {"grace_s": 120}
    harness = cluster(node(cpu=4), *gang("low", 4, pods_with=slow))
    assert len(victims(harness, *holder(4, max_schedule_time_s=20.0))) == 4
    harness.wait(100)
    assert record(harness, "high").timeouts == 0
    harness.wait(40)
    assert record(harness, "high").timeouts == 1
    assert harness.machine.cluster.ledger.reserved, "a plan survives the time-out under Retry"
    end(harness, wait_s=30)
    assert is_whole(harness, "high", 4)
    assert len(harness.evicted) == 4


def test_a_group_that_fails_by_its_clock_gives_up_its_plan():
    slow = {"grace_s": 120}
    harness = cluster(node(cpu=4), *gang("low", 4, pods_with=slow))
    assert len(victims(harness, *holder(4, max_schedule_time_s=20.0, timeout_policy=TimeoutPolicy.FAIL))) == 4
    harness.wait(200)
    assert record(harness, "high").outcome is Outcome.OUT_OF_TIME
    assert not harness.machine.cluster.ledger.reserved


# Nothing else acts on those who leave


@pytest.mark.parametrize("on_degraded", OnDegraded)
def test_on_degraded_does_not_act_while_a_group_is_preempted(on_degraded):
    harness = cluster(node(cpu=4), *gang("low", 4, on_degraded=on_degraded))
    asked: list[str] = []
    harness.refuse_eviction = lambda effect: asked.append(effect.name)
    assert len(victims(harness, *holder(4))) == 4
    harness.delete("default/low-0")
    harness.wait(10, *low_again(4, 1))
    assert not harness.bound("default/low-4")
    assert sorted(asked) == names("low", range(4))
    end(harness)
    assert is_whole(harness, "high", 4)
    harness.wait(60, *low_again(5, 3))
    assert len(harness.evicted) == 4
    assert not harness.bound("default/low-")
    harness.wait(5, node("n2", cpu=4))
    assert is_whole(harness, "low", 4)


@pytest.mark.without("all", why="a process that begins knows of no lost members")
@pytest.mark.parametrize("kind", ["job", "statefulset"])
def test_no_place_is_held_for_members_that_were_preempted(kind):
    race = Race(kind)
    harness = race.harness
    harness.put_class("high", 100)
    assert len(victims(harness, *holder(3))) == 4
    end(harness, wait_s=1)
    assert is_whole(harness, "high", 3)
    assert is_whole(harness, "b", 1)
    race.make(4)
    harness.wait(5)
    assert not race.bound
    harness.wait(5, node("n2", cpu=4))
    assert len(race.bound) == 4


# What a group that had to leave says


def test_a_group_that_had_to_leave_says_so_until_it_is_complete_again():
    harness = cluster(node(cpu=4), *gang("low", 4))
    victims(harness, *holder(4))
    for leaves in (4, 0):
        condition = harness.condition("default/low")
        assert condition.reason == "Preempted"
        assert condition.message == (
            "All members were evicted for another group. 0 of 4 members exist; 4 more members are needed again."
            f"{' 4 pods are still leaving.' if leaves else ''}"
        )
        end(harness, wait_s=60)
    harness.wait(5, *low_again(4, count=3))
    assert harness.condition("default/low").reason == "Preempted"
    harness.wait(5, *low_again(7, count=1))
    assert harness.condition("default/low").reason == "Unschedulable"
    harness.delete(*harness.bound("default/high-"))
    harness.wait(5)
    assert is_whole(harness, "low", 4)
    harness.delete(*harness.bound("default/low-"))
    harness.wait(5)
    harness.wait(5, *low_again(8, count=1))
    assert harness.condition("default/low").reason == "GangIncomplete"
