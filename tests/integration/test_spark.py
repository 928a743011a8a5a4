"""Spark applications on the real API server: all of an application's minimum or nothing, executors that come later."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.control_plane import ControlPlane
from tests.integration.cluster import Cluster

pytestmark = pytest.mark.usefixtures("operator")

EXECUTORS = 4


def add_driver(cluster: Cluster, app: str, **fields: Any) -> None:
    """A driver of 1 CPU with four executors of 2 CPU, as palantir's users write it."""
    annotations = {
        "spark-driver-cpu": "1",
        "spark-driver-mem": "1Gi",
        "spark-executor-cpu": "2",
        "spark-executor-mem": "1Gi",
        "spark-executor-count": str(EXECUTORS),
    }
    cluster.add_pod(
        f"{app}-driver",
        labels={"spark-role": "driver", "spark-app-id": app},
        annotations=annotations,
        requests={"cpu": "1", "memory": "1Gi"},
        **fields,
    )


def test_the_group_that_is_made_belongs_to_the_driver_and_goes_with_it(
    cluster: Cluster, control_plane: ControlPlane
) -> None:
    cluster.add_node("n1", cpu="9")
    add_driver(cluster, "pi")
    cluster.until(cluster.bound)
    group = control_plane.api.get(f"/apis/gangsched.io/v1alpha1/namespaces/{cluster.namespace}/podgroups/pi")
    assert group["metadata"]["labels"] == {"gangsched.io/created-by": "gangsched"}
    (owner,) = group["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == (
        "Pod",
        "pi-driver",
        cluster.pod("pi-driver")["metadata"]["uid"],
    )
    assert group["spec"]["minMember"] == 1 + EXECUTORS
    cluster.delete_pod("pi-driver")
    cluster.until(lambda: not cluster.groups(), within_s=60, what="the PodGroup is collected with its owner")
