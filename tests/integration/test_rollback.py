"""A gang that cannot become whole, with real controllers: rollback of a Job and rolling update of a Deployment."""

from __future__ import annotations

import pytest

from testbed.operator import Operator
from testbed.workloads import pod_template
from tests.integration.cluster import end_terminating

SIZE = 8
IGNORES_DISRUPTION = {
    "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
}
pytestmark = [pytest.mark.timeout(240), pytest.mark.usefixtures("operator")]


@pytest.fixture(scope="module")
def operator(with_crd, tmp_path_factory):
    """gangsched with a short repair deadline: a rollback begins after 6 of its 9 s."""
    config = tmp_path_factory.mktemp("config") / "config.yaml"
    config.write_text("repairDeadline: 9s\nbackoff: {initial: 1s, max: 2s}\n")
    with Operator(with_crd, "--config", str(config)) as running:
        yield running


def off_their_nodes(cluster, group: str, uids: set[str]) -> bool:
    end_terminating(cluster.api, cluster.namespace)
    return not uids & {pod["metadata"]["uid"] for pod in cluster.pods(group) if "nodeName" in pod["spec"]}


def test_a_job_that_ignores_disruptions_survives_an_undo_and_ends_whole(cluster, refuse_bindings):
    cluster.add_node("n1", cpu=str(SIZE))
    refuse_bindings(f"train-{SIZE - 1}-")
    cluster.add_group("train", min_member=SIZE)
    # Per index, so that the Job's controller waits 10 s before it makes the pods again. By Job it waits 10 s doubled
    # for every failure, also for those it ignores, up to 10 min for many at once.
    rules = {"completionMode": "Indexed", "backoffLimitPerIndex": 1, "podFailurePolicy": IGNORES_DISRUPTION}
    cluster.add_job("train", SIZE, "train", **rules)
    cluster.until_bound("train", SIZE - 1)
    first = {pod["metadata"]["uid"] for pod in cluster.pods("train")}
    cluster.until(
        lambda: off_their_nodes(cluster, "train", first),
        within_s=40,
        what="every member of the first try is off its node",
    )
    refuse_bindings.allow()
    cluster.until_bound("train", SIZE, within_s=60)
    status = cluster.api.get(f"/apis/batch/v1/namespaces/{cluster.namespace}/jobs/train")["status"]
    assert not status.get("failed"), "no eviction counted as a failure"
    assert not any(each["type"] == "Failed" for each in status.get("conditions", []))
    assert cluster.status("train")["attempts"] >= 1


def rolled(cluster, name: str) -> list[str]:
    """The group's running pods of the new template."""
    return [
        pod["metadata"]["name"]
        for pod in cluster.pods(name)
        if pod["metadata"].get("annotations", {}).get("rolled") == "yes"
        and pod["status"]["phase"] == "Running"
        and "deletionTimestamp" not in pod["metadata"]
    ]


def test_a_deployment_completes_a_rolling_update_under_a_minimum_of_all_its_replicas(cluster):
    """One pod at a time is missing, and the owner guard takes both of its ReplicaSets for one owner."""
    cluster.add_node("n1", cpu="6")
    cluster.add_group("web", min_member=5)
    deployments = f"/apis/apps/v1/namespaces/{cluster.namespace}/deployments"
    spec = {
        "replicas": 5,
        "selector": {"matchLabels": {"app": "web"}},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
        "template": pod_template("web", labels={"app": "web"}),
    }
    cluster.api.post(deployments, {"metadata": {"name": "web"}, "spec": spec})
    cluster.until_bound("web", 5)
    cluster.until(lambda: cluster.phase("web") == "Running")
    rolling = {"spec": {"template": {"metadata": {"annotations": {"rolled": "yes"}}}}}
    cluster.api.merge(f"{deployments}/web", rolling)
    cluster.until(lambda: len(rolled(cluster, "web")) == 5 == len(cluster.pods("web")), within_s=60)
    cluster.until(lambda: cluster.phase("web") == "Running")
    assert cluster.events("web", "SeveralOwners") == []
