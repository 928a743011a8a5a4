"""Rules 6 and 7: which group is tried first, and that a group that does not fit delays no other."""

from __future__ import annotations

from typing import Any

import pytest

from gangsched.core.objects.effects import BindPod
from gangsched.core.objects.events import PriorityClassesReplaced, PriorityClassSeen
from gangsched.core.objects.policy import Aging, Policy
from gangsched.core.objects.priority_class import PriorityClass
from gangsched.core.objects.shape import PodTerm, Requirement
from tests.builders import group, key, node, pod, pods
from tests.harness import Harness


def contest(
    first: dict[str, Any],
    second: dict[str, Any],
    *,
    policy: Policy | None = None,
    classes: dict[str, int] | None = None,
) -> str:
    """Which of two groups of two gets the only room, decided in one scheduling cycle; `second` is created later."""
    harness = Harness(policy)
    found = tuple((name, PriorityClass(value)) for name, value in (classes or {}).items())
    harness.machine.handle([PriorityClassesReplaced(found)], harness.now)
    for name, spec in (("first", first), ("second", second)):
        fields = {"created": 1.0 if name == "first" else 2.0} | spec
        members = pods(name, 2, priority=fields.pop("member_priority", 0))
        harness.add(group(name, min_member=2, **fields), *members)
    harness.settle(node(cpu=2))
    (bound,) = {name.split("/")[1].rsplit("-", 1)[0] for name in harness.bound()}
    return bound


CLASSES = {"high": 100, "low": -5}


@pytest.mark.parametrize(
    ("first", "second", "winner"),
    [
        ({}, {}, "first"),
        ({"created": 5.0}, {"created": 5.0}, "first"),
        ({"created": 6.0}, {"created": 5.0}, "second"),
        ({}, {"priority": 1}, "second"),
        ({"priority": 1}, {"priority": 1}, "first"),
        ({"priority": -1}, {}, "second"),
        ({}, {"priority_class": "high"}, "second"),
        ({"priority_class": "low"}, {}, "second"),
        ({"priority": 99}, {"priority_class": "high"}, "second"),
        ({"priority": 101}, {"priority_class": "high"}, "first"),
        ({}, {"member_priority": 7}, "second"),
        ({"priority": 8}, {"member_priority": 7}, "first"),
        ({"priority": 0, "member_priority": 9}, {"member_priority": 7}, "second"),
    ],
)
@pytest.mark.without("disorder", why="asserts what one order of events leads to")
def test_priority_comes_before_age_and_age_before_name(first, second, winner):
    assert contest(first, second, classes=CLASSES) == winner


@pytest.mark.without("disorder", why="asserts what one order of events leads to")
def test_the_configured_max_priority_caps_all_groups():
    assert contest({}, {"priority": 50}, policy=Policy(max_priority=10)) == "second"
    assert contest({"priority": 10}, {"priority": 50}, policy=Policy(max_priority=10)) == "first"
    assert contest({"member_priority": 10}, {"member_priority": 50}, policy=Policy(max_priority=10)) == "first"


def test_a_priority_class_that_changes_its_value_changes_the_order():
    harness = Harness()
    harness.machine.handle([PriorityClassSeen("c", PriorityClass(1))], harness.now)
    harness.add(group("a", min_member=2, priority_class="c"), *pods("a", 2))
    harness.settle(group("b", min_member=2, priority=5, created=9.0), *pods("b", 2))
    harness.machine.handle([PriorityClassSeen("c", PriorityClass(6))], harness.now)
    harness.settle(node(cpu=2))
    assert len(harness.bound("default/a-")) == 2


def test_quorums_of_all_come_before_members_above_the_minimum():
    harness = Harness.of(group("a", min_member=2, created=1.0, priority=9), *pods("a", 4))
    harness.add(group("b", min_member=2, created=2.0), *pods("b", 4))
    harness.settle(node(cpu=5))
    assert harness.bound("default/a-") == ["default/a-0", "default/a-1", "default/a-2"]
    assert harness.bound("default/b-") == ["default/b-0", "default/b-1"]


def test_a_group_that_can_never_fit_is_told_so_and_delays_nobody():
    harness = Harness.of(group("big", min_member=9, priority=9, max_schedule_time_s=3600.0), *pods("big", 9))
    harness.wait(1, group("small", min_member=2), *pods("small", 2), node(cpu=8))
    assert len(harness.bound("default/small-")) == 2
    condition = harness.condition("default/big")
    assert condition.reason == "NeverFits"
    assert "could not take them even if they were empty" in condition.message
    assert len(harness.events("NeverFits")) == 1
    assert harness.pod("default/big-0").condition_reason == "Unschedulable"


@pytest.mark.without("disorder", why="asserts what one order of events leads to")
def test_who_has_left_the_queue_is_not_ahead_any_more():
    harness = Harness()
    for name, created in (("a", 1.0), ("b", 2.0)):
        harness.add(group(name, min_member=2, created=created, max_schedule_time_s=9999.0), *pods(name, 2))
    harness.wait(2)
    assert "Ahead of it: default/a" in harness.condition("default/b").message
    harness.delete("default/a-0", "default/a-1")
    harness.wait(40, node(cpu=1))
    assert "Ahead" not in harness.condition("default/b").message


@pytest.mark.without("restarts", "standbys", "leaderless", "disorder", why="all are tried in one cycle")
def test_a_refusal_holds_in_a_call_only_until_something_is_placed():
    """Two equal pods need a third beside them, placed between them. Regression: the second got a stale refusal.

    The first one is woken and tried again in the same call.
    """
    beside = PodTerm("kubernetes.io/hostname", (Requirement("app", "In", ("data",)),), ("default",))
    harness = Harness()
    harness.add(pod("a", group="", created=1.0, affinity=[beside]), pod("c", group="", created=3.0, affinity=[beside]))
    harness.add(pod("b", group="", created=2.0, labels={"app": "data"}))
    harness.add(node(labels={"kubernetes.io/hostname": "n1"}))
    assert [effect.name for effect in harness.step() if isinstance(effect, BindPod)] == ["b", "a", "c"]


def test_waiting_raises_a_group_above_a_higher_priority_step_by_step_and_preempts_nobody():
    harness = Harness(Policy(aging=Aging(every_s=60.0, by=10, most=25)))
    harness.put_class("high", 30)
    harness.settle(node(cpu=1), pod("p", group="", owner=None, priority=5))
    harness.wait(130, group("old", min_member=1, priority=0, max_schedule_time_s=9999.0), pod("old-0", group="old"))
    assert harness.machine.assessments[key("old")].aged == 20
    harness.wait(5, group("new", min_member=1, priority=15), pod("new-0", group="new"))
    assert harness.evicted == []
    harness.delete("default/p")
    harness.settle()
    assert harness.bound("default/old") == ["default/old-0"]
    assert harness.machine.assessments[key("new")].aged == 0
