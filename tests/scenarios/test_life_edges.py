"""Regressions of a gang's life as a table: rows that contradicted each other, or were passed over."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gangsched.api.status_conversion import status_from_object, status_to_object
from gangsched.core.gang.evicting import Cause, Evictions
from gangsched.core.objects.declaration import Role
from gangsched.core.objects.events import Event, PodSeen
from gangsched.core.objects.podgroup import OnDegraded, TimeoutPolicy
from gangsched.core.objects.policy import NamespaceLimits, Policy
from gangsched.core.objects.record import NO_RECORD, Phase
from gangsched.core.objects.results import StatusRefused
from tests.builders import group, node, pod, pods, shape
from tests.harness import Harness
from tests.scenarios.test_prebinding import FAST, members, waiting

pytestmark = pytest.mark.without("all", why="each is about one course of events")


@pytest.mark.parametrize("what", ["a member leaves", "they contradict each other", "the PodGroup is gone"])
def test_a_quorum_that_is_incomplete_beside_a_bound_member_does_not_wait_for_its_volumes(what):
    """It began to wait for them and was incomplete in turn, without end."""
    harness = Harness(Policy(backoff_initial_s=40))
    harness.disks.busy = True
    harness.add(FAST, *waiting(3))
    harness.settle(node("n1", cpu=8), group("a", min_member=3), pod("default/a-0", node="n1"), *members(3)[1:])
    harness.wait(1)
    gang = harness.gang("default/a")
    assert gang.record.prebinding_at
    if what == "a member leaves":
        harness.delete("default/a-2")
    elif what == "they contradict each other":
        said = harness.pod("default/a-1").declaration
        assert said is not None
        harness.change("default/a-1", declaration=replace(said, min_member=7))
    else:
        harness.delete_group("default/a")
    harness.settle()
    harness.wait(1)
    assert harness.evicted == []
    assert not harness.gang("default/a").record.prebinding_at


def test_a_run_that_begins_after_a_restart_is_not_short_because_the_last_one_was():
    harness = Harness.of(node("n1", cpu=8), group("a", min_member=2, on_degraded=OnDegraded.RESTART), *pods("a", 2))
    harness.settle()
    harness.run_pods()
    harness.settle()
    harness.delete("default/a-1")
    harness.settle()
    harness.wait(3)
    harness.delete_node("n1")
    harness.end_terminating()
    harness.settle(*pods("a", 2, first=2))
    harness.wait(5)
    gang = harness.gang("default/a")
    assert (gang.record.phase, gang.operations.short_since) == (Phase.QUEUED, 0.0)


def test_a_group_that_a_new_leader_keeps_outside_goes_on_to_wait_for_its_volumes():
    """The stage ended and began anew with each leader, and so did its time."""
    harness = Harness(Policy(namespace_limits=NamespaceLimits(waiting_groups=1), pre_bind_timeout_s=60))
    harness.disks.busy = True
    harness.add(FAST, *waiting(2))
    harness.settle(node("n1", cpu=2), group("a", min_member=2, created=harness.now), *members(2))
    harness.wait(2)
    began = harness.gang("default/a").record.prebinding_at
    harness.settle(group("b", min_member=1, created=harness.now, max_schedule_time_s=3000), pod("b-0", group="b"))
    harness.wait(22)
    harness.add(node("n1", cpu=4))
    harness.inbox.clear()
    harness.restart()
    harness.settle()
    harness.wait(1)
    assert harness.gang("default/a").record.prebinding_at == began
    harness.wait(40)
    assert harness.gang("default/a").record.timeouts == 1


def test_a_back_off_that_ended_before_1970_is_over():
    """As a status may say that somebody has edited."""
    harness = Harness.settled(node("n1", cpu=1), group("a", min_member=2), *pods("a", 2))
    harness.wait(2)
    written = status_to_object(harness.status("default/a"))["status"]
    written["record"] = {**written.get("record", {}), "retryTime": "1969-12-31T23:00:00Z"}
    harness.add(replace(harness.group("default/a"), status=status_from_object(written)))
    harness.inbox.clear()
    harness.restart()
    harness.settle()
    harness.wait(100)
    assert harness.gang("default/a").record.retry_at == 0.0


def test_evictions_are_not_due_for_nobody():
    """A parked gang whose evicted members had gone was due at once for ever."""
    assert Evictions(Cause.ROLLBACK, review_at=5.0).next_due([]) == float("inf")
    assert Evictions(Cause.ROLLBACK, review_at=5.0).next_due([pod("a-0")]) == 5.0


def test_a_status_of_a_former_leader_that_arrives_late_is_corrected():
    """It was decided before the bindings were confirmed, and stood there until the gang's next change."""
    harness = Harness.settled(node("n1", cpu=8), group("a", min_member=2), *pods("a", 2))
    harness.wait(2)
    right = harness.status("default/a")
    harness.restart()
    harness.settle()
    before = replace(right.record or NO_RECORD, phase=Phase.RESERVED, scheduled_at=0.0)
    late = replace(right, conditions=(), record=before)
    harness.settle(replace(harness.group("default/a"), status=late, resource_version="late"))
    harness.wait(60)
    assert harness.status("default/a").phase == "Scheduled"
    assert harness.condition("default/a").reason == "Scheduled"


@pytest.mark.parametrize("restarted", [False, True])
def test_a_group_that_failed_by_a_time_out_beside_a_bound_member_holds_nothing(restarted):
    """What it had reserved for members that waited for their volumes was held for ever."""
    harness = Harness()
    harness.disks.busy = True
    harness.add(FAST, *waiting(2))
    roles = (Role("x", 2, template=shape(1)),)
    failing = group("a", min_member=4, roles=roles, timeout_policy=TimeoutPolicy.FAIL, max_schedule_time_s=10.0)
    harness.settle(node("n1", cpu=8), failing, pod("default/b-0", role="x", node="n1"), *members(2))
    harness.wait(5)
    if restarted:
        harness.restart()
    harness.wait(10)
    assert harness.status("default/a").phase == "Failed"
    assert harness.status("default/a").reservation is None
    harness.settle(pod("p", group="", cpu=6))
    assert harness.bound("default/p") == ["default/p"]


def test_who_is_bound_is_told_of_a_large_group_though_a_member_has_left_before_its_next_turn():
    """Its binding had ended, and the Event that names the nodes failed over it."""
    harness = Harness.of(group("a", min_member=200, max_schedule_time_s=3000.0), *pods("a", 260))
    refused = [True]
    harness.refuse_status = lambda effect: StatusRefused(effect.key, stale=False) if refused else None
    harness.settle()
    while harness.gang("default/a").written.write_again_at <= harness.now:
        harness.wait(0.1)
    again = harness.gang("default/a").written.write_again_at
    refused.clear()
    shown: list[Event] = []

    def step_unseen() -> None:
        shown.extend(each for each in harness.inbox if isinstance(each, PodSeen) and each.pod.node)
        harness.inbox = [each for each in harness.inbox if each not in shown]
        harness.step()

    harness.now = again - 0.02
    harness.add(*(node(f"n{at}", cpu=100) for at in range(4)))
    step_unseen()
    harness.now = again - 0.004
    for _ in range(4):
        step_unseen()
    harness.now += 0.001
    harness.inbox += shown
    harness.step()
    harness.delete("default/a-7")
    harness.step()
    harness.now = again
    harness.settle()
    assert harness.condition("default/a").reason == "Scheduled"
    assert [each.reason for each in harness.emitted][-1] == "Scheduled"
