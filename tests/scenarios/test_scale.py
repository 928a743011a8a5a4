"""Huge but valid: large groups and many groups are decided whole, with few writes."""

from __future__ import annotations

from gangsched.core.effects import BindPod, EmitEvent, PatchStatus
from gangsched.core.events import GroupSeen, NodeSeen, PodGone, PodSeen, Synced, TimePassed
from gangsched.core.machine import Machine
from gangsched.core.policy import Policy
from tests.builders import group, key, node, pod, pods
from tests.harness import Harness


def test_a_group_of_two_thousand_members_is_decided_in_one_step():
    harness = Harness()
    harness.add(*(node(f"n{number}", cpu=100) for number in range(20)), group("a", min_member=2000), *pods("a", 2000))
    effects = harness.step()
    assert sum(isinstance(effect, BindPod) for effect in effects) == 2000
    harness.wait(2)
    assert harness.status("default/a").phase == "Scheduled"
    assert sum(isinstance(effect, PatchStatus) for effect in harness.effects) == 1
    assert sum(isinstance(effect, EmitEvent) for effect in harness.effects) == 1


def test_of_a_thousand_groups_as_many_are_bound_as_fit_and_all_others_are_told_once():
    harness = Harness()
    harness.add(*(node(f"n{number}", cpu=8) for number in range(100)))
    for number in range(1000):
        harness.add(group(f"g{number}", min_member=2, max_schedule_time_s=9999.0), *pods(f"g{number}", 2))
    harness.wait(100)
    assert len(harness.bound()) == 800
    assert harness.machine.stats().phases == {"Scheduled": 400, "Queued": 600}
    assert sum(isinstance(effect, PatchStatus) for effect in harness.effects) == 1000
    assert sum(isinstance(effect, EmitEvent) for effect in harness.effects) == 1000


def test_events_of_a_large_groups_members_are_dealt_with_together_and_none_is_lost():
    """One event at a time, a millisecond apart: the last 350 members cause a look every 5 to 12 ms each."""
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
    due = machine.next_deadline()
    assert due is not None
    assert due <= now + 0.012
    effects += machine.handle([TimePassed()], due)
    assert sum(isinstance(effect, BindPod) for effect in effects) == 600
    assert machine.validate() == []


def test_a_large_group_that_waits_for_room_is_looked_at_with_every_event():
    """What is deferred must not be tried in the meantime: a pass would place members that exist no more."""
    machine = Machine(Policy())
    machine.handle([NodeSeen(node("n1", cpu=300, pods=600)), GroupSeen(group("a", min_member=300)), Synced()], 1000.0)
    blocking = pod("old", group="", node="n1", scheduler="other", cpu=1)
    machine.handle([PodSeen(blocking), *(PodSeen(member) for member in pods("a", 301))], 1000.0)
    effects = machine.handle([PodGone(pods("a", 1)[0].uid), PodGone(blocking.uid)], 1000.001)
    assert sum(isinstance(effect, BindPod) for effect in effects) == 300
    assert machine.validate() == []


def test_an_event_that_changes_nothing_costs_no_look_at_its_group():
    machine = Machine(Policy())
    machine.handle([NodeSeen(node("n1")), GroupSeen(group("a", min_member=2)), PodSeen(pod("a-0")), Synced()], 1000.0)
    before = machine.assessments[key("a")]
    machine.handle([PodSeen(pod("a-0"))], 1000.5)
    assert machine.assessments[key("a")] is before
    machine.handle([PodSeen(pod("a-0", phase="Running", node="n1"))], 1000.6)
    assert machine.assessments[key("a")] is not before
