"""Each waiting member has an Event, which is what `kubectl describe pod` shows."""

from __future__ import annotations

from collections import Counter

import pytest

from gangsched.core.objects.declaration import Declaration
from gangsched.core.objects.effects import EmitEvent
from gangsched.core.status.pod_events import ACTION, LONGEST_DELAY_S, PER_S
from tests.builders import group, node, pod, pods
from tests.harness import Harness

pytestmark = pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader does not tell it again")
CALM = pytest.mark.without("disorder", why="asserts at which moment what is told")


def told(harness: Harness) -> list[tuple[str, str]]:
    return sorted((event.name, event.reason) for event in harness.emitted_on_pods)


@CALM
def test_a_member_that_has_waited_for_five_seconds_has_one_event_with_its_groups_message():
    harness = Harness.waited(4, group("a", min_member=3, max_schedule_time_s=3600.0), *pods("a", 3), node(cpu=2))
    assert told(harness) == []
    harness.wait(2)
    assert told(harness) == [(f"a-{number}", "Unschedulable") for number in range(3)]
    event = harness.emitted_on_pods[0]
    assert (event.kind, event.type, event.uid) == ("Pod", "Warning", "uid-default/a-0")
    assert event.note.startswith("Group a: Only 2 of 3 members fit")
    harness.wait(600)
    assert len(harness.emitted_on_pods) == 3


@CALM
def test_each_member_has_its_event_five_seconds_after_its_own_condition_though_nothing_else_happens():
    harness = Harness.waited(2, group("a", min_member=3, max_schedule_time_s=3600.0), pod("a-0"))
    harness.wait(3.5, pod("a-1"))
    assert told(harness) == [("a-0", "GangIncomplete")]
    harness.wait(2.5)
    assert told(harness) == [("a-0", "GangIncomplete"), ("a-1", "GangIncomplete")]


def test_members_that_are_bound_within_five_seconds_have_none():
    harness = Harness.waited(3, group("a", min_member=2), *pods("a", 2), node(cpu=1))
    harness.wait(60, node("n2", cpu=1))
    assert len(harness.bound()) == 2
    assert told(harness) == []


def test_where_the_groups_own_event_is_on_its_oldest_member_the_others_have_one_each():
    says = Declaration(group="a", min_member=2, max_schedule_time_s=3600.0)
    harness = Harness.waited(10, *pods("a", 2, declaration=says), pod("alone", group="", cpu=9), node(cpu=1))
    assert told(harness) == [("a-1", "Unschedulable")]
    assert {(event.name, event.reason) for event in harness.emitted} == {
        ("a-0", "NeverFits"),
        ("alone", "NeverFits"),
    }


@CALM
def test_gangs_take_turns_so_that_there_are_twenty_a_second():
    harness = Harness()
    for name in ("a", "b", "c"):
        harness.add(group(name, min_member=30, max_schedule_time_s=3600.0), *pods(name, 30))
    harness.add(node(cpu=20))
    began, seen = harness.now, 0
    numbers: Counter[int] = Counter()
    while harness.now < began + 20:
        harness.wait(1)
        numbers[len(harness.emitted_on_pods) - seen] += 1
        seen = len(harness.emitted_on_pods)
    assert seen == 90
    assert max(numbers) <= PER_S
    assert len(set(told(harness))) == 90


@CALM
@pytest.mark.without("all", why="only its size is new")
@pytest.mark.slow
def test_of_too_many_waiting_pods_only_some_have_one():
    harness = Harness()
    for number in range(200):
        harness.add(group(f"g{number}", min_member=20, max_schedule_time_s=3600.0), *pods(f"g{number}", 20))
    harness.wait(300, node(cpu=2))
    assert PER_S * LONGEST_DELAY_S <= len(harness.emitted_on_pods) <= PER_S * (LONGEST_DELAY_S + 2)
    assert {event.action for event in harness.emitted_on_pods} == {ACTION}
    assert len(set(told(harness))) == len(harness.emitted_on_pods)


@pytest.mark.without("all", why="it has its own restart")
def test_a_new_leader_repeats_none():
    harness = Harness.waited(10, group("a", min_member=3, max_schedule_time_s=3600.0), *pods("a", 3), node(cpu=2))
    harness.restart()
    harness.wait(60)
    assert len([each for each in harness.effects if isinstance(each, EmitEvent) and each.action == ACTION]) == 3
