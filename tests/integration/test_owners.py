"""The owner guard with owners created by the real controllers."""

from __future__ import annotations

import pytest

from testbed.operator import Operator
from testbed.workloads import pod_template
from tests.integration.cluster import Cluster


@pytest.fixture
def guarded(with_crd, namespace, tmp_path):
    """The test's namespace, served by an operator of its own."""
    config = tmp_path / "config.yaml"
    config.write_text(f"namespace: {namespace}\n")
    cluster = Cluster(with_crd, namespace)
    cluster.add_node("n1", cpu="16")
    with Operator(with_crd, "--config", str(config)):
        yield cluster


def add_job(cluster: Cluster, name: str, group: str, *, pods: int) -> None:
    cluster.api.post(
        f"/apis/batch/v1/namespaces/{cluster.namespace}/jobs",
        {
            "metadata": {"name": name},
            "spec": {"parallelism": pods, "completions": pods, "template": pod_template(group, restartPolicy="Never")},
        },
    )


def by_job(cluster: Cluster, name: str) -> list[dict]:
    return [pod for pod in cluster.pods() if pod["metadata"]["labels"].get("batch.kubernetes.io/job-name") == name]


def bound(pods: list[dict]) -> int:
    return sum("nodeName" in pod["spec"] for pod in pods)


def test_two_jobs_that_name_one_group_are_flagged_and_both_bound(guarded):
    guarded.add_group("shared", min_member=2)
    add_job(guarded, "first", "shared", pods=2)
    guarded.until(lambda: bound(by_job(guarded, "first")) == 2)
    add_job(guarded, "second", "shared", pods=2)
    guarded.until(lambda: guarded.events("shared", "SeveralOwners"))
    [event] = guarded.events("shared", "SeveralOwners")
    assert event["type"] == "Warning"
    assert "Job.batch first (2), Job.batch second (" in event["note"]
    guarded.until(lambda: bound(by_job(guarded, "second")) == 2)


def test_a_rolling_update_and_an_owner_made_again_are_not_flagged(guarded):
    guarded.add_group("web", min_member=3)
    deployments = f"/apis/apps/v1/namespaces/{guarded.namespace}/deployments"
    manifest = {
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": pod_template("web", labels={"app": "web"}),
        },
    }
    guarded.api.post(deployments, manifest)
    guarded.until_bound("web", 3)
    old = set(guarded.bound("web"))

    guarded.api.merge(f"{deployments}/web", {"spec": {"template": {"metadata": {"annotations": {"version": "2"}}}}})
    guarded.until(lambda: len(guarded.bound("web")) == 3 and not old & set(guarded.bound("web")), within_s=60)
    guarded.control_plane.kubectl("delete", "deployment", "web", "-n", guarded.namespace)
    guarded.until(lambda: guarded.pods("web") == [])
    guarded.api.post(deployments, manifest)
    guarded.until_bound("web", 3)
    assert guarded.events("web", "SeveralOwners") == []
