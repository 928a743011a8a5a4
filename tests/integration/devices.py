"""Devices on the real API server: classes, slices, templates, and members that use them."""

from __future__ import annotations

from tests.integration.cluster import Cluster

DRIVER = "gpu.example.com"
API = "/apis/resource.k8s.io/v1"


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
    """A group whose members request one of an extended resource each."""
    cluster.add_group(name, min_member=number)
    asked = {resource: "1"}
    container = {"name": "main", "image": "none", "resources": {"requests": asked, "limits": asked}}
    for at in range(number):
        cluster.add_pod(f"{name}-{at}", name, containers=[container])


def remove_devices(cluster: Cluster) -> None:
    for plural in ("deviceclasses", "resourceslices"):
        for found in cluster.api.get(f"{API}/{plural}")["items"]:
            cluster.api.delete(f"{API}/{plural}/{found['metadata']['name']}")
