"""The promises of gangsched, kept on the real API server by the real operator."""

from __future__ import annotations

import pytest

from testbed.operator import Operator
from testbed.workloads import member, pod_group
from tests.integration.cluster import Cluster
from tests.integration.waiting import until

pytestmark = [pytest.mark.usefixtures("operator"), pytest.mark.timeout(180)]
GANGS, MEMBERS = 8, 3


def test_a_group_is_bound_after_the_api_server_was_away(cluster: Cluster, operator: Operator) -> None:
    cluster.add_node("n1")
    cluster.control_plane.restart_apiserver()
    cluster.add_gang("after", 2)
    cluster.until_bound("after", 2, within_s=60)

    assert operator.child.poll() is None, "the operator ended"
    # The next tests need KWOK, which asks the API server ever more seldom while that is away.
    cluster.until(lambda: cluster.phase("after") == "Running", within_s=120)


def test_a_restart_loses_no_group_and_repeats_no_event(cluster: Cluster, operator: Operator) -> None:
    cluster.add_node("n1", cpu="3")
    cluster.add_gang("whole", 2)
    cluster.until_bound("whole", 2)
    cluster.until(lambda: cluster.phase("whole") == "Running")
    cluster.add_gang("waits", 2)
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


def test_a_namespace_that_is_deleted_while_gangs_bind_in_it_leaves_nothing_behind(
    cluster: Cluster, operator: Operator
) -> None:
    api, doomed = cluster.api, f"{cluster.namespace}-doomed"
    cluster.add_node("n1", cpu=str(GANGS * MEMBERS))
    api.post("/api/v1/namespaces", {"metadata": {"name": doomed}})
    until(lambda: api.get(f"/api/v1/namespaces/{doomed}/serviceaccounts")["items"])
    pods = f"/api/v1/namespaces/{doomed}/pods"
    for number in range(GANGS):
        api.post(
            f"/apis/gangsched.io/v1alpha1/namespaces/{doomed}/podgroups", pod_group(f"g{number}", min_member=MEMBERS)
        )
        for at in range(MEMBERS - 1):
            api.post(pods, member(f"g{number}-{at}", f"g{number}"))
    for number in range(GANGS // 2):
        api.post(pods, member(f"g{number}-last", f"g{number}"))
    api.delete(f"/api/v1/namespaces/{doomed}")
    until(lambda: doomed not in [each["metadata"]["name"] for each in api.get("/api/v1/namespaces")["items"]], 120)
    cluster.add_gang("all", GANGS * MEMBERS)
    cluster.until_bound("all", GANGS * MEMBERS, within_s=60)
    assert operator.child.poll() is None
    # The API server shows the last binding before the operator has read the answer.
    until(lambda: operator.metric("gangsched_partly_bound_groups") == 0)
    assert operator.metric("gangsched_held_capacity") == 0


def test_a_group_that_is_bound_moves_the_metrics_of_waits_stages_budget_and_lag(
    cluster: Cluster, operator: Operator
) -> None:
    cluster.add_node("n1", cpu="4")
    before = operator.metric("gangsched_gang_wait_seconds_count", priority="1-999")
    lagged = operator.metric("gangsched_watch_lag_seconds_count")
    cluster.add_group("a", min_member=2, priority=5)
    cluster.add_pods("a", 2)
    cluster.until_bound("a", 2)
    cluster.until(lambda: operator.metric("gangsched_gang_wait_seconds_count", priority="1-999") == before + 1)
    cluster.until(lambda: operator.metric("gangsched_watch_lag_seconds_count") >= lagged + 2)
    for stage in ("Events", "Upkeep", "Plan", "Status"):
        assert operator.metric("gangsched_stage_duration_seconds_count", stage=stage) > 0
        assert operator.metric("gangsched_stage_duration_seconds_sum", stage=stage) > 0
    stages = operator.metric("gangsched_stage_duration_seconds_sum")
    assert stages <= operator.metric("gangsched_pass_duration_seconds_sum")
    # A cycle may come between the two requests.
    cluster.until(
        lambda: (
            operator.metric("gangsched_pass_budget_used_count")
            == operator.metric("gangsched_pass_duration_seconds_count")
        )
    )
    assert operator.metric("gangsched_pass_budget_used_sum") > 0
    assert operator.metric("gangsched_binding_duration_seconds_count") >= 2
    assert operator.metric("gangsched_leader") == 1
    assert [operator.get(probe)[0] for probe in ("/livez", "/readyz")] == [200, 200]


# Workloads of real controllers


def scale(cluster: Cluster, name: str, replicas: int) -> None:
    path = f"/apis/apps/v1/namespaces/{cluster.namespace}/statefulsets/{name}"
    cluster.api.merge(path, {"spec": {"replicas": replicas}})


def test_a_stateful_set_that_is_scaled_to_0_or_made_again_is_bound_whole_in_a_new_run(cluster: Cluster) -> None:
    sets = f"/apis/apps/v1/namespaces/{cluster.namespace}/statefulsets"
    cluster.add_node("n1", cpu="3")
    cluster.add_group("web", min_member=3)
    uids: set[str] = set()

    def until_running() -> None:
        # The status may still be that of the run before.
        cluster.until(lambda: len(cluster.bound()) == 3 and cluster.status("web")["bound"] == 3)
        cluster.until(lambda: cluster.phase("web") == "Running")
        assert cluster.status("web")["attempts"] == 1
        uids.update(pod["metadata"]["uid"] for pod in cluster.pods("web"))

    cluster.add_stateful_set("web", 3)
    until_running()
    scale(cluster, "web", 0)
    cluster.until(lambda: cluster.phase("web") == "Suspended" and not cluster.pods("web"))
    scale(cluster, "web", 3)
    until_running()
    cluster.api.delete(f"{sets}/web")
    cluster.until(lambda: not cluster.pods("web"))
    cluster.add_stateful_set("web", 3)
    until_running()
    cluster.api.delete(f"{sets}/web")
    cluster.until(lambda: cluster.status("web")["members"] == 0)
    assert len(uids) == 9
    assert not cluster.events("web", "GangFailed")
    assert not cluster.status("web").get("reservation")


def bound(cluster: Cluster, owner: str) -> list[str]:
    """The pods of the workload that have a node."""
    return [pod for pod in cluster.bound() if pod.startswith(f"{owner}-")]


def test_of_two_jobs_with_room_for_one_and_a_half_one_is_whole_and_the_other_follows(cluster: Cluster) -> None:
    labels = {"gangsched.io/gang": "auto"}
    cluster.api.merge(f"/api/v1/namespaces/{cluster.namespace}", {"metadata": {"labels": labels}})
    cluster.add_node("n1", cpu="8")
    for name in ("one", "two"):
        cluster.add_job(name, 5)
    cluster.until(lambda: len(cluster.pods()) == 10)
    cluster.until(lambda: len(cluster.bound()) == 5)
    [first] = {"one", "two"} & {name.split("-")[0] for name in cluster.bound()}
    second = "two" if first == "one" else "one"
    waiting = next(name for pod in cluster.pods() if (name := pod["metadata"]["name"]).startswith(second))
    cluster.until(lambda: cluster.told(waiting).get("reason") == "Unschedulable")
    told = cluster.told(waiting)["message"]
    assert len(bound(cluster, first)) == 5
    assert told.startswith(f"Group job.{second}: ")
    assert "3 of 5" in told

    cluster.control_plane.kubectl("delete", "job", first, "--namespace", cluster.namespace)
    cluster.until(lambda: len(bound(cluster, second)) == 5, within_s=60)
