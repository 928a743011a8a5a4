"""Expands the jobs of Kubeflow's training-operator v1.9.0, and MPIJobs also as mpi-operator v0.8.0 does."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from gangsched.whatif.world import builtin_workloads
from gangsched.whatif.world.builtin_workloads import part
from gangsched.whatif.world.made import (
    Existing,
    MadePod,
    made_pod,
    number,
    rests,
    with_init_container,
)
from gangsched.whatif.world.manifests import Manifest, mapping

_DOMAIN = "training.kubeflow.org"
_FIELDS = {
    "PyTorchJob": "pytorchReplicaSpecs",
    "TFJob": "tfReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
    "PaddleJob": "paddleReplicaSpecs",
    "JAXJob": "jaxReplicaSpecs",
}
KINDS = tuple(_FIELDS)
"""The kinds that `training_job` expands."""
_MASTERS = ("Chief", "Master")
_ELECTS = ("PyTorchJob", "TFJob")
"""Kinds whose first worker has the master's role if there is no master."""
_WAITS = {"cpu": "50m", "memory": "10Mi"}, {"cpu": "100m", "memory": "20Mi"}
_DELIVERS = {"cpu": "100m", "memory": "512Mi", "ephemeral-storage": "5Gi"}


def training_job(workload: Manifest, existing: Existing) -> Iterator[MadePod]:
    """The pods of all replica types. Workers of PyTorch wait for the master in an init container."""
    if rests(workload):
        return
    field = _FIELDS[workload.kind]
    types = mapping(workload.spec.get(field))
    for type_, replica in types.items():
        path = f"spec.{field}.{type_}"
        size = number(workload, mapping(replica).get("replicas"), f"{path}.replicas", default=1)
        template = mapping(replica).get("template")
        if (workload.kind, type_) == ("PyTorchJob", "Worker") and "Master" in types:
            template = with_init_container(template, "init-pytorch", *_WAITS)
        for index in range(size):
            name = f"{workload.name}-{type_.lower()}-{index}"
            if existing.has(workload.namespace, name):
                continue
            labels = {
                **_labels(workload, f"{workload.kind.lower()}-controller"),
                f"{_DOMAIN}/replica-type": type_.lower(),
                f"{_DOMAIN}/replica-index": str(index),
                **({f"{_DOMAIN}/job-role": "master"} if _is_master(workload.kind, types, type_, index) else {}),
            }
            yield made_pod(workload, name, template, labels=labels, field=f"{path}.template")


def _is_master(kind: str, types: Mapping[str, Any], type_: str, index: int) -> bool:
    if kind == "JAXJob":
        return index == 0
    if kind in _ELECTS and not any(master in types for master in _MASTERS):
        return type_ == "Worker" and index == 0
    return type_ in _MASTERS


def mpi_job(workload: Manifest, existing: Existing) -> Iterator[MadePod]:
    """The workers of an MPIJob in v2beta1, and its launcher, which is the pod of a Job."""
    if rests(workload):
        return
    replicas = mapping(workload.spec.get("mpiReplicaSpecs"))
    own = _labels(workload, "mpi-operator")
    works = workload.spec.get("runLauncherAsWorker") is True
    last = ""
    for index, name in _mpi_workers(workload, existing):
        labels = {**own, f"{_DOMAIN}/job-role": "worker", f"{_DOMAIN}/replica-index": str(index + works)}
        yield _mpi_worker(workload, name, labels)
        last = name
    name = f"{workload.name}-launcher"
    if existing.has_object(workload.namespace, "Job", name):
        return
    waits = workload.spec.get("launcherCreationPolicy") == "WaitForWorkersReady"
    template = mapping(replicas.get("Launcher")).get("template")
    for pod in builtin_workloads.job(part(workload, builtin_workloads.JOB, name, {"template": template}), existing):
        labels = {**pod.labels, **own, f"{_DOMAIN}/job-role": "launcher"}
        labels |= {f"{_DOMAIN}/replica-index": "0"} if works else {}
        yield dataclasses.replace(pod, labels=labels, after=last if waits else "")


def mpi_job_v1(workload: Manifest, existing: Existing) -> Iterator[MadePod]:
    """The workers of an MPIJob in v1, and its launcher, which gets kubectl from an init container."""
    if rests(workload):
        return
    own = _labels(workload, "mpijob-controller")
    for _, name in _mpi_workers(workload, existing):
        yield _mpi_worker(workload, name, {**own, f"{_DOMAIN}/replica-type": "worker"})
    name = f"{workload.name}-launcher"
    if existing.has(workload.namespace, name):
        return
    template = mapping(workload.spec, "mpiReplicaSpecs", "Launcher").get("template")
    with_delivery = with_init_container(template, "kubectl-delivery", _DELIVERS, _DELIVERS)
    labels = {**own, f"{_DOMAIN}/replica-type": "launcher", f"{_DOMAIN}/job-role": "master"}
    yield made_pod(workload, name, with_delivery, labels=labels, field="spec.mpiReplicaSpecs.Launcher.template")


def _mpi_workers(workload: Manifest, existing: Existing) -> Iterator[tuple[int, str]]:
    """Index and name of each worker that does not exist yet."""
    worker = mapping(workload.spec, "mpiReplicaSpecs", "Worker")
    for index in range(number(workload, worker.get("replicas"), "spec.mpiReplicaSpecs.Worker.replicas", default=0)):
        name = f"{workload.name}-worker-{index}"
        if not existing.has(workload.namespace, name):
            yield index, name


def _mpi_worker(workload: Manifest, name: str, labels: Mapping[str, str]) -> MadePod:
    template = mapping(workload.spec, "mpiReplicaSpecs", "Worker").get("template")
    return made_pod(workload, name, template, labels=labels, field="spec.mpiReplicaSpecs.Worker.template")


def _labels(workload: Manifest, operator: str) -> dict[str, str]:
    return {f"{_DOMAIN}/operator-name": operator, f"{_DOMAIN}/job-name": workload.name}
