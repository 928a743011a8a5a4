"""Rule 14 and plain pods: without a PodGroup, the pods themselves get conditions and Events, once."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gangsched.core.objects.declaration import Declaration
from gangsched.core.objects.effects import BindPod, MakeGroup, PatchPodCondition, PatchStatus
from gangsched.core.objects.pod import Owner, Pod, PodPhase
from gangsched.core.objects.results import BindRefused, GroupNotMade, Refused, StatusRefused
from tests.builders import group, node, pod, pods
from tests.harness import Harness

SAYS = Declaration(group="x", min_member=2, max_schedule_time_s=3.0)


def annotated(count: int, **fields) -> list[Pod]:
    return [pod(f"x-{number}", declaration=SAYS, **fields) for number in range(count)]


@pytest.mark.without("restarts", why="a new leader tells anew or not at all")
def test_a_plain_pod_is_bound_and_forgotten():
    harness = Harness.waited(2, pod("p", group=""), node())
    assert harness.bound() == ["default/p"]
    assert harness.machine.gangs == {}
    (event,) = harness.emitted
    assert (event.kind, event.name, event.reason) == ("Pod", "p", "Scheduled")
    assert event.note == "Bound 1 member to n1 (1)."
    assert not any(isinstance(effect, PatchStatus) for effect in harness.effects)
    harness.change("default/p", phase=PodPhase.SUCCEEDED)
    harness.settle()
    assert harness.machine.gangs == {}
    assert harness.machine.cluster.pods == {}


def test_a_plain_pod_that_finds_no_room_is_told_once_and_never_times_out():
    harness = Harness.waited(0.9, pod("p", group="", cpu=9), node(cpu=8))
    assert harness.emitted == []
    harness.wait(100_000)
    (event,) = harness.emitted
    assert (event.kind, event.name, event.reason) == ("Pod", "p", "NeverFits")
    found = harness.pod("default/p")
    assert found.condition_reason == "Unschedulable"
    assert found.condition_message.startswith("No node has room")
    assert sum(isinstance(effect, PatchPodCondition) for effect in harness.effects) == 1
    assert harness.machine.next_deadline() is None
    harness.restart()
    harness.wait(100)
    assert len(harness.emitted) == 1
    harness.settle(node("n2", cpu=16))
    assert harness.bound() == ["default/p"]


def test_a_plain_pod_with_an_unsupported_constraint_waits_and_is_told():
    harness = Harness.waited(60, pod("p", group="", unsupported=["spec.resourceClaims"]), node())
    assert harness.bound() == []
    assert harness.pod("default/p").condition_reason == "NotSupported"
    assert [event.reason for event in harness.emitted] == ["NotSupported"]


def test_a_plain_pod_whose_binding_is_refused_for_good_backs_off_and_is_tried_again():
    harness = Harness()
    harness.refuse_bind = lambda effect: BindRefused(effect.uid, effect.node, Refused.FORBIDDEN, "the webhook says no")
    harness.wait(2, pod("p", group=""), node())
    assert harness.pod("default/p").condition_reason == "BindingRefused"
    assert "the webhook says no" in harness.pod("default/p").condition_message
    harness.wait(300)
    assert 3 < sum(isinstance(effect, BindPod) for effect in harness.effects) < 10
    harness.refuse_bind = lambda _: None
    harness.wait(300)
    assert harness.bound() == ["default/p"]


def test_a_gated_plain_pod_waits_without_a_word():
    harness = Harness.waited(60, pod("p", group="", gated=True), node())
    assert (harness.bound(), harness.emitted) == ([], [])
    harness.change("default/p", gated=False)
    harness.settle()
    assert harness.bound() == ["default/p"]


def test_a_pod_of_another_scheduler_is_never_touched():
    harness = Harness.waited(60, pod("p", group="", scheduler="default-scheduler"), node())
    assert (harness.bound(), harness.effects) == ([], [])


def test_annotations_make_a_group_that_is_bound_whole():
    harness = Harness.waited(2, *annotated(1), node(cpu=2))
    assert harness.bound() == []
    assert harness.pod("default/x-0").condition_reason == "GangIncomplete"
    assert harness.pod("default/x-0").condition_message == (
        "Group x: 1 of 2 members exist; 1 more member is needed, or a lower minimum."
    )
    harness.wait(2, *annotated(2)[1:])
    assert len(harness.bound()) == 2
    assert [event.reason for event in harness.emitted] == ["GangIncomplete", "Scheduled"]
    assert {(event.kind, event.name) for event in harness.emitted} == {("Pod", "x-0")}
    assert not any(isinstance(effect, PatchStatus) for effect in harness.effects)


@pytest.mark.without("restarts", "standbys", "leaderless", why="a leader that dies at once may not have sent the Event")
def test_a_new_leader_does_not_say_again_that_a_group_is_scheduled():
    """Found by random walks: each restart sent one Event more for each such group."""
    harness = Harness.waited(400, *annotated(2), node(cpu=2))
    assert [event.reason for event in harness.emitted] == ["Scheduled"]
    harness.restart()
    harness.add(*annotated(3)[2:])
    harness.wait(60)
    assert harness.pod("default/x-2").condition_reason == "Unschedulable"
    harness.restart()
    harness.add(node("n2", cpu=2))
    harness.wait(60)
    assert len(harness.bound()) == 3
    assert [event.reason for event in harness.emitted] == ["Scheduled"]


@pytest.mark.without(
    "restarts", "standbys", "leaderless", why="without a PodGroup the clock begins anew with each leader"
)
def test_an_annotated_group_times_out_and_its_members_say_why():
    harness = Harness.waited(3, *annotated(2), node(cpu=1))
    assert harness.gang("default/x").record.phase == "TimedOut"
    assert [event.reason for event in harness.emitted] == ["NeverFits"]
    harness.wait(2000)
    assert harness.machine.stats().timeouts > 3
    assert harness.pod("default/x-0").condition_reason == "Unschedulable"


def test_an_annotated_group_is_not_told_again_after_a_restart():
    harness = Harness.waited(60, *annotated(1))
    told = len(harness.effects)
    harness.restart()
    harness.wait(60)
    assert len(harness.effects) == told
    assert len(harness.emitted) == 1


def test_an_annotated_group_that_gets_a_podgroup_goes_on_under_it():
    harness = Harness.waited(2, *annotated(1), node())
    harness.wait(2, group("x", min_member=2))
    assert harness.condition("default/x").reason == "GangIncomplete"
    harness.wait(2, *annotated(2)[1:])
    assert harness.status("default/x").phase == "Scheduled"


def test_a_group_is_forgotten_with_its_last_pod():
    harness = Harness.waited(2, *annotated(2), *pods("orphan", 1), pod("foreign", group="y", scheduler="other"))
    harness.delete("default/x-0", "default/x-1", "default/orphan-0", "default/foreign")
    harness.settle()
    assert harness.machine.gangs == {}
    assert harness.machine.assessments == {}
    assert harness.machine.next_deadline() is None


def refusing_once(harness: Harness, name: str) -> None:
    """The server is unavailable for the binding of one pod, for five attempts."""
    refused: list[BindPod] = []

    def refuse(effect: BindPod) -> BindRefused | None:
        if effect.name != name or len(refused) == 5:
            return None
        refused.append(effect)
        return BindRefused(effect.uid, effect.node, Refused.UNAVAILABLE, "overloaded")

    harness.refuse_bind = refuse


def test_a_group_of_which_a_part_is_bound_and_a_place_held_gets_a_podgroup_to_remember_it_in():
    harness = Harness()
    refusing_once(harness, "x-1")
    harness.wait(0.1, *annotated(2), node(cpu=2))
    (group_,) = harness.groups.values()
    assert group_.made
    assert (group_.key.name, group_.spec.min_member if group_.spec else 0) == ("x", 2)
    reservation = harness.status("default/x").reservation
    assert reservation is not None
    assert [place.pods for place in reservation.placements] == [("x-1",)]
    harness.wait(30)
    assert len(harness.bound()) == 2
    assert harness.status("default/x").phase == "Scheduled"
    assert harness.status("default/x").source == "gangsched pods"


def test_a_restart_in_between_finishes_the_group_on_the_places_that_were_held():
    harness = Harness()
    refusing_once(harness, "x-1")
    harness.wait(0.1, *annotated(2), node("n1", cpu=1), node("n2", cpu=1))
    (first,) = harness.bound()
    assert first == "default/x-0"
    harness.restart()
    harness.wait(30, pod("other", group="", priority=1000))
    assert harness.bound("default/x") == ["default/x-0", "default/x-1"]
    assert not harness.bound("default/other")


def test_a_group_that_can_have_no_podgroup_is_tried_again_without():
    harness = Harness()
    harness.refuse_making = lambda effect: GroupNotMade(effect.key, "forbidden")
    refusing_once(harness, "x-1")
    harness.wait(20, *annotated(2), node(cpu=2))
    assert len(harness.bound()) == 2
    assert not harness.groups


@pytest.mark.parametrize("name", ["awesome_pfn", "Big", "a" * 64])
def test_no_podgroup_is_asked_for_by_a_name_that_none_can_have(name):
    harness = Harness()
    says = Declaration(group=name, min_member=2)
    harness.refuse_bind = lambda effect: (
        BindRefused(effect.uid, effect.node, Refused.UNAVAILABLE, "overloaded") if effect.name == "y-1" else None
    )
    harness.wait(3, pod("y-0", declaration=says), pod("y-1", declaration=says), node(cpu=2))
    assert not any(isinstance(effect, MakeGroup) for effect in harness.effects)
    harness.refuse_bind = lambda _: None
    harness.wait(10)
    assert len(harness.bound()) == 2


def test_nothing_is_made_while_nobody_is_bound():
    harness = Harness()
    harness.refuse_bind = lambda effect: BindRefused(effect.uid, effect.node, Refused.UNAVAILABLE, "down")
    harness.wait(20, *annotated(2), node(cpu=2))
    assert not harness.groups
    harness.refuse_bind = lambda _: None
    harness.wait(600)
    assert len(harness.bound()) == 2


def test_the_made_podgroup_goes_with_its_pod_and_the_group_stays_bound():
    harness = Harness()
    refusing_once(harness, "x-1")
    harness.wait(30, *annotated(2), node(cpu=8))
    assert len(harness.bound()) == 2
    harness.delete("default/x-0")
    harness.delete_group("default/x")
    harness.wait(60)
    assert harness.bound() == ["default/x-1"]
    assert not harness.evicted
    harness.wait(2, *annotated(3)[2:])
    assert harness.bound() == ["default/x-1", "default/x-2"]


def test_a_restart_knows_a_part_bound_beside_a_member_that_is_leaving():
    """Another scheduler binds one of two members of three, the other is being deleted, and the operator restarts."""
    harness = Harness()
    says = Declaration(group="x", min_member=3)
    owner = Owner("StatefulSet", "x", "s1", "apps")
    first, second = (pod(f"x-{number}", declaration=says, owner=owner, created=harness.now) for number in range(2))
    harness.settle(node(), first, second)
    harness.change("default/x-0", terminating=True)
    harness.change("default/x-1", node="n1", bound_at=harness.now)
    harness.restart()
    harness.wait(31)
    assert harness.evicted == ["default/x-1"]


def test_a_restart_before_the_made_podgroup_has_a_status_knows_that_a_part_was_bound_before_it_was_made():
    """One member is bound, the other refused again and again; a PodGroup is made, and its status is never written."""
    harness = Harness()
    owner = Owner("StatefulSet", "x", "s1", "apps")
    harness.refuse_bind = lambda effect: (
        BindRefused(effect.uid, effect.node, Refused.UNAVAILABLE, "overloaded") if effect.name == "x-1" else None
    )
    harness.refuse_status = lambda effect: StatusRefused(effect.key, stale=False)
    harness.settle(*annotated(2, owner=owner), node(cpu=2))
    assert harness.bound() == ["default/x-0"]
    (made,) = harness.groups.values()
    harness.groups[made.key] = replace(made, created=harness.now + 1)
    harness.wait(2)
    harness.restart()
    harness.wait(31)
    assert harness.evicted == ["default/x-0"]
