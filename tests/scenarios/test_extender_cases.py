"""The cases of k8s-spark-scheduler's own extender tests, as scenarios: nodes of 8 CPUs, 8Gi and a GPU in zones."""

from __future__ import annotations

from typing import Any

import pytest

from gangsched.config.dialect_settings import Spark
from gangsched.config.settings import Settings
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod, PodPhase
from gangsched.kube.dialects.dialect_table import chosen
from tests.builders import GPU, node, pod
from tests.harness import Harness

ZONE = "topology.kubernetes.io/zone"
POOL = {"resource_channel": "batch"}
SINGLE_AZ = chosen(Settings(spark=Spark(binpack="single-az-tightly-pack")))
MIN_FRAG = chosen(Settings(spark=Spark(binpack="single-az-minimal-fragmentation")))


def worker(name: str, zone: str = "zone1") -> Node:
    return node(name, cpu=8, memory="8Gi", gpu=1, labels={ZONE: zone} | POOL)


def application(
    app: str = "app",
    least: int = 2,
    most: int | None = None,
    *,
    dialects: Any = SINGLE_AZ,
    executor_gpu: int = 0,
    executor_cpu: int = 1,
    **fields: Any,
) -> Pod:
    """A driver of 1 CPU and a GPU whose executors take 1 CPU; static unless `most` is given."""
    annotations = {
        "spark-driver-cpu": "1",
        "spark-driver-mem": "1",
        "spark-executor-cpu": str(executor_cpu),
        "spark-executor-mem": "1",
        "spark-executor-nvidia.com/gpu": str(executor_gpu),
    }
    if most is None:
        annotations["spark-executor-count"] = str(least)
    else:
        annotations["spark-dynamic-allocation-enabled"] = "true"
        annotations["spark-dynamic-allocation-min-executor-count"] = str(least)
        annotations["spark-dynamic-allocation-max-executor-count"] = str(most)
    said = dialects.declaration({"spark-role": "driver", "spark-app-id": app}, annotations)
    asked: dict[str, Any] = {"requests": {"cpu": 1, "memory": 1, GPU: 1}, "node_selector": POOL, **fields}
    return pod(f"{app}-driver", declaration=said, **asked)


def executor(number: int, app: str = "app", *, dialects: Any = SINGLE_AZ, gpu: int = 0, cpu: int = 1) -> Pod:
    said = dialects.declaration({"spark-role": "executor", "spark-app-id": app}, {})
    requests = {"cpu": cpu, "memory": 1, GPU: gpu}
    return pod(f"{app}-exec-{number}", declaration=said, requests=requests, node_selector=POOL)


def running(*nodes: Node, least: int, most: int | None = None, dialects: Any = SINGLE_AZ) -> Harness:
    """An application whose driver is bound."""
    harness = Harness.settled(*nodes, application(least=least, most=most, dialects=dialects))
    assert harness.bound() == ["default/app-driver"]
    return harness


def test_a_third_executor_of_two_is_refused_until_one_of_them_has_terminated():
    harness = running(worker("node1"), worker("node2"), least=2)
    harness.settle(executor(0), executor(1))
    harness.wait(2, executor(2))
    assert harness.bound("default/app-exec") == ["default/app-exec-0", "default/app-exec-1"]
    assert harness.pod("default/app-exec-2").condition_reason == "AboveMaxMember"
    place = harness.pod("default/app-exec-0").node
    harness.change("default/app-exec-0", phase=PodPhase.FAILED)
    harness.settle()
    assert harness.bound("default/app-exec") == ["default/app-exec-1", "default/app-exec-2"]
    assert harness.pod("default/app-exec-2").node == place


def test_minimal_fragmentation_puts_a_further_executor_where_the_application_is():
    harness = Harness.settled(worker("node1"), application("static", dialects=MIN_FRAG))
    harness.settle(executor(0, "static"), executor(1, "static"))
    harness.add(worker("node2"))
    # The first driver uses the only GPU of node1, so the second application is on node2.
    harness.settle(application("app", 1, 2, dialects=MIN_FRAG))
    harness.settle(executor(0, dialects=MIN_FRAG))
    harness.settle(executor(1, dialects=MIN_FRAG))
    assert harness.pod("default/app-driver").node == "node2"
    assert harness.pod("default/app-exec-1").node == "node2"


def test_minimal_fragmentation_looks_at_the_room_for_this_size_of_executor():
    """Node1 has room for two more executors of 3 CPUs and a byte, node2 for one, although it has more bytes left."""
    harness = Harness.settled(
        node("node1", cpu=8, memory=8, gpu=1, labels={ZONE: "zone1"} | POOL),
        application("static", 0, dialects=MIN_FRAG, requests={"cpu": 1, "memory": 4, GPU: 1}),
    )
    harness.add(node("node2", cpu=8, memory=8, gpu=1, labels={ZONE: "zone1"} | POOL))
    harness.add(
        application(least=0, most=1, executor_cpu=3, dialects=MIN_FRAG, requests={"cpu": 4, "memory": 1, GPU: 1})
    )
    harness.settle()
    assert [harness.pod(f"default/{app}-driver").node for app in ("static", "app")] == ["node1", "node2"]
    harness.settle(executor(0, cpu=3, dialects=MIN_FRAG))
    assert harness.pod("default/app-exec-0").node == "node2"


def test_executors_above_the_minimum_fill_the_node_of_the_application_and_take_a_dead_ones_place():
    harness = running(worker("node1"), worker("node2"), least=1, most=3)
    home = harness.pod("default/app-driver").node
    for number in range(3):
        harness.settle(executor(number))
    assert {harness.pod(name).node for name in harness.bound("default/app-exec")} == {home}
    assert harness.group("default/app").status.reservation is None
    harness.change("default/app-exec-0", phase=PodPhase.FAILED)
    harness.settle(executor(3))
    assert harness.pod("default/app-exec-3").node == home
    assert harness.pod("default/app-exec-1").node == home


def test_executors_above_the_minimum_stay_in_the_zone_of_the_driver():
    harness = Harness.settled(worker("node1", "zone1"), application("static"))
    harness.add(executor(0, "static"), executor(1, "static"), worker("node2", "zone2"))
    harness.settle(application("app", 0, 2))
    assert harness.pod("default/app-driver").node == "node2"
    harness.settle(executor(0), executor(1))
    assert {harness.pod(name).node for name in harness.bound("default/app-exec")} == {"node2"}


@pytest.mark.parametrize(
    ("others", "before"),
    [([101, 150], []), ([101], []), ([101, 99], [99]), ([99, 101], [99]), ([100], [])],
)
@pytest.mark.without("disorder", why="asserts what one order of events leads to")
def test_only_drivers_created_before_hold_one_up(others, before):
    """None of the applications fits; those created before this one, at 100, precede it in its queue.

    Applications created at the same moment are ordered by name; this one's is smaller.
    """
    harness = Harness()
    harness.now = 1_000_100.0
    harness.add(worker("node1"), pod("old", group="", requests={"cpu": 8}, node="node1"))
    harness.add(application("a", created=100.0))
    harness.wait(2, *(application(f"b{created}", created=float(created)) for created in others))
    told = harness.pod("default/a-driver")
    assert told.condition_reason == ("NotItsTurn" if before else "Unschedulable")
    assert all(f"default/b{created} waits for room before this one" in told.condition_message for created in before)
