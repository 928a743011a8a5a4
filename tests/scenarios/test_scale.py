"""Huge but valid input: large groups and many groups are decided whole, with few writes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import Declaration
from gangsched.core.objects.effects import BindPod, EmitEvent, EvictPod, PatchPodCondition, PatchStatus
from gangsched.core.objects.events import GroupSeen, NodeSeen, PodGone, PodSeen, PodsReplaced, Synced, TimePassed
from gangsched.core.objects.pod import Lifetime, PodPhase
from gangsched.core.objects.podgroup import OnDegraded
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.record import Phase
from gangsched.core.objects.results import PodBound
from gangsched.core.planning import budget as units
from tests.builders import group, key, node, pod, pods
from tests.harness import Harness


@pytest.mark.without("disorder", why="asserts what one order of events leads to")
def test_a_group_of_two_thousand_members_is_decided_in_one_step():
    harness = Harness()
    harness.add(*(node(f"n{number}", cpu=100) for number in range(20)), group("a", min_member=2000), *pods("a", 2000))
    effects = harness.step()
    assert sum(isinstance(effect, BindPod) for effect in effects) == 2000
    harness.wait(2)
    assert harness.status("default/a").phase == "Scheduled"
    assert sum(isinstance(effect, PatchStatus) for effect in harness.effects) == 1
    assert sum(isinstance(effect, EmitEvent) for effect in harness.effects) == 1


@pytest.mark.without("all", why="only its size is new; small groups take the courses")
@pytest.mark.slow
def test_of_hundreds_of_groups_as_many_are_bound_as_fit_and_all_others_are_told_once():
    harness = Harness.of(*(node(f"n{number}", cpu=8) for number in range(30)))
    for number in range(300):
        harness.add(group(f"g{number}", min_member=2, max_schedule_time_s=9999.0), *pods(f"g{number}", 2))
    harness.wait(100)
    assert len(harness.bound()) == 240
    assert harness.machine.stats().phases == {"Scheduled": 120, "Queued": 180}
    # Those that wait are told once more, when they will probably start.
    assert sum(isinstance(effect, PatchStatus) for effect in harness.effects) == 300 + 180
    assert len(harness.emitted) == 300


@pytest.mark.without("all", why="it has no harness")
def test_events_of_a_large_groups_members_are_dealt_with_together_and_none_is_lost():
    """Events arrive one by one, a millisecond apart: for the last 350 members the group is assessed every 5 to 12 ms,
    and at once with the one that completes it.
    """
    machine = Machine(Policy())
    members = pods("a", 600)
    machine.handle([NodeSeen(node("n1", cpu=600, pods=600)), GroupSeen(group("a", min_member=600)), Synced()], 1000.0)
    looks, now, seen, effects = 0, 1000.0, None, []
    for member in members:
        now += 0.001
        effects += machine.handle([PodSeen(member)], now)
        looks += machine.assessments[key("a")] is not seen
        seen = machine.assessments[key("a")]
    assert 250 + 25 < looks < 250 + 80
    assert sum(isinstance(effect, BindPod) for effect in effects) == 600
    assert machine.validate() == []


@pytest.mark.without("all", why="it has no harness")
def test_members_above_the_minimum_go_on_call_by_call_and_let_whoever_comes_meanwhile_go_first(monkeypatch):
    monkeypatch.setattr(units, "CALL", 200 * units.MEMBER)
    machine = Machine(Policy())
    machine.handle([NodeSeen(node("n1", cpu=700, pods=700)), GroupSeen(group("a", min_member=1)), Synced()], 1000.0)
    first = machine.handle([PodSeen(member) for member in pods("a", 600)], 1000.0)
    assert 1 <= len(first) < 400
    assert machine.next_deadline() == 1000.0
    then = machine.handle([GroupSeen(group("b", min_member=2)), *map(PodSeen, pods("b", 2))], 1000.1)
    assert [effect.name for effect in then if isinstance(effect, BindPod)][:2] == ["b-0", "b-1"]
    effects = [*first, *then]
    effects += machine.handle([PodGone("uid-default/a-599")], 1000.2)
    for call in range(10):
        effects += machine.handle([TimePassed()], 1000.3 + call)
    bound = [effect for effect in effects if isinstance(effect, BindPod) and effect.name.startswith("a-")]
    assert "a-599" not in {effect.name for effect in bound}
    assert [effect.above for effect in bound] == [False] + [True] * 598
    assert machine.validate() == []


@pytest.mark.without("all", why="it has no harness")
def test_a_large_group_that_waits_for_room_is_looked_at_with_every_event():
    """A deferred group must not be tried meanwhile: a scheduling cycle would place members that no longer exist."""
    machine = Machine(Policy())
    machine.handle([NodeSeen(node("n1", cpu=300, pods=600)), GroupSeen(group("a", min_member=300)), Synced()], 1000.0)
    blocking = pod("old", group="", node="n1", scheduler="other", cpu=1)
    machine.handle([PodSeen(blocking), *(PodSeen(member) for member in pods("a", 301))], 1000.0)
    effects = machine.handle([PodGone(pods("a", 1)[0].uid), PodGone(blocking.uid)], 1000.001)
    assert sum(isinstance(effect, BindPod) for effect in effects) == 300
    assert machine.validate() == []


@pytest.mark.without("all", why="it has no harness")
def test_an_event_that_changes_nothing_costs_no_look_at_its_group():
    machine = Machine(Policy())
    machine.handle([NodeSeen(node("n1")), GroupSeen(group("a", min_member=2)), PodSeen(pod("a-0")), Synced()], 1000.0)
    before = machine.assessments[key("a")]
    machine.handle([PodSeen(pod("a-0"))], 1000.5)
    assert machine.assessments[key("a")] is before
    machine.handle([PodSeen(pod("a-0", phase="Running", node="n1"))], 1000.6)
    assert machine.assessments[key("a")] is not before


@pytest.mark.parametrize("size", [20, 300])
def test_a_member_that_succeeds_and_is_deleted_before_the_next_look_has_succeeded_all_the_same(size):
    harness = Harness()
    harness.add(node(cpu=400, pods=400), group("a", min_member=size, on_degraded=OnDegraded.RESTART), *pods("a", size))
    harness.wait(5)
    harness.run_pods()
    harness.wait(5)
    done = replace(harness.pod("default/a-0"), phase=PodPhase.SUCCEEDED)
    now = harness.now
    machine = harness.machine
    machine.handle([PodSeen(replace(harness.pod("default/a-1"), condition_message="x"))], now + 0.001)
    machine.handle([PodSeen(done), PodGone(done.uid)], now + 0.002)
    effects = machine.handle([TimePassed()], now + 0.2)
    effects += machine.handle([TimePassed()], now + 30)
    assert not [effect for effect in effects if isinstance(effect, EvictPod)]
    assert machine.gangs[key("a")].record.succeeded == (("", 1),)


@pytest.mark.without("all", why="it has no harness")
def test_what_is_known_of_a_pod_is_no_reason_to_look_at_anything_unless_something_is_due():
    """Kubelets write a pod's status all the time; the core gets the same pod again."""
    machine = Machine(Policy())
    waiting = pod("a-0", group="a", cpu=99)
    machine.handle([NodeSeen(node("n1")), GroupSeen(group("a", min_member=1)), PodSeen(waiting), Synced()], 1000.0)
    for after_s in (1, 2, 3, 8):
        machine.handle([TimePassed()], 1000.0 + after_s)
    before = machine.assessments[key("a")]
    assert machine.handle([PodSeen(waiting)], 1010.0) == []
    assert machine.assessments[key("a")] is before

    machine.handle([PodSeen(waiting)], 1100.0)

    assert machine.gangs[key("a")].record.phase is Phase.TIMED_OUT


@pytest.mark.without("all", why="it has no harness")
@pytest.mark.parametrize(
    "known",
    [
        pytest.param(pod("a-1", node="n1"), id="a member"),
        pytest.param(pod("a-1", cpu=99), id="a member that waits"),
        pytest.param(pod("x", group="", node="n1"), id="a plain pod"),
        pytest.param(pod("x", group="", scheduler="other", node="n1"), id="another scheduler's"),
        pytest.param(pod("x", group="", scheduler="other", nominated_node="n1"), id="a nominated one"),
        pytest.param(pod("a-1", scheduler="other", node="n1"), id="another scheduler's that names the group"),
        pytest.param(pod("b-1", group="b", scheduler="other", node="n1"), id="another scheduler's with a group"),
    ],
)
@pytest.mark.parametrize(
    "beside",
    [[], [PodSeen(pod("y", group="", scheduler="other", cpu="1m"))]],
    ids=["alone", "beside another event"],
)
def test_a_pod_of_which_only_the_lifetime_changes_is_known_anew_without_a_look_at_its_group(known, beside):
    """Pods become ready and unready all the time."""
    machine = Machine(Policy())
    there = [NodeSeen(node("n1")), GroupSeen(group("a", min_member=1)), PodSeen(pod("a-0", node="n1")), PodSeen(known)]
    machine.handle([*there, Synced()], 1000.0)
    for after_s in (1, 2, 3, 8):
        machine.handle([TimePassed()], 1000.0 + after_s)
    before = machine.assessments[key("a")]
    renewed = replace(known, lifetime=Lifetime(start=999.0, ready=True))
    assert machine.handle([PodSeen(renewed), *beside], 1008.1) == []
    assert machine.cluster.pods[known.uid] == renewed
    assert machine.assessments[key("a")] is before
    assert not machine.touched
    assert machine.validate() == []


def test_a_relabelled_bound_member_of_a_large_group_is_nobodys_quorum():
    harness = Harness.settled(node(cpu=400, pods=400), group("a", min_member=300), group("b", min_member=2))
    members = pods("a", 300)
    machine, now = harness.machine, harness.now
    machine.handle([PodSeen(member) for member in members], now)
    bound = replace(members[0], node="n1")
    machine.handle([PodBound(bound.uid, "n1")], now + 0.0001)
    machine.handle([PodSeen(bound)], now + 0.0002)
    machine.handle([PodSeen(replace(bound, declaration=Declaration("b")))], now + 0.0003)
    machine.handle([TimePassed()], now + 1)
    assert machine.gangs[key("b")].roster.inherited == set()


@pytest.mark.without("all", why="it has no harness")
def test_a_new_list_of_pods_looks_at_every_group_so_that_what_was_lost_is_told_again():
    machine = Machine(Policy())
    waiting = pod("a-0", cpu=99, group="")
    machine.handle([NodeSeen(node("n1")), PodSeen(waiting), Synced()], 1000.0)
    for after_s in (2, 8):
        machine.handle([TimePassed()], 1000.0 + after_s)
    for at in (1040.0, 1050.0):
        machine.handle([TimePassed()], at)
    machine.handle([PodsReplaced((waiting,))], 1200.0)
    effects = machine.handle([TimePassed()], 1202.0)
    assert [effect.uid for effect in effects if isinstance(effect, PatchPodCondition)] == [waiting.uid]
