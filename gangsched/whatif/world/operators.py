"""Expands the workloads of well-known operators into the pods that their controllers would create.

The labels that say which pods belong together are those of the controllers. A pod in the files replaces an expanded
one of the same name or, where names are random, one with the same controller and group. Parts that are in the files,
such as the Jobs of a JobSet, are expanded on their own.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from gangsched.kube.workloads.lws import EXCLUSIVE
from gangsched.whatif.world import workloads
from gangsched.whatif.world.made import Existing, MadePod, free_names, has_ended, made_pod, number
from gangsched.whatif.world.manifests import Manifest, mapping
from gangsched.whatif.world.workloads import Maker, part

_JOBSET = "jobset.sigs.k8s.io"
_LWS = "leaderworkerset.sigs.k8s.io"
_KUBEFLOW = "training.kubeflow.org"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _jobset(workload: Manifest, existing: Existing) -> Iterator[MadePod]:
    spec = workload.spec
    if spec.get("suspend") is True or has_ended(workload, "Completed", "Failed"):
        return
    in_order = mapping(spec.get("startupPolicy")).get("startupPolicyOrder") == "InOrder"
    last = ""
    for replicated in _each(spec.get("replicatedJobs")):
        name = str(replicated.get("name", ""))
        after = last if in_order or replicated.get("dependsOn") else ""
        replicas = number(workload, replicated.get("replicas"), f"spec.replicatedJobs {name}.replicas", default=1)
        template = mapping(replicated.get("template"))
        for index in range(replicas):
            job_name = f"{workload.name}-{name}-{index}"
            if existing.has_object(workload.namespace, "Job", job_name):
                continue
            own = {
                f"{_JOBSET}/jobset-name": workload.name,
                f"{_JOBSET}/jobset-uid": str(workload.metadata.get("uid") or ""),
                f"{_JOBSET}/replicatedjob-name": name,
                f"{_JOBSET}/replicatedjob-replicas": str(replicas),
                f"{_JOBSET}/job-index": str(index),
                f"{_JOBSET}/restart-attempt": "0",
            }
            made = part(workload, workloads.JOB, job_name, mapping(template.get("spec")))
            for pod in workloads.job(made, existing):
                labels, annotations = {**pod.labels, **own}, {**pod.annotations, **own}
                yield dataclasses.replace(pod, labels=labels, annotations=annotations, after=after)
                last = pod.name


def _leader_worker_set(workload: Manifest, existing: Existing) -> Iterator[MadePod]:
    spec = workload.spec
    parts = mapping(spec.get("leaderWorkerTemplate"))
    replicas = number(workload, spec.get("replicas"), "spec.replicas", default=1)
    size = number(workload, parts.get("size"), "spec.leaderWorkerTemplate.size", default=1)
    worker = parts.get("workerTemplate")
    topology = mapping(workload.metadata.get("annotations")).get(EXCLUSIVE)
    waits = bool(topology) or spec.get("startupPolicy") == "LeaderReady"
    of_set = {f"{_LWS}/name": workload.name}
    for index in range(replicas):
        leader = f"{workload.name}-{index}"
        # Derived as the controller does, so that this label groups pods as in a cluster.
        key = hashlib.sha1(f"{workload.namespace}/{leader}".encode(), usedforsecurity=False).hexdigest()
        group = {**of_set, f"{_LWS}/group-index": str(index), f"{_LWS}/group-key": key}
        for name, template, first, pods in (
            (workload.name, parts.get("leaderTemplate") or worker, index, 1),
            (leader, worker, 1, size - 1),
        ):
            if existing.has_object(workload.namespace, "StatefulSet", name):
                continue
            own: dict[str, object] = {"replicas": pods, "ordinals": {"start": first}, "podManagementPolicy": "Parallel"}
            if topology:
                own["template"] = _beside(template, str(topology), f"{_LWS}/group-key", key, leads=name != leader)
            made = part(workload, workloads.STATEFUL_SET, name, {"template": template, **own})
            for pod in workloads.stateful_set(made, existing):
                is_leader = pod.name == leader
                at = "0" if is_leader else pod.name.rpartition("-")[2]
                annotations = {**pod.annotations, f"{_LWS}/size": str(size)}
                if not is_leader:
                    annotations[f"{_LWS}/leader-name"] = leader
                yield dataclasses.replace(
                    pod,
                    labels={**pod.labels, **group, f"{_LWS}/worker-index": at},
                    annotations=annotations,
                    after=leader if waits and not is_leader else "",
                )


def _beside(template: object, topology: str, label: str, value: str, *, leads: bool) -> Mapping[str, Any]:
    """The template of a replica's pods with an exclusive topology.

    The webhook gives leaders affinity to the pods of their replica and anti-affinity to those of others. Workers select
    the domain of their leader, which is what affinity to it comes to.
    """
    spec = mapping(mapping(template).get("spec"))
    affinity = {**mapping(spec.get("affinity"))}
    mine = {"key": label, "operator": "In", "values": [value]}
    others = [{"key": label, "operator": "Exists"}, {"key": label, "operator": "NotIn", "values": [value]}]
    terms = {"podAffinity": [mine]} | ({"podAntiAffinity": others} if leads else {})
    for kind, selected in terms.items():
        required = list(mapping(affinity.get(kind)).get(_REQUIRED) or ())
        required.append({"labelSelector": {"matchExpressions": selected}, "topologyKey": topology})
        affinity[kind] = {**mapping(affinity.get(kind)), _REQUIRED: required}
    return {**mapping(template), "spec": {**spec, "affinity": affinity}}


def _ray_cluster(workload: Manifest, existing: Existing) -> Iterator[MadePod]:
    spec = workload.spec
    if spec.get("suspend") is True:
        return
    head = mapping(spec.get("headGroupSpec"))
    groups: list[tuple[str, str, object, int]] = [("headgroup", "head", head.get("template"), 1)]
    for each in _each(spec.get("workerGroupSpecs")):
        name = str(each.get("groupName", ""))
        groups.append((name, "worker", each.get("template"), _ray_workers(workload, each, name)))
    for name, type_, template, size in groups:
        prefix = f"{workload.name}-head" if type_ == "head" else f"{workload.name}-{name}-worker"
        own = {"ray.io/cluster": workload.name, "ray.io/group": name, "ray.io/node-type": type_}
        labels = {**own, "ray.io/is-ray-node": "yes", "ray.io/identifier": f"{workload.name}-{type_}"}
        labels |= {"app.kubernetes.io/name": "kuberay", "app.kubernetes.io/created-by": "kuberay-operator"}
        # Labels of the template take precedence, except over those that identify the cluster and the group.
        labels |= {**mapping(mapping(mapping(template).get("metadata")).get("labels")), **own}
        there = existing.controlled(workload, own)
        field = "spec.headGroupSpec.template" if type_ == "head" else f"spec.workerGroupSpecs {name}.template"
        for pod_name in free_names(workload, existing, size - there, prefix):
            yield made_pod(workload, pod_name, template, labels=labels, field=field)


def _ray_workers(workload: Manifest, group: Mapping[str, Any], name: str) -> int:
    """The number of pods of a worker group before any autoscaling; each replica may have several hosts."""
    if group.get("suspend") is True:
        return 0
    field = f"spec.workerGroupSpecs {name}"
    least = number(workload, group.get("minReplicas"), f"{field}.minReplicas", default=0)
    replicas = number(workload, group.get("replicas"), f"{field}.replicas", default=0)
    most = number(workload, group.get("maxReplicas"), f"{field}.maxReplicas", default=max(least, replicas))
    hosts = number(workload, group.get("numOfHosts"), f"{field}.numOfHosts", default=1)
    return min(max(replicas, least), most) * hosts


def _mpi_job(workload: Manifest, existing: Existing) -> Iterator[MadePod]:
    if _kubeflow_rests(workload):
        return
    replicas = mapping(workload.spec.get("mpiReplicaSpecs"))
    worker, launcher = mapping(replicas.get("Worker")), mapping(replicas.get("Launcher"))
    own = {f"{_KUBEFLOW}/operator-name": "mpi-operator", f"{_KUBEFLOW}/job-name": workload.name}
    last = ""
    for index in range(number(workload, worker.get("replicas"), "spec.mpiReplicaSpecs.Worker.replicas", default=0)):
        name = f"{workload.name}-worker-{index}"
        if existing.has(workload.namespace, name):
            continue
        labels = {**own, f"{_KUBEFLOW}/job-role": "worker", f"{_KUBEFLOW}/replica-index": str(index)}
        field = "spec.mpiReplicaSpecs.Worker.template"
        yield made_pod(workload, name, worker.get("template"), labels=labels, field=field)
        last = name
    name = f"{workload.name}-launcher"
    if existing.has_object(workload.namespace, "Job", name):
        return
    waits = workload.spec.get("launcherCreationPolicy") == "WaitForWorkersReady"
    for pod in workloads.job(part(workload, workloads.JOB, name, {"template": launcher.get("template")}), existing):
        labels = {**pod.labels, **own, f"{_KUBEFLOW}/job-role": "launcher"}
        yield dataclasses.replace(pod, labels=labels, after=last if waits else "")


def _kubeflow_job(workload: Manifest, existing: Existing, *, field: str) -> Iterator[MadePod]:
    if _kubeflow_rests(workload):
        return
    for type_, replica in mapping(workload.spec.get(field)).items():
        path = f"spec.{field}.{type_}"
        size = number(workload, mapping(replica).get("replicas"), f"{path}.replicas", default=1)
        for index in range(size):
            name = f"{workload.name}-{type_.lower()}-{index}"
            if existing.has(workload.namespace, name):
                continue
            labels = {
                f"{_KUBEFLOW}/operator-name": f"{workload.kind.lower()}-controller",
                f"{_KUBEFLOW}/job-name": workload.name,
                f"{_KUBEFLOW}/replica-type": type_.lower(),
                f"{_KUBEFLOW}/replica-index": str(index),
                **({f"{_KUBEFLOW}/job-role": "master"} if type_ == "Master" else {}),
            }
            template = mapping(replica).get("template")
            yield made_pod(workload, name, template, labels=labels, field=f"{path}.template")


def _kubeflow_rests(workload: Manifest) -> bool:
    suspended = mapping(workload.spec.get("runPolicy")).get("suspend") is True
    return suspended or has_ended(workload, "Succeeded", "Failed")


def _each(value: object) -> Sequence[Mapping[str, Any]]:
    return [mapping(each) for each in value] if isinstance(value, list) else []


MAKERS: Mapping[tuple[str, str], Maker] = {
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): _jobset,
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"): _leader_worker_set,
    ("ray.io/v1", "RayCluster"): _ray_cluster,
    ("kubeflow.org/v2beta1", "MPIJob"): _mpi_job,
    ("kubeflow.org/v1", "PyTorchJob"): partial(_kubeflow_job, field="pytorchReplicaSpecs"),
    ("kubeflow.org/v1", "TFJob"): partial(_kubeflow_job, field="tfReplicaSpecs"),
    ("kubeflow.org/v1", "XGBoostJob"): partial(_kubeflow_job, field="xgbReplicaSpecs"),
    ("kubeflow.org/v1", "PaddleJob"): partial(_kubeflow_job, field="paddleReplicaSpecs"),
    ("kubeflow.org/v1", "JAXJob"): partial(_kubeflow_job, field="jaxReplicaSpecs"),
}
"""The functions that expand these workloads into pods, by apiVersion and kind."""
