"""Least privilege: the operator's requests to the API server are exactly those that the chart's role permits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from gangsched.config.dialects import NAMES
from gangsched.kube.client.session import MERGE_PATCH, connect
from testbed.operator import Operator
from testbed.rights import chart_account
from tests.integration.cluster import Cluster
from tests.integration.devices import (
    API,
    DRIVER,
    add_askers,
    add_claim,
    add_class,
    add_gpus,
    add_template,
    add_workers,
    remove_devices,
)
from tests.integration.foreign import DEMANDS, DIALECTS, served
from tests.integration.workloads import workloads_served

NAMESPACE = "gangsched-rights"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:gangsched"
CONFIG = f"""
repairDeadline: 3s
leaderElection: {{resourceNamespace: {NAMESPACE}}}
"""

ONE_EXECUTOR = {"spark-executor-count": "1", "spark-executor-cpu": "1", "spark-executor-mem": "1Gi"}

Right = tuple[str, str, str]
"""Verb, API group, resource with its subresource."""

NATIVE = {
    *((verb, "scheduling.k8s.io", kind) for verb in ("list", "watch") for kind in ("podgroups", "compositepodgroups")),
    ("patch", "scheduling.k8s.io", "podgroups/status"),
}
"""Not requested here, because this API server does not serve them; that of test_native.py does."""
BEHIND = {("patch", "resource.k8s.io", "resourceclaims/binding")}
"""A right that the API server checks itself when the status of a claim is patched: no request names it."""

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module", autouse=True)
def _other_systems(with_crd) -> Iterator[None]:
    """Install the CRDs of the PodGroups and workloads that the role may read, and of the Demands that it may write."""
    with served(with_crd, *DIALECTS, DEMANDS), workloads_served(with_crd):
        yield


@pytest.fixture(scope="module")
def rights(with_crd) -> Iterator[list[dict]]:
    """The chart's roles with all dialects, given to the operator's account."""
    with chart_account(with_crd, NAMESPACE, "--set", f"dialects={{{','.join(NAMES)}}}") as text:
        yield [each for each in yaml.safe_load_all(text) if each]


def operators_rules(objects: list[dict]) -> list[dict]:
    """The rules of the roles that are bound to the operator's account."""
    bound = {
        (each["roleRef"]["kind"], each["roleRef"]["name"]) for each in objects if each["kind"].endswith("RoleBinding")
    }
    return [
        rule for each in objects if (each["kind"], each["metadata"]["name"]) in bound for rule in each.get("rules", [])
    ]


def permitted(rules: list[dict]) -> set[Right]:
    return {
        (verb, group, resource)
        for rule in rules
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def asked(cluster: Cluster) -> set[Right]:
    """The account's requests according to the audit log, without discovery, which is not a resource."""
    found = set()
    for entry in cluster.control_plane.audited(ACCOUNT):
        target = entry.get("objectRef", {})
        if "resource" not in target:
            continue
        subresource = f"/{target['subresource']}" if "subresource" in target else ""
        found.add((entry["verb"], target.get("apiGroup", ""), target["resource"] + subresource))
    return found


def test_the_roles_name_everything_and_no_secret(rights):
    rules = operators_rules(rights)
    assert rules
    for rule in rules:
        assert "*" not in json.dumps(rule)
        assert "nonResourceURLs" not in rule
        assert not {"secrets", "configmaps", "serviceaccounts"} & set(rule["resources"])


def test_the_operator_asks_for_all_that_its_role_permits_and_for_nothing_else(
    rights, cluster, refuse_bindings, tmp_path
):
    """A gang is bound, one waits, one is undone against a budget, one consists of a Job's pods,
    one is made for a Spark driver, two are demanded of an autoscaler: every kind of call.
    """
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG)
    account = cluster.control_plane.kubeconfig_of_service_account(NAMESPACE, "gangsched")
    cluster.add_node("n1", cpu="24")
    refuse_bindings("stuck-")
    with Operator(cluster.control_plane, "--config", str(config), kubeconfig=account, leader_elect=True) as operator:
        cluster.add_gang("whole", 2)
        cluster.add_group("large", min_member=99)
        cluster.add_pods("large", 1)
        cluster.until_bound("whole", 2)
        cluster.add_pod("app-0", labels={"spark-app-id": "app", "spark-role": "driver"}, annotations=ONE_EXECUTOR)
        demanded_and_fulfilled(cluster)
        volumes_are_awaited(cluster)
        undo_against_a_budget(cluster)
        undo_of_a_job(cluster)
        cluster.until(lambda: cluster.told("large-0").get("reason") == "GangIncomplete")
        allocated(cluster)
        needed = permitted(operators_rules(rights)) - NATIVE - BEHIND
        cluster.until(lambda: needed <= asked(cluster), within_s=60, what=lambda: f"unused: {needed - asked(cluster)}")
        assert operator.get("/readyz")[0] == 200
    assert permitted(operators_rules(rights)) > NATIVE | BEHIND
    assert asked(cluster) == needed
    assert cluster.control_plane.not_permitted(ACCOUNT) == []


def test_devices_are_written_only_with_the_right_that_no_request_names(rights, cluster):
    """Rights on a claim and its status are not enough: the API server requires `binding` in all namespaces."""
    add_class(cluster, "gpu")
    add_claim(cluster, "c", "gpu")
    device = {"request": "gpu", "driver": DRIVER, "pool": "n1", "device": "gpu-0"}
    body = json.dumps({"status": {"allocation": {"devices": {"results": [device]}}}}).encode()
    path = f"{API}/namespaces/{cluster.namespace}/resourceclaims/c/status?dryRun=All"
    control_plane = cluster.control_plane
    account = control_plane.kubeconfig_of_service_account(NAMESPACE, "gangsched")
    [role] = [each for each in rights if each["kind"] == "ClusterRole" and permitted(each["rules"]) >= BEHIND]
    less = json.dumps(role).replace('"resourceclaims/binding"', '"resourceclaims/none"')

    def said() -> str:
        return asyncio.run(answer(account, path, body))

    try:
        control_plane.kubectl("apply", "-f", "-", stdin=less)
        cluster.until(
            lambda: 'requires resource="resourceclaims/binding", verb="patch"' in json.loads(said()).get("message", ""),
            what=said,
        )
    finally:
        control_plane.kubectl("apply", "-f", "-", stdin=json.dumps(role))
    cluster.until(lambda: json.loads(said())["kind"] == "ResourceClaim", what=said)
    remove_devices(cluster)


async def answer(kubeconfig: Path, path: str, body: bytes) -> str:
    session = await connect(kubeconfig=str(kubeconfig))
    try:
        return (await session.request("PATCH", path, body=body, content_type=MERGE_PATCH)).body.decode()
    finally:
        await session.close()


def allocated(cluster: Cluster) -> None:
    """A member gets a device, and another one a claim for a resource, which is deleted with its group."""
    add_class(cluster, "gpu")
    add_template(cluster, "gpu", 1)
    add_gpus(cluster, "n1", 1)
    add_workers(cluster, "gpus", 1)
    cluster.until_bound("gpus", 1)
    cluster.delete_pod("gpus-0")
    claims = f"{API}/namespaces/{cluster.namespace}/resourceclaims"
    add_askers(cluster, "stuck-gpus", 1, "deviceclass.resource.kubernetes.io/gpu")
    cluster.until(lambda: any("-extended-" in each["metadata"]["name"] for each in cluster.api.get(claims)["items"]))
    cluster.delete_group("stuck-gpus")
    cluster.until(lambda: not cluster.api.get(claims)["items"])
    remove_devices(cluster)


def demanded_and_fulfilled(cluster: Cluster) -> None:
    """One Demand object is created and one is corrected; both are deleted once there is room."""
    demands = f"/apis/scaler.palantir.com/v1alpha2/namespaces/{cluster.namespace}/demands"
    wrong = {"instance-group": "other", "units": []}
    metadata = {"name": "demand-two", "labels": {"gangsched.io/created-by": "gangsched"}}
    cluster.api.post(
        demands,
        {"apiVersion": "scaler.palantir.com/v1alpha2", "kind": "Demand", "metadata": metadata, "spec": wrong},
    )
    for app in ("one", "two"):
        labels = {"spark-app-id": app, "spark-role": "driver"}
        cluster.add_pod(app, labels=labels, annotations=ONE_EXECUTOR, nodeSelector={"resource_channel": "batch"})
    cluster.until(
        lambda: [each["spec"]["instance-group"] for each in cluster.api.get(demands)["items"]] == ["batch", "batch"]
    )
    cluster.add_node("n2", cpu="4", labels={"resource_channel": "batch"})
    cluster.until(lambda: not cluster.api.get(demands)["items"])


def volumes_are_awaited(cluster: Cluster) -> None:
    """One claim is bound to a volume, and one waits for a provisioner that does not exist."""
    for name, provisioner in (("rights-static", "kubernetes.io/no-provisioner"), ("rights-made", "example.com/none")):
        mode = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
        cluster.api.post("/apis/storage.k8s.io/v1/storageclasses", {"metadata": {"name": name}, **mode})
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volume = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/tmp/none"}}
    spec = volume | {"storageClassName": "rights-static"}
    cluster.api.post("/api/v1/persistentvolumes", {"metadata": {"name": "rights"}, "spec": spec})
    claims = f"/api/v1/namespaces/{cluster.namespace}/persistentvolumeclaims"
    for name in ("rights-static", "rights-made"):
        cluster.api.post(claims, {"metadata": {"name": name}, "spec": asked | {"storageClassName": name}})
        cluster.add_pod(name, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": name}}])
    cluster.until(lambda: "rights-static" in cluster.bound())
    cluster.until(
        lambda: (
            "volume.kubernetes.io/selected-node" in cluster.api.get(f"{claims}/rights-made")["metadata"]["annotations"]
        )
    )
    cluster.delete_pod("rights-made")
    for name in ("rights-static", "rights-made"):
        cluster.api.delete(f"/apis/storage.k8s.io/v1/storageclasses/{name}")
    cluster.api.delete("/api/v1/persistentvolumes/rights")


def undo_against_a_budget(cluster: Cluster) -> None:
    cluster.api.post(
        f"/apis/policy/v1/namespaces/{cluster.namespace}/poddisruptionbudgets",
        {
            "metadata": {"name": "all"},
            "spec": {"minAvailable": 9, "selector": {"matchLabels": {"gangsched.io/pod-group": "kept"}}},
        },
    )
    cluster.add_group("kept", min_member=3)
    cluster.add_stateful_set("kept", 2)
    cluster.add_pod("stuck-kept", "kept")
    cluster.until(lambda: cluster.condition("kept", "Degraded").get("reason") == "EvictionRefused", within_s=40)


def undo_of_a_job(cluster: Cluster) -> None:
    cluster.add_group("run", min_member=3)
    cluster.add_job("run", 2, "run")
    cluster.add_pod("stuck-run", "run")
    cluster.until(lambda: cluster.condition("run", "Degraded").get("reason") == "PartlyBound", within_s=40)
