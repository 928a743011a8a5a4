"""Spark applications as users of palantir's and cosmin's schedulers declare them: a driver, and
executors made later.
"""

from __future__ import annotations

from typing import Any

import pytest

from gangsched.config.dialect_settings import Spark
from gangsched.config.settings import Settings
from gangsched.core.objects.pod import Pod, PodPhase
from gangsched.core.objects.policy import FifoRules, Policy
from gangsched.core.objects.results import GroupNotMade
from gangsched.core.objects.shape import NodeTerm, Requirement
from gangsched.kube.dialects.dialect_table import DEFAULT, chosen
from tests.builders import node, pod
from tests.harness import Harness


def driver(app: str = "app", executors: int = 4, *, most: int = 0, dialects: Any = DEFAULT, **fields: Any) -> Pod:
    """A driver of 1 CPU that wants executors of 2 CPU and 1Gi; with `most`, from `executors` to `most` of them."""
    annotations = {"spark-driver-cpu": "1", "spark-driver-mem": "1Gi", "spark-executor-cpu": "2"}
    annotations["spark-executor-mem"] = "1Gi"
    if most:
        annotations["spark-dynamic-allocation-enabled"] = "true"
        annotations["spark-dynamic-allocation-min-executor-count"] = str(executors)
        annotations["spark-dynamic-allocation-max-executor-count"] = str(most)
    else:
        annotations["spark-executor-count"] = str(executors)
    said = dialects.declaration({"spark-role": "driver", "spark-app-id": app}, annotations)
    asked: dict[str, Any] = {"memory": "1Gi", **fields}
    return pod(f"{app}-driver", declaration=said, **asked)


def executors(app: str = "app", count: int = 4, *, first: int = 0, **fields: Any) -> list[Pod]:
    said = DEFAULT.declaration({"spark-role": "executor", "spark-app-id": app}, {})
    asked: dict[str, Any] = {"cpu": 2, "memory": "1Gi", "declaration": said, **fields}
    return [pod(f"{app}-exec-{at}", **asked) for at in range(first, first + count)]


def plain(count: int, **fields: Any) -> list[Pod]:
    return [pod(f"plain-{number}", group="", **fields) for number in range(count)]


def running(*, cpu: int = 9, least: int = 4, most: int = 0) -> Harness:
    """An application whose whole minimum is running."""
    harness = Harness.settled(node("n1", cpu=cpu), driver(executors=least, most=most))
    harness.settle(*executors(count=least))
    harness.run_pods()
    harness.wait(2)
    assert harness.status("default/app").phase == "Running"
    return harness


@pytest.mark.without("disorder", why="asserts what one order of events leads to")
def test_of_two_drivers_that_are_larger_together_than_the_cluster_exactly_one_application_runs():
    harness = Harness.waited(5, node("n1", cpu=9), driver("one", created=1.0), driver("two", created=2.0))
    assert harness.bound() == ["default/one-driver"]
    harness.wait(5, *executors("one"))
    assert len(harness.bound("default/one")) == 5
    assert not harness.bound("default/two")


def test_a_group_is_made_for_the_driver_before_it_is_bound_and_says_what_the_driver_says():
    harness = Harness.settled(node("n1", cpu=9), driver(created=7.0))
    (group,) = harness.groups.values()
    assert group.made
    assert group.spec is not None
    assert (group.spec.min_member, group.spec.minimum) == (5, 5)
    assert [(role.name, role.min_member, role.max_member) for role in group.spec.roles] == [
        ("driver", 1, 1),
        ("executor", 4, 4),
    ]
    harness.wait(2)
    assert (group.key.name, harness.status("default/app").source) == ("app", "palantir pods")
    assert harness.gang("default/app").observed.group is not None
    assert harness.machine.assessments[group.key].terms.created == 7.0


def test_nothing_is_bound_while_the_group_cannot_be_made_and_people_are_told():
    harness = Harness()
    harness.refuse_making = lambda effect: GroupNotMade(effect.key, "the PodGroup app was not created: 403 no")
    harness.wait(4, node("n1", cpu=9), driver())
    assert not harness.bound()
    (event,) = harness.events("BindingRefused")
    assert (event.kind, event.name) == ("Pod", "app-driver")
    assert "the PodGroup app was not created: 403 no" in event.note
    harness.refuse_making = lambda _: None
    harness.wait(6)
    assert harness.bound() == ["default/app-driver"]


def test_executors_without_a_driver_wait_and_say_so():
    harness = Harness.waited(2, node("n1", cpu=9), *executors(count=1))
    executor = harness.pod("default/app-exec-0")
    assert executor.condition_reason == "PodGroupNotFound"
    assert executor.condition_message == (
        "Group app: No pod of the role driver was found in namespace default, and only that pod says how many members "
        "app has: start it with a schedulerName that gangsched serves, or create a PodGroup app."
    )


def test_places_that_nobody_has_taken_are_released_when_the_driver_has_completed_not_when_it_is_deleted():
    harness = Harness.settled(node("n1", cpu=9), driver())
    harness.settle(*executors(count=2))
    harness.settle(*plain(20))
    assert not harness.bound("default/plain")
    harness.change("default/app-driver", phase=PodPhase.SUCCEEDED)
    harness.settle()
    assert len(harness.bound("default/plain")) == 5, "the driver's CPU and the two places that waited"
    harness.delete("default/app-exec-0", "default/app-exec-1")
    harness.settle()
    assert len(harness.bound("default/plain")) == 9


@pytest.mark.parametrize("end", [PodPhase.SUCCEEDED, PodPhase.FAILED])
def test_the_end_of_the_driver_is_that_of_the_application(end):
    harness = running()
    harness.change("default/app-driver", phase=end)
    harness.settle()
    harness.delete(*(f"default/app-exec-{at}" for at in range(4)))
    harness.wait(2)
    assert harness.status("default/app").phase == end.value


def test_executors_above_the_minimum_are_bound_when_there_is_room_up_to_the_maximum():
    harness = running(cpu=7, least=1, most=3)
    harness.wait(2, *executors(count=3, first=1))
    assert len(harness.bound("default/app-exec")) == 3
    assert harness.pod("default/app-exec-3").condition_reason == "AboveMaxMember"


@pytest.mark.without("disorder", why="asserts what one order of events leads to")
def test_an_executor_above_the_maximum_is_told_who_says_how_many_there_are():
    harness = running(cpu=20, most=5)
    harness.wait(2, *executors(count=2, first=4))
    executor = harness.pod("default/app-exec-5")
    assert executor.condition_reason == "AboveMaxMember"
    assert executor.condition_message == (
        "Group app: The group already has as many members as its driver asks for: this pod is bound once another one "
        "has ended."
    )


def test_places_are_held_where_the_driver_prefers_nodes_and_need_none_of_its_features():
    harness = Harness()
    spot = {"pool": "spot"}
    harness.add(node("busy", cpu=64, features=["F"]), node("spot", cpu=64, labels=spot))
    harness.settle(pod("old", group="", cpu=9, node="busy"))
    harness.wait(2, driver(executors=1, features=["F"], likes={1: NodeTerm((Requirement("pool", "In", ("spot",)),))}))
    assert harness.pod("default/app-driver").node == "busy"
    reservation = harness.status("default/app").reservation
    assert reservation is not None
    assert {place.node for place in reservation.placements if place.role == "executor"} == {"spot"}


def test_drivers_and_executors_go_to_the_nodes_that_the_configuration_prefers():
    label = "tier"
    spark = Spark.model_validate(
        {
            "binpack": "tightly-pack",
            "driverPrioritizedNodeLabel": {"labelName": label, "labelValuesDescendingPriority": ["steady", "spot"]},
            "executorPrioritizedNodeLabel": {"labelName": label, "labelValuesDescendingPriority": ["spot", "steady"]},
        }
    )
    dialects = chosen(Settings(spark=spark))
    harness = Harness()
    harness.add(node("a", cpu=64, labels={label: "steady"}), node("b", cpu=64, labels={label: "spot"}), node("c"))
    harness.wait(2, driver(dialects=dialects))
    reservation = harness.status("default/app").reservation
    assert harness.pod("default/app-driver").node == "a"
    assert reservation is not None
    assert [(place.node, place.count) for place in reservation.placements] == [("b", 4)]


@pytest.mark.parametrize(
    ("binpack", "nodes"),
    [
        ("distribute-evenly", {"n1": 2, "n2": 2, "n3": 1}),
        ("tightly-pack", {"n1": 5}),
    ],
)
def test_the_packer_of_the_configuration_is_that_of_all_applications(binpack, nodes):
    harness = Harness.of(*(node(f"n{number}", cpu=16) for number in (1, 2, 3)))
    harness.settle(driver(dialects=chosen(Settings(spark=Spark(binpack=binpack)))))
    harness.settle(*executors())
    on = [harness.pod(name).node for name in harness.bound()]
    assert sorted(on.count(name) for name in set(on)) == sorted(nodes.values())


def cosmin_driver(**labels: str) -> Pod:
    said = {"spark-role": "driver", "driver-cpu": "2", "driver-mem": "1", "executors": "2", "exec-cpu": "1"}
    declaration = DEFAULT.declaration({**said, "exec-mem": "1", **labels}, {}, pod="job-driver")
    return pod("job-driver", cpu=2, memory="1Gi", declaration=declaration)


def cosmin_executors(count: int, *, owner: str = "job-driver") -> list[Pod]:
    labels = {"spark-role": "executor", "exec-cpu": "1", "exec-mem": "1"}
    declaration = DEFAULT.declaration(labels, {}, pod="x", owner=owner)
    return [pod(f"job-exec-{at}", cpu=1, memory="1Gi", declaration=declaration) for at in range(count)]


def test_cosmins_driver_is_deducted_before_its_executors():
    harness = Harness.waited(2, node("n1", cpu=3), cosmin_driver())
    assert not harness.bound()
    harness.settle(node("n2", cpu=1))
    assert harness.bound() == ["default/job-driver"]
    harness.add(*plain(5))
    harness.settle(*cosmin_executors(2))
    assert len(harness.bound("default/job")) == 3
    assert not harness.bound("default/plain")


POOL = {"resource_channel": "batch"}


def in_pool(app: str, count: int, created: float, **fields: Any) -> Pod:
    return driver(app, count, created=created, node_selector=POOL, **fields)


def queueing(*, cpu: int = 10, policy: Policy | None = None) -> Harness:
    """A pool in which half of the CPUs are in use."""
    harness = Harness(policy)
    harness.now = 1_000_100.0
    harness.add(node("n1", cpu=cpu, labels=POOL), pod("old", group="", cpu=cpu // 2, node="n1"))
    return harness


def test_a_small_application_does_not_overtake_an_earlier_one_of_its_instance_group():
    harness = queueing()
    harness.wait(3, in_pool("large", 4, 1.0), in_pool("small", 1, 2.0))
    assert not harness.bound("default/large")
    assert not harness.bound("default/small")
    told = harness.pod("default/small-driver")
    assert told.condition_reason == "NotItsTurn"
    assert "Groups of the instance group batch are bound in the order of their age" in told.condition_message
    assert "default/large waits for room before this one" in told.condition_message
    harness.delete("default/old")
    harness.settle()
    assert harness.bound() == ["default/large-driver"]
    harness.add(*executors("large"))
    harness.wait(2, node("n2", cpu=3, labels=POOL))
    assert "default/small-driver" in harness.bound(), "its turn has come"


def test_an_application_that_can_never_fit_is_flagged_at_once_and_holds_nobody_up():
    harness = queueing()
    harness.wait(2, in_pool("huge", 40, 1.0), in_pool("small", 1, 2.0))
    assert harness.bound("default/small") == ["default/small-driver"]
    assert harness.pod("default/huge-driver").condition_reason == "Unschedulable"
    assert "could not take them even if they were empty" in harness.pod("default/huge-driver").condition_message


@pytest.mark.parametrize(
    "other",
    [
        {"node_selector": {"resource_channel": "other"}},
        {"node_selector": {}},
    ],
)
def test_applications_of_another_instance_group_or_of_none_wait_for_nobody(other):
    harness = queueing()
    harness.add(node("n2", cpu=3, labels={"resource_channel": "other"}))
    harness.wait(2, in_pool("large", 4, 1.0), driver("small", 1, created=2.0, **other))
    assert harness.bound("default/small") == ["default/small-driver"]


def test_a_younger_application_than_the_age_of_enforcement_is_overtaken():
    rules = FifoRules(after_s=60.0)
    harness = queueing(policy=Policy(fifo=rules))
    harness.settle(in_pool("large", 4, harness.now - 10), in_pool("small", 1, harness.now - 5))
    assert harness.bound("default/small") == ["default/small-driver"]
    harness.wait(60)
    harness.wait(2, in_pool("later", 0, harness.now))
    assert not harness.bound("default/later")
    assert harness.pod("default/later-driver").condition_reason == "NotItsTurn"


@pytest.mark.without("disorder", why="asserts what one order of events leads to")
def test_executors_of_earlier_applications_count_each_however_many_share_a_node():
    """palantir's own accounting counts the executors on one node once, so later drivers jump ahead."""
    harness = Harness()
    harness.now = 1_000_100.0
    harness.add(node("n1", cpu=20, labels=POOL), pod("old", group="", cpu=6, node="n1"))
    harness.wait(2, in_pool("one", 3, 1.0), in_pool("two", 3, 2.0), in_pool("three", 1, 3.0))
    assert harness.bound("default/one") + harness.bound("default/two") == ["default/one-driver", "default/two-driver"]
    assert not harness.bound("default/three")
    assert harness.pod("default/three-driver").condition_reason == "Unschedulable"


def test_an_application_that_a_move_of_its_own_node_takes_to_a_zone_with_room_is_woken():
    """No PodGroup gives the topology; the configured packer does. The node that moves is itself full."""
    zone = "topology.kubernetes.io/zone"
    harness = Harness.of(node("n1", cpu=3, labels={zone: "a"}))
    harness.add(driver(executors=1, most=3, dialects=chosen(Settings(spark=Spark(binpack="single-az-tightly-pack")))))
    harness.settle()
    harness.settle(*executors(count=1))
    harness.wait(2, node("n2", cpu=8, labels={zone: "b"}), *executors(count=1, first=1))
    assert "default/app-exec-1" not in harness.bound()
    harness.settle(node("n1", cpu=3, labels={zone: "b"}))
    assert harness.pod("default/app-exec-1").node == "n2"


def taken_over_without_its_group() -> Harness:
    """A user deletes the driver's PodGroup while there is no leader, when one of its three executors has arrived."""
    harness = Harness.settled(node("n1", cpu=7), driver(executors=3))
    assert harness.bound() == ["default/app-driver"]
    harness.now += 1
    (first,) = executors(count=1, created=harness.now)
    harness.pods[first.uid] = first
    del harness.groups[harness.group("default/app").key]
    harness.restart()
    harness.settle()
    return harness


def test_an_application_whose_group_is_gone_after_a_restart_waits_again_for_the_executors_that_it_never_had():
    harness = taken_over_without_its_group()
    assert harness.bound() == ["default/app-driver", "default/app-exec-0"]
    harness.wait(3)
    reservation = harness.status("default/app").reservation
    assert reservation is not None
    assert [place.count for place in reservation.placements] == [2]
    condition = harness.condition("default/app")
    assert (condition.status, condition.reason) == (False, "MembersMissing")
    assert condition.message == "2 of 4 members are bound and 2 places are held for the missing ones, for up to 1m."
    assert harness.condition("default/app", "Degraded").status
    assert not harness.events("Scheduled")
    harness.wait(60)
    assert harness.status("default/app").reservation is None
    assert "the others were not created within 1m" in harness.condition("default/app").message
    harness.wait(3, *executors(count=2, first=1))
    assert harness.condition("default/app").status
    assert harness.status("default/app").phase == "Scheduled"
    assert not harness.evicted


@pytest.mark.without("restarts", "standbys", why="the record is gone with its PodGroup when the leader dies")
def test_an_application_whose_group_is_gone_after_a_restart_is_scheduled_if_all_of_it_is_bound():
    harness = running(least=3)
    del harness.groups[harness.group("default/app").key]
    harness.restart()
    harness.change("default/app-exec-0", phase=PodPhase.FAILED)
    harness.wait(3)
    assert harness.condition("default/app").status
    assert harness.status("default/app").phase == "Degraded"


def test_executors_for_which_there_is_no_room_after_a_restart_without_the_group_leave_the_others_alone():
    harness = taken_over_without_its_group()
    bound = harness.bound()
    harness.wait(40, node("n1", cpu=3))
    condition = harness.condition("default/app")
    assert (condition.status, condition.reason) == (False, "MembersMissing")
    assert "the others are bound first, as soon as they exist and fit" in condition.message
    harness.wait(120)
    assert harness.bound() == bound
    assert not harness.evicted
