"""The owner guard: a group name that two owners use is flagged, refused if so configured, and free again later."""

from __future__ import annotations

import pytest

from gangsched.core.objects.pod import Owner, PodPhase
from gangsched.core.objects.policy import OwnerGuard, Policy
from tests.builders import group, node, pods
from tests.harness import Harness

BLUE = Owner(kind="StatefulSet", name="blue", uid="1", api_group="apps")
GREEN = Owner(kind="StatefulSet", name="green", uid="2", api_group="apps")


def cluster(guard: OwnerGuard = OwnerGuard.FLAG, **spec) -> Harness:
    harness = Harness(Policy(owner_guard=guard))
    harness.add(node(cpu="16"), group("a", **({"min_member": 2} | spec)))
    return harness


def blue(count: int, **fields):
    return pods("a", count, owner=BLUE, **fields)


def green(count: int, **fields):
    return pods("a", count, first=10, owner=GREEN, created=1.0, **fields)


def names(harness: Harness) -> list[str]:
    return sorted(name.partition("/")[2] for name in harness.bound())


@pytest.mark.without("restarts", "leaderless", why="a new leader tells anew or not at all")
def test_by_default_two_owners_are_flagged_once_and_all_members_bound():
    harness = cluster(min_member=4)
    harness.add(*blue(2), *green(2))
    harness.wait(100)
    harness.change("default/a-10", labels=(("late", "yes"),))
    harness.wait(100)
    assert len(harness.bound()) == 4
    [event] = harness.events("SeveralOwners")
    assert (event.kind, event.name, event.type) == ("PodGroup", "a", "Warning")
    assert "StatefulSet.apps blue (2), StatefulSet.apps green (2)" in event.note


@pytest.mark.without("restarts", why="a new leader tells anew or not at all")
def test_refused_members_are_told_and_count_for_nothing():
    harness = cluster(OwnerGuard.REFUSE, min_member=3)
    harness.add(*blue(2), *green(2))
    harness.wait(5)
    assert harness.bound() == []
    condition = harness.condition("default/a")
    assert condition.reason == "GangIncomplete"
    assert condition.message == (
        "2 of 3 members exist; 1 more member is needed, or a lower minimum. 2 pods do not count, because "
        "another owner has the group."
    )
    assert harness.pod("default/a-0").condition_reason == "GangIncomplete"
    refused = harness.pod("default/a-10")
    assert refused.condition_reason == "SeveralOwners"
    assert refused.condition_message.startswith("Pods of several owners name the group a: ")
    assert len(harness.events("SeveralOwners")) == 1


@pytest.mark.without("restarts", "standbys", why="nothing written says it yet when the leader dies")
def test_who_came_first_is_bound_and_the_other_begins_a_run_of_its_own_once_the_first_is_gone():
    harness = cluster(OwnerGuard.REFUSE)
    harness.add(*blue(2), *green(2))
    harness.wait(5)
    assert names(harness) == ["a-0", "a-1"]
    harness.run_pods()
    harness.wait(5)
    assert harness.status("default/a").phase == "Running"
    scheduled_at = harness.status("default/a").scheduled_time
    harness.wait(60)
    assert names(harness) == ["a-0", "a-1"]

    harness.delete("default/a-0", "default/a-1")
    harness.wait(5)
    assert names(harness) == ["a-10", "a-11"]
    status = harness.status("default/a")
    assert (status.phase, status.bound, status.attempts) == ("Scheduled", 2, 1)
    assert status.scheduled_time > scheduled_at


def test_a_refused_owner_neither_fills_up_nor_repairs_the_group():
    harness = cluster(OwnerGuard.REFUSE)
    harness.add(*blue(2), *green(2))
    harness.wait(5)
    harness.delete("default/a-0")
    harness.wait(10)
    assert names(harness) == ["a-1"]
    assert harness.status("default/a").phase == "Degraded"
    harness.add(*blue(1, labels={"again": "yes"}))
    harness.wait(5)
    assert names(harness) == ["a-0", "a-1"]


@pytest.mark.without("standbys", why="a new leader tells anew or not at all")
def test_who_is_bound_stays_bound_and_counted_when_refusing_begins():
    harness = cluster()
    harness.add(*blue(1), *green(1))
    harness.wait(5)
    harness.policy = Policy(owner_guard=OwnerGuard.REFUSE)
    harness.restart()
    harness.wait(30)
    harness.add(*pods("a", 1, first=20))
    harness.wait(30)
    assert len(harness.bound()) == 2
    assert harness.pod("default/a-20").condition_reason == "SeveralOwners"
    assert harness.status("default/a").phase == "Scheduled"
    assert harness.evicted == []


@pytest.mark.parametrize("guard", [OwnerGuard.FLAG, OwnerGuard.REFUSE])
def test_an_owner_made_again_under_its_name_takes_over_and_is_not_flagged(guard):
    harness = cluster(guard)
    harness.add(*blue(2))
    harness.wait(5)
    harness.delete("default/a-0")
    again = Owner(kind="StatefulSet", name="blue", uid="3", api_group="apps")
    harness.add(*pods("a", 1, owner=again))
    harness.wait(5)
    harness.delete("default/a-1")
    harness.add(*pods("a", 1, first=1, owner=again))
    harness.wait(5)
    assert names(harness) == ["a-0", "a-1"]
    assert harness.events("SeveralOwners") == []


@pytest.mark.parametrize("guard", [OwnerGuard.FLAG, OwnerGuard.REFUSE])
def test_the_name_is_free_for_another_owner_once_the_run_has_ended(guard):
    harness = cluster(guard)
    harness.add(*blue(2))
    harness.wait(5)
    harness.run_pods(PodPhase.SUCCEEDED)
    harness.wait(5)
    assert harness.status("default/a").phase == "Succeeded"
    harness.add(*green(2))
    harness.wait(5)
    assert harness.status("default/a").phase == "Scheduled"
    assert harness.events("SeveralOwners") == []
