"""Workloads that go and come back under their names."""

from __future__ import annotations

import pytest

from tests.integration.cluster import Cluster


def scale(cluster: Cluster, name: str, replicas: int) -> None:
    path = f"/apis/apps/v1/namespaces/{cluster.namespace}/statefulsets/{name}"
    cluster.api.merge(path, {"spec": {"replicas": replicas}})


@pytest.mark.usefixtures("operator")
def test_a_stateful_set_that_goes_from_1_to_0_to_1_is_a_new_run_each_time(cluster: Cluster) -> None:
    cluster.add_node("n1", cpu="1")
    cluster.add_group("web", min_member=1)
    cluster.add_stateful_set("web", 1)
    uids: set[str] = set()
    for _ in range(3):
        cluster.until(lambda: cluster.phase("web") == "Running", within_s=60)
        assert cluster.status("web")["attempts"] == 1
        uids.add(cluster.pod("web-0")["metadata"]["uid"])
        scale(cluster, "web", 0)
        cluster.until(lambda: cluster.phase("web") == "Suspended" and not cluster.pods("web"), within_s=60)
        scale(cluster, "web", 1)
    cluster.until_bound("web", 1, within_s=60)
    assert len(uids) == 3
    assert not cluster.events("web", "GangFailed")


@pytest.mark.usefixtures("operator")
def test_a_stateful_set_that_is_deleted_and_created_again_is_bound_whole_each_time(cluster: Cluster) -> None:
    path = f"/apis/apps/v1/namespaces/{cluster.namespace}/statefulsets/web"
    cluster.add_node("n1", cpu="3")
    cluster.add_group("web", min_member=3)
    uids: set[str] = set()
    for _ in range(3):
        cluster.add_stateful_set("web", 3)
        # The status may still be that of the set before.
        cluster.until(lambda: len(cluster.bound()) == 3 and cluster.status("web")["bound"] == 3, within_s=60)
        uids |= {pod["metadata"]["uid"] for pod in cluster.pods("web")}
        cluster.api.delete(f"{path}?propagationPolicy=Background")
        cluster.until(lambda: not cluster.pods("web"), within_s=60)
    assert len(uids) == 9
    cluster.until(lambda: cluster.status("web")["members"] == 0)
    assert not cluster.status("web").get("reservation")
