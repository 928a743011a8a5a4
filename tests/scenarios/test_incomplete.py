"""A group waits for its members, and says how many are missing."""

from __future__ import annotations

import pytest

from gangsched.core.objects.declaration import Declaration
from tests.builders import group, node, pod, pods
from tests.harness import Harness


def test_two_of_three_members_wait_and_the_message_asks_for_one_more():
    harness = Harness.waited(2, node(), group("a", min_member=3), *pods("a", 2))
    assert harness.bound() == []
    assert harness.status("default/a").phase == "Pending"
    condition = harness.condition("default/a")
    assert (condition.status, condition.reason) == (False, "GangIncomplete")
    assert condition.message == "2 of 3 members exist; 1 more member is needed, or a lower minimum."
    assert {found.condition_reason for found in harness.pods.values()} == {"GangIncomplete"}
    assert [event.note for event in harness.events("GangIncomplete")] == [condition.message]
    harness.settle(pod("a-2"))
    assert len(harness.bound()) == 3


def test_a_podgroup_without_pods_says_how_to_join_it_and_no_event_is_made():
    harness = Harness.waited(2, node(), group("a", min_member=3))
    assert harness.condition("default/a").reason == "NoMembers"
    assert "gangsched.io/pod-group" in harness.condition("default/a").message
    assert harness.emitted == []


def test_pods_that_all_have_gates_say_what_is_declared():
    """kueue#7433: without a PodGroup it was said that there is none, with advice to create one beside it."""
    declared = Declaration("a", min_member=2)
    harness = Harness.waited(2, node(), *(pod(f"a-{at}", declaration=declared, gated=True) for at in range(2)))
    [assessment] = harness.machine.assessments.values()
    assert (assessment.terms.hindrance, assessment.minimum, len(assessment.census.live)) == (None, 2, 0)
    for name in ("default/a-0", "default/a-1"):
        harness.change(name, gated=False)
    harness.settle()
    assert len(harness.bound()) == 2


@pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader tells anew or not at all")
def test_a_pod_of_another_scheduler_is_no_member_and_one_event_says_so():
    harness = Harness.waited(
        60, node(), group("a", min_member=2), pod("a-0"), pod("a-1", scheduler="default-scheduler")
    )
    assert harness.bound() == []
    (event,) = harness.events("ForeignMember")
    assert (event.kind, event.name, event.type) == ("Pod", "a-1", "Warning")
    assert "schedulerName is default-scheduler" in event.note
    harness.delete_group("default/a")
    harness.wait(60)
    assert len(harness.events("ForeignMember")) == 1


def test_members_of_another_namespace_do_not_count():
    harness = Harness.waited(2, node(), group("a", min_member=2), pod("default/a-0"), pod("other/a-1"))
    assert harness.bound() == []
