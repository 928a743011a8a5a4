"""Native groups in the shapes in which controllers write them, beside the controllers' other ways to say what they are.

Sources: LeaderWorkerSet KEP-666 (kubernetes-sigs/lws pull requests 979 and 982), KubeRay 1.7 (ray-project/kuberay pull
request 4962), JobSet (kubernetes-sigs/jobset pull requests 1250 and 1253). Each is written from these descriptions.
"""

from __future__ import annotations

from typing import Any

import pytest

from gangsched.config.settings import Settings
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.kube.workloads.workload_table import chosen
from tests.builders import node
from tests.harness import Harness
from tests.served import served_group, served_pod

WORKLOADS = chosen(Settings())
CREATED = "1970-01-12T13:46:40Z"
AUTO = {"gangsched.io/gang": "auto"}
BASIC: dict[str, Any] = {"basic": {}}


def owner(version: str, kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "name": name, "uid": f"uid-{kind}-{name}", "controller": True}


LWS = owner("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "serve")
RAY = owner("ray.io/v1", "RayCluster", "ray")
JOBSET = owner("jobset.x-k8s.io/v1alpha2", "JobSet", "train")


def gang(minimum: int) -> dict[str, Any]:
    return {"gang": {"minCount": minimum}}


def made(name: str, policy: dict[str, Any], by: dict[str, Any]) -> ForeignGroup:
    spec = {"schedulingPolicy": policy, "priority": 0}
    return served_group("native", name, spec, creationTimestamp=CREATED, ownerReferences=[by])


def of(group: str, name: str, by: dict[str, Any], *, cpu: str = "1", **labels: str) -> Pod:
    spec = {
        "schedulerName": "gangsched",
        "schedulingGroup": {"podGroupName": group},
        "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}],
    }
    named = {key.replace("__", "/").replace("_", "-"): value for key, value in labels.items()}
    meta = {"uid": f"uid-default/{name}", "creationTimestamp": CREATED, "labels": named, "ownerReferences": [by]}
    return served_pod(name, spec, **meta)


@pytest.fixture(params=[False, True], ids=["", "automatic gangs"])
def harness(request: pytest.FixtureRequest) -> Harness:
    """A cluster; in the second the namespace also asks for gangs of workloads that declare nothing."""
    harness = Harness()
    if request.param:
        harness.label_namespace("default", AUTO)
    return harness


def replica(number: int, size: int) -> list[Pod]:
    """A replica of a LeaderWorkerSet: the leader is owned by the set of leaders, the workers by the replica's own."""
    group = f"serve-{number}"
    leaders = owner("apps/v1", "StatefulSet", "serve")
    workers = owner("apps/v1", "StatefulSet", group)
    labels = {"leaderworkerset.sigs.k8s.io__name": "serve", "leaderworkerset.sigs.k8s.io__group_index": str(number)}
    first = of(group, group, leaders, **labels)
    return [first, *(of(group, f"{group}-{index}", workers, **labels) for index in range(1, size))]


def test_each_replica_of_a_leader_worker_set_is_a_gang(harness: Harness) -> None:
    """Two replicas of three with room for five: one is whole, the other waits."""
    harness.add(node("n", cpu=5), made("serve-0", gang(3), LWS), made("serve-1", gang(3), LWS))
    harness.wait(2, *replica(0, 3), *replica(1, 3))
    assert len(harness.bound()) == 3
    assert len({name.split("-")[1] for name in harness.bound()}) == 1
    harness.wait(2, node("n2", cpu=1))
    assert len(harness.bound()) == 6


def test_the_head_of_a_ray_cluster_goes_ahead_and_each_worker_group_is_a_gang(harness: Harness) -> None:
    """KubeRay declares the head as basic and each worker group for itself: room for the head and one group."""
    harness.add(
        node("n", cpu=4), made("ray-head", BASIC, RAY), made("ray-a", gang(3), RAY), made("ray-b", gang(2), RAY)
    )
    labels = {"ray.io__cluster": "ray"}
    harness.add(of("ray-head", "ray-head-x", RAY, **labels))
    harness.add(*(of("ray-a", f"ray-a-{number}", RAY, **labels) for number in range(3)))
    harness.wait(2, *(of("ray-b", f"ray-b-{number}", RAY, **labels) for number in range(2)))
    bound = [name.split("/")[1] for name in harness.bound()]
    assert "ray-head-x" in bound
    assert {name[:5] for name in bound} - {"ray-h"} in ({"ray-a"}, {"ray-b"})
    assert len(bound) in {3, 4}


@pytest.mark.parametrize("whole", [True, False], ids=["one group for all", "one for each replicated job"])
def test_a_job_set_is_one_gang_or_one_for_each_replicated_job(harness: Harness, whole: bool) -> None:  # noqa: FBT001
    """Two replicated jobs of two pods with room for three."""
    names = {"a": "train", "b": "train"} if whole else {"a": "train-a", "b": "train-b"}
    for name in dict.fromkeys(names.values()):
        harness.add(made(name, gang(4 if whole else 2), JOBSET))
    harness.add(node("n", cpu=3))
    for job, group in names.items():
        by = owner("batch/v1", "Job", f"train-{job}-0")
        labels = {"jobset.sigs.k8s.io__jobset_name": "train", "jobset.sigs.k8s.io__replicatedjob_name": job}
        harness.add(*(of(group, f"train-{job}-0-{number}", by, **labels) for number in range(2)))
    harness.wait(2)
    assert len(harness.bound()) == (0 if whole else 2)
    harness.wait(2, node("n2", cpu=1))
    assert len(harness.bound()) == 4
