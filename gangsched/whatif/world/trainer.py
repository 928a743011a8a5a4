"""Expands TrainJobs of Kubeflow's Trainer v2.3.0: a runtime and the TrainJob together make a JobSet.

Of earlier releases it reads the overrides and annotations of a TrainJob, which v2.3.0 has as patches of the runtime.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from gangsched.whatif.world.builtin_workloads import part
from gangsched.whatif.world.jobsets import JOB_SET, job_set
from gangsched.whatif.world.made import Existing, MadePod, number, rests
from gangsched.whatif.world.manifests import Manifest, ManifestError, mapping, mappings

_VERSION = "trainer.kubeflow.org/v1alpha1"
CLUSTER_RUNTIME = (_VERSION, "ClusterTrainingRuntime")
RUNTIMES = (CLUSTER_RUNTIME, (_VERSION, "TrainingRuntime"))

_ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"
_INITIALIZERS = ("dataset-initializer", "model-initializer")
_TRAINER = "trainer"
_NODE = "node"
_MERGED_BY_NAME = ("containers", "initContainers", "volumes", "imagePullSecrets", "schedulingGates")

Part = Mapping[str, Any]


def train_job(workload: Manifest, existing: Existing) -> Iterator[MadePod]:
    """The pods of a TrainJob's JobSet.

    Raises:
        ManifestError: the files do not contain its runtime, without which Trainer refuses it.
    """
    spec = workload.spec
    if rests(workload):
        return
    if existing.has_object(workload.namespace, "JobSet", workload.name):
        return
    runtime = _runtime(workload, existing)
    template = mapping(runtime.spec.get("template"))
    metadata = mapping(template.get("metadata"))
    jobs = mapping(template.get("spec"))
    ml_policy = mapping(runtime.spec.get("mlPolicy"))
    job_set_spec = {
        **jobs,
        "replicatedJobs": [
            _job(workload, replicated, ml_policy) for replicated in mappings(jobs.get("replicatedJobs"))
        ],
    }
    annotations = {**mapping(metadata.get("annotations")), **mapping(spec.get("annotations"))}
    for patch in _patches(workload):
        annotations |= mapping(patch, "metadata", "annotations")
    made_set = part(workload, JOB_SET, workload.name, job_set_spec, annotations=annotations)
    policy = next(iter(mapping(runtime.spec.get("podGroupPolicy"))), "")
    doubt = (
        f"Trainer makes a PodGroup for it by podGroupPolicy.{policy} of {runtime}, which is not made here: add the "
        "PodGroup and its label in the runtime's pod template"
        if policy
        else ""
    )
    for pod in job_set(made_set, existing):
        yield dataclasses.replace(pod, above=(made_set, *pod.above), doubt=doubt)


def _runtime(workload: Manifest, existing: Existing) -> Manifest:
    reference = mapping(workload.spec.get("runtimeRef"))
    kind, name = str(reference.get("kind") or CLUSTER_RUNTIME[1]), str(reference.get("name") or "")
    namespace = workload.namespace if kind != CLUSTER_RUNTIME[1] else None
    runtime = existing.object(namespace, kind, name)
    if runtime is None:
        raise ManifestError(
            [f"{workload}: Trainer would refuse it, because {kind} {name} is missing: add its manifest"]
        )
    return runtime


def _patches(workload: Manifest) -> list[Part]:
    """What the TrainJob's patches say about the JobSet, in their order."""
    specs = [mapping(patch.get("trainingRuntimeSpec")) for patch in mappings(workload.spec.get("runtimePatches"))]
    return [mapping(spec.get("template")) for spec in specs]


def _job(workload: Manifest, replicated: Part, policy: Part) -> Part:
    """The replicated Job with what the TrainJob changes in it."""
    template = mapping(replicated.get("template"))
    for patch in _patches(workload):
        for job in mappings(mapping(patch.get("spec")).get("replicatedJobs")):
            if job.get("name") == replicated.get("name"):
                template = _overridden(template, mapping(job.get("template")))
    spec = mapping(template.get("spec"))
    ancestor = mapping(template, "metadata", "labels").get(_ANCESTOR)
    pod = mapping(spec.get("template"))
    pod_spec = mapping(pod.get("spec"))
    for override in mappings(workload.spec.get("podSpecOverrides")):
        targets = [target.get("name") for target in mappings(override.get("targetJobs"))]
        if replicated.get("name") in targets:
            pod_spec = _overridden(pod_spec, {key: value for key, value in override.items() if key != "targetJobs"})
    result = dict(replicated)
    if ancestor in (*_INITIALIZERS, _TRAINER):
        result["replicas"] = 1
    count = _count(workload, replicated, ancestor, policy)
    counted = {} if count is None else {"parallelism": count, "completions": count}
    launches = mapping(policy.get("mpi")).get("runLauncherAsNode") is True
    if ancestor == _TRAINER or (launches and replicated.get("name") == _NODE):
        pod_spec = _with_resources(workload, pod_spec)
    result["template"] = {**template, "spec": {**spec, **counted, "template": {**pod, "spec": pod_spec}}}
    return result


def _count(workload: Manifest, replicated: Part, ancestor: object, policy: Part) -> int | None:
    """The number of pods: of trainers that of the TrainJob, else that of the runtime. None: the Job's own."""
    trainer = mapping(workload.spec.get("trainer"))
    nodes = None
    if trainer.get("numNodes") is not None:
        nodes = number(workload, trainer["numNodes"], "spec.trainer.numNodes", default=1)
    if mapping(policy.get("mpi")):
        # The launcher is one of the nodes where the runtime says so, and the trainers are the Job called node.
        launches = mapping(policy["mpi"]).get("runLauncherAsNode") is True
        if replicated.get("name") == _NODE and nodes is not None:
            return max(nodes - 1, 1) if launches else nodes
    elif ancestor == _TRAINER and nodes is not None:
        return nodes
    if ancestor == _TRAINER:
        return number(workload, policy.get("numNodes"), "spec.mlPolicy.numNodes of its runtime", default=1)
    return None


def _with_resources(workload: Manifest, spec: Part) -> Part:
    """The trainers' spec, in which the TrainJob's resources are merged into those of the container called node."""
    resources = mapping(workload.spec, "trainer", "resourcesPerNode")
    if not resources:
        return spec
    containers = [
        {**container, "resources": _overridden(mapping(container.get("resources")), resources)}
        if container.get("name") == _NODE
        else container
        for container in mappings(spec.get("containers"))
    ]
    return {**spec, "containers": containers}


def _overridden(spec: Part, patch: Part) -> Part:
    """The spec after a strategic merge: maps are merged, lists of named parts by name, other lists replaced."""
    merged = dict(spec)
    for key, value in patch.items():
        if key in _MERGED_BY_NAME and isinstance(value, list):
            own = {entry.get("name"): entry for entry in mappings(spec.get(key))}
            for entry in mappings(value):
                own[entry.get("name")] = {**mapping(own.get(entry.get("name"))), **entry}
            merged[key] = list(own.values())
        elif isinstance(value, Mapping):
            merged[key] = _overridden(mapping(spec.get(key)), value)
        else:
            merged[key] = value
    return merged
