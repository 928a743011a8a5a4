"""Reading workloads: which pods belong to them, and what their objects declare."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangsched.config.custom_workloads import Workloads as Chosen
from gangsched.config.settings import Settings
from gangsched.config.workload_registry import NAMES
from gangsched.core.objects.declaration import OBJECT_NAME, Declaration
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.core.objects.workload import Series, TopOwner, Workload, WorkloadFacts
from gangsched.kube import wire
from gangsched.kube.dialects.dialect_table import DEFAULT
from gangsched.kube.reading.pod_values import pod_value
from gangsched.kube.workloads.workload_kind import group_name
from gangsched.kube.workloads.workload_table import NONE, Workloads, chosen

ALL = chosen(Settings())
Json = dict[str, Any]


def pod_of(kind: str, name: str, *, group: str = "", **metadata: Any) -> Json:
    """A pod whose controller is this object."""
    owner = {
        "apiVersion": f"{group}/v1" if group else "v1",
        "kind": kind,
        "name": name,
        "uid": f"uid-{name}",
        "controller": True,
    }
    return {
        "metadata": {"name": "p", "namespace": "ns", "uid": "p", "ownerReferences": [owner], **metadata},
        "spec": {},
    }


def read(body: Json, kinds: Workloads = ALL) -> Pod:
    return pod_value(msgspec.json.decode(json.dumps(body), type=wire.Pod), DEFAULT, kinds)


def of(kind: str, spec: object, *, status: object = None, name: str = "w", **metadata: object) -> ForeignGroup:
    """The declaration of the object with this spec."""
    body: Json = {"metadata": {"name": name, "namespace": "ns", "uid": "u", **metadata}, "spec": spec}
    if status is not None:
        body["status"] = status
    return ALL.kinds[kind].read(json.dumps(body).encode())[1]


def facts(kind: str, spec: object, **fields: Any) -> WorkloadFacts:
    """What the object with this spec says about its pods."""
    found = of(kind, spec, **fields).workload
    assert found is not None
    return found


def declared(body: Json, kinds: Workloads = ALL) -> Declaration:
    """What the pod's workload declares for it."""
    found = read(body, kinds).workload
    assert found is not None
    assert found.declaration is not None
    return found.declaration


def said(found: ForeignGroup) -> tuple[int, dict[str, int], str]:
    """The minimum of its gangs, the minima of their roles, and why it wants no pods."""
    assert found.spec is not None
    assert found.workload is not None
    roles = {role.name: role.min_member for role in found.spec.roles}
    return found.spec.min_member, roles, found.workload.idle


LWS: Json = {
    "labels": {"leaderworkerset.sigs.k8s.io/name": "serve", "leaderworkerset.sigs.k8s.io/group-index": "1"},
    "annotations": {"leaderworkerset.sigs.k8s.io/size": "4"},
}
JOBSET: Json = {
    "labels": {
        "jobset.sigs.k8s.io/jobset-name": "js",
        "jobset.sigs.k8s.io/jobset-uid": "uid-js",
        "jobset.sigs.k8s.io/replicatedjob-name": "w",
    }
}
_MPI = {"training.kubeflow.org/operator-name": "mpi-operator", "training.kubeflow.org/job-name": "mpi"}
LAUNCHER: Json = {"labels": {**_MPI, "training.kubeflow.org/job-role": "launcher"}}
WORKER: Json = {"labels": {**_MPI, "training.kubeflow.org/job-role": "worker"}}
MASTER: Json = {"labels": {"training.kubeflow.org/replica-type": "master"}}
HEAD: Json = {"labels": {"ray.io/cluster": "ray", "ray.io/group": "headgroup", "ray.io/node-type": "head"}}
SUCCEEDED = {"conditions": [{"type": "Succeeded", "status": "True"}]}
COMPLETED = {"conditions": [{"type": "Completed", "status": "True"}]}


def replicated(name: str, replicas: int | None, **spec: int) -> Json:
    return {"name": name, "template": {"spec": spec}} | ({} if replicas is None else {"replicas": replicas})


def ray_workers(name: str, replicas: int, **fields: object) -> Json:
    return {"groupName": name, "replicas": replicas, "maxReplicas": 9, **fields}


PT, ONE, HEADED, SUSPENDED = {"master": 1, "worker": 3}, {"master": 1}, {"headgroup": 1}, "is suspended"
MPI = {"Launcher": {"replicas": 1}, "Worker": {"replicas": 3}}
ENDED = {"conditions": [{"type": "Complete", "status": "True"}]}
NOT_ENDED = {"conditions": [{"type": "Failed", "status": "False"}, {"type": "Suspended", "status": "True"}]}


@pytest.mark.parametrize(
    ("body", "kind", "group", "role"),
    [
        (pod_of("Job", "train", group="batch"), "job", "job.train", ""),
        (pod_of("StatefulSet", "web", group="apps"), "statefulset", "statefulset.web", "replica"),
        (pod_of("StatefulSet", "s", group="apps", **LWS), "lws", "lws.serve.1", ""),
        (pod_of("Job", "js-w-0", group="batch", **JOBSET), "jobset", "jobset.js", "w"),
        (pod_of("Job", "mpi-launcher", group="batch", **LAUNCHER), "mpijob", "mpijob.mpi", "launcher"),
        (pod_of("MPIJob", "mpi", group="kubeflow.org", **WORKER), "mpijob", "mpijob.mpi", "worker"),
        (pod_of("PyTorchJob", "pt", group="kubeflow.org", **MASTER), "pytorchjob", "pytorchjob.pt", "master"),
        (pod_of("JAXJob", "jx", group="kubeflow.org", **MASTER), "jaxjob", "jaxjob.jx", "master"),
        (pod_of("RayCluster", "ray", group="ray.io", **HEAD), "raycluster", "raycluster.ray", "headgroup"),
    ],
)
def test_a_pod_belongs_to_the_workload_that_it_carries(body, kind, group, role):
    found = read(body).workload
    assert found is not None
    assert found.declaration is not None
    assert (found.kind, found.declaration.group, found.declaration.role) == (kind, group, role)
    assert (found.declaration.objects, found.declaration.object_name) == ((kind,), found.name)
    assert OBJECT_NAME.fullmatch(group)


def test_the_pods_of_a_replica_have_roles_and_the_replicas_own_size():
    for index, role in (("0", "leader"), ("3", "worker")):
        marks = {**LWS, "labels": {**LWS["labels"], "leaderworkerset.sigs.k8s.io/worker-index": index}}
        found = declared(pod_of("StatefulSet", "s", group="apps", **marks))
        assert (found.role, found.min_member, found.made_with) == (role, 4, None if role == "leader" else 4)


def test_a_launchers_success_is_its_jobs():
    assert declared(pod_of("Job", "mpi-launcher", group="batch", **LAUNCHER)).leading == "launcher"


def test_the_pods_of_a_jobset_are_those_of_its_jobs_where_jobsets_are_not_chosen():
    jobs = chosen(Settings(workloads=Chosen(kinds=("job",))))
    assert declared(pod_of("Job", "js-w-0", group="batch", **JOBSET), jobs).group == "job.js-w-0"


@pytest.mark.parametrize(
    "body",
    [
        pod_of("ReplicaSet", "web-1", group="apps"),
        pod_of("Job", "train", group="example.com"),
        pod_of("Job", "train"),
        {"metadata": {"name": "p", "uid": "p"}, "spec": {}},
    ],
)
def test_a_pod_of_another_kind_has_no_workload(body):
    assert read(body).workload is None


def test_a_pod_that_names_its_group_follows_that_though_its_workload_is_known():
    found = read(pod_of("Job", "train", group="batch", labels={"gangsched.io/pod-group": "a"}))
    assert found.declaration is not None
    assert found.declaration.group == "a"
    assert found.workload == Workload("job", "train", None, found.owner.uid if found.owner is not None else "")


def made_by(api_version: str, kind: str, *, controller: bool = True) -> list[Json]:
    return [{"apiVersion": api_version, "kind": kind, "name": "top", "uid": "uid-top", "controller": controller}]


TRAINER, DISAGGREGATED = "trainer.kubeflow.org/v1alpha1", "disaggregatedset.x-k8s.io/v1"


COMPLETE = {"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 6}
CRITERIA_MET = {"conditions": [{"type": "SuccessCriteriaMet", "status": "True"}], "succeeded": 6}
WAVES = {"parallelism": 5, "completions": 10}
ASKED: Json = {"gangsched.io/gang": "true", "gangsched.io/min-member": "3"}
FACTS: list[tuple[str, object, Json, Json]] = [
    # A Job comes in waves if it asks for more completions than pods at a time.
    *(
        ("job", spec, {"status": status}, {"completions": waves[0], "succeeded": waves[1], "in_waves": waves[2]})
        for spec, status, waves in (
            (WAVES, None, (10, 0, True)),
            ({"completions": 10}, {"succeeded": 4}, (10, 4, True)),
            (WAVES, {"succeeded": 4}, (10, 4, True)),
            (WAVES, COMPLETE, (10, 10, True)),
            (WAVES, CRITERIA_MET, (10, 10, True)),
            ({"parallelism": 5, "completions": 5}, {"succeeded": 4}, (5, 4, False)),
            ({"parallelism": 5, "completions": 3}, {"succeeded": 1}, (3, 1, False)),
            ({"parallelism": 3, "completions": 3}, ENDED, (3, 3, False)),
            ({"parallelism": 5}, {"succeeded": 4}, (4, 4, False)),
            ({}, None, (None, 0, False)),
        )
    ),
    # Indexes that failed for good are counted from the Job's intervals.
    *(
        (
            "job",
            {"parallelism": 4, "completions": 9},
            {"status": {"failedIndexes": failed}},
            {"completions": 9, "given_up": given_up, "size": 4},
        )
        for failed, given_up in (
            *((None, 0), ("", 0), ("3", 1), ("0,2", 2), ("1,3-5,7", 5)),
            *(("0-99999", 100000), ("5-3", 0), ("x", 0), ("1-", 1), ("-1", 0)),
        )
    ),
    # Without completions the controller keeps the pods that are active once one has succeeded, however few they are
    # (manageJob in job_controller.go at v1.37.2).
    *(
        ("job", {"parallelism": 4}, {"status": {"succeeded": 1, "active": active}}, {"size": size})
        for active, size in ((3, 4), (2, 3), (0, 1), (9, 4))
    ),
    # A pod that has just ended is neither active nor counted for a moment.
    (
        "job",
        {"parallelism": 4},
        {"status": {"succeeded": 1, "active": 2, "uncountedTerminatedPods": {"succeeded": ["uid-1"]}}},
        {"size": 4},
    ),
    # A Job that ends or has ended wants no pods.
    *(
        ("job", {"parallelism": 2}, {"status": {"conditions": [{"type": type_, "status": "True"}]}}, {"idle": why})
        for type_, why in (
            *(("Complete", "has completed"), ("SuccessCriteriaMet", "has completed")),
            *(("Failed", "has ended"), ("FailureTarget", "has ended")),
        )
    ),
    *(
        (kind, {}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}, {"idle": "is being deleted"})
        for kind in ("job", "statefulset", "lws")
    ),
    # A wish counts though the minimum cannot be read.
    ("job", {}, {"annotations": {"gangsched.io/gang": "true"}}, {"gang": True}),
    ("job", {}, {"annotations": {"gangsched.io/gang": "false"}}, {"gang": False}),
    ("job", {}, {"annotations": {"gangsched.io/gang": "false", "gangsched.io/min-member": "x"}}, {"gang": False}),
    # A LeaderWorkerSet makes all pods of a replica anew unless it says otherwise.
    *(
        ("lws", {"leaderWorkerTemplate": {"size": 2, **policy}}, {}, {"recreates_all": anew})
        for policy, anew in (
            *(({}, True), ({"restartPolicy": "RecreateGroupOnPodRestart"}, True)),
            ({"restartPolicy": "None"}, False),
        )
    ),
    # A Job's pods may be evicted without a failure if its first rule about that says so.
    *(
        ("job", {"podFailurePolicy": {"rules": rules}}, {}, {"patient": patient})
        for rules, patient in (
            ([], False),
            ([{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}], True),
            ([{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget"}]}], False),
        )
    ),
    # Its limit counts from when it was started.
    *(
        ("job", spec, {"status": status}, {"ends_by": ends_by})
        for spec, status, ends_by in (
            ({"activeDeadlineSeconds": 60}, {"startTime": "2026-01-01T00:00:00Z"}, 1767225660.0),
            ({"activeDeadlineSeconds": 60}, {}, 0.0),
            ({}, {"startTime": "2026-01-01T00:00:00Z"}, 0.0),
        )
    ),
    # It may ask for no gang, and an annotation takes precedence over that.
    *(
        ("job", {"scheduling": {"schedulingPolicy": policy}}, {"annotations": annotations}, {"gang": gang})
        for policy, annotations, gang in (
            ({"basic": {}}, {}, False),
            ({"basic": {}}, {"gangsched.io/gang": "true"}, True),
            ({"basic": None, "gang": {"minCount": 2}}, {}, None),
            ({"gang": {"minCount": 2}}, {"gangsched.io/gang": "false"}, False),
        )
    ),
    # How long it took is known once it has succeeded.
    *(
        ("job", {}, {"status": status}, {"began": 1767225600.0, "succeeded_at": succeeded_at})
        for status, succeeded_at in (
            ({"startTime": "2026-01-01T00:00:00Z"}, 0.0),
            ({"startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:01:00Z"}, 1767225660.0),
            ({"startTime": "2026-01-01T00:00:00Z", "completionTime": "later"}, 0.0),
        )
    ),
    # Any object may own it, whether it makes pods or not.
    *(
        ("job", {}, {"ownerReferences": owners}, {"owner": owner})
        for owners, owner in (
            ([], ""),
            (made_by("example.com/v1", "Flow"), "uid-top"),
            (made_by("example.com/v1", "Flow", controller=False), "uid-top"),
            ([{**made_by("v1", "A", controller=False)[0], "uid": "other"}, *made_by("example.com/v1", "B")], "uid-top"),
        )
    ),
    # An object above says whether it is suspended, and has annotations. A CronJob's Jobs go on.
    *(
        (kind, spec, {"annotations": ASKED}, {"gang": True, "least": 3, "idle": idle})
        for kind, spec, idle in (
            ("trainjob", {"suspend": True, "trainer": {"numNodes": 3}}, "is suspended"),
            ("trainjob", {"suspend": False}, ""),
            ("rayjob", {"suspend": True, "entrypoint": "run"}, "is suspended"),
            ("rayjob", None, ""),
            ("cronjob", {"suspend": True, "schedule": "* * * * *"}, ""),
        )
    ),
    # The object above is the controller, of a kind that makes this one. The Job that submits a RayJob is separate and
    # not counted in the RayJob's minimum.
    *(
        (
            kind,
            {},
            {"ownerReferences": made_by(version, above)},
            {"top": TopOwner(above.lower(), above, "top", "uid-top")},
        )
        for kind, version, above in (
            ("jobset", TRAINER, "TrainJob"),
            ("raycluster", "ray.io/v1", "RayJob"),
            ("raycluster", "ray.io/v1", "RayService"),
            ("job", "batch/v1", "CronJob"),
            ("lws", DISAGGREGATED, "DisaggregatedSet"),
        )
    ),
    *(
        (kind, {}, {"ownerReferences": owners}, {"top": None})
        for kind, owners in (
            ("jobset", made_by(TRAINER, "TrainJob", controller=False)),
            ("jobset", made_by("example.com/v1", "TrainJob")),
            ("job", made_by("ray.io/v1", "RayJob")),
            ("job", []),
        )
    ),
]


@pytest.mark.parametrize(("kind", "spec", "fields", "expected"), FACTS)
def test_what_an_object_says_of_its_pods(kind: str, spec: object, fields: Json, expected: Json) -> None:
    found = facts(kind, spec, **fields)
    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("jobs", "status", "waves"),
    [
        ([replicated("a", 2, parallelism=2, completions=5), replicated("b", None)], None, (11, 0)),
        ([replicated("a", 2, parallelism=2, completions=5), replicated("b", None)], COMPLETED, (11, 11)),
        ([replicated("a", 2, parallelism=2, completions=2), replicated("b", 3, parallelism=4)], None, (16, 0)),
    ],
)
def test_a_jobset_comes_in_waves_if_one_of_its_jobs_does(jobs, status, waves):
    found = facts("jobset", {"replicatedJobs": jobs}, status=status, name="js")
    assert (found.completions, found.succeeded) == waves
    assert found.in_waves is (waves[0] == 11)
    if found.in_waves:
        assert found.series == (Series("a", ("js-a-0", "js-a-1"), 2, 5), Series("b", ("js-b-0",), 1, 1))


def test_pods_of_one_workload_share_one_value():
    body = pod_of("Job", "train", group="batch")
    assert read(body).workload is read(body).workload


def test_a_kind_that_is_not_chosen_is_not_recognised():
    body = pod_of("Job", "train", group="batch")
    assert read(body, chosen(Settings(workloads=Chosen(kinds=("statefulset",))))).workload is None
    assert read(body, NONE).workload is None


@pytest.mark.parametrize(
    ("kind", "spec", "status", "expected"),
    [
        ("job", {"parallelism": 5, "completions": 5}, None, (5, {}, "")),
        ("job", {"parallelism": 5, "completions": 3}, None, (3, {}, "")),
        ("job", {"parallelism": 5}, None, (5, {}, "")),
        ("job", {}, NOT_ENDED, (1, {}, "")),
        ("job", {"parallelism": 0}, None, (1, {}, "has parallelism 0")),
        ("job", {"parallelism": 5, "suspend": True}, None, (5, {}, "is suspended")),
        ("job", {"parallelism": 5, "suspend": True}, ENDED, (5, {}, "has completed")),
        ("statefulset", {"replicas": 4, "podManagementPolicy": "Parallel"}, None, (4, {}, "")),
        ("statefulset", {"replicas": 4, "podManagementPolicy": "OrderedReady"}, None, (4, {"replica": 4}, "")),
        ("statefulset", {}, None, (1, {"replica": 1}, "")),
        ("statefulset", {"replicas": 0}, None, (1, {"replica": 0}, "has 0 replicas")),
        ("lws", {"replicas": 3, "leaderWorkerTemplate": {"size": 4}}, None, (4, {}, "")),
        ("lws", {"replicas": 0, "leaderWorkerTemplate": {}}, None, (1, {}, "has 0 replicas")),
        (
            "jobset",
            {
                "replicatedJobs": [
                    replicated("a", 2, parallelism=3),
                    replicated("b", None, parallelism=4, completions=2),
                ]
            },
            None,
            (8, {"a": 6, "b": 2}, ""),
        ),
        ("jobset", {"replicatedJobs": [replicated("a", 0)]}, None, (1, {"a": 0}, "has no pods")),
        ("jobset", {"replicatedJobs": [replicated("a", 1)], "suspend": True}, None, (1, {"a": 1}, "is suspended")),
        ("jobset", {"replicatedJobs": [replicated("a", 1)]}, COMPLETED, (1, {"a": 1}, "has completed")),
        ("pytorchjob", {"pytorchReplicaSpecs": {"Master": {}, "Worker": {"replicas": 3}}}, None, (4, PT, "")),
        ("tfjob", {"tfReplicaSpecs": {"PS": {"replicas": 2}}}, SUCCEEDED, (2, {"ps": 2}, "has completed")),
        ("xgboostjob", {"xgbReplicaSpecs": {"Master": {}}, "runPolicy": {"suspend": True}}, None, (1, ONE, SUSPENDED)),
        ("paddlejob", {"paddleReplicaSpecs": {"Master": {"replicas": 0}}}, None, (1, {"master": 0}, "has no replicas")),
        ("jaxjob", {"jaxReplicaSpecs": {"Master": {}}}, NOT_ENDED, (1, ONE, "")),
        ("mpijob", {"mpiReplicaSpecs": MPI}, None, (4, {"launcher": 1, "worker": 3}, "")),
        (
            "mpijob",
            {"mpiReplicaSpecs": MPI, "launcherCreationPolicy": "WaitForWorkersReady"},
            None,
            (4, {"launcher": 1, "worker": 3}, ""),
        ),
        ("raycluster", {"workerGroupSpecs": [ray_workers("w", 2, numOfHosts=2)]}, None, (5, HEADED | {"w": 4}, "")),
        (
            "raycluster",
            {"enableInTreeAutoscaling": True, "workerGroupSpecs": [ray_workers("w", 5, minReplicas=1)]},
            None,
            (2, HEADED | {"w": 1}, ""),
        ),
        ("raycluster", {"workerGroupSpecs": [ray_workers("w", 2, suspend=True)]}, None, (1, HEADED | {"w": 0}, "")),
        ("raycluster", {"workerGroupSpecs": [ray_workers("w", 1, maxReplicas=0)]}, None, (1, HEADED | {"w": 0}, "")),
        ("raycluster", {"workerGroupSpecs": [ray_workers("w", 1, minReplicas=3)]}, None, (4, HEADED | {"w": 3}, "")),
        ("raycluster", {"suspend": True}, None, (1, HEADED, "is suspended")),
    ],
)
def test_the_size_follows_the_spec(kind, spec, status, expected):
    assert said(of(kind, spec, status=status)) == expected


def late_pod(cpu: str, **spec: object) -> Json:
    containers = [{"name": "main", "resources": {"limits": {"cpu": cpu}}, "env": 7, "command": 7}]
    return {"metadata": {"labels": {"app": "w"}}, "spec": {"containers": containers, "volumes": 7, **spec}}


def later(name: str, cpu: str, **depends_on: str) -> Json:
    awaited = [{"name": other, "status": status} for other, status in depends_on.items()]
    job = {"parallelism": 2, "completions": 2, "template": late_pod(cpu)}
    return {"name": name, "replicas": 1, "template": {"spec": job}} | ({"dependsOn": awaited} if awaited else {})


IN_ORDER = {"startupPolicy": {"startupPolicyOrder": "InOrder"}}
CREATED = {"startupPolicy": {"startupPolicyOrder": "AnyOrder"}}
LATE_MPI = {"Launcher": {"template": late_pod("1")}, "Worker": {"replicas": 3, "template": late_pod("2")}}
LEADER_READY = {"leaderWorkerTemplate": {"size": 4, "leaderTemplate": late_pod("1"), "workerTemplate": late_pod("2")}}
CHAIN = {"replicatedJobs": [later("a", "1"), later("b", "2", a="Complete"), later("c", "3", b="Ready")]}
DONE = {"replicatedJobsStatus": [{"name": "a", "succeeded": 1}, {"name": "b", "succeeded": 1}]}


@pytest.mark.parametrize(
    ("kind", "spec", "status", "held", "roles"),
    [
        ("statefulset", {"replicas": 3, "template": late_pod("1")}, None, {"replica": 1000}, {"replica": 3}),
        ("statefulset", {"podManagementPolicy": "Parallel", "template": late_pod("1")}, None, {}, {}),
        ("statefulset", {"replicas": 0, "template": late_pod("1")}, None, {}, {"replica": 0}),
        ("lws", LEADER_READY | {"startupPolicy": "LeaderReady"}, None, {"worker": 2000}, {"leader": 1, "worker": 3}),
        ("lws", LEADER_READY | {"startupPolicy": "LeaderCreated"}, None, {}, {}),
        ("lws", {"startupPolicy": "LeaderReady", "leaderWorkerTemplate": {"size": 1}}, None, {}, {}),
        (
            "jobset",
            {"replicatedJobs": [later("a", "1"), later("b", "2")], **IN_ORDER},
            None,
            {"b": 2000},
            {"a": 2, "b": 2},
        ),
        ("jobset", {"replicatedJobs": [later("a", "1"), later("b", "2")], **CREATED}, None, {}, {"a": 2, "b": 2}),
        (
            "jobset",
            {"replicatedJobs": [later("a", "1"), later("b", "2", a="Ready")]},
            None,
            {"b": 2000},
            {"a": 2, "b": 2},
        ),
        ("jobset", CHAIN, None, {}, {"a": 2, "b": 0, "c": 0}),
        ("jobset", CHAIN, DONE, {"c": 3000}, {"a": 0, "b": 2, "c": 2}),
        (
            "mpijob",
            {"mpiReplicaSpecs": LATE_MPI, "launcherCreationPolicy": "WaitForWorkersReady"},
            None,
            {"launcher": 1000},
            {"launcher": 1, "worker": 3},
        ),
        (
            "mpijob",
            {"mpiReplicaSpecs": LATE_MPI, "launcherCreationPolicy": "AtStartup"},
            None,
            {},
            {"launcher": 1, "worker": 3},
        ),
    ],
)
def test_pods_that_are_created_later_have_a_template(kind, spec, status, held, roles):
    found = of(kind, spec, status=status)
    assert found.spec is not None
    assert found.workload is not None
    made = {role.name: role.template for role in found.spec.roles if role.template is not None}
    assert {name: dict(shape.requests)["cpu"] for name, shape in made.items()} == held
    assert {role.name: role.min_member for role in found.spec.roles} == roles
    assert {role.name for role in found.spec.roles if role.derived} == set(held)
    assert all(role.labels == (("app", "w"),) for role in found.spec.roles if role.derived)
    assert bool(found.workload.remedy) or not held


@pytest.mark.parametrize(
    ("least", "held"), [(1, {}), (2, {}), (3, {"b": 1}), (5, {"b": 2, "c": 1}), (9, {"b": 2, "c": 2})]
)
def test_a_minimum_that_is_annotated_asks_of_later_pods_what_it_asks_beyond_the_first(least, held):
    spec = {"replicatedJobs": [later("a", "1"), later("b", "2"), later("c", "3")], **IN_ORDER}
    found = of("jobset", spec, annotations={"gangsched.io/min-member": str(least)}).spec
    assert found is not None
    assert found.min_member == least
    assert {role.name: role.min_member for role in found.roles} == held


@pytest.mark.parametrize(
    ("spec", "asked"),
    [
        ({"resources": {"limits": {"cpu": "3"}}, "containers": [{"name": "a"}]}, {"cpu": 3000}),
        (
            {
                "resources": {"limits": {"cpu": "9"}, "requests": {"memory": "2"}},
                "containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}}],
            },
            {"cpu": 1000, "memory": 2},
        ),
        (
            {
                "overhead": {"cpu": "1"},
                "containers": [{"name": "a"}],
                "initContainers": [{"name": "b", "resources": {"limits": {"cpu": "2"}}}],
            },
            {"cpu": 3000},
        ),
    ],
)
def test_a_template_has_the_defaults_that_its_pods_will_have(spec, asked):
    found = of("statefulset", {"replicas": 2, "template": {"spec": spec}}).spec
    assert found is not None
    [role] = found.roles
    assert role.template is not None
    assert dict(role.template.requests) == asked


def test_a_template_says_where_its_pods_may_run():
    away = {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": "w"}}}
    body = late_pod(
        "1",
        nodeSelector={"pool": "a"},
        tolerations=[{"key": "gpu", "operator": "Exists"}],
        affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [away]}},
        hostNetwork=True,
    )
    body["spec"]["containers"][0]["ports"] = [{"containerPort": 80}]
    found = of("statefulset", {"replicas": 2, "template": body}).spec
    assert found is not None
    [role] = found.roles
    assert role.template is not None
    assert role.template.node_selector == (("pool", "a"),)
    assert [each.key for each in role.template.tolerations] == ["gpu"]
    assert [(each.topology_key, each.namespaces) for each in role.template.anti_affinity] == [("host", ("ns",))]
    assert [each.port for each in role.template.host_ports] == [80]


@pytest.mark.parametrize(
    ("annotations", "told"),
    [
        ({"gangsched.io/gang": "yes"}, 'Job w: The annotation gangsched.io/gang is \'yes\': write "true" or "false".'),
        (
            {"gangsched.io/min-member": "0"},
            "Job w: The annotation gangsched.io/min-member is '0': write a whole number",
        ),
    ],
)
def test_what_cannot_be_read_is_named(annotations, told):
    found = of("job", {}, annotations=annotations)
    assert found.spec is None
    assert found.error.startswith(told)
    assert found.workload is not None
    assert found.workload.gang is not False


def test_an_object_of_an_unknown_form_is_known_with_an_error():
    found = of("job", {"parallelism": "many"})
    assert found.spec is None
    assert "Job w: it cannot be read" in found.error


def test_a_minimum_that_is_annotated_is_of_whatever_roles():
    found = of("mpijob", {"mpiReplicaSpecs": MPI}, annotations={"gangsched.io/min-member": "2"})
    assert said(found)[:2] == (2, {})


def test_the_minimum_that_is_annotated_replaces_the_size():
    assert said(of("job", {"parallelism": 5}, annotations={"gangsched.io/min-member": "2"}))[0] == 2


def test_a_kind_above_that_is_not_chosen_says_nothing():
    body = {"metadata": {"name": "w", "ownerReferences": made_by(TRAINER, "TrainJob")}, "spec": {}}
    found = chosen(Settings(workloads=Chosen(kinds=("jobset",)))).kinds["jobset"].read(json.dumps(body).encode())[1]
    assert getattr(found.workload, "top", "no workload") is None


def test_a_kind_above_one_that_is_not_chosen_is_not_watched():
    assert list(chosen(Settings(workloads=Chosen(kinds=("trainjob", "job", "cronjob")))).kinds) == ["job", "cronjob"]


@given(st.lists(st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,120}[a-z0-9])?", fullmatch=True), min_size=2, unique=True))
def test_each_workload_has_a_name_of_its_own_that_a_podgroup_can_have(names):
    made = [group_name(kind, name) for kind in NAMES for name in names]
    assert len(set(made)) == len(made)
    assert all(OBJECT_NAME.fullmatch(name) for name in made)


def test_a_jobset_with_two_billion_jobs_is_refused_before_they_are_counted_one_by_one():
    """Regression: its reader, which runs in the operator too, made the name of each Job, until the memory was full."""
    jobs = [{"name": "a", "replicas": 2_000_000_000, "template": {"spec": {"parallelism": 0}}}]
    found = {"metadata": {"name": "w", "namespace": "n"}, "spec": {"replicatedJobs": jobs}}
    read = chosen(Settings()).kinds["jobset"].read(msgspec.json.encode(found))[1]
    assert "more than 10000 Jobs" in read.error
