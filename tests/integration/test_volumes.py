"""Gangs with volumes: placed where theirs are, or bound once all are bound or provisioned."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from gangsched.kube.reading.storage_values import MARK, SELECTED_NODE
from testbed.api import unless_gone
from testbed.provisioner import DRIVER, Provisioner
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


def add_volume(cluster: Cluster, name: str, zone: str) -> None:
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
            },
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


def add_claim(cluster: Cluster, name: str) -> None:
    path = f"/api/v1/namespaces/{cluster.namespace}/persistentvolumeclaims"
    cluster.api.post(path, {"metadata": {"name": name}, "spec": claim_spec(cluster)})


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


def with_zones(cluster: Cluster) -> Cluster:
    for name in ("a1", "a2", "b1", "b2"):
        cluster.add_node(name, labels={ZONE: name[0]}, cpu="8")
    return cluster


@pytest.fixture
def zoned(cluster: Cluster) -> Cluster:
    return with_zones(cluster)


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


# Volumes that wait for their first consumer


def add_class(cluster: Cluster) -> None:
    """A class of the provisioner of the tests, whose volumes wait for their first consumer."""
    cluster.api.post(
        "/apis/storage.k8s.io/v1/storageclasses",
        {
            "metadata": {"name": cluster.namespace},
            "provisioner": DRIVER,
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )


def claims(cluster: Cluster) -> list[Json]:
    found: list[Json] = cluster.api.get(f"/api/v1/namespaces/{cluster.namespace}/persistentvolumeclaims")["items"]
    return found


def left(cluster: Cluster) -> list[str]:
    """The unbound objects with traces of pre-binding."""
    found = [
        each["metadata"]["name"]
        for each in claims(cluster)
        if not each["spec"].get("volumeName") and {MARK, SELECTED_NODE} & each["metadata"].get("annotations", {}).keys()
    ]
    shown = [each for each in cluster.api.get(PATH)["items"] if each["status"].get("phase") == "Available"]
    return found + [
        each["metadata"]["name"]
        for each in shown
        if "claimRef" in each["spec"] or MARK in each["metadata"].get("annotations", {})
    ]


def add_workers(cluster: Cluster, name: str, number: int) -> None:
    cluster.add_group(name, min_member=number)
    for at in range(number):
        add_claim(cluster, f"{name}-{at}")
        cluster.add_pod(f"{name}-{at}", name, **uses(f"{name}-{at}"))


def test_workers_get_volumes_provisioned_and_none_is_bound_before_the_last(zoned: Cluster) -> None:
    add_class(zoned)
    with Provisioner(zoned.api) as provisioner:
        provisioner.paused = True
        add_workers(zoned, "w", 8)
        message = zoned.until_reason("w", "PreBinding")
        assert "is being provisioned for node" in message
        zoned.until(lambda: len(left(zoned)) == 8)
        assert not zoned.bound()
        provisioner.paused = False
        zoned.until_bound("w", 8, within_s=60)
    assert zones(zoned, "w") == zones_of_volumes(zoned, "w")
    assert not left(zoned)


def test_what_was_written_is_taken_back_when_a_member_or_the_group_goes(zoned: Cluster) -> None:
    add_class(zoned)
    add_workers(zoned, "w", 3)
    zoned.until(lambda: len(left(zoned)) == 3)
    zoned.delete_pod("w-1")
    zoned.until(lambda: not left(zoned))
    zoned.add_pod("w-1", "w", **uses("w-1"))
    zoned.until(lambda: len(left(zoned)) == 3)
    zoned.delete_group("w")
    zoned.until(lambda: not left(zoned))
    assert len(claims(zoned)) == 3
