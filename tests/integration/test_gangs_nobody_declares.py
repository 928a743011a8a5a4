"""Jobs in a namespace whose workloads are gangs, with pods created by the real controller."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.cluster import Cluster

Json = dict[str, Any]
pytestmark = [pytest.mark.usefixtures("operator"), pytest.mark.timeout(180)]


def job(name: str, size: int, **spec: object) -> Json:
    container = {"name": "main", "image": "registry.invalid/none", "resources": {"requests": {"cpu": "1"}}}
    pod = {
        "schedulerName": "gangsched",
        "terminationGracePeriodSeconds": 0,
        "restartPolicy": "Never",
        "containers": [container],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"parallelism": size, "completions": size, "template": {"spec": pod}, **spec},
    }


def bound(cluster: Cluster, owner: str) -> list[str]:
    """The pods of the workload that have a node."""
    return [pod for pod in cluster.bound() if pod.startswith(f"{owner}-")]


def test_of_two_jobs_with_room_for_one_and_a_half_one_is_whole_and_the_other_follows(cluster: Cluster) -> None:
    labels = {"gangsched.io/gang": "auto"}
    cluster.api.merge(f"/api/v1/namespaces/{cluster.namespace}", {"metadata": {"labels": labels}})
    cluster.add_node("n1", cpu="8")
    for name in ("one", "two"):
        cluster.api.post(f"/apis/batch/v1/namespaces/{cluster.namespace}/jobs", job(name, 5))
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
