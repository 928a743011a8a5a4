"""Rule 12: what happens when a scheduled group falls below its minimum."""

from __future__ import annotations

import pytest

from gangsched.core.objects.declaration import Role
from gangsched.core.objects.pod import PodPhase
from gangsched.core.objects.podgroup import OnDegraded
from gangsched.core.objects.results import EvictionRefused, Spared
from tests.builders import group, node, pod, pods
from tests.harness import Harness
from tests.scenarios.test_rollback import half_bound


def scheduled(**spec) -> Harness:
    """A scheduled group of two; the node has no room for a third pod."""
    return Harness.waited(2, group("a", min_member=2, created=50.0, **spec), *pods("a", 2), node("n1", cpu=2))


@pytest.mark.without("restarts", why="asserts exact times")
def test_a_group_below_its_minimum_is_degraded_after_two_seconds():
    harness = scheduled()
    harness.delete("default/a-0")
    harness.wait(1.99)
    assert harness.gang("default/a").record.phase == "Scheduled"
    harness.wait(0.01)
    status = harness.status("default/a")
    assert (status.phase, status.bound, status.minimum) == ("Degraded", 1, 2)
    degraded = harness.condition("default/a", "Degraded")
    assert (degraded.status, degraded.reason) == (True, "MembersMissing")
    assert degraded.message.startswith("1 of 2 members are left")
    assert harness.condition("default/a").status
    harness.wait(2, *pods("a", 1, first=2))
    assert harness.status("default/a").phase == "Scheduled"
    assert harness.condition("default/a", "Degraded").reason == "Healthy"
    assert len(harness.events("Scheduled")) == 1


def test_a_replacement_gets_the_first_place_in_the_order():
    harness = scheduled(priority=0)
    harness.wait(2, group("vip", min_member=1, priority=100), *pods("vip", 1))
    harness.delete("default/a-0")
    harness.settle(pod("a-2"))
    assert harness.bound() == ["default/a-1", "default/a-2"]


def test_members_that_ran_on_a_node_that_is_lost_are_replaced_on_others_first_of_all():
    harness = Harness.settled(node("n1", cpu=2), node("n2", cpu=2), group("a", min_member=4), *pods("a", 4))
    harness.run_pods()
    harness.wait(2)
    lost = [each for each in harness.pods.values() if each.node == "n2"]
    harness.delete_node("n2")
    for each in lost:
        harness.change(f"default/{each.name}", phase=PodPhase.FAILED)
    harness.wait(3)
    assert harness.status("default/a").phase == "Degraded"
    harness.add(group("vip", min_member=1, priority=100), *pods("vip", 1))
    harness.add(*pods("a", 2, first=4))
    harness.settle(node("n3", cpu=2))
    assert [harness.pod(f"default/a-{number}").node for number in (4, 5)] == ["n3", "n3"]
    assert not harness.bound("default/vip")
    harness.run_pods()
    harness.wait(2)
    assert harness.status("default/a").phase == "Running"


def test_under_ignore_a_replacement_has_no_precedence():
    harness = scheduled(priority=0, on_degraded=OnDegraded.IGNORE)
    harness.wait(2, group("vip", min_member=1, priority=100), *pods("vip", 1))
    harness.delete("default/a-0")
    harness.wait(3, pod("a-2"))
    assert harness.bound() == ["default/a-1", "default/vip-0"]
    assert harness.status("default/a").phase == "Degraded"
    harness.wait(3, node("n2"))
    assert harness.status("default/a").phase == "Scheduled"


def test_a_lost_role_degrades_and_is_repaired_before_members_of_other_roles():
    harness = Harness.of(group("a", min_member=2, roles=(Role("driver", 1),)), pod("a-d", role="driver"), node(cpu=3))
    harness.wait(2, *pods("a", 2, role=""))
    harness.delete("default/a-d")
    harness.wait(3, pod("a-8", created=1.0), pod("a-9", role="driver", created=2.0))
    assert harness.bound() == ["default/a-0", "default/a-1", "default/a-9"]


def test_a_degraded_group_is_still_degraded_after_a_restart_and_repaired():
    harness = scheduled()
    harness.delete("default/a-0")
    harness.wait(3)
    harness.restart()
    harness.wait(3)
    assert harness.status("default/a").phase == "Degraded"
    harness.wait(3, pod("a-2"))
    assert harness.status("default/a").phase == "Scheduled"


@pytest.mark.without("disorder", why="asserts what one order of events leads to")
def test_a_group_partly_bound_without_ever_being_scheduled_is_completed_first_of_all_and_never_times_out():
    harness = Harness.of(group("a", min_member=2, max_schedule_time_s=2.0), pod("a-0", node="n1"), pod("a-1", cpu=2))
    harness.wait(100, node("n1", cpu=2), pod("vip", group="", priority=100, created=-1.0, cpu=2, preempts=False))
    assert harness.bound() == ["default/a-0"]
    assert harness.machine.stats().timeouts == 0
    harness.settle(node("n2", cpu=2))
    assert harness.bound() == ["default/a-0", "default/a-1"]


# What the condition says


def why(harness: Harness) -> tuple[str, str]:
    """The reason and the message of the condition Degraded."""
    told = harness.condition("default/a", "Degraded")
    return told.reason, told.message


def test_a_replacement_that_exists_is_said_to_wait_for_what_it_waits_for():
    """Regression: it was said to be bound as soon as it exists."""
    harness = scheduled()
    harness.delete("default/a-0")
    harness.wait(3)
    before = why(harness)
    harness.wait(30, node("n1", cpu=1), *pods("a", 1, first=2))
    no_room = why(harness)
    harness.delete("default/a-2")
    harness.wait(30, *pods("a", 1, first=3, role="unheard-of"))
    assert before == (
        "MembersMissing",
        "1 of 2 members are left; a replacement is bound first, as soon as it exists and fits.",
    )
    assert no_room[0] == "MembersMissing"
    assert no_room[1].startswith("1 of 2 members are left; 1 member is waiting for room: No node has room; missing on")
    assert harness.pod("default/a-3").condition_message.removeprefix("Group a: ") in why(harness)[1]


def test_of_a_raised_minimum_what_would_reach_it_is_said():
    """Regression: it was not said how many members were still to be created, nor that they found no room."""
    harness = scheduled()
    harness.change_spec("default/a", min_member=5)
    harness.wait(30, *pods("a", 1, first=2))
    short = why(harness)
    harness.wait(60, *pods("a", 2, first=3))
    raised = "minMember was raised from 2 to 5; 2 are bound"
    assert short == ("MinimumRaised", f"{raised}; 2 more members are needed, or a lower minimum.")
    assert why(harness)[0] == "MinimumRaised"
    assert why(harness)[1].startswith(f"{raised}; 3 members are waiting for room: ")


# Events


def warned(harness: Harness, reason: str) -> list[str]:
    """The notes of the Warnings of this reason on the PodGroup a."""
    events = harness.events(reason)
    return [event.note for event in events if (event.kind, event.name, event.type) == ("PodGroup", "a", "Warning")]


@pytest.mark.without("restarts", "standbys", "leaderless", why="a change of leader while it is written may lose one")
def test_each_time_that_a_group_becomes_degraded_one_event_says_so():
    """Regression: there was none, so that who watched Events saw it scheduled."""
    harness = scheduled()
    harness.delete("default/a-0")
    harness.wait(60)
    harness.wait(60, pod("a-2", cpu=9))
    first = warned(harness, "MembersMissing")
    harness.delete("default/a-2")
    harness.wait(5, *pods("a", 1, first=3))
    healthy = harness.condition("default/a", "Degraded").reason
    harness.delete("default/a-3")
    harness.wait(60)
    assert first == ["1 of 2 members are left; a replacement is bound first, as soon as it exists and fits."]
    assert healthy == "Healthy"
    assert len(warned(harness, "MembersMissing")) == 2


@pytest.mark.without("all", why="the story has its own change of leader")
def test_a_new_leader_does_not_say_again_that_a_group_is_degraded():
    harness = scheduled()
    harness.delete("default/a-0")
    harness.wait(5)
    harness.restart()
    harness.wait(60)
    assert len(warned(harness, "MembersMissing")) == 1


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader has the whole time to complete a part")
def test_evictions_that_are_refused_time_and_again_are_one_event():
    harness = half_bound()
    harness.refuse_eviction = lambda effect: EvictionRefused(effect.uid, Spared.UNAVAILABLE, "the budget forbids it")
    harness.wait(600)
    [note] = warned(harness, "EvictionRefused")
    assert "the API server refuses an eviction, which is retried: the budget forbids it" in note


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader has the whole time to complete a part")
def test_members_that_are_left_in_place_are_one_event():
    harness = half_bound(None)
    harness.wait(600)
    [note] = warned(harness, "PartlyBound")
    assert "2 members are left in place" in note
