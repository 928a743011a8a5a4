"""Expands RayClusters, and the RayJobs and RayServices that create them, as KubeRay v1.6.2 does."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from gangsched.whatif.world import builtin_workloads
from gangsched.whatif.world.builtin_workloads import part
from gangsched.whatif.world.made import (
    Existing,
    MadePod,
    free_names,
    made_pod,
    manager,
    number,
    rests,
    with_init_container,
    with_parts,
)
from gangsched.whatif.world.manifests import Manifest, mapping, mappings

RAY_CLUSTER = ("ray.io/v1", "RayCluster")

_NAME = "{}-00001"
"""The name of a RayCluster that another object creates; in a cluster it ends with five random characters."""
_AUTOSCALER = {"cpu": "500m", "memory": "512Mi"}
_WAITS = {"cpu": "200m", "memory": "256Mi"}
_ASKED = {"requests": {"cpu": "500m", "memory": "200Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
_SUBMITS = {"name": "ray-job-submitter", "resources": _ASKED}
_SUBMITTER = {"spec": {"restartPolicy": "Never", "containers": [_SUBMITS]}}
"""KubeRay's own template of the pod that submits the work. It has the default schedulerName."""
_SUBMITTED = ("K8sJobMode", None, "")
_BESIDE_HEAD = "SidecarMode"
"""The submissionMode in which KubeRay's default container that submits the work is one of the head's."""


def ray_cluster(workload: Manifest, existing: Existing) -> Iterator[MadePod]:
    """Head and workers, with the containers that KubeRay adds to them."""
    spec = workload.spec
    if rests(workload) or manager(workload):
        return
    head = mapping(spec.get("headGroupSpec"))
    groups: list[tuple[str, str, object, object, int]] = [
        ("headgroup", "head", _head(spec), head.get("labels"), 1),
    ]
    for group in mappings(spec.get("workerGroupSpecs")):
        name = str(group.get("groupName", ""))
        waiting = with_init_container(group.get("template"), "wait-gcs-ready", _WAITS, _WAITS)
        groups.append((name, "worker", waiting, group.get("labels"), _workers(workload, group, name)))
    for name, type_, template, group_labels, size in groups:
        prefix = f"{workload.name}-head" if type_ == "head" else f"{workload.name}-{name}-worker"
        own = {"ray.io/cluster": workload.name, "ray.io/group": name, "ray.io/node-type": type_}
        labels = {**own, "ray.io/is-ray-node": "yes", "ray.io/identifier": f"{workload.name}-{type_}"}
        labels |= {"app.kubernetes.io/name": "kuberay", "app.kubernetes.io/created-by": "kuberay-operator"}
        # The template's labels and then the group's take precedence, except over those that say whose pod it is.
        labels |= {**mapping(template, "metadata", "labels"), **mapping(group_labels), **own}
        live = existing.controlled(workload, own)
        field = "spec.headGroupSpec.template" if type_ == "head" else f"spec.workerGroupSpecs {name}.template"
        for pod_name in free_names(workload, existing, size - live, prefix):
            yield made_pod(workload, pod_name, template, labels=labels, field=field)


def _head(spec: Mapping[str, Any]) -> object:
    """The head's template, with the autoscaler beside it where there is one."""
    template = mapping(spec.get("headGroupSpec")).get("template")
    if spec.get("enableInTreeAutoscaling") is not True:
        return template
    own = mapping(spec.get("autoscalerOptions")).get("resources")
    resources = {"requests": _AUTOSCALER, "limits": _AUTOSCALER} if own is None else mapping(own)
    return _with_container(template, {"name": "autoscaler", "resources": resources})


def _with_container(template: object, beside: Mapping[str, Any]) -> Mapping[str, Any]:
    """The template with one more container, after the others."""
    containers = mappings(mapping(template, "spec").get("containers"))
    return with_parts(template, labels={}, annotations={}, containers=[*containers, beside])


def _workers(workload: Manifest, group: Mapping[str, Any], name: str) -> int:
    """The number of pods of a worker group before any autoscaling; each replica may have several hosts."""
    if group.get("suspend") is True:
        return 0
    field = f"spec.workerGroupSpecs {name}"
    least = number(workload, group.get("minReplicas"), f"{field}.minReplicas", default=0)
    replicas = number(workload, group.get("replicas"), f"{field}.replicas", default=0)
    most = number(workload, group.get("maxReplicas"), f"{field}.maxReplicas", default=max(least, replicas))
    hosts = number(workload, group.get("numOfHosts"), f"{field}.numOfHosts", default=1)
    return min(max(replicas, least), most) * hosts


def ray_job(workload: Manifest, existing: Existing) -> Iterator[MadePod]:
    """The pods of a RayJob's RayCluster, then the one that submits the work, which needs the cluster to run."""
    spec = workload.spec
    if rests(workload):
        return
    last = ""
    if not spec.get("clusterSelector"):
        cluster = mapping(spec.get("rayClusterSpec"))
        if spec.get("submissionMode") == _BESIDE_HEAD:
            head = mapping(cluster.get("headGroupSpec"))
            template = _with_container(head.get("template"), _SUBMITS)
            cluster = {**cluster, "headGroupSpec": {**head, "template": template}}
        for pod in _cluster_of(workload, existing, cluster):
            yield pod
            last = pod.name
    if spec.get("submissionMode") in _SUBMITTED and not existing.has_object(workload.namespace, "Job", workload.name):
        template = spec.get("submitterPodTemplate") or _SUBMITTER
        submitter = part(workload, builtin_workloads.JOB, workload.name, {"template": template})
        for pod in builtin_workloads.job(submitter, existing):
            yield dataclasses.replace(pod, after=last)


def ray_service(workload: Manifest, existing: Existing) -> Iterator[MadePod]:
    """The pods of a RayService's RayCluster."""
    for pod in _cluster_of(workload, existing, workload.spec.get("rayClusterConfig")):
        serves = "false" if pod.labels["ray.io/node-type"] == "head" else "true"
        yield dataclasses.replace(pod, labels={**pod.labels, "ray.io/serve": serves})


def _cluster_of(workload: Manifest, existing: Existing, spec: object) -> Iterator[MadePod]:
    if existing.has_made(workload, "RayCluster"):
        return
    declared = workload.annotations
    name = _NAME.format(workload.name)
    cluster = part(workload, RAY_CLUSTER, name, mapping(spec), annotations=declared)
    for pod in ray_cluster(cluster, existing):
        yield dataclasses.replace(pod, above=(cluster, *pod.above))
