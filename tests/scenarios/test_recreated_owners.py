"""A workload that is deleted and created again under its name: the pods of the old one do not count for the new one."""

from __future__ import annotations

from typing import Any

import pytest

from gangsched.core.objects.pod import Owner, Pod
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.core.objects.workload import Workload
from gangsched.kube.workloads.workload_kind import Marks
from tests.builders import group, node, pod
from tests.harness import Harness
from tests.served import KINDS, served_workload

SIZE = 3
KUBEFLOW, JOBSET, LWS = "training.kubeflow.org", "jobset.sigs.k8s.io", "leaderworkerset.sigs.k8s.io"
REPLICAS = {"Worker": {"replicas": SIZE}}
SPECS: dict[str, dict[str, Any]] = {
    "job": {"parallelism": SIZE, "completions": SIZE},
    "statefulset": {"replicas": SIZE, "podManagementPolicy": "Parallel"},
    "jobset": {"replicatedJobs": [{"name": "w", "template": {"spec": {"parallelism": SIZE}}}]},
    "lws": {"leaderWorkerTemplate": {"size": SIZE}},
    "mpijob": {"mpiReplicaSpecs": {"Launcher": {}, "Worker": {"replicas": SIZE - 1}}},
    "raycluster": {"workerGroupSpecs": [{"groupName": "w", "replicas": SIZE - 1}]},
    "pytorchjob": {"pytorchReplicaSpecs": REPLICAS},
    "tfjob": {"tfReplicaSpecs": REPLICAS},
    "xgboostjob": {"xgbReplicaSpecs": REPLICAS},
    "paddlejob": {"paddleReplicaSpecs": REPLICAS},
    "jaxjob": {"jaxReplicaSpecs": REPLICAS},
}
MAKERS = sorted(name for name, kind in KINDS.items() if kind.controllers)


def made(kind: str, uid: str) -> ForeignGroup:
    return served_workload(kind, "w", SPECS[kind], uid=uid)


def marks(kind: str, uid: str, number: int) -> Marks:
    """What a pod of the workload carries, as its controllers make it."""
    (group_, kind_), *_ = KINDS[kind].controllers or ()
    if kind == "jobset":
        labels = {f"{JOBSET}/jobset-name": "w", f"{JOBSET}/jobset-uid": uid, f"{JOBSET}/replicatedjob-name": "w"}
        return Marks(labels, {}, Owner("Job", "w-w-0", f"job-{uid}", "batch"))
    if kind == "lws":
        labels = {f"{LWS}/name": "w", f"{LWS}/group-index": "0", f"{LWS}/worker-index": str(number)}
        return Marks(labels, {}, Owner("StatefulSet", "w-0" if number else "w", f"sts-{bool(number)}-{uid}", "apps"))
    if kind == "mpijob" and number == 0:
        labels = {f"{KUBEFLOW}/operator-name": "mpi-operator", f"{KUBEFLOW}/job-name": "w"}
        return Marks(labels | {f"{KUBEFLOW}/job-role": "launcher"}, {}, Owner("Job", "w-launcher", uid, "batch"))
    role = {"raycluster": {"ray.io/group": "w" if number else "headgroup"}}.get(
        kind, {f"{KUBEFLOW}/replica-type": "worker"}
    )
    return Marks(role, {}, Owner(kind_, "w", uid, group_))


def pod_of(kind: str, uid: str, number: int, created: float, **fields: Any) -> Pod:
    found = marks(kind, uid, number)
    mark = KINDS[kind].mark(found)
    assert mark is not None
    workload = KINDS[kind].workload(mark)
    if "group" in fields:
        workload = Workload(workload.kind, workload.name, None, workload.uid)
    else:
        fields["group"] = ""
    return pod(f"{uid}-{number}", owner=found.owner, workload=workload, created=created, **fields)


def auto() -> Harness:
    harness = Harness()
    harness.label_namespace("default", {"gangsched.io/gang": "auto"})
    return harness


@pytest.mark.parametrize("kind", MAKERS)
def test_pods_of_before_do_not_complete_the_gang(kind):
    """There is room for the whole gang; two pods of the old workload are left, and two of three new ones exist."""
    harness = auto()
    harness.add(node(cpu="3"), made(kind, "second"))
    now = harness.now
    harness.add(*(pod_of(kind, "first", number, now - 60) for number in range(2)))
    harness.wait(5, *(pod_of(kind, "second", number, now) for number in range(2)))
    before = harness.bound()
    harness.wait(5, pod_of(kind, "second", 2, harness.now))
    assert before == []
    assert sorted(harness.bound()) == [f"default/second-{number}" for number in range(SIZE)]


@pytest.mark.parametrize("declared", ["by nobody", "by a PodGroup"])
@pytest.mark.parametrize("kind", ["job", "statefulset", "jobset", "pytorchjob"])
def test_a_new_gang_is_bound_as_a_whole_while_the_old_ones_pods_still_run(kind, declared):
    """The old pods run on for a while, for example because they were orphaned; there is room for two of three."""
    harness = auto() if declared == "by nobody" else Harness()
    fields = {} if declared == "by nobody" else {"group": "g"}
    if fields:
        harness.add(group("g", min_member=SIZE))
    harness.add(node(cpu="5"), made(kind, "first"))
    harness.wait(2, *(pod_of(kind, "first", number, harness.now, **fields) for number in range(SIZE)))
    harness.run_pods()
    harness.wait(30)
    first = len(harness.bound("default/first"))
    harness.delete_foreign(kind, "default/w")
    harness.add(made(kind, "second"))
    harness.wait(20, *(pod_of(kind, "second", number, harness.now, **fields) for number in range(SIZE)))
    between = len(harness.bound("default/second"))
    harness.delete(*(f"default/first-{number}" for number in range(SIZE)))
    harness.wait(20)
    assert (first, between, len(harness.bound("default/second"))) == (SIZE, 0, SIZE)


def test_a_pod_of_before_is_told_that_it_does_not_count_and_nobody_is_called_a_rival():
    harness = Harness.of(node(cpu="3"), group("g", min_member=SIZE), made("job", "second"))
    harness.add(pod_of("job", "first", 0, harness.now - 60, group="g"))
    harness.wait(5, *(pod_of("job", "second", number, harness.now, group="g") for number in range(2)))
    assert harness.pod("default/first-0").condition_reason == "SeveralOwners"
    assert "The Job w of this pod" in harness.pod("default/first-0").condition_message
    assert harness.condition("default/g").message == (
        "2 of 3 members exist; 1 more member is needed, or a lower minimum. 1 pod does not count, because its owner "
        "was deleted and another object has that name."
    )
    assert harness.events("SeveralOwners") == []
