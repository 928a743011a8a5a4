"""Devices on the real API server: classes, slices, templates, and members that use them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gangsched.kube.reading.storage_values import MARK
from tests.integration.cluster import Cluster

Json = dict[str, Any]
DRIVER = "gpu.example.com"
API = "/apis/resource.k8s.io/v1"
_SOME_TIME = "2026-01-01T00:00:00Z"


def add_class(cluster: Cluster, name: str, **spec: str) -> None:
    expression = f"device.driver == '{DRIVER}' && device.capacity['{DRIVER}'].memory.compareTo(quantity('40Gi')) >= 0"
    cluster.api.post(
        f"{API}/deviceclasses",
        {"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": expression}}], **spec}},
    )


def add_gpus(cluster: Cluster, node: str, number: int, *, per_numa: int = 2) -> None:
    devices = [
        {
            "name": f"gpu-{at}",
            "attributes": {"model": {"string": "a100"}, "numa": {"int": at // per_numa}},
            "capacity": {"memory": {"value": "80Gi"}},
        }
        for at in range(number)
    ]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    cluster.api.post(
        f"{API}/resourceslices",
        {
            "metadata": {"name": f"{node}-gpus"},
            "spec": {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices},
        },
    )


def add_slice(cluster: Cluster, name: str, node: str, *, parts: int = 1, **spec: Any) -> None:
    """A slice of the node's pool, which has this number of parts."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": parts}
    found = {"driver": DRIVER, "nodeName": node, "pool": pool, **spec}
    cluster.api.post(f"{API}/resourceslices", {"metadata": {"name": name}, "spec": found})


def add_template_of(cluster: Cluster, *requests: Json) -> None:
    """The template that `add_workers` names, with these requests of the class `gpu`."""
    asked = [{"name": f"r{at}", "exactly": {"deviceClassName": "gpu", **each}} for at, each in enumerate(requests)]
    cluster.api.post(
        f"{API}/namespaces/{cluster.namespace}/resourceclaimtemplates",
        {"metadata": {"name": "gpus"}, "spec": {"spec": {"devices": {"requests": asked}}}},
    )


def report(cluster: Cluster, claim: Json, condition: str) -> None:
    """Report the condition as true for all devices of the claim, as their driver would."""
    true = {"type": condition, "status": "True", "reason": "Test", "message": "", "lastTransitionTime": _SOME_TIME}
    devices = [
        {key: each[key] for key in ("driver", "pool", "device", "shareID") if key in each} | {"conditions": [true]}
        for each in claim["status"]["allocation"]["devices"]["results"]
    ]
    path = f"{API}/namespaces/{cluster.namespace}/resourceclaims/{claim['metadata']['name']}/status"
    cluster.api.merge(path, {"status": {"devices": devices}})


def add_template(cluster: Cluster, device_class: str, count: int) -> None:
    exactly = {
        "deviceClassName": device_class,
        "allocationMode": "ExactCount",
        "count": count,
        "selectors": [{"cel": {"expression": f"device.attributes['{DRIVER}'].model == 'a100'"}}],
    }
    devices = {
        "requests": [{"name": "gpus", "exactly": exactly}],
        "constraints": [{"requests": ["gpus"], "matchAttribute": f"{DRIVER}/numa"}],
    }
    cluster.api.post(
        f"{API}/namespaces/{cluster.namespace}/resourceclaimtemplates",
        {"metadata": {"name": "gpus"}, "spec": {"spec": {"devices": devices}}},
    )


def add_workers(cluster: Cluster, name: str, number: int) -> None:
    cluster.add_group(name, min_member=number)
    for at in range(number):
        cluster.add_pod(f"{name}-{at}", name, resourceClaims=[{"name": "gpus", "resourceClaimTemplateName": "gpus"}])


def add_askers(cluster: Cluster, name: str, number: int, resource: str) -> None:
    """A group whose members each request one unit of an extended resource."""
    cluster.add_group(name, min_member=number)
    asked = {resource: "1"}
    container = {"name": "main", "image": "none", "resources": {"requests": asked, "limits": asked}}
    for at in range(number):
        cluster.add_pod(f"{name}-{at}", name, containers=[container])


def add_claim(cluster: Cluster, name: str, device_class: str) -> None:
    """A claim for one device, not created from a template."""
    devices = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": device_class}}]}
    cluster.api.post(
        f"{API}/namespaces/{cluster.namespace}/resourceclaims",
        {"metadata": {"name": name}, "spec": {"devices": devices}},
    )


def add_users(cluster: Cluster, name: str, number: int) -> None:
    """A group whose members use claims of their own names."""
    cluster.add_group(name, min_member=number)
    for at in range(number):
        cluster.add_pod(f"{name}-{at}", name, resourceClaims=[{"name": "gpu", "resourceClaimName": f"{name}-{at}"}])


def claims(cluster: Cluster) -> list[Json]:
    found: list[Json] = cluster.api.get(f"{API}/namespaces/{cluster.namespace}/resourceclaims")["items"]
    return found


def in_use(cluster: Cluster) -> dict[str, list[tuple[str, str]]]:
    """The pool and name of each device, by the first pod in its claim's `reservedFor`."""
    return {
        each["status"]["reservedFor"][0]["name"]: [
            (device["pool"], device["device"]) for device in each["status"]["allocation"]["devices"]["results"]
        ]
        for each in claims(cluster)
        if each.get("status", {}).get("allocation") and each["status"].get("reservedFor")
    }


def left(cluster: Cluster) -> list[str]:
    """The claims that show any trace of an allocation."""
    return [
        each["metadata"]["name"]
        for each in claims(cluster)
        if each.get("status", {}).get("allocation")
        or each.get("status", {}).get("reservedFor")
        or each["metadata"].get("finalizers")
        or MARK in each["metadata"].get("annotations", {})
    ]


def remove_devices(cluster: Cluster) -> None:
    """Also deletes the pods, at once: devices of these names stay in use until all pods with their claims are gone."""
    cluster.api.delete(f"/api/v1/namespaces/{cluster.namespace}/pods", grace_s=0)
    for plural in ("deviceclasses", "resourceslices"):
        for found in cluster.api.get(f"{API}/{plural}")["items"]:
            cluster.api.delete(f"{API}/{plural}/{found['metadata']['name']}")


@pytest.fixture(autouse=True)
def _no_devices_left(cluster: Cluster) -> Iterator[None]:
    yield
    remove_devices(cluster)
