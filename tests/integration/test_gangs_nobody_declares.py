"""Jobs and other workloads with nothing but a schedulerName, with pods created by the real controllers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.cluster import Cluster
from tests.integration.workloads import path, workloads_served

Json = dict[str, Any]

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


def add_set(cluster: Cluster, name: str, replicas: int, made: Json, *owners: Json) -> None:
    """A StatefulSet whose pods are created at once."""
    made["spec"]["restartPolicy"] = "Always"
    spec = {
        "replicas": replicas,
        "serviceName": name,
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": made["metadata"]["labels"]},
        "template": made,
    }
    body = {"metadata": {"name": name, "ownerReferences": list(owners)}, "spec": spec}
    cluster.api.post(f"/apis/apps/v1/namespaces/{cluster.namespace}/statefulsets", body)


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


@pytest.mark.parametrize("declared", ["by nobody", "by a PodGroup"])
def test_a_job_of_ten_completions_keeps_five_members_until_it_owes_less(auto: Cluster, declared: str) -> None:
    """A group of one waits for just the room that each completion frees before the replacement is there."""
    auto.add_node("n1", cpu="5")
    labels = {} if declared == "by nobody" else {"gangsched.io/pod-group": "t"}
    if labels:
        auto.add_group("t", min_member=5)
    add_job(auto, "train", 5, labels=labels, completions=10)

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
        if labels and done < 10:
            auto.until(lambda: auto.status("t")["minimum"] == min(5, 10 - done))  # noqa: B023 - as above
        assert waits or done > 6
    auto.until_bound("b", 1)
    if labels:
        auto.until(lambda: auto.phase("t") == "Succeeded")


def ended(pod: Json) -> bool:
    return pod["status"].get("phase") in ("Succeeded", "Failed")


LWS = "leaderworkerset.sigs.k8s.io"
JOBSET = "jobset.sigs.k8s.io"


def owned(api_version: str, kind: str, name: str, uid: str) -> Json:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid}


def test_each_replica_of_a_leader_worker_set_is_a_gang(auto: Cluster) -> None:
    auto.add_node("n1", cpu="4")
    with workloads_served(auto.control_plane, "lws"):
        made = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"name": "serve"}}
        spec = {"replicas": 2, "leaderWorkerTemplate": {"size": 3}}
        uid = auto.api.post(path("lws", auto.namespace), {**made, "spec": spec})["metadata"]["uid"]
        owner = owned("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "serve", uid)
        for replica in ("0", "1"):
            labels = {f"{LWS}/name": "serve", f"{LWS}/group-index": replica}
            made = template(labels=labels, annotations={f"{LWS}/size": "3"})
            add_set(auto, f"serve-{replica}", 3, made, owner)
        auto.until(lambda: len(auto.bound()) == 3)
        [whole] = {name.rpartition("-")[0] for name in auto.bound()}
        other = "serve-1" if whole == "serve-0" else "serve-0"
        auto.until(lambda: auto.told(f"{other}-0").get("reason") == "Unschedulable")
        assert auto.told(f"{other}-0")["message"].startswith(f"Group lws.serve.{other[-1]}: ")
        auto.add_node("n2", cpu="2")
        auto.until(lambda: len(auto.bound()) == 6)


def test_all_pods_of_a_jobset_are_one_gang(auto: Cluster) -> None:
    auto.add_node("n1", cpu="3")
    with workloads_served(auto.control_plane, "jobset"):
        sizes = {"lead": 1, "work": 3}
        jobs = [
            {"name": name, "replicas": 1, "template": {"spec": {"parallelism": size, "completions": size}}}
            for name, size in sizes.items()
        ]
        body = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "train"}}
        made = auto.api.post(path("jobset", auto.namespace), {**body, "spec": {"replicatedJobs": jobs}})
        uid = made["metadata"]["uid"]
        for role, size in sizes.items():
            marks = {
                f"{JOBSET}/jobset-name": "train",
                f"{JOBSET}/jobset-uid": uid,
                f"{JOBSET}/replicatedjob-name": role,
            }
            body = job(f"train-{role}-0", size, labels=marks, suspend=False)
            auto.api.post(f"/apis/batch/v1/namespaces/{auto.namespace}/jobs", body)
        auto.until(lambda: len(auto.pods()) == 4)
        waits = auto.pods()[0]["metadata"]["name"]
        auto.until(lambda: auto.told(waits).get("reason") == "Unschedulable")
        waiting = auto.bound()
        auto.add_node("n2", cpu="1")
        auto.until(lambda: len(auto.bound()) == 4)
        assert not waiting


def test_an_annotated_train_job_is_whole_or_waits_though_its_jobset_says_nothing(cluster: Cluster) -> None:
    cluster.add_node("n1", cpu="3")
    with workloads_served(cluster.control_plane, "jobset", "trainjob"):
        trainer, wish = "trainer.kubeflow.org/v1alpha1", {"gangsched.io/gang": "true"}
        made = {"apiVersion": trainer, "kind": "TrainJob", "metadata": {"name": "train", "annotations": wish}}
        top = cluster.api.post(path("trainjob", cluster.namespace), {**made, "spec": {}})["metadata"]["uid"]
        owner = {**owned(trainer, "TrainJob", "train", top), "controller": True}
        spec = {"replicatedJobs": [{"name": "node", "template": {"spec": {"parallelism": 4, "completions": 4}}}]}
        body = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "spec": spec}
        meta = {"name": "train", "ownerReferences": [owner]}
        uid = cluster.api.post(path("jobset", cluster.namespace), {**body, "metadata": meta})["metadata"]["uid"]
        marks = {f"{JOBSET}/jobset-name": "train", f"{JOBSET}/jobset-uid": uid, f"{JOBSET}/replicatedjob-name": "node"}
        add_job(cluster, "train-node-0", 4, labels=marks)
        cluster.until(lambda: len(cluster.pods()) == 4)
        waits = cluster.pods()[0]["metadata"]["name"]
        cluster.until(lambda: cluster.told(waits).get("reason") == "Unschedulable")
        waiting = cluster.bound()
        least = {"metadata": {"annotations": {"gangsched.io/min-member": "3"}}}
        cluster.api.merge(f"{path('trainjob', cluster.namespace)}/train", least)
        cluster.until(lambda: len(cluster.bound()) == 3)
        assert not waiting
