"""Rules 8 and 10, and the maxima: which pods are members, and which members make a quorum."""

from __future__ import annotations

from gangsched.core.objects.declaration import Declaration, Role
from gangsched.core.objects.pod import PodPhase
from gangsched.core.objects.status import GroupStatus
from tests.builders import group, node, pod, pods
from tests.harness import Harness


def test_members_are_tried_by_creation_then_by_name():
    harness = Harness()
    harness.add(group("a", min_member=2), pod("a-z", created=1.0), pod("a-c", created=2.0), pod("a-b", created=2.0))
    harness.settle(node(cpu=2))
    assert harness.bound() == ["default/a-b", "default/a-z"]


def test_a_member_that_fits_nowhere_is_passed_over_while_the_minimum_can_be_reached():
    harness = Harness.waited(2, group("a", min_member=2), pod("a-0", cpu=9), *pods("a", 2, first=1), node(cpu=4))
    assert harness.bound() == ["default/a-1", "default/a-2"]
    assert harness.status("default/a").phase == "Scheduled"
    assert harness.pod("default/a-0").condition_reason == "Unschedulable"
    assert harness.pod("default/a-0").condition_message.startswith("Group a: No node has room")
    harness.settle(node("n2", cpu=16))
    assert len(harness.bound()) == 3


def roles(**minima: int) -> tuple[Role, ...]:
    return tuple(Role(name, minimum) for name, minimum in minima.items())


def test_each_roles_minimum_is_part_of_the_quorum():
    harness = Harness()
    harness.wait(2, group("a", min_member=3, roles=roles(driver=1, worker=1)), *pods("a", 3, role="worker"), node())
    assert harness.bound() == []
    condition = harness.condition("default/a")
    assert condition.reason == "GangIncomplete"
    assert "missing by role: 1 of role driver" in condition.message
    harness.settle(pod("a-d", role="driver", created=9.0))
    assert len(harness.bound()) == 4


def test_members_above_max_member_are_not_scheduled_and_say_so():
    harness = Harness.waited(2, group("a", min_member=2, max_member=3), *pods("a", 5), node())
    assert harness.bound() == ["default/a-0", "default/a-1", "default/a-2"]
    for name in ("default/a-3", "default/a-4"):
        assert harness.pod(name).condition_reason == "AboveMaxMember"
        assert "raise maxMember" in harness.pod(name).condition_message
    harness.delete("default/a-0")
    harness.settle()
    assert harness.bound() == ["default/a-1", "default/a-2", "default/a-3"]


def test_members_that_only_the_maximum_keeps_out_leave_a_group_incomplete_with_a_reason():
    harness = Harness()
    harness.wait(2, group("a", min_member=2, max_member=2, roles=(Role("w", 1, 1),)), *pods("a", 2, role="w"), node())
    assert harness.bound() == []
    assert "some of them exceed maxMember and do not count" in harness.condition("default/a").message


def test_a_relabelled_pod_of_an_earlier_run_is_forgotten_by_its_group():
    """The only member succeeds, which ends the run; then its label changes to another group."""
    harness = Harness.settled(group("a", min_member=1), group("b", min_member=1), pod("a-0"), node())
    harness.run_pods(PodPhase.SUCCEEDED)
    harness.settle()
    assert harness.gang("default/a").roster.past
    harness.change("default/a-0", declaration=Declaration(group="b"))
    harness.settle()
    assert not harness.gang("default/a").roster.past


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
