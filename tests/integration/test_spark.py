"""Spark applications on the real API server: all of an application's minimum or nothing, executors that come later."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from testbed.control_plane import ControlPlane
from tests.integration.cluster import Cluster

pytestmark = pytest.mark.usefixtures("operator")

EXECUTORS = 4
LATER_S = 10.0


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


def executor(cluster: Cluster, app: str, number: int) -> dict[str, Any]:
    """An executor as the driver makes it: owned by the driver's pod."""
    driver = cluster.pod(f"{app}-driver")["metadata"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": driver["name"], "uid": driver["uid"], "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{app}-exec-{number}",
            "namespace": cluster.namespace,
            "labels": {"spark-role": "executor", "spark-app-id": app},
            "ownerReferences": [owner],
        },
        "spec": {
            "schedulerName": "gangsched",
            "containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}],
        },
    }


def apply(control_plane: ControlPlane, manifests: list[dict[str, Any]]) -> None:
    """What a user's script does."""
    kubectl: list[str | Path] = [
        control_plane.binaries / "kubectl",
        "--kubeconfig",
        control_plane.kubeconfig,
        "create",
        "-f",
        "-",
    ]
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
    subprocess.run(kubectl, input=listed, text=True, check=True, capture_output=True, timeout=60)


def nodes_held(cluster: Cluster, app: str) -> dict[str, int]:
    """How many places for executors to come are held on each node."""
    places = cluster.status(app)["reservation"]["placements"]
    return {
        place["node"]: place["count"] - len(place.get("pods", [])) for place in places if place["role"] == "executor"
    }


def test_executors_created_later_land_on_their_places_although_others_wait_for_the_room(
    cluster: Cluster, control_plane: ControlPlane
) -> None:
    cluster.add_node("n1", cpu="5")
    cluster.add_node("n2", cpu="4")
    add_driver(cluster, "pi")
    cluster.until(lambda: "pi-driver" in cluster.bound())
    cluster.until(lambda: sum(nodes_held(cluster, "pi").values()) == EXECUTORS)
    held = nodes_held(cluster, "pi")
    for number in range(20):
        cluster.add_pod(f"plain-{number}", requests={"cpu": "1"})
    cluster.until(lambda: cluster.told("plain-19").get("reason") == "Unschedulable")
    time.sleep(LATER_S)
    assert set(cluster.bound()) == {"pi-driver"}
    assert cluster.condition("pi")["reason"] == "PlacesHeld"

    apply(control_plane, [executor(cluster, "pi", number) for number in range(EXECUTORS)])
    cluster.until(lambda: len(cluster.bound()) == 1 + EXECUTORS)
    on = [node for pod, node in cluster.bound().items() if pod != "pi-driver"]
    assert {name: on.count(name) for name in set(on)} == held
    cluster.until(lambda: cluster.phase("pi") in ("Scheduled", "Running"))
    assert "reservation" not in cluster.status("pi")


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
