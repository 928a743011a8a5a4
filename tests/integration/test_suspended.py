"""Groups whose Job or StatefulSet is suspended, scaled to 0 or deleted, with the real controllers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.cluster import Cluster, end_terminating
from tests.integration.test_gangs_nobody_declares import add_job, bound, end, template

Json = dict[str, Any]
SIZE = 3
LABELS = {"gangsched.io/pod-group": "t"}

pytestmark = [pytest.mark.usefixtures("operator"), pytest.mark.timeout(180)]


def change(cluster: Cluster, resource: str, name: str, **spec: object) -> None:
    """Change the spec of a `batch` or `apps` object."""
    api_group = "batch" if resource == "jobs" else "apps"
    cluster.api.merge(f"/apis/{api_group}/v1/namespaces/{cluster.namespace}/{resource}/{name}", {"spec": spec})


def add_set(cluster: Cluster, policy: str, labels: Json, **metadata: Any) -> None:
    """The StatefulSet `web`, whose pods have these labels."""
    made = template(labels=labels)
    made["spec"]["restartPolicy"] = "Always"
    spec = {
        "replicas": SIZE,
        "serviceName": "web",
        "podManagementPolicy": policy,
        "selector": {"matchLabels": {"app": "web"}},
        "template": made,
    }
    body = {"metadata": {"name": "web", **metadata}, "spec": spec}
    cluster.api.post(f"/apis/apps/v1/namespaces/{cluster.namespace}/statefulsets", body)


def until_gone(cluster: Cluster, owner: str) -> None:
    """Wait until no pod of the workload is left."""

    def gone() -> bool:
        end_terminating(cluster.api, cluster.namespace)
        return not [pod for pod in cluster.pods() if pod["metadata"]["name"].startswith(f"{owner}-")]

    cluster.until(gone)


@pytest.fixture
def train(cluster: Cluster) -> Cluster:
    """A Job of SIZE running pods in the group `t`, with no room beside them."""
    cluster.add_node("n1", cpu=str(SIZE))
    cluster.add_group("t", min_member=SIZE)
    add_job(cluster, "train", SIZE, labels=LABELS)
    cluster.until(lambda: cluster.phase("t") == "Running")
    return cluster


@pytest.mark.parametrize(
    ("pause", "said"),
    [({"suspend": True}, "is suspended: resume it"), ({"parallelism": 0}, "has parallelism 0: scale it up")],
)
def test_a_job_that_is_suspended_and_resumed(train: Cluster, pause: Json, said: str) -> None:
    began = train.status("t")["scheduledTime"]
    change(train, "jobs", "train", **pause)
    until_gone(train, "train")
    message = train.until_reason("t", "Suspended")
    suspended = train.phase("t")
    change(train, "jobs", "train", suspend=False, parallelism=SIZE)
    train.until(lambda: train.phase("t") == "Running" and len(train.bound("t")) == SIZE)
    assert message == f"No member is left, because the Job train {said} to begin the next run."
    assert suspended == "Suspended"
    assert train.status("t")["attempts"] == 1
    assert train.status("t")["scheduledTime"] >= began
    assert not train.events("t", "GangFailed")


@pytest.mark.parametrize("policy", ["Parallel", "OrderedReady"])
def test_a_stateful_set_that_is_scaled_to_0_and_back(cluster: Cluster, policy: str) -> None:
    cluster.add_node("n1", cpu=str(SIZE))
    ordered = policy == "OrderedReady"
    roles = [{"name": "w", "minMember": SIZE, "template": {"requests": {"cpu": "1"}}}]
    cluster.add_group("t", min_member=SIZE, **({"roles": roles} if ordered else {}))
    add_set(cluster, policy, {"app": "web", **LABELS} | ({"gangsched.io/role": "w"} if ordered else {}))
    cluster.until(lambda: cluster.phase("t") == "Running")
    change(cluster, "statefulsets", "web", replicas=0)
    until_gone(cluster, "web")
    message = cluster.until_reason("t", "Suspended")
    suspended = cluster.phase("t")
    change(cluster, "statefulsets", "web", replicas=SIZE)
    cluster.until(lambda: cluster.phase("t") == "Running" and len(cluster.bound("t")) == SIZE)
    said = "No member is left, because the StatefulSet web has 0 replicas: scale it up to begin the next run."
    assert (suspended, message) == ("Suspended", said)
    assert not cluster.events("t", "GangFailed")


@pytest.mark.parametrize("declared", ["by nobody", "by a PodGroup"])
def test_a_job_that_is_resumed_after_a_success_asks_for_the_rest_only(cluster: Cluster, declared: str) -> None:
    cluster.add_node("n1", cpu=str(SIZE))
    labels = {} if declared == "by nobody" else LABELS
    if labels:
        cluster.add_group("t", min_member=SIZE)
    add_job(cluster, "train", SIZE, labels=labels, annotations={"gangsched.io/gang": "true"})
    cluster.until(lambda: len(bound(cluster, "train")) == SIZE)
    done = bound(cluster, "train")[0]
    end(cluster, done)
    jobs = f"/apis/batch/v1/namespaces/{cluster.namespace}/jobs/train"
    cluster.until(lambda: cluster.api.get(jobs)["status"].get("succeeded") == 1)
    change(cluster, "jobs", "train", suspend=True)

    def gone() -> bool:
        end_terminating(cluster.api, cluster.namespace)
        return [pod["metadata"]["name"] for pod in cluster.pods()] == [done]

    cluster.until(gone)
    change(cluster, "jobs", "train", suspend=False)
    cluster.until(lambda: len(bound(cluster, "train")) == SIZE)
    for name in bound(cluster, "train"):
        if name != done:
            end(cluster, name)
    if labels:
        cluster.until(lambda: cluster.phase("t") == "Succeeded")
