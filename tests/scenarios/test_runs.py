"""Rule 3: a run begins with the first live member and ends when none is left; the next run starts afresh."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.events import GroupSeen, NodeSeen, PodSeen, Synced, TimePassed
from gangsched.core.objects.pod import PodPhase
from gangsched.core.objects.podgroup import OnDegraded
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.record import Minima, Phase, Record
from gangsched.core.objects.results import EvictionRefused, Spared
from gangsched.core.objects.status import GroupStatus
from tests.builders import group, node, pod, pods
from tests.harness import Harness


def running(count: int = 3, **spec) -> Harness:
    """A group of three, all of them running, with room for more."""
    harness = Harness.settled(node(cpu=16), group("a", min_member=count, **spec), *pods("a", count))
    harness.run_pods()
    harness.wait(2)
    return harness


def end(harness: Harness, *phases: PodPhase) -> None:
    for number, phase in enumerate(phases):
        harness.change(f"default/a-{number}", phase=phase)
    harness.wait(2)


def test_as_many_successes_as_the_minimum_end_the_run_well():
    harness = running()
    end(harness, PodPhase.SUCCEEDED, PodPhase.SUCCEEDED)
    assert harness.status("default/a").phase == "Running"
    end(harness, PodPhase.SUCCEEDED, PodPhase.SUCCEEDED, PodPhase.SUCCEEDED)
    status = harness.status("default/a")
    assert (status.phase, status.succeeded, status.members) == ("Succeeded", 3, 0)
    assert harness.condition("default/a").status
    assert len(harness.events("Succeeded")) == 1
    assert harness.events("Succeeded")[0].type == "Normal"


def test_fewer_successes_than_the_minimum_end_the_run_badly():
    harness = running()
    end(harness, PodPhase.SUCCEEDED, PodPhase.FAILED, PodPhase.SUCCEEDED)
    status = harness.status("default/a")
    assert (status.phase, status.succeeded, status.failed) == ("Failed", 2, 1)
    assert harness.condition("default/a").message == "The run ended with 2 of 3 members succeeded."
    assert not harness.condition("default/a").status


def test_members_that_finish_one_by_one_do_not_degrade_the_group():
    harness = running()
    for phases in ([PodPhase.SUCCEEDED], [PodPhase.SUCCEEDED] * 2):
        end(harness, *phases)
        harness.wait(10)
        assert harness.status("default/a").phase == "Running"


def test_a_new_run_is_bound_whole_and_past_pods_never_count_in_it():
    harness = running()
    end(harness, *[PodPhase.SUCCEEDED] * 3)
    harness.wait(5, *pods("a", 2, first=3))
    status = harness.status("default/a")
    assert (status.phase, status.succeeded, status.attempts, status.scheduled_time) == ("Pending", 0, 0, 0.0)
    assert len(harness.bound()) == 0
    harness.wait(2, *pods("a", 1, first=5))
    assert len(harness.bound()) == 3
    assert harness.status("default/a").phase == "Scheduled"
    assert len(harness.events("Scheduled")) == 2


def test_an_ended_run_keeps_its_counts_over_a_restart_and_after_its_pods_are_deleted():
    harness = running()
    end(harness, *[PodPhase.SUCCEEDED] * 3)
    harness.restart()
    harness.wait(60)
    harness.delete("default/a-0", "default/a-1", "default/a-2")
    harness.wait(60)
    harness.restart()
    harness.wait(60)
    status = harness.status("default/a")
    assert (status.phase, status.succeeded) == ("Succeeded", 3)
    assert harness.condition("default/a").message == "The run ended with 3 members succeeded."
    assert len(harness.events("Succeeded")) == 1


@pytest.mark.without("disorder", why="asserts what one order of events leads to")
def test_a_quorum_that_is_bound_and_done_before_the_machine_looks_again_has_succeeded():
    harness = Harness.of(node(), group("a", min_member=2), *pods("a", 2))
    harness.step()
    for number in range(2):
        harness.change(f"default/a-{number}", phase=PodPhase.SUCCEEDED)
    harness.wait(2)
    assert harness.status("default/a").phase == "Succeeded"


def test_a_deleted_statefulset_frees_its_room_at_once():
    harness = running()
    harness.wait(2, group("b", min_member=14), *pods("b", 14))
    assert harness.bound("default/b-") == []
    harness.delete("default/a-0")
    harness.settle()
    assert len(harness.bound("default/b-")) == 14


@pytest.mark.without("all", why="it has no harness")
def test_after_a_restart_more_than_ten_thousand_members_that_are_gone_still_count():
    """12,000 members: 11,999 have succeeded and are deleted, gangsched restarts, the last one succeeds."""
    record = Record(
        phase=Phase.RUNNING, run_start=4.0, scheduled_at=5.0, satisfied=Minima(12_000), succeeded=(("", 11_999),)
    )
    status = GroupStatus(record)
    last = pod("a-0", group="a", node="n1", phase="Running")
    machine = Machine(Policy())
    machine.handle(
        [NodeSeen(node("n1")), GroupSeen(group("a", min_member=12_000, status=status)), PodSeen(last), Synced()], 10.0
    )

    machine.handle([PodSeen(replace(last, phase=PodPhase.SUCCEEDED))], 11.0)
    machine.handle([TimePassed()], 30.0)

    assert machine.gangs[GroupKey("default", "a")].record.phase is Phase.SUCCEEDED


def test_a_member_bound_in_the_second_in_which_its_run_began_counts_though_its_times_are_earlier():
    """The API server writes a pod's times in whole seconds; rounded down, the pod was bound before the run began."""
    harness = Harness()
    harness.wait(0.75)
    harness.wait(2, node(), group("a", min_member=2), *pods("a", 2, created=harness.server_time))
    harness.run_pods()
    harness.wait(2)
    for number in range(2):
        harness.change(f"default/a-{number}", phase=PodPhase.SUCCEEDED)
    harness.restart()
    harness.wait(2)
    assert harness.status("default/a").phase == "Succeeded"


@pytest.mark.parametrize("held_up", ["", "default/a-2"])
def test_members_that_exist_no_longer_are_forgotten_however_often_a_group_is_restarted(held_up):
    """A member can be gone before the restart ends, because a budget delays the eviction of another."""
    harness = running(on_degraded=OnDegraded.RESTART)
    gang = harness.machine.gangs[GroupKey("default", "a")]
    for number in range(5):
        harness.refuse_eviction = lambda effect: (
            EvictionRefused(effect.uid, Spared.BUDGET, "a budget") if f"default/{effect.name}" == held_up else None
        )
        harness.delete("default/a-0")
        harness.wait(5)
        harness.delete("default/a-1")
        harness.refuse_eviction = lambda _: None
        harness.wait(30)
        harness.delete("default/a-2")
        harness.wait(2)
        assert gang.roster.past <= gang.observed.pods.keys(), f"after restart {number + 1}"
        harness.settle(*pods("a", 3))
        harness.run_pods()
        harness.wait(2)
