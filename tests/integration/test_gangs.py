"""The promises of gangsched, kept on the real API server by the real operator."""

from __future__ import annotations

import pytest

from testbed.operator import Operator
from testbed.workloads import member, pod_group
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
