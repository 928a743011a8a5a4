"""Huge but valid: large groups and many groups are decided whole, with few writes."""

from __future__ import annotations

from gangsched.core.effects import BindPod, EmitEvent, PatchStatus
from tests.builders import group, node, pods
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
