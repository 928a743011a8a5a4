"""Jobs and StatefulSets, also suspended or scaled to 0, with pods created by the real controllers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.cluster import Cluster, end_terminating

Json = dict[str, Any]
SIZE = 3
LABELS = {"gangsched.io/pod-group": "t"}

pytestmark = [pytest.mark.usefixtures("operator"), pytest.mark.timeout(180)]


def template(*, cpu: str = "1", **metadata: Any) -> Json:
    container = {"name": "main", "image": "registry.invalid/none", "resources": {"requests": {"cpu": cpu}}}
    spec = {
        "schedulerName": "gangsched",
        "terminationGracePeriodSeconds": 0,
        "restartPolicy": "Never",
        "containers": [container],
    }
    return {"metadata": metadata, "spec": spec}


def job(name: str, size: int, *, annotations: Json | None = None, labels: Json | None = None, **spec: object) -> Json:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"parallelism": size, "completions": size, "template": template(labels=labels or {}), **spec},
    }


def add_job(cluster: Cluster, name: str, size: int, **fields: Any) -> None:
    cluster.api.post(f"/apis/batch/v1/namespaces/{cluster.namespace}/jobs", job(name, size, **fields))


def bound(cluster: Cluster, owner: str) -> list[str]:
    """The pods of the workload that have a node."""
    return [pod for pod in cluster.bound() if pod.startswith(f"{owner}-")]


@pytest.fixture
def auto(cluster: Cluster) -> Cluster:
    """A namespace in which all workloads are gangs."""
    labels = {"gangsched.io/gang": "auto"}
    cluster.api.merge(f"/api/v1/namespaces/{cluster.namespace}", {"metadata": {"labels": labels}})
    return cluster


def test_of_two_jobs_with_room_for_one_and_a_half_one_is_whole_and_the_other_follows(auto: Cluster) -> None:
    auto.add_node("n1", cpu="8")
    add_job(auto, "one", 5)
    add_job(auto, "two", 5)
    auto.until(lambda: len(auto.pods()) == 10)
    auto.until(lambda: len(auto.bound()) == 5)
    [first] = {"one", "two"} & {name.split("-")[0] for name in auto.bound()}
    second = "two" if first == "one" else "one"
    waiting = next(name for pod in auto.pods() if (name := pod["metadata"]["name"]).startswith(second))
    auto.until(lambda: auto.told(waiting).get("reason") == "Unschedulable")
    told = auto.told(waiting)["message"]
    assert len(bound(auto, first)) == 5
    assert told.startswith(f"Group job.{second}: ")
    assert "3 of 5" in told

    auto.control_plane.kubectl("delete", "job", first, "--namespace", auto.namespace)
    auto.until(lambda: len(bound(auto, second)) == 5, within_s=60)


def test_an_annotated_job_in_an_ordinary_namespace_is_whole_or_waits(cluster: Cluster) -> None:
    cluster.add_node("n1", cpu="4")
    add_job(cluster, "train", 5, annotations={"gangsched.io/gang": "true"})
    add_job(cluster, "loose", 2)
    cluster.until(lambda: len(cluster.pods()) == 7)
    cluster.until(lambda: len(bound(cluster, "loose")) == 2)
    waiting = next(name for pod in cluster.pods() if (name := pod["metadata"]["name"]).startswith("train"))
    cluster.until(lambda: cluster.told(waiting).get("reason") == "Unschedulable")
    assert not bound(cluster, "train")
    cluster.add_node("n2", cpu="4")
    cluster.until(lambda: len(bound(cluster, "train")) == 5)

    cluster.until(lambda: any(cluster.events(pod, "NoGang") for pod in bound(cluster, "loose")))
    assert not any(cluster.events(pod, "NoGang") for pod in bound(cluster, "train"))


def end(cluster: Cluster, pod: str, phase: str = "Succeeded") -> None:
    """Write the pod's end as its kubelet would. Before the pod runs, KWOK would overwrite that."""
    path = f"/api/v1/namespaces/{cluster.namespace}/pods/{pod}/status"
    cluster.until(lambda: cluster.api.get(path)["status"]["phase"] == "Running")
    cluster.api.merge(path, {"status": {"phase": phase}})


def test_a_job_of_ten_completions_keeps_five_members_until_it_owes_less(auto: Cluster) -> None:
    """A group of one waits for just the room that each completion frees before the replacement is there."""
    auto.add_node("n1", cpu="5")
    auto.add_group("t", min_member=5)
    add_job(auto, "train", 5, labels=LABELS, completions=10)

    def alive() -> list[Json]:
        return [each for each in auto.pods() if each["metadata"]["name"].startswith("train-") and not ended(each)]

    def whole(size: int) -> bool:
        nodes = [each["spec"].get("nodeName") for each in alive()]
        return len(nodes) == size and all(nodes)

    auto.until(lambda: whole(5))
    auto.add_group("b", min_member=1)
    auto.add_pods("b", 1)
    auto.until_reason("b", "Unschedulable")
    for done in range(1, 11):
        waits = not auto.bound("b")
        end(auto, alive()[0]["metadata"]["name"])
        auto.until(lambda: whole(min(5, 10 - done)))  # noqa: B023 - called in this turn only
        if done < 10:
            auto.until(lambda: auto.status("t")["minimum"] == min(5, 10 - done))  # noqa: B023 - as above
        assert waits or done > 6
    auto.until_bound("b", 1)
    auto.until(lambda: auto.phase("t") == "Succeeded")


def ended(pod: Json) -> bool:
    return pod["status"].get("phase") in ("Succeeded", "Failed")


def change(cluster: Cluster, path: str, **spec: object) -> None:
    group, _, rest = path.partition("/")
    cluster.api.merge(f"/apis/{group}/v1/namespaces/{cluster.namespace}/{rest}", {"spec": spec})


def until_gone(cluster: Cluster, owner: str) -> None:
    """Wait until no pod of the workload is left."""

    def gone() -> bool:
        end_terminating(cluster.api, cluster.namespace)
        return not [pod for pod in cluster.pods() if pod["metadata"]["name"].startswith(f"{owner}-")]

    cluster.until(gone)


def test_a_job_that_is_suspended_and_resumed(cluster: Cluster) -> None:
    cluster.add_node("n1", cpu=str(SIZE))
    cluster.add_group("t", min_member=SIZE)
    add_job(cluster, "train", SIZE, labels=LABELS)
    cluster.until(lambda: cluster.phase("t") == "Running")
    began = cluster.status("t")["scheduledTime"]
    change(cluster, "batch/jobs/train", suspend=True)
    until_gone(cluster, "train")
    message = cluster.until_reason("t", "Suspended")
    suspended = cluster.phase("t")
    change(cluster, "batch/jobs/train", suspend=False)
    cluster.until(lambda: cluster.phase("t") == "Running" and len(cluster.bound("t")) == SIZE)
    assert message == "No member is left, because the Job train is suspended: resume it to begin the next run."
    assert suspended == "Suspended"
    assert cluster.status("t")["attempts"] == 1
    assert cluster.status("t")["scheduledTime"] >= began
    assert not cluster.events("t", "GangFailed")


def test_a_stateful_set_that_is_scaled_to_0_and_back(cluster: Cluster) -> None:
    """Its pods come one by one, so that places are held for those to come."""
    cluster.add_node("n1", cpu=str(SIZE))
    roles = [{"name": "w", "minMember": SIZE, "template": {"requests": {"cpu": "1"}}}]
    cluster.add_group("t", min_member=SIZE, roles=roles)
    made = template(labels={"app": "web", **LABELS, "gangsched.io/role": "w"})
    made["spec"]["restartPolicy"] = "Always"
    spec = {"replicas": SIZE, "serviceName": "web", "selector": {"matchLabels": {"app": "web"}}, "template": made}
    sets = f"/apis/apps/v1/namespaces/{cluster.namespace}/statefulsets"
    cluster.api.post(sets, {"metadata": {"name": "web"}, "spec": spec})
    cluster.until(lambda: cluster.phase("t") == "Running")
    change(cluster, "apps/statefulsets/web", replicas=0)
    until_gone(cluster, "web")
    message = cluster.until_reason("t", "Suspended")
    suspended = cluster.phase("t")
    change(cluster, "apps/statefulsets/web", replicas=SIZE)
    cluster.until(lambda: cluster.phase("t") == "Running" and len(cluster.bound("t")) == SIZE)
    said = "No member is left, because the StatefulSet web has 0 replicas: scale it up to begin the next run."
    assert (suspended, message) == ("Suspended", said)
    assert not cluster.events("t", "GangFailed")
