"""The promises of gangsched, kept on the real API server by the real operator."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

import pytest

from testbed.operator import Operator
from testbed.workloads import member, pod_group
from tests.effort import seeded
from tests.integration.cluster import Cluster
from tests.integration.waiting import until

pytestmark = pytest.mark.usefixtures("operator")
GANGS, MEMBERS = 20, 5


def test_a_lone_group_on_an_idle_cluster_is_bound_with_no_other_event(cluster: Cluster) -> None:
    cluster.add_node("n1")
    cluster.add_group("lone", min_member=3)
    cluster.add_pods("lone", 3)

    cluster.until_bound("lone", 3)
    cluster.until(lambda: cluster.phase("lone") == "Running")

    assert cluster.condition("lone")["status"] == "True"
    cluster.until(lambda: cluster.events("lone", "Scheduled"))
    [event] = cluster.events("lone", "Scheduled")
    assert "n1 (3)" in event["note"]


@seeded(10)
def test_of_eight_groups_that_fit_four_at_a_time_four_are_whole_and_none_is_partial(
    cluster: Cluster, seed: int
) -> None:
    for number in range(5):
        cluster.add_node(f"n{number}", cpu="4")
    groups = [f"g{number}" for number in range(8)]
    creations: list[Callable[[], None]] = [partial(cluster.add_group, group, min_member=5) for group in groups]
    creations += [partial(cluster.add_pod, f"{group}-{number}", group) for group in groups for number in range(5)]
    Random(seed).shuffle(creations)

    for create in creations:
        create()
    cluster.until(lambda: len(cluster.bound()) == 20)
    waiting = [group for group in groups if not cluster.bound(group)]
    for group in waiting:
        cluster.until_reason(group, "Unschedulable")

    assert sorted(len(cluster.bound(group)) for group in groups) == [0, 0, 0, 0, 5, 5, 5, 5]


def test_a_group_without_room_times_out_and_is_bound_as_soon_as_there_is_some(cluster: Cluster, tmp_path: Path) -> None:
    """An operator of its own, because the back-off must be longer than a busy machine takes to bind two pods."""
    config = tmp_path / "config.yaml"
    config.write_text("backoff: {initial: 60s}\n")
    cluster.add_node("n1", cpu="1")
    with Operator(cluster.control_plane, "--scheduler-name", "patient", "--config", str(config)):
        began = time.monotonic()
        cluster.add_group("slow", min_member=2, maxScheduleTime="2s")
        cluster.add_pods("slow", 2, scheduler="patient")
        cluster.until(lambda: cluster.phase("slow") == "TimedOut")
        took_s = time.monotonic() - began
        message = cluster.condition("slow")["message"]
        cluster.until(lambda: cluster.events("slow", "TimedOut"))
        cluster.until(lambda: cluster.told("slow-0").get("status") == "False")
        told = cluster.told("slow-0")

        cluster.add_node("n2", cpu="1")
        began = time.monotonic()
        cluster.until_bound("slow", 2, within_s=90)
        bound_after_s = time.monotonic() - began

    assert bound_after_s < 50, "it waited for the back-off of 60 s"
    assert took_s >= 2
    assert "No room within 2s" in message
    assert "Only 1 of 2 members fit" in message
    assert told["reason"] == "Unschedulable"
    assert "Only 1 of 2 members fit" in told["message"]


def test_a_group_that_can_never_fit_is_told_at_once_and_delays_nobody(cluster: Cluster) -> None:
    cluster.add_node("n1", cpu="4")
    cluster.add_group("huge", min_member=5)
    cluster.add_pods("huge", 5)
    cluster.add_group("small", min_member=3)
    cluster.add_pods("small", 3)
    cluster.until_bound("small", 3)
    message = cluster.until_reason("huge", "NeverFits")
    cluster.until(lambda: cluster.told("huge-0").get("reason") == "Unschedulable")

    assert "even if they were empty" in message


def test_what_must_be_added_is_in_the_status_and_such_nodes_let_the_group_be_bound(cluster: Cluster) -> None:
    for zone, cpu in (("a", "1"), ("b", "2")):
        cluster.add_node(f"n-{zone}", cpu=cpu, labels={"example.com/zone": zone})
    topology = {"key": "example.com/zone", "mode": "Required"}
    cluster.add_group("wide", min_member=4, placement={"topology": topology})
    cluster.add_pods("wide", 4, requests={"cpu": "1", "memory": "1Gi"})
    cluster.until(lambda: cluster.status("wide").get("demand"))
    seen = cluster.control_plane.kubectl(
        *("get", "podgroups.gangsched.io", "wide", "-n", cluster.namespace, "-o", "jsonpath={.status.demand}")
    )
    [entry] = json.loads(seen)
    assert entry == {"count": 2, "requests": {"cpu": "1000m", "memory": "1073741824"}, "domain": "b"}

    for number in range(entry["count"]):
        assert cluster.bound("wide") == {}
        cluster.add_node(
            f"new-{number}",
            cpu=entry["requests"]["cpu"],
            memory=entry["requests"]["memory"],
            pods="1",
            labels={"example.com/zone": entry["domain"]},
        )
    cluster.until_bound("wide", 4)
    cluster.until(lambda: not cluster.status("wide").get("demand"))


def test_a_plain_pod_is_placed_alone_and_told_in_its_own_condition(cluster: Cluster) -> None:
    cluster.add_node("n1", cpu="2")
    cluster.add_pod("fits")
    cluster.add_pod("waits", requests={"cpu": "2"})
    cluster.until(lambda: cluster.bound() == {"fits": "n1"})
    cluster.until(lambda: cluster.told("waits").get("reason") == "Unschedulable")
    cluster.until(lambda: cluster.events("waits", "Unschedulable"))
    cluster.delete_pod("fits")
    cluster.until(lambda: cluster.bound() == {"waits": "n1"})


def test_annotations_alone_make_a_group(cluster: Cluster) -> None:
    cluster.add_node("n1")
    annotations = {"gangsched.io/min-member": "2"}
    cluster.add_pod("a-0", "a", annotations=annotations)
    cluster.until(lambda: cluster.told("a-0").get("reason") == "GangIncomplete")
    cluster.add_pod("a-1", "a", annotations=annotations)
    cluster.until_bound("a", 2)


def test_a_group_is_bound_after_the_api_server_was_away(cluster: Cluster, operator: Operator) -> None:
    cluster.add_node("n1")
    cluster.control_plane.restart_apiserver()
    cluster.add_group("after", min_member=2)
    cluster.add_pods("after", 2)
    cluster.until_bound("after", 2, within_s=60)

    assert operator.child.poll() is None, "the operator ended"
    # The next tests need KWOK, which asks the API server ever more seldom while that is away.
    cluster.until(lambda: cluster.phase("after") == "Running", within_s=120)


def test_a_restart_loses_no_group_and_repeats_no_event(cluster: Cluster, operator: Operator) -> None:
    cluster.add_node("n1", cpu="3")
    cluster.add_group("whole", min_member=2)
    cluster.add_pods("whole", 2)
    cluster.until_bound("whole", 2)
    cluster.until(lambda: cluster.phase("whole") == "Running")
    cluster.add_group("waits", min_member=2)
    cluster.add_pods("waits", 2)
    cluster.until(lambda: cluster.events("waits", "Unschedulable"))
    cluster.until_reason("waits", "Unschedulable")
    operator.kill()
    cluster.delete_pod("whole-0")
    operator.start()
    cluster.until(lambda: cluster.phase("whole") == "Degraded")
    cluster.delete_pod("whole-1")
    cluster.until_bound("waits", 2)
    cluster.until(lambda: cluster.events("waits", "Scheduled"))

    assert len(cluster.events("whole", "Scheduled")) == 1
    assert len(cluster.events("waits", "Unschedulable")) == 1


def test_a_namespace_that_is_deleted_while_twenty_gangs_bind_in_it_leaves_nothing_behind(
    cluster: Cluster, operator: Operator
) -> None:
    api, doomed = cluster.api, f"{cluster.namespace}-doomed"
    cluster.add_node("n1", cpu=str(GANGS * MEMBERS), pods="200")
    api.post("/api/v1/namespaces", {"metadata": {"name": doomed}})
    until(lambda: api.get(f"/api/v1/namespaces/{doomed}/serviceaccounts")["items"])
    pods = f"/api/v1/namespaces/{doomed}/pods"
    for number in range(GANGS):
        api.post(f"/apis/gangsched.io/v1alpha1/namespaces/{doomed}/podgroups", pod_group(f"g{number}", min_member=5))
        for at in range(MEMBERS - 1):
            api.post(pods, member(f"g{number}-{at}", f"g{number}"))
    for number in range(GANGS // 2):
        api.post(pods, member(f"g{number}-last", f"g{number}"))
    api.delete(f"/api/v1/namespaces/{doomed}")
    until(lambda: doomed not in [each["metadata"]["name"] for each in api.get("/api/v1/namespaces")["items"]], 120)
    cluster.add_group("all", min_member=GANGS * MEMBERS)
    cluster.add_pods("all", GANGS * MEMBERS)
    cluster.until_bound("all", GANGS * MEMBERS, within_s=60)
    assert operator.child.poll() is None
    assert operator.metric("gangsched_partly_bound_groups") == 0
    assert operator.metric("gangsched_held_capacity") == 0
