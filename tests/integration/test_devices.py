"""Gangs with ResourceClaims: kube-controller-manager creates claims from templates, gangsched allocates devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gangsched.kube.reading.storage_values import MARK
from tests.integration.admission import BindingPolicy
from tests.integration.cluster import Cluster
from tests.integration.devices import (
    _no_devices_left,  # noqa: F401 - a fixture
    add_askers,
    add_class,
    add_gpus,
    add_slice,
    add_template,
    add_template_of,
    add_workers,
    claims,
    in_use,
    report,
)

pytestmark = pytest.mark.usefixtures("operator")

Json = dict[str, Any]


def test_devices_are_taken_back_from_a_group_that_is_deleted_before_it_is_bound(
    cluster: Cluster, refuse_bindings: Callable[[str], None]
) -> None:
    cluster.add_node("n0", cpu="64")
    add_class(cluster, "gpu")
    add_template(cluster, "gpu", 1)
    add_gpus(cluster, "n0", 2)
    refuse_bindings("w-")
    add_workers(cluster, "w", 2)
    cluster.until(lambda: len(in_use(cluster)) == 2)
    cluster.delete_group("w")
    cluster.until(lambda: not in_use(cluster), within_s=60)
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
    assert "DeviceClass gpu" in message
    assert not claims(cluster)
    cluster.delete_pod("w-3")
    cluster.delete_group("w")
    add_askers(cluster, "v", 3, "deviceclass.resource.kubernetes.io/gpu")
    cluster.until_bound("v", 3, within_s=60)
    found = in_use(cluster)
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
    cluster: Cluster, refuse_bindings: BindingPolicy
) -> None:
    """Since 1.37 the API server keeps what the pod's status says of the claim, which then stands for no claim."""
    cluster.add_node("n0", cpu="64")
    add_class(cluster, "gpu", extendedResourceName=RESOURCE)
    add_gpus(cluster, "n0", 2)
    refuse_bindings("w-")
    add_askers(cluster, "w", 2, RESOURCE)
    cluster.until(lambda: len(in_use(cluster)) == 2)
    assert all("extendedResourceClaimStatus" in cluster.pod(f"w-{at}")["status"] for at in range(2))
    cluster.delete_group("w")
    cluster.until(lambda: not claims(cluster), within_s=60)
    assert not cluster.bound()
    refuse_bindings.allow()
    cluster.add_group("w", min_member=2)
    cluster.until_bound("w", 2, within_s=60)
    assert set(in_use(cluster)) == {"w-0", "w-1"}


MEMORY = {"memory": {"value": "80Gi"}}


def test_halves_of_one_device_are_allocated_as_its_counters_allow(cluster: Cluster) -> None:
    cluster.add_node("n0", cpu="16")
    add_class(cluster, "gpu")
    add_slice(cluster, "counters", "n0", parts=2, sharedCounters=[{"name": "gpu-0", "counters": MEMORY}])
    half = {"consumesCounters": [{"counterSet": "gpu-0", "counters": {"memory": {"value": "40Gi"}}}]}
    devices = [{"name": f"half-{at}", "capacity": {"memory": {"value": "40Gi"}}, **half} for at in range(3)]
    add_slice(cluster, "halves", "n0", parts=2, devices=devices)
    add_template_of(cluster, {})
    add_workers(cluster, "w", 3)
    cluster.until_reason("w", "Unschedulable")
    assert not claims_with_devices(cluster)
    cluster.delete_pod("w-2")
    cluster.delete_group("w")
    cluster.add_group("w", min_member=2)
    cluster.until_bound("w", 2, within_s=60)
    assert len({device for devices in in_use(cluster).values() for device in devices}) == 2


def test_members_share_a_device_and_each_share_has_its_own_id_and_capacity(cluster: Cluster) -> None:
    cluster.add_node("n0", cpu="16")
    add_class(cluster, "gpu")
    policy = {"default": "10Gi", "validRange": {"min": "10Gi", "step": "10Gi"}}
    device = {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "80Gi", "requestPolicy": policy}}}
    add_slice(cluster, "shared", "n0", devices=[{"name": "gpu-0", **device}])
    add_template_of(cluster, {"capacity": {"requests": {"memory": "25Gi"}}})
    add_workers(cluster, "w", 2)
    cluster.until_bound("w", 2, within_s=60)
    results = [result for each in claims(cluster) for result in each["status"]["allocation"]["devices"]["results"]]
    assert [each["consumedCapacity"] for each in results] == [{"memory": "30Gi"}] * 2
    assert len({each["shareID"] for each in results}) == 2
    add_workers(cluster, "v", 1)
    cluster.until_reason("v", "Unschedulable")
    cluster.delete_pod("w-0")
    cluster.until_bound("v", 1, within_s=60)


def test_pods_are_bound_once_their_devices_report_that_they_are_ready(cluster: Cluster) -> None:
    cluster.add_node("n0", cpu="16")
    add_class(cluster, "gpu")
    waits = {"bindsToNode": True, "bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"]}
    devices = [{"name": f"gpu-{at}", "capacity": MEMORY, **waits} for at in range(2)]
    add_slice(cluster, "attached", "n0", devices=devices)
    add_template_of(cluster, {})
    add_workers(cluster, "w", 2)
    cluster.until(lambda: len(claims_with_devices(cluster)) == 2, within_s=60)
    first, second = claims_with_devices(cluster)
    report(cluster, first, "Attached")
    report(cluster, second, "Broken")
    cluster.until(lambda: not is_allocated(cluster, second) or has_failed(cluster, second) is False, within_s=60)
    assert not cluster.bound()
    cluster.until(lambda: is_allocated(cluster, second), within_s=60)
    for each in claims_with_devices(cluster):
        report(cluster, each, "Attached")
    cluster.until_bound("w", 2, within_s=60)


def claims_with_devices(cluster: Cluster) -> list[Json]:
    return [each for each in claims(cluster) if each.get("status", {}).get("allocation")]


def is_allocated(cluster: Cluster, claim: Json) -> bool:
    return claim["metadata"]["uid"] in {each["metadata"]["uid"] for each in claims_with_devices(cluster)}


def has_failed(cluster: Cluster, claim: Json) -> bool:
    [found] = [each for each in claims(cluster) if each["metadata"]["uid"] == claim["metadata"]["uid"]]
    return "Broken" in str(found["status"].get("devices", ""))
