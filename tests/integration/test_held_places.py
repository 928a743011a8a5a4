"""Places that are held for pods of a template are as large as the API server will make these pods."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from gangsched.core.objects.workload import GANG
from testbed.api import unless_gone
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from testbed.rights import chart_account
from tests.integration.cluster import Cluster, Json
from tests.integration.workloads import workloads_served

NAMESPACE = "gangsched-holds"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:gangsched"
MPI = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob"}
LABELS = {"training.kubeflow.org/job-name": "bert", "training.kubeflow.org/operator-name": "mpi-operator"}


@pytest.fixture(scope="module")
def operator(with_crd: ControlPlane) -> Iterator[Operator]:
    """gangsched with the rights of the chart, which suffice."""
    with workloads_served(with_crd), chart_account(with_crd, NAMESPACE):
        with Operator(with_crd, kubeconfig=with_crd.kubeconfig_of_service_account(NAMESPACE, "gangsched")) as running:
            yield running
        denied = [each for each in with_crd.not_permitted(ACCOUNT) if "limitranges" in each or "runtimeclass" in each]
    assert denied == []


def container(**requests: str) -> Json:
    return {"name": "main", "image": "x", "resources": {"requests": requests}}


def spec_of(**requests: str) -> Json:
    return {"schedulerName": "gangsched", "containers": [container(**requests)]}


def limit_range(cpu: str) -> Json:
    return {"metadata": {"name": "limits"}, "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": cpu}}]}}


@pytest.mark.usefixtures("operator")
def test_a_launcher_gets_what_the_limit_range_requests_for_it(cluster: Cluster) -> None:
    """kueue#119: the workers were bound beside a place for a launcher that requests nothing, which then fitted nowhere.

    A change of the LimitRange counts for workloads that exist.
    """
    ranges = f"/api/v1/namespaces/{cluster.namespace}/limitranges"
    cluster.api.post(ranges, limit_range("2"))
    cluster.add_node("n1", cpu="3")
    types = {
        "Launcher": {"replicas": 1, "template": {"spec": spec_of()}},
        "Worker": {"replicas": 2, "template": {"spec": spec_of(cpu="1")}},
    }
    spec = {"launcherCreationPolicy": "WaitForWorkersReady", "mpiReplicaSpecs": types}
    jobs = f"/apis/kubeflow.org/v2beta1/namespaces/{cluster.namespace}/mpijobs"
    made = cluster.api.post(jobs, {**MPI, "metadata": {"name": "bert", "annotations": {GANG: "true"}}, "spec": spec})
    owner = {**MPI, "name": "bert", "uid": made["metadata"]["uid"], "controller": True}
    for number in range(2):
        labels = {**LABELS, "training.kubeflow.org/job-role": "worker"}
        metadata = {"name": f"bert-worker-{number}", "labels": labels, "ownerReferences": [owner]}
        cluster.make_pod({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec_of(cpu="1")})
    cluster.until(lambda: cluster.told("bert-worker-0").get("reason") == "Unschedulable")
    time.sleep(1)
    assert not cluster.bound()
    cluster.api.merge(f"{ranges}/limits", limit_range("1"))
    cluster.until(lambda: len(cluster.bound()) == 2, within_s=30)
    # Nobody cleans up after kinds whose controllers are not there.
    cluster.api.delete(f"{jobs}/bert")
    for number in range(2):
        with unless_gone():
            cluster.delete_pod(f"bert-worker-{number}")

    def gone() -> bool:
        for group in cluster.groups():
            cluster.delete_group(group)
        return not cluster.groups()

    cluster.until(gone, what="the group of the held places is gone")
