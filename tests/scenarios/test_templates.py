"""`roles[].template`: places are reserved for members that do not exist yet (contract rules 11 and 12)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from gangsched.core.objects.declaration import Role
from gangsched.core.objects.effects import PatchStatus
from gangsched.core.objects.pod import Owner, Pod, PodPhase
from gangsched.core.objects.podgroup import Group, OnDegraded, TimeoutPolicy
from gangsched.core.objects.shape import PodTerm, Requirement
from tests.builders import group, node, pod, shape
from tests.harness import Harness

TIME_S = 120.0


def app(**spec: Any) -> Group:
    """A driver and four executors of 2 CPU each."""
    roles = (Role("driver", 1), Role("executor", 4, template=shape(2)))
    return group("a", min_member=5, roles=roles, max_schedule_time_s=TIME_S, **spec)


def driver(**fields: Any) -> Pod:
    """A driver whose controller recreates it, so that it may be evicted."""
    return pod("driver", role="driver", owner=Owner("StatefulSet", "driver", "s1", "apps"), **fields)


def executors(count: int, *, first: int = 0, **fields: Any) -> list[Pod]:
    return [pod(f"exec-{number}", role="executor", cpu=2, **fields) for number in range(first, first + count)]


def plain(count: int, **fields: Any) -> list[Pod]:
    return [pod(f"plain-{number}", group="", **fields) for number in range(count)]


def holding(**nodes: int) -> Harness:
    """The application with its driver bound and all four places reserved."""
    harness = Harness.of(*(node(name, cpu=cpu) for name, cpu in (nodes or {"n1": 5, "n2": 4}).items()))
    harness.settle(app(), driver())
    assert harness.bound() == ["default/driver"]
    return harness


def places(harness: Harness) -> dict[str, int]:
    """Number of places on each node that the status says are reserved for members that do not exist."""
    reservation = harness.status("default/a").reservation
    if reservation is None:
        return {}
    return {place.node: place.count - len(place.pods) for place in reservation.placements if place.role == "executor"}


@pytest.mark.without("restarts", "leaderless", why="a new leader tries again at once")
def test_the_driver_is_bound_once_places_for_all_executors_are_durable():
    harness = Harness.of(node("n1", cpu=5), node("n2", cpu=4), app(), driver())
    harness.step()
    assert not harness.bound()
    harness.settle()
    assert harness.bound() == ["default/driver"]
    assert sum(places(harness).values()) == 4
    held_since = harness.now
    harness.wait(2)
    status = harness.status("default/a")
    assert (status.phase, status.bound, harness.condition("default/a").reason) == ("Reserved", 1, "PlacesHeld")
    assert "1 of 5 members are bound and 4 places are held for the missing" in harness.condition("default/a").message
    assert status.reservation is not None
    assert status.reservation.expires == held_since + TIME_S


def test_driver_and_executors_that_fit_one_by_one_but_not_together_are_refused_whole():
    harness = Harness.waited(2, node("n1", cpu=4), node("n2", cpu=4), app(), driver())
    assert not harness.bound()
    assert harness.status("default/a").reservation is None
    assert "Only 4 of 5 members fit" in harness.condition("default/a").message
    harness.wait(10 * TIME_S)
    assert harness.status("default/a").phase == "Queued", "the clock runs only while places are held"
    harness.settle(node("n3", cpu=2))
    assert harness.bound() == ["default/driver"]


def test_an_executor_takes_a_place_whose_host_port_it_needs_itself():
    """Each node has the port once: the place holds it, and the member that takes the place requests it again."""
    harness = Harness()
    roles = (Role("driver", 1), Role("executor", 2, template=shape(2, host_ports=[7078])))
    harness.settle(node("n1", cpu=3), node("n2", cpu=2), group("a", min_member=3, roles=roles), driver())
    assert places(harness) == {"n1": 1, "n2": 1}
    harness.settle(*executors(2, host_ports=[7078], created=harness.now))
    assert {harness.pod(name).node for name in harness.bound("default/exec-")} == {"n1", "n2"}
    assert harness.events("TemplateMismatch") == []


def test_executors_take_their_places_although_others_wait_for_the_room():
    harness = holding()
    harness.wait(10, *plain(20, priority=1000))
    assert harness.bound() == ["default/driver"]
    held = places(harness)
    harness.settle(*executors(4, created=harness.now))
    assert len(harness.bound("default/exec-")) == 4
    on = [harness.pod(name).node for name in harness.bound("default/exec-")]
    assert {name: on.count(name) for name in held} == held
    assert harness.status("default/a").phase == "Scheduled"
    assert harness.status("default/a").reservation is None


def test_places_that_nobody_takes_are_released_at_expiry_and_the_group_is_degraded():
    harness = holding()
    harness.wait(TIME_S + 1, *executors(1))
    status = harness.status("default/a")
    assert (status.phase, status.reservation, status.scheduled_time) == ("Degraded", None, 0.0)
    assert harness.condition("default/a", "Degraded").reason == "MembersMissing"
    told = harness.condition("default/a")
    assert (told.status, told.reason) == (False, "MembersMissing")
    assert "2 of 5 members are bound; the others were not created within 2m" in told.message
    assert len(harness.events("MembersMissing")) == 1
    harness.settle(*plain(1, cpu=4))
    assert "default/plain-0" in harness.bound(), "the room is free for others"
    assert not harness.evicted
    harness.delete("default/plain-0")
    harness.settle(*executors(3, first=1))
    assert len(harness.bound()) == 5
    assert (harness.status("default/a").phase, harness.condition("default/a").status) == ("Scheduled", True)


def test_under_fail_the_group_has_failed_at_expiry_and_who_is_bound_stays():
    harness = holding()
    harness.change_spec("default/a", timeout_policy=TimeoutPolicy.FAIL)
    harness.wait(TIME_S + 60)
    assert (harness.status("default/a").phase, places(harness)) == ("Failed", {})
    assert harness.bound() == ["default/driver"]
    assert not harness.evicted
    harness.wait(5, *executors(1))
    assert harness.bound() == ["default/driver"]
    assert harness.pod("default/exec-0").condition_reason == "GangFailed"
    harness.restart()
    harness.wait(60)
    assert harness.status("default/a").phase == "Failed"
    assert not harness.evicted


def test_a_member_that_does_not_fit_its_place_is_placed_elsewhere_and_an_event_says_so():
    harness = holding()
    harness.add(node("big", cpu=16))
    harness.settle(pod("exec-0", role="executor", cpu=8), *executors(3, first=1))
    assert len(harness.bound()) == 5
    assert harness.pod("default/exec-0").node == "big"
    (event,) = harness.events("TemplateMismatch")
    assert (event.name, event.type) == ("exec-0", "Warning")
    assert harness.status("default/a").reservation is None


def test_a_restart_does_not_hold_a_place_for_a_member_that_came_while_nobody_looked():
    harness = holding()
    (first,) = executors(1)
    harness.settle(first)
    # The status from before the member took its place.
    reserved = next(
        effect.status
        for effect in harness.effects
        if isinstance(effect, PatchStatus) and effect.status.reservation is not None
    )
    group_before = harness.group("default/a")
    harness.groups[group_before.key] = replace(group_before, status=reserved)
    harness.restart()
    harness.wait(2)
    assert sum(places(harness).values()) == 3


@pytest.mark.parametrize(("policy", "phase"), [(TimeoutPolicy.RETRY, "Degraded"), (TimeoutPolicy.FAIL, "Failed")])
def test_places_that_ran_out_while_nobody_led_are_not_held_again_and_nobody_is_evicted(policy, phase):
    """The operator is down when the places expire."""
    harness = holding()
    harness.change_spec("default/a", timeout_policy=policy)
    harness.wait(2)
    harness.add(*plain(8))
    harness.now += TIME_S + 5
    harness.restart()
    harness.wait(60)
    assert (harness.status("default/a").phase, places(harness)) == (phase, {})
    assert "default/driver" in harness.bound()
    assert not harness.evicted
    assert len(harness.bound("default/plain-")) == 8


@pytest.mark.without("all", why="it changes leaders itself")
def test_places_beside_one_that_is_lost_are_held_after_a_restart_too():
    """A node with two of four places is gone; the operator is restarted before the status says so."""
    harness = holding(n1=5, n2=4)
    harness.settle(*plain(20, priority=1000))
    harness.delete_node("n2" if harness.pod("default/driver").node == "n1" else "n1")
    harness.settle()
    harness.restart()
    harness.settle()
    assert harness.bound() == ["default/driver"]


@pytest.mark.parametrize("loss", ["gone", "cordoned", "taken by another scheduler"])
def test_a_place_whose_node_is_no_longer_good_is_held_on_another_first_of_all(loss):
    harness = holding(n1=5, n2=4)
    harness.settle(*plain(20, priority=1000))
    free = "n2" if harness.pod("default/driver").node == "n1" else "n1"
    if loss == "gone":
        harness.delete_node(free)
    elif loss == "cordoned":
        harness.add(node(free, cpu=4 if free == "n2" else 5, unschedulable=True))
    else:
        harness.add(pod("other", group="", scheduler="default-scheduler", cpu=4, node=free))
    harness.settle()
    harness.settle(node("n3", cpu=4))
    assert sum(places(harness).values()) == 4
    assert "n3" in places(harness)
    assert free not in places(harness)


def test_a_lowered_minimum_gives_places_back():
    harness = holding()
    harness.add(*plain(20))
    roles = (Role("driver", 1), Role("executor", 2, template=shape(2)))
    harness.change_spec("default/a", min_member=3, roles=roles)
    harness.wait(2)
    assert sum(places(harness).values()) == 2
    assert len(harness.bound("default/plain-")) == 4


def test_one_role_with_a_template_stands_for_the_rest_of_min_member_too():
    harness = Harness.of(node("n1", cpu=5))
    harness.wait(2, group("a", min_member=5, roles=(Role("worker", template=shape(1)),)), pod("w-0", role="worker"))
    assert harness.bound() == ["default/w-0"]
    reservation = harness.status("default/a").reservation
    assert reservation is not None
    assert [(place.role, place.count, place.pods) for place in reservation.placements] == [("worker", 4, ())]


def test_a_role_without_a_template_must_exist_before_anything_is_held():
    harness = Harness.waited(2, node("n1", cpu=64), app(), *executors(1))
    assert not harness.bound()
    assert harness.condition("default/a").reason == "GangIncomplete"
    assert "missing by role: 1 of role driver" in harness.condition("default/a").message


def scheduled() -> Harness:
    harness = holding()
    harness.settle(*executors(4))
    assert harness.status("default/a").phase == "Scheduled"
    harness.run_pods()
    harness.settle()
    return harness


@pytest.mark.parametrize("end", ["failed", "deleted"])
def test_the_place_of_a_lost_executor_is_held_for_its_replacement(end):
    harness = scheduled()
    harness.settle(*plain(20, priority=1000, preempts=False))
    if end == "failed":
        harness.change("default/exec-2", phase=PodPhase.FAILED)
    else:
        harness.delete("default/exec-2")
    harness.wait(10)
    assert not harness.bound("default/plain-")
    assert sum(places(harness).values()) == 1
    harness.settle(*executors(1, first=4))
    assert "default/exec-4" in harness.bound()
    assert harness.status("default/a").reservation is None


@pytest.mark.parametrize("policy", [OnDegraded.IGNORE, OnDegraded.RESTART])
def test_no_place_is_held_for_a_lost_member_of_a_group_that_does_not_repair(policy):
    harness = scheduled()
    harness.change_spec("default/a", on_degraded=policy)
    harness.delete("default/exec-2")
    harness.settle()
    assert places(harness) == {}


def test_more_places_than_can_be_remembered_are_refused_by_name():
    harness = Harness()
    roles = (Role("executor", 2**31 - 1, template=shape(1)),)
    harness.wait(2, node("n1"), group("a", min_member=1, roles=roles), pod("exec-0", role="executor"))
    assert harness.condition("default/a").reason == "NotSupported"
    assert "lower the minimum, or remove the templates" in harness.condition("default/a").message


def test_a_member_that_excludes_another_does_not_take_a_place_beside_the_one_that_has_just_taken_its_own():
    """Regression: the place that worker-0 had taken was subtracted from the pods that the last member asked about."""
    app = PodTerm("kubernetes.io/hostname", (Requirement("app", "NotIn", ("z",)),), ("default",))
    roles = (Role("driver", 1), Role("worker", 1, template=shape(2)), Role("tail", 1, template=shape(1)))
    harness = Harness.of(node("n1", labels={"kubernetes.io/hostname": "n1"}), group("a", min_member=3, roles=roles))
    harness.settle(pod("driver", role="driver", labels={"app": "z"}))
    harness.add(
        pod("worker-0", role="worker", cpu=2, labels={"app": "a"}),
        pod("x-tail", role="tail", labels={"app": "z"}, anti_affinity=[app]),
    )
    harness.wait(6)
    assert harness.bound() == ["default/driver", "default/worker-0"]


def test_no_place_is_planned_for_a_driver_that_terminates_before_its_binding_is_answered():
    """Regression: places were written and given up again in each call, until the binding was answered."""
    harness = Harness.of(node("n", cpu=12), app(), driver())
    harness.withhold = lambda _: True
    harness.wait(3)
    harness.change("default/driver", terminating=True)
    harness.wait(3)
    assert not harness.gang("default/a").operations.placeholders()
