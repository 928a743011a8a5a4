"""StatefulSets whose pods the real controller creates one by one, each 10 s or more after the previous one is ready.

KWOK makes pods ready at once. With `minReadySeconds` the controller waits as for a pod that takes that long, or twice
as long if it looks a moment too early, because it looks again after as many seconds.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.cluster import Cluster

Json = dict[str, Any]
READY_S = 10
SIZE = 5

pytestmark = [pytest.mark.usefixtures("operator"), pytest.mark.timeout(300)]


def add_set(cluster: Cluster, name: str, *, ready_s: int = READY_S) -> str:
    """A StatefulSet with nothing but a schedulerName. Returns its UID."""
    container = {"name": "main", "image": "registry.invalid/none", "resources": {"limits": {"cpu": "1"}}}
    spec = {"schedulerName": "gangsched", "terminationGracePeriodSeconds": 0, "containers": [container]}
    made = {
        "metadata": {"name": name},
        "spec": {
            "replicas": SIZE,
            "serviceName": name,
            "minReadySeconds": ready_s,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    }
    found: Json = cluster.api.post(f"/apis/apps/v1/namespaces/{cluster.namespace}/statefulsets", made)
    return str(found["metadata"]["uid"])


def bound(cluster: Cluster, owner: str) -> int:
    return sum(pod.startswith(f"{owner}-") for pod in cluster.bound())


def test_of_two_sets_with_room_for_one_one_becomes_whole_and_then_the_other(cluster: Cluster) -> None:
    labels = {"gangsched.io/gang": "auto"}
    cluster.api.merge(f"/api/v1/namespaces/{cluster.namespace}", {"metadata": {"labels": labels}})
    cluster.add_node("n1", cpu="4")
    cluster.add_node("n2", cpu="3")
    uids = {name: add_set(cluster, name) for name in ("one", "two")}
    cluster.until(lambda: len(cluster.bound()) == 1)
    [first] = {pod.split("-")[0] for pod in cluster.bound()}
    second = "two" if first == "one" else "one"
    cluster.until(lambda: cluster.phase(f"statefulset.{first}") == "Reserved")
    [made] = cluster.api.get(f"/apis/gangsched.io/v1alpha1/namespaces/{cluster.namespace}/podgroups")["items"]
    assert made["metadata"]["name"] == f"statefulset.{first}"
    [owner] = made["metadata"]["ownerReferences"]
    assert (owner["apiVersion"], owner["kind"], owner["uid"]) == ("apps/v1", "StatefulSet", uids[first])
    cluster.until(lambda: cluster.told(f"{second}-0").get("reason") == "Unschedulable")

    together: set[int] = set()

    def whole() -> bool:
        together.add(bound(cluster, second))
        return bound(cluster, first) == SIZE

    cluster.until(whole, within_s=2 * SIZE * READY_S + 40)
    assert together == {0}
    cluster.until(lambda: cluster.phase(f"statefulset.{first}") in ("Scheduled", "Running"))

    cluster.control_plane.kubectl("delete", "statefulset", first, "--namespace", cluster.namespace)
    cluster.until(lambda: bound(cluster, second) == 1, within_s=60)
    cluster.until(lambda: cluster.phase(f"statefulset.{second}") == "Reserved")
    cluster.until(lambda: f"statefulset.{first}" not in cluster.groups(), within_s=60)
