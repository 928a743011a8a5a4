"""Rules 8 and 10, and the maxima: which pods are members, and which members make a quorum."""

from __future__ import annotations

import pytest

from gangsched.core.objects.declaration import Declaration, Role
from gangsched.core.objects.pod import PodPhase
from gangsched.core.objects.podgroup import TimeoutPolicy
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.status import GroupStatus
from tests.builders import group, node, pod, pods
from tests.harness import Harness


def test_members_are_tried_by_creation_then_by_name():
    harness = Harness()
    harness.add(group("a", min_member=2), pod("a-z", created=1.0), pod("a-c", created=2.0), pod("a-b", created=2.0))
    harness.add(node(cpu=2))
    harness.settle()
    assert harness.bound() == ["default/a-b", "default/a-z"]


def test_a_member_that_fits_nowhere_is_passed_over_while_the_minimum_can_be_reached():
    harness = Harness.waited(2, group("a", min_member=2), pod("a-0", cpu=9), *pods("a", 2, first=1), node(cpu=4))
    assert harness.bound() == ["default/a-1", "default/a-2"]
    assert harness.status("default/a").phase == "Scheduled"
    assert harness.pod("default/a-0").condition_reason == "Unschedulable"
    assert harness.pod("default/a-0").condition_message.startswith("Group a: No node has room")
    harness.add(node("n2", cpu=16))
    harness.settle()
    assert len(harness.bound()) == 3


def roles(**minima: int) -> tuple[Role, ...]:
    return tuple(Role(name, minimum) for name, minimum in minima.items())


def test_each_roles_minimum_is_part_of_the_quorum():
    harness = Harness()
    harness.add(group("a", min_member=3, roles=roles(driver=1, worker=1)), *pods("a", 3, role="worker"), node())
    harness.wait(2)
    assert harness.bound() == []
    condition = harness.condition("default/a")
    assert condition.reason == "GangIncomplete"
    assert "missing by role: 1 of role driver" in condition.message
    harness.add(pod("a-d", role="driver", created=9.0))
    harness.settle()
    assert len(harness.bound()) == 4


def test_the_sum_of_the_roles_minima_is_the_minimum_where_it_is_larger():
    harness = Harness.of(group("a", min_member=1, roles=roles(driver=1, worker=2)), pod("a-d", role="driver"), node())
    harness.add(*pods("a", 1, role="worker"))
    harness.wait(2)
    assert harness.bound() == []
    harness.add(*pods("a", 1, first=1, role="worker"))
    harness.wait(2)
    assert harness.status("default/a").minimum == 3


def test_a_pod_without_a_role_counts_toward_the_minimum_only():
    harness = Harness()
    harness.add(group("a", min_member=3, roles=roles(driver=1)), pod("a-d", role="driver"), *pods("a", 2), node())
    harness.wait(2)
    assert harness.status("default/a").phase == "Scheduled"


def test_in_short_room_the_roles_minima_come_before_older_members():
    harness = Harness.of(group("a", min_member=2, roles=roles(driver=1)), *pods("a", 3, created=1.0), node(cpu=2))
    harness.add(pod("a-d", role="driver", created=9.0))
    harness.settle()
    assert harness.bound() == ["default/a-0", "default/a-d"]


def test_members_above_max_member_are_not_scheduled_and_say_so():
    harness = Harness.waited(2, group("a", min_member=2, max_member=3), *pods("a", 5), node())
    assert harness.bound() == ["default/a-0", "default/a-1", "default/a-2"]
    for name in ("default/a-3", "default/a-4"):
        assert harness.pod(name).condition_reason == "AboveMaxMember"
        assert "raise maxMember" in harness.pod(name).condition_message
    harness.delete("default/a-0")
    harness.settle()
    assert harness.bound() == ["default/a-1", "default/a-2", "default/a-3"]


@pytest.mark.without("disorder", why="asserts what one order of events leads to")
def test_bound_members_count_first_toward_max_member():
    harness = Harness()
    harness.add(group("a", min_member=1, max_member=2), pod("a-9", node="n1", created=9.0), *pods("a", 2), node())
    harness.wait(2)
    assert harness.bound() == ["default/a-0", "default/a-9"]
    harness.change_spec("default/a", max_member=3)
    harness.settle()
    assert len(harness.bound()) == 3


@pytest.mark.without("disorder", why="asserts what one order of events leads to")
def test_a_roles_max_member_holds_for_the_role_alone():
    harness = Harness.waited(
        2, group("a", min_member=1, roles=(Role("worker", 1, 2),)), *pods("a", 4, role="worker"), pod("a-x"), node()
    )
    assert harness.bound() == ["default/a-0", "default/a-1", "default/a-x"]
    assert harness.pod("default/a-3").condition_reason == "AboveMaxMember"


def test_members_that_only_the_maximum_keeps_out_leave_a_group_incomplete_with_a_reason():
    harness = Harness()
    harness.add(group("a", min_member=2, max_member=2, roles=(Role("w", 1, 1),)), *pods("a", 2, role="w"), node())
    harness.wait(2)
    assert harness.bound() == []
    assert "some of them exceed maxMember and do not count" in harness.condition("default/a").message


def test_a_relabelled_pod_leaves_its_group_and_joins_another():
    harness = Harness.settled(group("a", min_member=2), group("b", min_member=2), *pods("a", 3), *pods("b", 1), node())
    assert len(harness.bound("default/a-")) == 3
    harness.change("default/a-2", declaration=Declaration(group="b"))
    harness.wait(2)
    assert harness.status("default/a").members == 2
    assert harness.status("default/b").phase == "Scheduled"


def test_a_relabelled_pod_of_an_earlier_run_is_forgotten_by_its_group():
    """The only member succeeds, which ends the run; then its label changes to another group."""
    harness = Harness.settled(group("a", min_member=1), group("b", min_member=1), pod("a-0"), node())
    harness.run_pods(PodPhase.SUCCEEDED)
    harness.settle()
    assert harness.gang("default/a").roster.past
    harness.change("default/a-0", declaration=Declaration(group="b"))
    harness.settle()
    assert not harness.gang("default/a").roster.past


def test_a_bound_pod_that_loses_its_label_leaves_its_group_without_a_word_of_its_own():
    harness = Harness.waited(2, group("a", min_member=2), *pods("a", 3), node())
    told = len(harness.emitted)
    harness.change("default/a-2", declaration=None)
    harness.wait(2)
    assert harness.status("default/a").members == 2
    assert len(harness.emitted) == told


def test_a_podgroup_deleted_before_anything_is_bound_leaves_all_unbound():
    harness = Harness.waited(2, group("a", min_member=3), *pods("a", 3))
    harness.delete_group("default/a")
    harness.add(node())
    harness.wait(2)
    assert harness.bound() == []
    assert harness.pod("default/a-0").condition_reason == "PodGroupNotFound"


def test_a_podgroup_deleted_after_its_group_was_bound_leaves_bound_members_and_new_ones_wait():
    harness = Harness.settled(group("a", min_member=2), *pods("a", 2), node())
    harness.delete_group("default/a")
    harness.add(*pods("a", 1, first=2))
    harness.wait(2)
    assert len(harness.bound()) == 2
    assert harness.pod("default/a-2").condition_reason == "PodGroupNotFound"
    assert "There is no PodGroup a" in harness.pod("default/a-2").condition_message
    harness.add(group("a", min_member=2, uid="new"))
    harness.settle()
    assert len(harness.bound()) == 3


def test_a_new_podgroup_of_the_same_name_begins_with_a_clean_slate():
    harness = Harness()
    harness.add(group("a", min_member=2, max_schedule_time_s=1.0, timeout_policy=TimeoutPolicy.FAIL), *pods("a", 2))
    harness.wait(3)
    assert harness.status("default/a").phase == "Failed"
    harness.delete_group("default/a")
    harness.add(group("a", min_member=2, uid="new"), node())
    harness.settle()
    assert len(harness.bound()) == 2


def test_only_pods_of_the_configured_namespace_are_scheduled_but_all_count():
    harness = Harness(Policy(namespace="team"))
    harness.add(node(cpu=4), group("team/a", min_member=2), *pods("a", 2, namespace="team"))
    harness.add(group("other/a", min_member=1), *pods("a", 1, namespace="other"), pod("other/plain", group=""))
    harness.add(pod("other/busy", cpu=3, group="", node="n1"))
    harness.wait(5)
    assert harness.bound() == ["other/busy"]
    assert harness.status("other/a").phase == ""
    assert "1 of 2 members fit" in harness.condition("team/a").message
    harness.change("other/busy", phase=PodPhase.SUCCEEDED)
    harness.settle()
    assert harness.bound() == ["team/a-0", "team/a-1"]


def test_a_group_named_only_by_pods_of_another_scheduler_says_so():
    harness = Harness.waited(19, group("a", min_member=1), pod("a-0", scheduler="gang-sched"), node())
    assert harness.emitted == []
    harness.wait(2)
    [event] = harness.emitted
    assert (event.name, event.reason) == ("a-0", "ForeignMember")
    assert event.note == (
        "The pod names the group a, but no scheduler named gang-sched has reacted to it within 20s: set "
        "schedulerName to gangsched, or run the scheduler of that name."
    )
    assert harness.group("default/a").status == GroupStatus()
    harness.wait(60)
    assert harness.emitted == [event]


def test_a_group_named_only_by_pods_without_a_scheduler_name_says_so():
    harness = Harness.waited(2, group("a", min_member=1), pod("a-0", scheduler="default-scheduler"), node())
    assert harness.condition("default/a").message == (
        "1 pod names this PodGroup with a schedulerName that gangsched does not serve (default-scheduler): "
        "correct their schedulerName."
    )


def test_members_with_scheduling_gates_are_named_as_what_is_missing():
    harness = Harness.waited(2, group("a", min_member=2), pod("a-0"), pod("a-1", gated=True), node())
    assert harness.condition("default/a").message == (
        "1 of 2 members exist; 1 more member is needed, or a lower minimum. 1 pod has scheduling gates and "
        "will count without them."
    )
