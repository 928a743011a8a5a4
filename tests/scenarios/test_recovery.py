"""Edge cases of what a new leader recovers from the previous one; each docstring gives the steps."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from gangsched.core.gang.unrecorded import OUTAGE_S
from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import Declaration, GroupKey, Role
from gangsched.core.objects.pod import Lifetime, Owner, Pod, PodPhase
from gangsched.core.objects.podgroup import Group, TimeoutPolicy
from gangsched.core.objects.results import BindRefused, GroupNotMade, Refused, StatusRefused
from gangsched.kube.dialects.dialect_table import DEFAULT
from tests.builders import foreign_group, group, node, pod, pods, shape
from tests.harness import Harness, Standby
from tests.scenarios.test_spark import driver as spark_driver
from tests.scenarios.test_spark import executors, taken_over_without_its_group

TIME_S = 120.0
SET = Owner("StatefulSet", "s", "set", "apps")


class Followed(Harness):
    """A leader with a standby that sees every event as it happens, and may take over."""

    def __init__(self) -> None:
        super().__init__()
        self.standby = Standby(Machine(self.policy))


def app(**spec: Any) -> Group:
    """A driver and four workers of 2 CPU each."""
    roles = (Role("driver", 1), Role("worker", 4, template=shape(2)))
    return group("a", min_member=5, roles=roles, **{"max_schedule_time_s": TIME_S, **spec})


def holding(**spec: Any) -> Followed:
    """The application with its driver bound and all four places reserved."""
    harness = Followed()
    harness.settle(node("n1", cpu=5), node("n2", cpu=4), app(**spec), pod("driver", role="driver", owner=SET))
    assert (harness.bound(), len(harness.gang("default/a").operations.placeholders())) == (["default/driver"], 4)
    return harness


def change_unseen(harness: Harness, **spec: Any) -> None:
    """A user changes the PodGroup's spec while there is no leader."""
    old = harness.group("default/a")
    assert old.spec is not None
    harness.groups[old.key] = replace(old, generation=old.generation + 1, spec=replace(old.spec, **spec))


def running_spark() -> Harness:
    """A whole application on two nodes: n1 of 5 CPUs with the driver, and n2 of 4. Its PodGroup reserved its places."""
    harness = Harness.settled(node("n1", cpu=5), node("n2", cpu=4), spark_driver(owner=SET))
    harness.settle(*executors(owner=SET))
    harness.run_pods()
    harness.wait(5)
    assert harness.status("default/app").phase == "Running"
    return harness


def waiting_under_fail() -> Harness:
    """A group of two members, one of which would fit, that fails after 10 s."""
    harness = Harness()
    harness.add(node("n1", cpu=1), group("a", min_member=2, max_schedule_time_s=10, timeout_policy=TimeoutPolicy.FAIL))
    harness.add(*pods("a", 2))
    return harness


def lose_node(harness: Harness, name: str) -> None:
    harness.delete_node(name)
    harness.delete(*(f"default/{found.name}" for found in list(harness.pods.values()) if found.node == name))


@pytest.mark.parametrize("heir", ["restart", "fail_over"])
def test_a_standby_that_saw_a_driver_bound_does_not_undo_it_once_its_group_has_failed(heir):
    """Places expire under Fail, then the standby leads. Regression: it still counted the driver as half of a quorum."""
    harness = holding(timeout_policy=TimeoutPolicy.FAIL)
    harness.wait(TIME_S + 60)
    assert harness.status("default/a").phase == "Failed"
    getattr(harness, heir)()
    harness.wait(100)
    assert not harness.evicted
    assert harness.status("default/a").phase == "Failed"


@pytest.mark.parametrize("heir", ["restart", "fail_over"])
def test_a_standby_begins_no_quorum_with_the_members_of_a_scheduled_group(heir):
    """A scheduled group is led by the former standby, loses a member and then its PodGroup: no pod is evicted."""
    harness = Followed()
    harness.wait(5, node("n1", cpu=4), group("a", min_member=3), *(pod(f"a-{at}", owner=SET) for at in range(3)))
    getattr(harness, heir)()
    harness.wait(5)
    harness.delete("default/a-0")
    harness.wait(1)
    harness.delete_group("default/a")
    harness.wait(60)
    assert not harness.evicted


def test_a_second_run_found_partly_bound_is_undone_though_the_status_still_tells_of_the_first():
    """A run has succeeded; two of the next run's four members are bound when the process dies and a node is lost."""
    harness = Harness.of(node("n1", cpu=2), node("n2", cpu=2), group("a", min_member=4))
    harness.settle(*(pod(f"a-{at}", owner=SET) for at in range(4)))
    harness.run_pods(PodPhase.SUCCEEDED)
    harness.wait(10)
    harness.delete(*(f"default/a-{at}" for at in range(4)))
    harness.wait(10)
    assert harness.status("default/a").phase == "Succeeded"
    harness.withhold = lambda effect: effect.node == "n2"
    harness.settle(*(pod(f"a-{at}", owner=SET, uid=f"new-{at}", created=harness.now) for at in range(4)))
    assert len(harness.bound()) == 2
    lose_node(harness, "n2")
    harness.restart()
    harness.wait(30)
    assert len(harness.evicted) == 2


def test_a_replacement_is_bound_though_the_podgroup_for_its_place_may_not_be_made():
    """A whole application that never needed a PodGroup loses an executor; none may be made; another
    executor arrives.
    """
    harness = Harness()
    harness.refuse_making = lambda effect: GroupNotMade(effect.key, "403 no")
    harness.wait(5, node("n1", cpu=9), spark_driver(), *executors())
    assert (len(harness.bound()), harness.groups) == (5, {})
    harness.delete("default/app-exec-0")
    harness.wait(5)
    harness.wait(30, *executors(count=1, first=9))
    assert "default/app-exec-9" in harness.bound()


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.without("restarts", "standbys", why="the record is gone with its PodGroup when the leader dies")
def test_an_application_goes_on_though_somebody_deletes_the_podgroup_that_was_made_for_it(restarted):
    """The application lacks one executor when its PodGroup is deleted; then that executor's reserved
    place is lost too.
    """
    harness = running_spark()
    lost = next(found.name for found in harness.pods.values() if found.node == "n2")
    harness.delete(f"default/{lost}")
    harness.wait(5)
    harness.delete_group("default/app")
    harness.wait(5)
    assert harness.condition("default/app").status
    assert harness.status("default/app").reservation is not None
    if restarted:
        harness.restart()
        harness.wait(3)
    lose_node(harness, "n2")
    harness.wait(60)
    assert not harness.evicted
    assert harness.status("default/app").phase == "Degraded"


def test_a_podgroup_made_for_a_running_application_whose_status_was_never_written_takes_nobody_down():
    """A PodGroup is made for a lost executor's place, the process dies before writing its status, the place is lost."""
    harness = running_spark()
    harness.delete_group("default/app")
    harness.wait(5)
    harness.refuse_status = lambda effect: StatusRefused(effect.key, stale=False)
    lost = next(found.name for found in harness.pods.values() if found.node == "n2")
    harness.delete(f"default/{lost}")
    harness.wait(3)
    assert harness.status("default/app").phase == ""
    harness.refuse_status = lambda _: None
    lose_node(harness, "n2")
    harness.restart()
    harness.wait(60)
    assert not harness.evicted
    assert harness.condition("default/app").reason == "MembersMissing"


@pytest.mark.parametrize("restarted", [False, True])
def test_pods_of_an_earlier_run_do_not_count_after_a_restart(restarted):
    """A second run waits in vain for two of three, while the succeeded pods of the first run still exist."""
    roles = (Role("driver", 1), Role("worker", 2, template=shape(1)))
    harness = Harness.of(node("n1", cpu=9), group("a", min_member=3, roles=roles, max_schedule_time_s=20.0))
    harness.settle(pod("d", role="driver"), pod("w0", role="worker"), pod("w1", role="worker"))
    harness.run_pods(PodPhase.SUCCEEDED)
    harness.wait(5)
    assert harness.status("default/a").phase == "Succeeded"
    harness.wait(30, pod("d2", role="driver", created=harness.now))
    if restarted:
        harness.restart()
        harness.wait(5)
    condition = harness.condition("default/a")
    assert (condition.status, condition.reason) == (False, "MembersMissing")
    assert harness.status("default/a").succeeded == 0


@pytest.mark.parametrize("restarted", [False, True])
def test_pods_of_an_earlier_run_do_not_count_after_a_restart_without_a_podgroup_either(restarted):
    says = Declaration(group="x", min_member=2)
    harness = Harness.settled(node("n1", cpu=9), *(pod(f"x-{at}", declaration=says) for at in range(2)))
    harness.run_pods(PodPhase.SUCCEEDED)
    harness.wait(5)
    if restarted:
        harness.restart()
        harness.wait(5)
    harness.wait(5, *(pod(f"y-{at}", declaration=says, created=harness.now) for at in range(2)))
    harness.delete("default/y-0")
    harness.wait(5)
    assert harness.gang("default/x").record.phase == "Degraded"


@pytest.mark.without("all", why="it changes leaders itself")
@pytest.mark.parametrize(
    ("finished", "started_s", "phase"),
    [
        (PodPhase.SUCCEEDED, 5, "Running"),
        (PodPhase.SUCCEEDED, -5, "Degraded"),
        (PodPhase.FAILED, 5, "Degraded"),
    ],
)
def test_a_finished_member_belongs_to_the_run_of_its_start_if_it_is_unknown_when_it_was_bound(
    finished, started_s, phase
):
    """Regression: one whose binding has no time counted as bound before the live member existed.

    The finished member was created before the live one, and started so long after that was created.
    """
    harness, says = Harness(), Declaration(group="x", min_member=2)
    created = harness.now - 100
    start = Lifetime(start=created + started_s)
    ended = pod("x-0", declaration=says, node="n1", phase=finished, created=created - 10)
    lives = pod("x-1", declaration=says, node="n1", phase=PodPhase.RUNNING, created=created, bound_at=created + 1)
    harness.nodes["n1"] = node("n1", cpu=9)
    harness.pods = {each.uid: each for each in (replace(ended, lifetime=start), lives)}
    harness.restart()
    harness.wait(10)
    record = harness.gang("default/x").record
    assert record.phase == phase
    assert (record.successes, record.failed) == (int(phase == "Running"), int(finished is PodPhase.FAILED))
    assert record.scheduled_at == (created + 1)


@pytest.mark.without("all", why="it changes leaders itself")
@pytest.mark.parametrize("later", [False, True], ids=["there", "created later"])
def test_finished_members_without_times_are_of_an_earlier_run_than_members_that_all_wait(later):
    harness = Harness()
    harness.nodes["n1"] = node("n1", cpu=9)
    ended = [pod(f"a-{at}", node="n1", phase=PodPhase.SUCCEEDED, created=harness.now - 9) for at in range(2)]
    harness.pods = {each.uid: each for each in ended}
    waiting = pods("a", 2, first=2, created=harness.now)
    harness.groups[GroupKey("default", "a")] = group("a", min_member=2)
    if not later:
        harness.pods |= {each.uid: each for each in waiting}
    harness.restart()
    harness.wait(2)
    harness.wait(5, *waiting)
    status = harness.status("default/a")
    assert (status.phase, status.succeeded) == ("Scheduled", 0)


@pytest.mark.without("all", why="it changes leaders itself")
def test_a_member_that_finished_without_a_leader_counts_by_its_start_if_it_is_unknown_when_it_was_bound():
    """It was created before the run began, because there was no leader then either."""
    harness = Harness()
    created = harness.now - 100
    harness.wait(5, group("a", min_member=2), node("n1", cpu=9), *pods("a", 2, created=created))
    harness.run_pods()
    harness.wait(5)
    found = harness.pod("default/a-0")
    times = {"bound_at": 0.0, "lifetime": Lifetime(start=harness.now)}
    harness.pods[found.uid] = replace(found, phase=PodPhase.SUCCEEDED, **times)
    harness.restart()
    harness.wait(5)
    assert harness.status("default/a").succeeded == 1


@pytest.mark.without("all", why="it changes leaders itself")
def test_a_member_that_is_leaving_does_not_show_that_its_group_without_a_podgroup_was_scheduled():
    """A quorum of which one member was evicted is not taken for a scheduled group, whose members are bound singly."""
    harness = Harness()
    left, made_again = (pod(name, declaration=Declaration(group="x", min_member=2)) for name in ("x-0", "y-1"))
    harness.nodes["n1"] = node("n1", cpu=9)
    harness.pods[left.uid] = replace(left, node="n1", bound_at=harness.now - 9, terminating=True)
    harness.pods[made_again.uid] = replace(made_again, created=harness.now - 1)
    harness.restart()
    harness.wait(60)
    assert not harness.bound("default/y-1")


TASKS = '[{"name": "left", "minMember": 1}, {"name": "right", "minMember": 1}]'
SIDES = (Role("left", 1), Role("right", 1))


@pytest.mark.parametrize("way", ["kai", "volcano", "yunikorn"])
def test_a_group_without_a_record_is_taken_over_with_the_minimum_of_each_role(way):
    """One left and one right run; the right one is lost, and there is room for one.

    1. Two members of left and one of right wait on a node with room for two: left-0 and right-0 are bound.
    2. right-0 is deleted and created again, younger than left-1, which waits for room.
    3. With or without a new leader in between, right-1 is bound, because left has its minimum and right has not.
    """
    harness = Harness()

    def side(name: str, **fields) -> Pod:
        role = name.partition("-")[0]
        labels, annotations = {
            "kai": ({"kai.scheduler/subgroup-name": role}, {"pod-group-name": "g"}),
            "volcano": ({"volcano.sh/task-spec": role}, {"scheduling.k8s.io/group-name": "g"}),
            "yunikorn": (
                {"applicationId": "g"},
                {"yunikorn.apache.org/task-groups": TASKS, "yunikorn.apache.org/task-group-name": role},
            ),
        }[way]
        return pod(name, declaration=DEFAULT.declaration(labels, annotations), **fields)

    if way != "yunikorn":
        harness.add(foreign_group(way, "default/g", min_member=2, roles=SIDES))
    harness.wait(5, node("n1", cpu=2), side("left-0"), side("left-1"), side("right-0"))
    assert harness.bound() == ["default/left-0", "default/right-0"]
    harness.run_pods()
    # Longer than a quorum is taken for half bound without a record.
    harness.wait(OUTAGE_S + 60)
    harness.add(node("n1", cpu=1))
    harness.delete("default/right-0")
    harness.wait(5, side("right-1", created=harness.now))
    harness.restart()
    harness.wait(5, node("n1", cpu=2))
    assert harness.bound() == ["default/left-0", "default/right-1"]


def test_a_failed_group_stays_failed_though_its_members_were_not_told_so_before_the_leader_died():
    harness = waiting_under_fail()
    harness.wait(5)
    before = dict(harness.pods)
    harness.wait(20)
    assert harness.status("default/a").phase == "Failed"
    harness.pods = before
    harness.nodes["n1"] = node("n1", cpu=2)
    harness.restart()
    harness.wait(5)
    assert harness.status("default/a").phase == "Failed"


@pytest.mark.parametrize("leads", [False, True], ids=["while nobody leads", "while somebody leads"])
def test_a_driver_that_a_failed_group_has_left_bound_stays_when_the_spec_changes_and_there_is_no_room(leads):
    harness = holding(timeout_policy=TimeoutPolicy.FAIL)
    harness.wait(TIME_S + 60)
    harness.wait(5, *pods("", 8))
    if leads:
        harness.change_spec("default/a", max_schedule_time_s=100.0)
    else:
        change_unseen(harness, max_schedule_time_s=100.0)
        harness.restart()
    harness.wait(60)
    assert not harness.evicted


@pytest.mark.parametrize("leads", [False, True], ids=["while nobody leads", "while somebody leads"])
def test_a_changed_spec_lets_a_late_group_hold_places_again(leads):
    harness = holding()
    harness.wait(TIME_S + 5)
    if leads:
        harness.change_spec("default/a", max_schedule_time_s=100.0)
    else:
        change_unseen(harness, max_schedule_time_s=100.0)
        harness.restart()
    harness.wait(4)
    assert len(harness.gang("default/a").operations.placeholders()) == 4


def test_a_longer_time_that_nobody_saw_being_set_applies_to_the_places_held():
    """maxScheduleTime is raised while there is no leader; the next one starts after the old time would have passed."""
    harness = holding()
    harness.wait(TIME_S - 5)
    change_unseen(harness, max_schedule_time_s=600.0)
    harness.now += 10
    harness.restart()
    harness.wait(5)
    assert len(harness.gang("default/a").operations.placeholders()) == 4


def test_an_application_taken_over_without_room_still_has_places_held_after_another_restart():
    """No place was ever released, so the message does not say so, and places are reserved as soon as there is room."""
    harness = taken_over_without_its_group()
    harness.wait(40, node("n1", cpu=3))
    harness.restart()
    harness.wait(2)
    assert "as soon as they exist and fit" in harness.condition("default/app").message
    harness.wait(5, node("n2", cpu=20))
    assert len(harness.gang("default/app").operations.placeholders()) == 2


def test_a_group_in_back_off_is_tried_again_when_its_podgroup_is_replaced_at_once():
    harness = Harness()
    harness.refuse_bind = lambda effect: BindRefused(effect.uid, effect.node, Refused.FORBIDDEN, "no")
    harness.wait(2, node("n1", cpu=9), group("a", min_member=2), *pods("a", 2))
    assert harness.status("default/a").phase == "TimedOut"
    harness.refuse_bind = lambda _: None
    harness.delete_group("default/a")
    harness.wait(30, group("a", min_member=2, uid="another"))
    assert len(harness.bound()) == 2
