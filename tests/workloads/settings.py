"""The workloads of the plays: how each is changed while it runs, and how its controller is started."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from testbed.controllers.expected import AUTO, RACE, SCALE
from tests.workloads.pages import manifest
from tests.workloads.plays import SIZE, Json, Setting, scale, until_settled, until_whole
from tests.workloads.stage import Stage


@dataclass(frozen=True, kw_only=True)
class Controlled:
    """How to start a controller beside gangsched; the remaining fields apply only with its own integration."""

    config: Mapping[str, Any] = field(default_factory=dict)
    """The fields of its configuration file, besides addresses."""
    own_arguments: Sequence[str] = ()
    own_config: Mapping[str, Any] = field(default_factory=dict)
    dialect: str = ""
    """The dialect of the PodGroups that it creates."""
    scheduler: str = ""
    """The schedulerName that it gives to pods, whatever their template says."""
    gates: Sequence[str] = ()
    """The feature gate flag of kube-apiserver and kube-controller-manager."""
    served: Sequence[str] = ()
    """The kube-apiserver flag that serves its API groups."""


CONTROLLED = {
    "": Controlled(
        gates=("--feature-gates=GenericWorkload=true,WorkloadWithJob=true",),
        served=("--runtime-config=scheduling.k8s.io/v1beta1=true",),
    ),
    "jobset": Controlled(),
    "lws": Controlled(own_config={"gangSchedulingManagement": {"schedulerProvider": "volcano"}}, dialect="volcano"),
    "kuberay": Controlled(
        own_arguments=("--batch-scheduler=scheduler-plugins",),
        dialect="scheduler-plugins",
        scheduler="scheduler-plugins-scheduler",
    ),
    "mpi-operator": Controlled(own_arguments=("--gang-scheduling=gangsched",), dialect="scheduler-plugins"),
    "training-operator": Controlled(own_arguments=("--gang-scheduler-name=gangsched",), dialect="scheduler-plugins"),
    "trainer": Controlled(dialect="scheduler-plugins"),
    "kueue": Controlled(config={"integrations": {"frameworks": ["batch/job"]}}),
}
"""By controller name; the empty name stands for kube-controller-manager's own controllers."""


def _set(*way: str, to: object) -> Callable[..., Json]:
    """A merge patch of one field; the value may depend on the argument."""

    def patch(argument: object = None) -> Json:
        value = to(argument) if callable(to) else to
        for key in reversed(way):
            value = {key: value}
        return value  # type: ignore[return-value]

    return patch


_SUSPEND = _set("spec", "suspend", to=bool)


def _workers_beside_one(kind: str) -> Callable[[int], Json]:
    return _set("spec", kind, "Worker", "replicas", to=lambda size: size - 1)


def _ray_workers(size: int) -> Json:
    """The workers beside one head. A merge patch replaces the whole list of worker groups, so it must be complete."""
    manifests = yaml.safe_load_all(manifest("RayCluster", AUTO))
    [group] = next(iter(manifests))["spec"]["workerGroupSpecs"]
    return {"spec": {"workerGroupSpecs": [group | {"replicas": size - 1}]}}


def _as_ray_job(*manifests: Json) -> None:
    """The page's RayCluster in a RayJob. KubeRay itself submits the work, so that there is no pod for it."""
    cluster = manifests[-1]
    own = {"submissionMode": "HTTPMode", "entrypoint": "python train.py", "shutdownAfterJobFinishes": True}
    cluster |= {"kind": "RayJob", "spec": {**own, "rayClusterSpec": cluster["spec"]}}


def _as_ray_service(*manifests: Json) -> None:
    cluster = manifests[-1]
    cluster |= {"kind": "RayService", "spec": {"rayClusterConfig": cluster["spec"]}}


def _with(**fields: object) -> Callable[..., None]:
    """Sets fields of the workload's spec."""
    return lambda *manifests: manifests[-1]["spec"].update(fields)


def _after_leader(*manifests: Json) -> None:
    _, worker = manifests[-1]["spec"]["replicatedJobs"]
    worker["dependsOn"] = [{"name": "leader", "status": "Ready"}]


def _after_initializer(*manifests: Json) -> None:
    """As in the runtimes that Trainer ships: one Job loads data, and the others start when it is complete."""
    name, step = "dataset-initializer", "trainer.kubeflow.org/trainjob-ancestor-step"
    runtime = next(each for each in manifests if each["kind"] == "TrainingRuntime")
    jobs = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    jobs[-1]["dependsOn"] = [{"name": name, "status": "Complete"}]
    container = {"name": name, "image": "registry.example.com/data", "resources": {"requests": {"cpu": "1"}}}
    pod = {"spec": {"schedulerName": "gangsched", "containers": [container]}}
    jobs.insert(0, {"name": name, "template": {"metadata": {"labels": {step: name}}, "spec": {"template": pod}}})


def _second_replica(stage: Stage, setting: Setting, column: str) -> None:
    """A second replica waits whole beside the first, which stays untouched, and is removed again."""
    stage.apply(setting.manifest(column, "first"))
    until_whole(stage, setting, "first")
    before = set(stage.bound())
    stage.patch("first", {"spec": {"replicas": 2}})
    stage.until(lambda: stage.counts("first") == [(SIZE + setting.first, SIZE)])
    stage.patch("first", {"spec": {"replicas": 1}})
    until_whole(stage, setting, "first")
    assert set(stage.bound()) == before


def _scaled_and_rolled_out(stage: Stage, setting: Setting, column: str) -> None:
    """Scale up and down, then roll out: at the end all pods have the new template and are whole."""
    scale(stage, setting, column)
    old = {pod["metadata"]["uid"] for pod in stage.live("first")}
    stage.patch("first", {"spec": {"template": {"metadata": {"annotations": {"version": "2"}}}}})

    def rolled_out() -> bool:
        return not old & {pod["metadata"]["uid"] for pod in stage.live("first")}

    stage.until(rolled_out, within_s=setting.within_s, what="no pod of the old template")
    until_whole(stage, setting, "first")


def _two_replicas(stage: Stage, setting: Setting, column: str) -> None:
    """Two replicas at once; the waiting one runs whole when there is room, since neither can be deleted alone."""
    stage.apply(setting.manifest(column, "first"))
    _, waits = until_settled(stage, setting, "first-0", "first-1")
    with stage.more_room("2"):
        until_whole(stage, setting, waits)


def _two_roles(stage: Stage, setting: Setting, column: str) -> None:
    """Two roles at once, of one replica each; the waiting one runs whole when there is room."""
    stage.apply(setting.manifest(column, "first"))
    sets = f"/{_LWS.replace('v1/', f'v1/namespaces/{stage.namespace}/')}"
    stage.until(lambda: len(stage.api.get(sets)["items"]) == 2, what="a LeaderWorkerSet of each role")
    roles = [each["metadata"]["name"] for each in stage.api.get(sets)["items"]]
    _, waits = until_settled(stage, setting, *roles)
    with stage.more_room("2"):
        until_whole(stage, setting, waits)


def _no_replica_of_any_role(suspend: bool) -> list[Json]:  # noqa: FBT001 - as the other patches
    paths = [f"/spec/roles/{role}/spec/replicas" for role in range(2)]
    return [{"op": "add", "path": path, "value": 0 if suspend else 1} for path in paths]


def _two_runs(stage: Stage, setting: Setting, column: str) -> None:
    """Two runs of one CronJob, which overlap."""
    stage.apply(setting.manifest(column, "first"))
    jobs = f"/apis/batch/v1/namespaces/{stage.namespace}/jobs"
    stage.until(lambda: len(stage.api.get(jobs)["items"]) == 2, within_s=150, what="two runs")
    stage.patch("first", _SUSPEND(True))
    runs, waits = until_settled(stage, setting, *(job["metadata"]["name"] for job in stage.api.get(jobs)["items"]))
    stage.remove(runs, "jobs.batch")
    until_whole(stage, setting, waits)


_JOB = "apis/batch/v1/jobs"
_SET = "apis/apps/v1/statefulsets"
_JOBSET = "apis/jobset.x-k8s.io/v1alpha2/jobsets"
_LWS = "apis/leaderworkerset.x-k8s.io/v1/leaderworkersets"
_DISAGGREGATED = "apis/disaggregatedset.x-k8s.io/v1/disaggregatedsets"
_REVISIONS = r"\b[0-9a-f]{8}\b|\b[0-9a-f]{40}\b"
_RAY_NAMES = r"(?<=\bbert-)[a-z0-9]{5}\b"
_MPI = "apis/kubeflow.org/v2beta1/mpijobs"
_TRAIN = "apis/trainer.kubeflow.org/v1alpha1/trainjobs"
_REPLICAS = _set("spec", "replicas", to=int)
_NONE_OR_ALL = _set("spec", "replicas", to=lambda suspend: 0 if suspend else SIZE)
_NONE_OR_ONE = _set("spec", "replicas", to=lambda suspend: 0 if suspend else 1)
_SUSPEND_RUN = _set("spec", "runPolicy", "suspend", to=bool)

SETTINGS = (
    Setting(
        kind="Job",
        path=_JOB,
        fails="Failed",
        scaled=lambda size: {"spec": {"parallelism": size, "completions": size}},
        suspended=_SUSPEND,
    ),
    Setting(
        kind="Job, WorkloadWithJob",
        path=_JOB,
        fails="Failed",
        scaled=lambda size: {"spec": {"parallelism": size, "completions": size}},
        suspended=_SUSPEND,
        simulated=False,  # its pods are owned by the group too
    ),
    Setting(
        kind="CronJob",
        path="apis/batch/v1/cronjobs",
        own_plays={RACE: _two_runs},
        simulated=False,  # its Jobs are named after the minute
    ),
    Setting(
        kind="Deployment",
        path="apis/apps/v1/deployments",
        scaled=_REPLICAS,
        suspended=_NONE_OR_ALL,
        own_plays={SCALE: _scaled_and_rolled_out},
        simulated=False,  # its pods belong to a ReplicaSet that is named by a hash
    ),
    Setting(kind="StatefulSet", path=_SET, scaled=_REPLICAS, suspended=_NONE_OR_ALL),
    Setting(
        kind="StatefulSet, OrderedReady",
        path=_SET,
        scaled=_REPLICAS,
        suspended=_NONE_OR_ALL,
        changed=_with(podManagementPolicy="OrderedReady"),
        first=1,
    ),
    Setting(kind="JobSet", path=_JOBSET, fails="Failed", suspended=_SUSPEND),
    Setting(
        kind="JobSet, dependsOn",
        path=_JOBSET,
        fails="Failed",
        suspended=_SUSPEND,
        changed=_after_leader,
        first=1,
    ),
    Setting(kind="LeaderWorkerSet", path=_LWS, suspended=_NONE_OR_ONE, own_plays={SCALE: _second_replica}),
    Setting(
        kind="LeaderWorkerSet, 2 replicas",
        path=_LWS,
        changed=_with(replicas=2),
        pods=2 * SIZE,
        own_plays={RACE: _two_replicas},
    ),
    Setting(
        kind="LeaderWorkerSet, LeaderReady",
        path=_LWS,
        suspended=_NONE_OR_ONE,
        changed=_with(startupPolicy="LeaderReady"),
        first=1,
        own_plays={SCALE: _second_replica},
    ),
    Setting(
        kind="DisaggregatedSet",
        path=_DISAGGREGATED,
        pods=2 * SIZE,
        varies=_REVISIONS,
        own_plays={RACE: _two_roles},
    ),
    Setting(
        kind="DisaggregatedSet, one gang",
        path=_DISAGGREGATED,
        suspended=_no_replica_of_any_role,
        varies=_REVISIONS,
    ),
    Setting(kind="RayCluster", path="apis/ray.io/v1/rayclusters", scaled=_ray_workers, suspended=_SUSPEND),
    Setting(
        kind="RayJob",
        path="apis/ray.io/v1/rayjobs",
        suspended=_SUSPEND,
        changed=_as_ray_job,
        varies=_RAY_NAMES,
    ),
    Setting(
        kind="RayService",
        path="apis/ray.io/v1/rayservices",
        suspended=_set("spec", "rayClusterConfig", "suspend", to=bool),
        changed=_as_ray_service,
        varies=_RAY_NAMES,
    ),
    Setting(kind="MPIJob", path=_MPI, scaled=_workers_beside_one("mpiReplicaSpecs"), suspended=_SUSPEND_RUN),
    Setting(
        kind="MPIJob, WaitForWorkersReady",
        path=_MPI,
        scaled=_workers_beside_one("mpiReplicaSpecs"),
        suspended=_SUSPEND_RUN,
        changed=_with(launcherCreationPolicy="WaitForWorkersReady"),
        first=SIZE - 1,
    ),
    Setting(
        kind="PyTorchJob",
        path="apis/kubeflow.org/v1/pytorchjobs",
        scaled=_workers_beside_one("pytorchReplicaSpecs"),
        suspended=_SUSPEND_RUN,
    ),
    Setting(kind="TrainJob", path=_TRAIN, fails="Failed", suspended=_SUSPEND, simulated=False),
    Setting(kind="TrainJob, initializer", path=_TRAIN, changed=_after_initializer, simulated=False),
    Setting(kind="Job in a queue", path=_JOB, fails="Failed", simulated=False),
)
"""In the order of EXPECTED."""
