"""Gangs on bound volumes: kube-controller-manager binds claims to volumes, gangsched then places the pods there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from testbed.api import unless_gone
from testbed.workloads import pod_template
from tests.integration.cluster import Cluster

pytestmark = pytest.mark.usefixtures("operator")

ZONE = "topology.kubernetes.io/zone"
PATH = "/api/v1/persistentvolumes"
Json = dict[str, Any]


@pytest.fixture(autouse=True)
def _no_volumes_left(cluster: Cluster) -> Iterator[None]:
    yield
    claims = f"/api/v1/namespaces/{cluster.namespace}/persistentvolumeclaims"
    for path in (claims, PATH):
        for found in cluster.api.get(path)["items"]:
            name = found["metadata"]["name"]
            with unless_gone():
                cluster.api.merge(f"{path}/{name}", {"metadata": {"finalizers": None}})
                if not found["metadata"].get("deletionTimestamp"):
                    cluster.api.delete(f"{path}/{name}")
    for found in cluster.api.get("/apis/storage.k8s.io/v1/storageclasses")["items"]:
        cluster.api.delete(f"/apis/storage.k8s.io/v1/storageclasses/{found['metadata']['name']}")


def add_volume(cluster: Cluster, name: str, zone: str, **spec: Any) -> None:
    inside = {"key": ZONE, "operator": "In", "values": [zone]}
    cluster.api.post(
        PATH,
        {
            "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": cluster.namespace,
                "csi": {"driver": "csi.example.com", "volumeHandle": name},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [inside]}]}},
            }
            | spec,
        },
    )


def until_available(cluster: Cluster, number: int) -> None:
    """Wait until kube-controller-manager has seen that many of the test's volumes; gangsched uses none before."""

    def available() -> int:
        mine = [
            each for each in cluster.api.get(PATH)["items"] if each["spec"]["storageClassName"] == cluster.namespace
        ]
        return sum(each["status"].get("phase") == "Available" for each in mine)

    cluster.until(lambda: available() == number)


def claim_spec(cluster: Cluster) -> Json:
    """A claim spec for one of the test's own volumes; its StorageClass does not exist unless a test creates it."""
    return {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": cluster.namespace,
    }


def add_claim(cluster: Cluster, name: str, **spec: object) -> None:
    path = f"/api/v1/namespaces/{cluster.namespace}/persistentvolumeclaims"
    cluster.api.post(path, {"metadata": {"name": name}, "spec": claim_spec(cluster) | spec})


def uses(name: str) -> Json:
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]}


def zones_of_volumes(cluster: Cluster, group: str) -> dict[str, str]:
    """The zone of each pod's volume, by pod."""
    found = {}
    for pod in cluster.pods(group):
        [name] = [
            each["persistentVolumeClaim"]["claimName"]
            for each in pod["spec"]["volumes"]
            if "persistentVolumeClaim" in each
        ]
        path = f"/api/v1/namespaces/{cluster.namespace}/persistentvolumeclaims/{name}"
        volume = cluster.api.get(f"{PATH}/{cluster.api.get(path)['spec']['volumeName']}")
        terms = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        found[pod["metadata"]["name"]] = terms[0]["matchExpressions"][0]["values"][0]
    return found


def zones(cluster: Cluster, group: str) -> dict[str, str]:
    """The zone of each bound pod; nodes are called after theirs."""
    return {pod: node[0] for pod, node in cluster.bound(group).items()}


@pytest.fixture
def zoned(cluster: Cluster) -> Cluster:
    for name in ("a1", "a2", "b1", "b2"):
        cluster.add_node(name, labels={ZONE: name[0]}, cpu="2")
    return cluster


def bound(cluster: Cluster) -> list[bool]:
    """For each claim of the namespace, whether it is bound."""
    path = f"/api/v1/namespaces/{cluster.namespace}/persistentvolumeclaims"
    return [found["status"].get("phase") == "Bound" for found in cluster.api.get(path)["items"]]


def test_a_stateful_set_is_bound_again_where_its_volumes_are_or_waits_whole(zoned: Cluster) -> None:
    for number in range(3):
        add_volume(zoned, f"{zoned.namespace}-{number}", "abb"[number])
    made = {
        "metadata": {"name": "db"},
        "spec": {
            "replicas": 3,
            "serviceName": "db",
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"gangsched.io/pod-group": "db"}},
            "template": pod_template("db"),
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim_spec(zoned)}],
        },
    }
    path = f"/apis/apps/v1/namespaces/{zoned.namespace}/statefulsets"
    zoned.add_group("db", min_member=3)
    zoned.api.post(path, made)
    zoned.until_bound("db", 3, within_s=60)
    first = zones(zoned, "db")
    assert first == zones_of_volumes(zoned, "db")
    assert sorted(first.values()) == ["a", "b", "b"]
    zoned.api.delete(f"{path}/db")
    zoned.until(lambda: not zoned.pods("db"), within_s=60)
    for name in ("b1", "b2"):
        zoned.api.delete(f"/api/v1/nodes/{name}")
    zoned.api.post(path, made)
    zoned.until(lambda: "members fit" in zoned.condition("db").get("message", ""), within_s=60)
    message = zoned.condition("db")["message"]
    assert "Only 1 of 3 members fit" in message
    elsewhere = f"2 where the PersistentVolume {zoned.namespace}-[12] [(]node affinity {ZONE}=b[)] cannot be used"
    assert re.search(elsewhere, message), message
    assert zoned.bound("db") == {}
    zoned.add_node("b3", labels={ZONE: "b"}, cpu="2")
    zoned.until_bound("db", 3, within_s=60)
    assert zones(zoned, "db") == first


def test_an_ephemeral_volume_is_waited_for_and_used(zoned: Cluster) -> None:
    add_volume(zoned, zoned.namespace, "b")
    template = {"volumeClaimTemplate": {"spec": claim_spec(zoned)}}
    zoned.add_pod("one", volumes=[{"name": "scratch", "ephemeral": template}])
    zoned.until(lambda: zones(zoned, "") == {"one": "b"}, within_s=60)
