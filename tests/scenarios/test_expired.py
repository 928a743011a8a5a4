"""A finished PodGroup whose time to live is over is deleted, unless anything of it lives or has changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from gangsched.core.machine import Machine
from gangsched.core.objects.effects import DeleteGroup, EmitEvent, PatchPodCondition
from gangsched.core.objects.events import GroupExpired, Synced
from gangsched.core.objects.pod import PodPhase
from gangsched.core.objects.policy import Policy
from tests.builders import group, key, node, pod, pods
from tests.harness import Harness

A = key("default/a")


def finished(*phases: PodPhase, **policy: Any) -> Harness:
    """A group whose members have ended like this, by default all in success."""
    harness = Harness(Policy(**policy)) if policy else Harness()
    ended = phases or (PodPhase.SUCCEEDED,) * 2
    harness.settle(node(cpu=16), group("a", min_member=len(ended)), *pods("a", len(ended)))
    for number, phase in enumerate(ended):
        harness.change(f"default/a-{number}", phase=phase)
    harness.wait(2)
    return harness


def expire(harness: Harness, **fields: str) -> bool:
    """Report that the group has expired, as it is now but for these fields; returns whether it is gone."""
    there = harness.groups[A]
    harness.report(replace(GroupExpired(A, there.uid, there.resource_version), **fields))
    harness.settle()
    return A not in harness.groups


@pytest.mark.parametrize("last", [PodPhase.SUCCEEDED, PodPhase.FAILED])
def test_a_finished_group_is_deleted_and_nothing_is_said_of_its_pods(last: PodPhase) -> None:
    harness = finished(PodPhase.SUCCEEDED, last)
    assert harness.status("default/a").phase == ("Succeeded" if last is PodPhase.SUCCEEDED else "Failed")
    before = len(harness.effects)
    assert expire(harness)
    harness.wait(120)
    said = [effect for effect in harness.effects[before:] if isinstance(effect, EmitEvent | PatchPodCondition)]
    assert said == []
    assert len(harness.pods) == 2


def _member_arrives(harness: Harness) -> None:
    harness.add(pod("default/a-9", group="a"))


def _gated_member(harness: Harness) -> None:
    harness.add(pod("default/a-9", group="a", gated=True))


def _member_terminates(harness: Harness) -> None:
    harness.add(pod("default/a-9", group="a", node="n1", terminating=True))


def _pod_of_another_scheduler(harness: Harness) -> None:
    harness.add(pod("default/a-9", group="a", scheduler="default-scheduler"))


@pytest.mark.parametrize(
    "change",
    [_member_arrives, _gated_member, _member_terminates, _pod_of_another_scheduler],
    ids=lambda each: each.__name__,
)
def test_a_group_of_which_a_pod_lives_stays_until_the_pod_has_ended(change: Callable[[Harness], None]) -> None:
    harness = finished()
    change(harness)
    harness.settle()
    assert not expire(harness)
    harness.delete("default/a-9")
    harness.wait(5)
    if harness.status("default/a").phase == "Succeeded":
        assert expire(harness)


@pytest.mark.parametrize("fields", [{"uid": "former"}, {"resource_version": "1"}], ids=str)
def test_a_group_that_was_recreated_or_has_changed_since_stays(fields: dict[str, str]) -> None:
    harness = finished()
    assert not expire(harness, **fields)


def test_a_group_of_another_installation_stays() -> None:
    harness = finished(scheduler_names=("gangsched",))
    harness.delete("default/a-0", "default/a-1")
    harness.wait(2, replace(harness.groups[A], scheduler="other"))
    assert not expire(harness)


def test_a_standby_deletes_nothing_and_does_not_remember() -> None:
    harness = finished()
    there = harness.groups[A]
    told = GroupExpired(A, there.uid, there.resource_version)
    standby = Machine(Policy())
    assert standby.handle([*harness.machine.facts(), told], harness.now) == []
    assert not [each for each in standby.handle([Synced()], harness.now) if isinstance(each, DeleteGroup)]
    assert DeleteGroup(A, there.uid, there.resource_version) in standby.handle([told], harness.now)


def test_the_time_of_the_end_is_kept_over_restarts_and_forgotten_with_the_next_run() -> None:
    harness = finished()
    ended = harness.status("default/a").finished_at
    assert 0 < ended <= harness.now
    harness.restart()
    harness.delete("default/a-0", "default/a-1")
    harness.wait(60)
    assert harness.status("default/a").finished_at == ended
    harness.wait(5, *pods("a", 2, first=3))
    assert harness.status("default/a").finished_at == 0.0
    for number in (3, 4):
        harness.change(f"default/a-{number}", phase=PodPhase.SUCCEEDED)
    harness.wait(2)
    assert harness.status("default/a").finished_at > ended
