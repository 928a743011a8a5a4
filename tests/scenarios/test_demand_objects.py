"""When palantir's autoscaler gets a Demand and what it asks for: the life of Demand objects."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from gangsched.core.autoscaling.scaling import LONGEST_RETRY_S
from gangsched.core.objects.demands import DemandKey, DemandObject, DemandUnit, PoolDemand
from gangsched.core.objects.effects import DropDemand, PutDemand
from gangsched.core.objects.events import DemandsHidden
from gangsched.core.objects.policy import Policy
from gangsched.core.status.conditions import NO_ROOM
from tests.builders import amounts, group, node, pod, pods
from tests.effort import seeded
from tests.harness import Harness
from tests.scenarios.test_spark import driver

BATCH, GPU = {"resource_channel": "batch"}, {"resource_channel": "gpu"}
DRIVER = DemandUnit(1, amounts({"cpu": "1", "memory": "1Gi"}), ("app-driver",))


def executor_unit(count: int) -> DemandUnit:
    return DemandUnit(count, amounts({"cpu": "2", "memory": "1Gi"}))


def spark(harness: Harness, app: str = "app", **fields: Any) -> None:
    harness.add(driver(app, node_selector=BATCH, **fields))


def served(policy: Policy | None = None) -> Harness:
    harness = Harness(policy)
    harness.serve_demands()
    return harness


def named(harness: Harness) -> list[str]:
    assert harness.demands is not None
    return sorted(key.name for key in harness.demands)


def demand(harness: Harness, name: str = "demand-app-driver") -> DemandObject:
    assert harness.demands is not None
    return harness.demands[DemandKey("default", name)].demand


def writes(harness: Harness) -> list[PutDemand | DropDemand]:
    return [effect for effect in harness.effects if isinstance(effect, PutDemand | DropDemand)]


def stale(owner: str = "app-driver", name: str = "") -> DemandObject:
    pool = PoolDemand(instance_group="batch", units=(DRIVER,))
    return DemandObject(DemandKey("default", name or f"demand-{owner}"), owner, f"uid-default/{owner}", pool)


def test_a_driver_that_does_not_fit_has_its_application_demanded_once_and_no_more_when_it_is_bound():
    harness = served()
    harness.add(node("n1", cpu=2, labels=BATCH))
    spark(harness)
    harness.wait(0.9)
    assert not writes(harness)
    harness.wait(0.2)
    assert demand(harness) == DemandObject(
        DemandKey("default", "demand-app-driver"),
        "app-driver",
        "uid-default/app-driver",
        PoolDemand(instance_group="batch", units=(executor_unit(4),)),
    )
    harness.wait(600)
    assert len(writes(harness)) == 1
    harness.settle(node("n2", cpu=8, labels=BATCH))
    assert harness.bound() == ["default/app-driver"]
    assert named(harness) == []
    harness.wait(600)
    assert len(writes(harness)) == 2


def test_several_instance_groups_have_an_object_each():
    harness = served()
    harness.wait(2, group(min_member=2), pod("a-0", node_selector=BATCH), pod("a-1", node_selector=GPU))
    assert named(harness) == ["demand-a-0-batch", "demand-a-0-gpu"]
    harness.settle(node("n1", cpu=1, labels=GPU))
    assert "demand-a-0-gpu" not in named(harness)
    harness.wait(2)
    assert named(harness) == ["demand-a-0"]


@pytest.mark.parametrize(
    "thing",
    [
        pytest.param(pod("p", group="", node_selector=BATCH), id="a pod without a group"),
        pytest.param(driver(), id="a driver that asks for no instance group"),
        pytest.param(pod("a-0", node_selector=BATCH), id="an incomplete group"),
    ],
)
def test_nothing_is_demanded_for(thing):
    harness = served()
    harness.wait(60, group(min_member=2), thing)
    assert not writes(harness)


@pytest.mark.without("restarts", "standbys", "leaderless", why="how often an object may be written is in memory")
def test_other_numbers_are_written_at_most_every_30_seconds():
    harness = served()
    spark(harness)
    harness.wait(2)
    for number in range(3):
        harness.wait(1, node(f"n{number}", cpu=2, labels=BATCH))
    assert demand(harness).pool.units == (executor_unit(4), DRIVER)
    harness.wait(30)
    assert demand(harness).pool.units == (executor_unit(2),)
    assert [type(effect) for effect in writes(harness)] == [PutDemand, PutDemand]
    assert writes(harness)[1].uid


@pytest.mark.parametrize("end", ["gone", "incomplete", "ungrouped"])
def test_the_object_is_deleted_at_once_when_the_group_is(end):
    harness = served()
    harness.wait(2, group(min_member=2), *pods("a", 2, node_selector=BATCH))
    assert named(harness) == ["demand-a-0"]
    if end == "gone":
        harness.delete("default/a-0", "default/a-1")
    elif end == "incomplete":
        harness.delete("default/a-1")
    else:
        for name in ("a-0", "a-1"):
            harness.change(f"default/{name}", declaration=None)
    harness.settle()
    assert named(harness) == []


def test_a_kind_that_vanishes_and_comes_again_has_all_demanded_anew():
    harness = served()
    spark(harness)
    harness.wait(2)
    harness.demands = None
    harness.report(DemandsHidden())
    harness.wait(3)
    harness.wait(2, node("n1", cpu=2, labels=BATCH))
    assert len(writes(harness)) == 1
    harness.serve_demands()
    harness.settle()
    assert demand(harness).pool.units == (executor_unit(4),)


@pytest.mark.without("restarts", "standbys", "leaderless", why="how often an object may be written is in memory")
def test_an_object_that_somebody_deletes_is_made_again_but_not_at_once():
    harness = served()
    spark(harness)
    harness.wait(2)
    harness.delete_demand("default/demand-app-driver")
    harness.wait(5)
    assert named(harness) == []
    harness.wait(25)
    assert named(harness) == ["demand-app-driver"]
    for _ in range(3):
        harness.wait(31)
        harness.delete_demand("default/demand-app-driver")
        harness.settle()
        assert named(harness) == ["demand-app-driver"]


@pytest.mark.without("restarts", why="how often an object may be written is in memory")
def test_a_name_that_somebody_else_has_is_tried_ever_more_seldom():
    harness = served()
    harness.refuse_demand = lambda _: True
    spark(harness)
    harness.wait(2)
    assert len(writes(harness)) == 1
    harness.wait(40)
    assert len(writes(harness)) == 2
    harness.wait(24 * LONGEST_RETRY_S)
    assert len(writes(harness)) <= 36
    harness.refuse_demand = lambda _: False
    harness.wait(LONGEST_RETRY_S)
    assert named(harness) == ["demand-app-driver"]


def test_a_restart_deletes_what_is_wanted_no_more_and_puts_right_what_has_changed():
    harness = served()
    spark(harness)
    spark(harness, "done", executors=0)
    harness.add_demand(stale())
    harness.add_demand(stale("done-driver"))
    harness.add_demand(stale("app-driver", "demand-app-driver-other"))
    harness.add(node("n1", cpu=1, labels=BATCH))
    harness.change("default/done-driver", node="n1")
    harness.restart()
    assert named(harness) == ["demand-app-driver"]
    harness.wait(2)
    assert demand(harness).pool.units == (executor_unit(4), DRIVER)


def collect_garbage(harness: Harness) -> None:
    """Delete the objects whose owner is gone, as the control plane does."""
    assert harness.demands is not None
    for key, seen in list(harness.demands.items()):
        if seen.demand.owner_uid not in harness.pods:
            harness.delete_demand(str(key))
    harness.settle()


@seeded(20)
@pytest.mark.without("restarts", "standbys", why="what an earlier leader made, the control plane collects")
def test_whatever_happens_in_whatever_order_those_who_wait_for_room_are_demanded_in_the_end(seed):
    random = Random(seed)
    harness = Harness(seed=seed)
    harness.serve_demands()
    for number in range(20):
        app = f"app-{number}"
        harness.add(group(app, min_member=2), *pods(app, 2, node_selector=random.choice([BATCH, GPU])))
        if random.random() < 0.5:
            harness.add(node(f"n{number}", cpu=random.randint(1, 2), labels=random.choice([BATCH, GPU])))
        if random.random() < 0.3:
            harness.delete(random.choice([f"{pod.namespace}/{pod.name}" for pod in harness.pods.values()]))
        if random.random() < 0.1:
            harness.restart()
        harness.refuse_demand = lambda _: random.random() < 0.3
        harness.wait(random.random() * 3)
    harness.refuse_demand = lambda _: False
    harness.wait(600)
    collect_garbage(harness)
    waiting = [key.name for key, gang in harness.machine.gangs.items() if gang.reason in NO_ROOM and gang.wait.refusal]
    assert waiting
    assert named(harness) == sorted(f"demand-{name}-0" for name in waiting)
    harness.delete(*(f"{pod.namespace}/{pod.name}" for pod in list(harness.pods.values()) if not pod.node))
    harness.wait(2)
    assert named(harness) == []


def test_two_gangs_never_quarrel_about_one_name():
    harness = served()
    harness.add(group("default/a", min_member=2), group("default/b", min_member=1))
    harness.add(pod("x", group="a", node_selector=BATCH), pod("y", group="a", node_selector=GPU))
    harness.wait(300, pod("x-gpu", group="b", node_selector=BATCH))
    assert named(harness) == ["demand-x-batch", "demand-x-gpu"]
    harness.delete("default/x-gpu")
    harness.wait(300)
    assert named(harness) == ["demand-x-batch", "demand-x-gpu"]
    assert len(writes(harness)) == 2
