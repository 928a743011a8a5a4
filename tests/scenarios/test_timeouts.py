"""Rules 4 and 5: the timeout of a complete group, what follows when it expires, and what ends the wait sooner."""

from __future__ import annotations

import pytest

from gangsched.core.objects.podgroup import TimeoutPolicy
from gangsched.core.objects.policy import Policy
from tests.builders import group, node, pod, pods
from tests.harness import START, Harness


def full(*, policy: Policy | None = None, **spec) -> Harness:
    """A complete group of two that does not fit, with maxScheduleTime 2 s unless said otherwise."""
    harness = Harness(policy)
    harness.add(node("n1", cpu=2), pod("busy", group="", node="n1"))
    spec = {"max_schedule_time_s": 2.0, "min_member": 2} | spec
    harness.settle(group("a", **spec), *pods("a", 2))
    return harness


@pytest.mark.without("leaderless", why="asserts exact times")
def test_a_group_times_out_at_exactly_its_max_schedule_time():
    harness = full()
    harness.wait(1.999)
    assert harness.gang("default/a").record.phase == "Queued"
    harness.wait(0.001)
    assert harness.now == START + 2
    status = harness.status("default/a")
    assert (status.phase, status.attempts) == ("TimedOut", 1)
    condition = harness.condition("default/a")
    assert condition.reason == "TimedOut"
    assert condition.message.startswith("No room within 2s")
    assert "1 of 2 members fit" in condition.message
    (event,) = harness.events("TimedOut")
    assert event.type == "Warning"
    assert {harness.pod(name).condition_reason for name in ("default/a-0", "default/a-1")} == {"Unschedulable"}
    assert "1 of 2 members fit" in harness.pod("default/a-0").condition_message


def test_capacity_ends_the_back_off_at_once():
    harness = full()
    harness.wait(2.5)
    assert harness.status("default/a").phase == "TimedOut"
    harness.settle(node("n2", cpu=1))
    assert len(harness.bound("default/a-")) == 2
    assert harness.status("default/a").phase == "Scheduled"


@pytest.mark.without("leaderless", why="asserts exact times")
def test_capacity_that_does_not_help_leaves_the_back_off():
    harness = full()
    harness.wait(2.5)
    harness.settle(node("n2", cpu="500m"))
    assert harness.gang("default/a").record.phase == "TimedOut"


@pytest.mark.without("restarts", "standbys", "leaderless", why="asserts exact times")
def test_back_offs_double_from_ten_seconds_to_five_minutes_with_at_most_a_fifth_of_jitter():
    harness = full()
    lengths = []
    for _ in range(7):
        while harness.gang("default/a").record.phase != "TimedOut":
            harness.wait(0.5)
        lengths.append(harness.gang("default/a").record.retry_at - harness.now)
        harness.wait(lengths[-1])
        assert harness.gang("default/a").record.phase == "Queued"
    for length, longest in zip(lengths, (10, 20, 40, 80, 160, 300, 300), strict=True):
        assert 0.8 * longest - 0.5 <= length <= longest
    assert harness.machine.stats().timeouts == 7


def test_each_time_out_is_one_event_and_the_refusal_in_between_none():
    harness = full()
    harness.wait(20)
    assert harness.status("default/a").attempts == 2
    assert len(harness.events("TimedOut")) == 2
    assert len(harness.events("Unschedulable")) == 1


def test_fail_ends_as_failed_and_members_say_gang_failed():
    harness = full(timeout_policy=TimeoutPolicy.FAIL)
    harness.wait(2)
    assert harness.status("default/a").phase == "Failed"
    assert harness.condition("default/a").reason == "GangFailed"
    assert "change the PodGroup's spec or delete all members" in harness.condition("default/a").message
    assert harness.pod("default/a-0").condition_reason == "GangFailed"
    assert len(harness.events("GangFailed")) == 1
    harness.wait(1000, node("n2"))
    assert harness.bound("default/a-") == []


def test_a_spec_change_revives_a_failed_group():
    harness = full(timeout_policy=TimeoutPolicy.FAIL)
    harness.wait(3, *pods("a", 1, first=2))
    assert harness.status("default/a").phase == "Failed"
    harness.change_spec("default/a", min_member=1)
    harness.settle()
    assert harness.status("default/a").phase == "Scheduled"


@pytest.mark.parametrize("restarted", [False, True])
def test_a_failed_group_begins_anew_once_all_its_members_are_gone(restarted):
    harness = full(timeout_policy=TimeoutPolicy.FAIL)
    harness.wait(3)
    harness.delete("default/a-0", "default/a-1")
    if restarted:
        harness.restart()
    harness.wait(2)
    assert harness.status("default/a").phase == "Pending"
    assert harness.status("default/a").attempts == 0
    harness.settle(node("n2"), *pods("a", 2, first=5))
    assert len(harness.bound("default/a-")) == 2


def test_a_new_member_alone_does_not_revive_a_failed_group():
    harness = full(timeout_policy=TimeoutPolicy.FAIL)
    harness.wait(3)
    harness.delete("default/a-0")
    harness.wait(100, node("n2"), *pods("a", 1, first=5))
    assert harness.bound("default/a-") == []


@pytest.mark.without("leaderless", why="asserts exact times")
def test_an_incomplete_group_never_times_out_and_its_clock_starts_when_it_is_complete():
    harness = Harness.waited(1000, node(cpu=1), group("a", min_member=2, max_schedule_time_s=5.0), *pods("a", 1))
    assert harness.status("default/a").phase == "Pending"
    assert harness.status("default/a").schedule_start_time == 0
    harness.wait(4.9, *pods("a", 1, first=1))
    assert harness.status("default/a").schedule_start_time == START + 1000
    assert harness.gang("default/a").record.phase == "Queued"
    harness.wait(0.1)
    assert harness.gang("default/a").record.phase == "TimedOut"


def test_the_clock_is_cleared_when_the_group_becomes_incomplete_and_starts_anew():
    harness = full(max_schedule_time_s=10.0)
    harness.wait(8)
    harness.delete("default/a-1")
    harness.wait(2)
    assert harness.status("default/a").schedule_start_time == 0
    harness.wait(9.9, *pods("a", 1, first=1))
    assert harness.gang("default/a").record.phase == "Queued"
    harness.wait(0.1)
    assert harness.gang("default/a").record.phase == "TimedOut"


@pytest.mark.parametrize(("waited", "changed", "more"), [(20.0, 30.0, 10.0), (20.0, 10.0, 0.0), (9.0, 10.0, 1.0)])
@pytest.mark.without("leaderless", why="asserts exact times")
def test_a_changed_max_schedule_time_applies_to_the_running_clock(waited, changed, more):
    harness = full(max_schedule_time_s=60.0)
    harness.wait(waited)
    harness.change_spec("default/a", max_schedule_time_s=changed)
    harness.settle()
    if more:
        assert harness.gang("default/a").record.phase == "Queued"
        harness.wait(more)
    assert harness.gang("default/a").record.phase == "TimedOut"


@pytest.mark.without("disorder", why="asserts what one order of events leads to")
@pytest.mark.without("leaderless", why="asserts exact times")
def test_after_a_restart_the_clock_is_read_from_the_status():
    harness = full(max_schedule_time_s=10.0)
    harness.wait(6)
    harness.restart()
    harness.wait(3.9)
    assert harness.gang("default/a").record.phase == "Queued"
    harness.wait(0.1)
    assert harness.gang("default/a").record.phase == "TimedOut"
    assert harness.status("default/a").attempts == 1


def test_without_a_max_schedule_time_the_operators_default_applies():
    harness = full(max_schedule_time_s=None, policy=Policy(default_max_schedule_time_s=7.0))
    harness.wait(6.9)
    assert harness.gang("default/a").record.phase == "Queued"
    harness.wait(0.1)
    assert harness.gang("default/a").record.phase == "TimedOut"


def test_a_time_out_counts_over_a_restart_and_the_next_back_off_is_longer():
    harness = full()
    harness.wait(14)
    assert harness.status("default/a").attempts == 2
    ends = harness.gang("default/a").record.retry_at
    harness.restart()
    harness.wait(ends - 0.01 - harness.now)
    assert harness.status("default/a").attempts == 2
    harness.wait(5)
    assert harness.status("default/a").attempts == 3
    assert harness.gang("default/a").record.retry_at - harness.now > 30


def test_after_a_time_out_the_group_keeps_its_place_in_the_order():
    harness = Harness.of(node("n1", cpu=2), pod("busy", cpu=2, group="", node="n1"))
    harness.add(group("old", min_member=2, created=1.0, max_schedule_time_s=2.0), *pods("old", 2))
    harness.wait(3, group("new", min_member=2, created=2.0), *pods("new", 2))
    assert harness.gang("default/old").record.phase == "TimedOut"
    harness.delete("default/busy")
    harness.settle()
    assert harness.bound() == ["default/old-0", "default/old-1"]
