"""Expands JobSets as their controller does: pkg/controllers/jobset_controller.go of JobSet v0.12.0."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gangsched.whatif.world import builtin_workloads
from gangsched.whatif.world.builtin_workloads import part
from gangsched.whatif.world.hooks import JOB_SET_BY_SELECTOR, JOB_SET_TOPOLOGY
from gangsched.whatif.world.made import MOST_PODS, Existing, MadePod, manager, number, rests, with_parts
from gangsched.whatif.world.manifests import Manifest, mapping, mappings

JOB_SET = ("jobset.x-k8s.io/v1alpha2", "JobSet")

_DOMAIN = "jobset.sigs.k8s.io"
_NAMESPACED = "alpha.jobset.sigs.k8s.io/namespaced-job"
_TOLERATED = {"key": "alpha.jobset.sigs.k8s.io/no-schedule", "operator": "Exists", "effect": "NoSchedule"}

Part = Mapping[str, Any]


def job_set(workload: Manifest, existing: Existing) -> Iterator[MadePod]:
    """The pods of a JobSet's Jobs. Those of Jobs that wait for others come after all pods of the ones before.

    Jobs that wait until others are complete, and what waits for them, are created `once_ended`.
    """
    spec = workload.spec
    if rests(workload) or manager(workload):
        return
    in_order = mapping(spec.get("startupPolicy")).get("startupPolicyOrder") == "InOrder"
    jobs = mappings(spec.get("replicatedJobs"))
    sizes = [
        number(workload, job.get("replicas"), f"spec.replicatedJobs {_name(job)}.replicas", default=1, most=MOST_PODS)
        for job in jobs
    ]
    last, held = "", set[str]()
    for place, replicated in enumerate(jobs):
        after = last if in_order or replicated.get("dependsOn") else ""
        awaited = {(str(job.get("name")), job.get("status")) for job in mappings(replicated.get("dependsOn"))}
        once_ended = any(
            name in held or (status == "Complete" and not _is_complete(workload, name)) for name, status in awaited
        )
        held |= {_name(replicated)} if once_ended else set()
        for index in range(sizes[place]):
            name = f"{workload.name}-{_name(replicated)}-{index}"
            if existing.has_object(workload.namespace, "Job", name):
                continue
            for pod in builtin_workloads.job(_job(workload, name, jobs, sizes, place, index), existing):
                yield dataclasses.replace(pod, after=pod.after or after, once_ended=once_ended)
                last = pod.name


def _is_complete(workload: Manifest, name: str) -> bool:
    """Whether all Jobs of this replicated Job have succeeded, by the JobSet's status."""
    jobs = {_name(job): job.get("replicas", 1) for job in mappings(workload.spec.get("replicatedJobs"))}
    statuses = mappings(workload.status.get("replicatedJobsStatus"))
    return any(_name(status) == name and status.get("succeeded") == jobs.get(name) for status in statuses)


def _name(replicated: Part) -> str:
    return str(replicated.get("name", ""))


def _job(workload: Manifest, name: str, jobs: Sequence[Part], sizes: Sequence[int], place: int, index: int) -> Manifest:
    """The Job number `index` of the replicated Job at that place."""
    template = mapping(jobs[place].get("template"))
    declared = mapping(template, "metadata", "annotations")
    labels = _labels(workload, name, jobs, sizes, place, index)
    exclusive = _exclusive(workload.annotations) | _exclusive(declared)
    annotations = {**labels, **exclusive}
    spec = mapping(template.get("spec"))
    pod = mapping(spec, "template", "spec")
    changed: dict[str, object] = {}
    if JOB_SET_TOPOLOGY in exclusive and JOB_SET_BY_SELECTOR in exclusive:
        own = mapping(pod.get("nodeSelector"))
        changed = {
            "nodeSelector": {**own, _NAMESPACED: f"{workload.namespace}_{name}"},
            "tolerations": [*mappings(pod.get("tolerations")), _TOLERATED],
        }
    pod_template = with_parts(spec.get("template"), labels=labels, annotations=annotations, **changed)
    return part(
        workload,
        builtin_workloads.JOB,
        name,
        {"completionMode": "Indexed", **spec, "template": pod_template},
        annotations={**declared, **annotations},
    )


def _exclusive(annotations: Part) -> dict[str, Any]:
    """The annotations about exclusive placement, which count only together with a topology."""
    if JOB_SET_TOPOLOGY not in annotations:
        return {}
    return {key: annotations[key] for key in (JOB_SET_TOPOLOGY, JOB_SET_BY_SELECTOR) if key in annotations}


def _labels(
    workload: Manifest, name: str, jobs: Sequence[Part], sizes: Sequence[int], place: int, index: int
) -> dict[str, str]:
    """The labels that JobSet gives the Job and its pods, which are their annotations too."""
    group = str(jobs[place].get("groupName") or "default")
    in_group = [
        size if str(job.get("groupName") or "default") == group else 0 for job, size in zip(jobs, sizes, strict=True)
    ]
    key = hashlib.sha1(f"{workload.namespace}/{name}".encode(), usedforsecurity=False).hexdigest()
    own = {
        "jobset-name": workload.name,
        "jobset-uid": str(workload.metadata.get("uid") or ""),
        "replicatedjob-name": _name(jobs[place]),
        "restart-attempt": str(workload.status.get("restarts") or 0),
        "replicatedjob-replicas": str(sizes[place]),
        "global-replicas": str(sum(sizes)),
        "job-index": str(index),
        "job-key": key,
        "job-global-index": str(sum(sizes[:place]) + index),
        "group-name": group,
        "group-replicas": str(sum(in_group)),
        "job-group-index": str(sum(in_group[:place]) + index),
    }
    return {f"{_DOMAIN}/{label}": value for label, value in own.items()} | _coordinator(workload)


def _coordinator(workload: Manifest) -> dict[str, str]:
    coordinator = mapping(workload.spec.get("coordinator"))
    if not coordinator:
        return {}
    subdomain = mapping(workload.spec.get("network")).get("subdomain") or workload.name
    pod = f"{coordinator.get('replicatedJob')}-{coordinator.get('jobIndex') or 0}-{coordinator.get('podIndex') or 0}"
    return {f"{_DOMAIN}/coordinator": f"{workload.name}-{pod}.{subdomain}"}
