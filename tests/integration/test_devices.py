"""Gangs with ResourceClaims: kube-controller-manager makes claims from templates, gangsched allocates devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gangsched.kube.storage import MARK
from tests.integration.cluster import Cluster
from tests.integration.devices import API, add_askers, add_class, add_gpus, add_template, add_workers, remove_devices

pytestmark = pytest.mark.usefixtures("operator")

Json = dict[str, Any]


@pytest.fixture(autouse=True)
def _no_devices_left(cluster: Cluster) -> Iterator[None]:
    yield
    remove_devices(cluster)


def claims(cluster: Cluster) -> list[Json]:
    found: list[Json] = cluster.api.get(f"{API}/namespaces/{cluster.namespace}/resourceclaims")["items"]
    return found


def taken(cluster: Cluster) -> dict[str, list[tuple[str, str]]]:
    """The pool and name of each device, by the pod for which its claim is reserved."""
    return {
        each["status"]["reservedFor"][0]["name"]: [
            (device["pool"], device["device"]) for device in each["status"]["allocation"]["devices"]["results"]
        ]
        for each in claims(cluster)
        if each.get("status", {}).get("allocation")
    }


def test_workers_get_two_devices_each_of_one_numa_node_or_wait_whole(cluster: Cluster) -> None:
    for name in ("n0", "n1", "n2"):
        cluster.add_node(name, cpu="16")
    add_class(cluster, "big-gpu")
    add_template(cluster, "big-gpu", 2)
    add_gpus(cluster, "n0", 4)
    add_gpus(cluster, "n1", 3)
    add_workers(cluster, "w", 4)
    message = cluster.until_reason("w", "NeverFits")
    assert "DeviceClass big-gpu" in message
    assert "3 nodes" in message
    assert taken(cluster) == {}
    assert not cluster.bound()
    add_gpus(cluster, "n2", 2)
    cluster.until_bound("w", 4, within_s=60)
    found = taken(cluster)
    bound = cluster.bound("w")
    assert {pod: {pool for pool, _ in devices} for pod, devices in found.items()} == {
        pod: {node} for pod, node in bound.items()
    }
    assert len({device for devices in found.values() for device in devices}) == 8
    assert {tuple(sorted(name[-1] for _, name in devices)) for devices in found.values()} == {("0", "1"), ("2", "3")}


def test_two_gangs_race_for_the_last_devices(cluster: Cluster) -> None:
    cluster.add_node("n0", cpu="64")
    add_class(cluster, "gpu")
    add_template(cluster, "gpu", 1)
    add_gpus(cluster, "n0", 3)
    add_workers(cluster, "a", 2)
    add_workers(cluster, "b", 2)
    cluster.until(lambda: len(cluster.bound()) == 2, within_s=30)
    assert [len(cluster.bound("a")), len(cluster.bound("b"))] in ([2, 0], [0, 2])
    assert len(taken(cluster)) == 2


def test_devices_are_taken_back_from_a_group_that_is_deleted_before_it_is_bound(
    cluster: Cluster, refuse_bindings: Callable[[str], None]
) -> None:
    cluster.add_node("n0", cpu="64")
    add_class(cluster, "gpu")
    add_template(cluster, "gpu", 1)
    add_gpus(cluster, "n0", 2)
    refuse_bindings("w-")
    add_workers(cluster, "w", 2)
    cluster.until(lambda: len(taken(cluster)) == 2)
    cluster.delete_group("w")
    cluster.until(lambda: not taken(cluster), within_s=60)
    cluster.until(lambda: not any(each["metadata"].get("finalizers") or marked(each) for each in claims(cluster)))
    assert not cluster.bound()


def marked(claim: Json) -> bool:
    return MARK in claim["metadata"].get("annotations", {})


RESOURCE = "example.com/gpu"


def test_devices_stand_for_an_extended_resource_and_the_pod_is_told_of_its_claim(cluster: Cluster) -> None:
    cluster.add_node("n0", cpu="16")
    cluster.add_node("n1", cpu="16")
    add_class(cluster, "gpu", extendedResourceName=RESOURCE)
    add_gpus(cluster, "n0", 1)
    add_gpus(cluster, "n1", 2)
    add_askers(cluster, "w", 4, RESOURCE)
    message = cluster.until_reason("w", "NeverFits")
    assert "devices of DeviceClass gpu" in message
    assert not claims(cluster)
    cluster.delete_pod("w-3")
    cluster.delete_group("w")
    add_askers(cluster, "v", 3, "deviceclass.resource.kubernetes.io/gpu")
    cluster.until_bound("v", 3, within_s=60)
    found = taken(cluster)
    assert {pod: pool for pod, [(pool, _)] in found.items()} == cluster.bound("v")
    for each in claims(cluster):
        [user] = each["status"]["reservedFor"]
        told = cluster.pod(user["name"])["status"]["extendedResourceClaimStatus"]
        assert told["resourceClaimName"] == each["metadata"]["name"]
        assert told["requestMappings"] == [
            {
                "containerName": "main",
                "resourceName": "deviceclass.resource.kubernetes.io/gpu",
                "requestName": "container-0-request-0",
            }
        ]
    for at in range(3):
        cluster.delete_pod(f"v-{at}")
    cluster.until(lambda: not claims(cluster), within_s=60)


def test_a_claim_for_an_extended_resource_is_deleted_with_the_hope_for_its_group(
    cluster: Cluster, refuse_bindings: Callable[[str], None]
) -> None:
    cluster.add_node("n0", cpu="64")
    add_class(cluster, "gpu", extendedResourceName=RESOURCE)
    add_gpus(cluster, "n0", 2)
    refuse_bindings("w-")
    add_askers(cluster, "w", 2, RESOURCE)
    cluster.until(lambda: len(taken(cluster)) == 2)
    assert all("extendedResourceClaimStatus" in cluster.pod(f"w-{at}")["status"] for at in range(2))
    cluster.delete_group("w")
    cluster.until(lambda: not claims(cluster), within_s=60)
    assert not any("extendedResourceClaimStatus" in cluster.pod(f"w-{at}")["status"] for at in range(2))
    assert not cluster.bound()
