"""A gang that cannot become whole, with real controllers: rollback of Jobs, Deployments and StatefulSets."""

from __future__ import annotations

import pytest

from testbed.operator import Operator
from testbed.workloads import pod_template
from tests.integration.cluster import end_terminating

SIZE = 20
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


def job(cluster, name: str, **spec) -> None:
    cluster.api.post(
        f"/apis/batch/v1/namespaces/{cluster.namespace}/jobs",
        {
            "metadata": {"name": name},
            "spec": {
                "completions": SIZE,
                "parallelism": SIZE,
                "completionMode": "Indexed",
                "backoffLimit": 0,
                "template": pod_template(name, restartPolicy="Never"),
                **spec,
            },
        },
    )


def job_status(cluster, name: str):
    return cluster.api.get(f"/apis/batch/v1/namespaces/{cluster.namespace}/jobs/{name}")["status"]


def off_their_nodes(cluster, group: str, uids: set[str]) -> bool:
    end_terminating(cluster.api, cluster.namespace)
    return not uids & {pod["metadata"]["uid"] for pod in cluster.pods(group) if "nodeName" in pod["spec"]}


def test_a_job_that_ignores_disruptions_survives_an_undo_and_ends_whole(cluster, refuse_bindings):
    cluster.add_node("n1", cpu=str(SIZE))
    refuse_bindings("train-19-")
    cluster.add_group("train", min_member=SIZE)
    # Per index, so that the Job's controller waits 10 s before it makes the pods again. By Job it waits 10 s doubled
    # for every failure, also for those it ignores, which is its longest back-off of 10 min for 19 at once.
    job(cluster, "train", podFailurePolicy=IGNORES_DISRUPTION, backoffLimitPerIndex=1, backoffLimit=None)
    cluster.until_bound("train", SIZE - 1)
    first = {pod["metadata"]["uid"] for pod in cluster.pods("train")}
    cluster.until(
        lambda: off_their_nodes(cluster, "train", first),
        within_s=40,
        what="every member of the first try is off its node",
    )
    refuse_bindings.allow()
    cluster.until_bound("train", SIZE, within_s=60)
    assert not job_status(cluster, "train").get("failed"), "no eviction counted as a failure"
    assert not any(each["type"] == "Failed" for each in job_status(cluster, "train").get("conditions", []))
    assert cluster.status("train")["attempts"] >= 1


def test_a_job_that_counts_evictions_is_left_degraded_and_is_not_failed_by_us(cluster, refuse_bindings):
    cluster.add_node("n1", cpu=str(SIZE))
    refuse_bindings("train-19-")
    cluster.add_group("train", min_member=SIZE)
    job(cluster, "train")
    cluster.until_bound("train", SIZE - 1)
    cluster.until(lambda: cluster.phase("train") == "Degraded", within_s=40)
    degraded = cluster.condition("train", "Degraded")
    assert degraded["reason"] == "PartlyBound"
    assert "podFailurePolicy" in degraded["message"]
    assert len(cluster.bound("train")) == SIZE - 1
    assert not job_status(cluster, "train").get("failed")
    refuse_bindings.allow()
    cluster.until_bound("train", SIZE, within_s=60)
    cluster.until(lambda: cluster.phase("train") in ("Scheduled", "Running"))


def test_bare_pods_are_left_and_pods_of_a_replica_set_are_evicted(cluster, refuse_bindings):
    cluster.add_node("n1", cpu="8")
    refuse_bindings.where("object.metadata.name.endsWith('-2')", pod="probe-2")
    for name in ("bare", "set"):
        cluster.add_group(name, min_member=3)
    cluster.add_pods("bare", 3)
    replicated(cluster, "replicasets", "set", 2)
    cluster.add_pods("set", 1, first=2)
    cluster.until_bound("set", 2)
    first = {pod["metadata"]["uid"] for pod in cluster.pods("set") if "nodeName" in pod["spec"]}
    cluster.until(lambda: cluster.condition("bare", "Degraded").get("reason") == "PartlyBound", within_s=40)
    assert "no controller would recreate it" in cluster.condition("bare", "Degraded")["message"]
    cluster.until(lambda: off_their_nodes(cluster, "set", first), within_s=40, what="the ReplicaSet's pods are evicted")
    cluster.until(lambda: len(cluster.pods("set")) == 3, what="the ReplicaSet has made its pods again")
    assert sorted(cluster.bound("bare")) == ["bare-0", "bare-1"]


def test_a_disruption_budget_keeps_the_members_and_the_group_says_so(cluster, refuse_bindings):
    cluster.add_node("n1", cpu="8")
    names = ["kept", "held", "spared"]
    selector = {"matchExpressions": [{"key": "gangsched.io/pod-group", "operator": "In", "values": names}]}
    cluster.api.post(
        f"/apis/policy/v1/namespaces/{cluster.namespace}/poddisruptionbudgets",
        {"metadata": {"name": "all"}, "spec": {"maxUnavailable": 0, "selector": selector}},
    )
    refuse_bindings.where("object.metadata.name.endsWith('-2')", pod="probe-2")
    for name in names:
        cluster.add_group(name, min_member=3)
        cluster.add_stateful_set(name, 3)
        cluster.until(
            lambda name=name: cluster.bound(name) or cluster.condition(name).get("reason") == "BindingRefused"
        )
        # If the refusal arrives before another member is bound, none is bound, which is a different case.
        if cluster.bound(name):
            break
    cluster.until(lambda: cluster.condition(name, "Degraded").get("reason") == "EvictionRefused", within_s=40)
    assert len(cluster.bound(name)) == 2
    refuse_bindings.allow()
    cluster.until_bound(name, 3, within_s=40)
    cluster.until(lambda: cluster.phase(name) in ("Scheduled", "Running"))


def deployment(cluster, name: str, replicas: int, **strategy) -> None:
    replicated(cluster, "deployments", name, replicas, strategy={"type": "RollingUpdate", "rollingUpdate": strategy})


def replicated(cluster, kind: str, name: str, replicas: int, **spec) -> None:
    cluster.api.post(
        f"/apis/apps/v1/namespaces/{cluster.namespace}/{kind}",
        {
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": name}},
                "template": pod_template(name, labels={"app": name}),
                **spec,
            },
        },
    )


def roll(cluster, kind: str, name: str) -> None:
    path = f"/apis/apps/v1/namespaces/{cluster.namespace}/{kind}/{name}"
    cluster.api.merge(path, {"spec": {"template": {"metadata": {"annotations": {"rolled": "yes"}}}}})


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
    """One pod at a time is missing; `test_owners.py` has one more for a while."""
    cluster.add_node("n1", cpu="6")
    cluster.add_group("web", min_member=5)
    deployment(cluster, "web", 5, maxSurge=0, maxUnavailable=1)
    cluster.until_bound("web", 5)
    cluster.until(lambda: cluster.phase("web") == "Running")
    roll(cluster, "deployments", "web")
    cluster.until(lambda: len(rolled(cluster, "web")) == 5 == len(cluster.pods("web")), within_s=60)
    cluster.until(lambda: cluster.phase("web") == "Running")


def test_under_restart_a_real_set_is_evicted_whole_and_bound_again_whole(cluster):
    cluster.add_node("n1", cpu="5")
    cluster.add_group("ring", min_member=5, onDegraded="Restart")
    cluster.add_stateful_set("ring", 5)
    cluster.until_bound("ring", 5)
    cluster.until(lambda: cluster.phase("ring") == "Running")
    old = {pod["metadata"]["uid"] for pod in cluster.pods("ring")}
    # Room for four only: the lost member cannot be repaired within the two seconds, nor before the thief arrives.
    cluster.add_filler("thief", "n1", "1")
    cluster.delete_pod("ring-0")
    cluster.until(lambda: not old & {pod["metadata"]["uid"] for pod in cluster.pods("ring")}, within_s=40)
    assert cluster.bound("ring") == {}
    cluster.delete_pod("thief")
    cluster.until_bound("ring", 5, within_s=30)
