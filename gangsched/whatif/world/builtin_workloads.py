"""Expands the workloads of Kubernetes itself into the pods that their controllers would create.

A pod in the files replaces an expanded one: for a StatefulSet a pod with the same name, for the others a pod with the
same controller. Pods of a StatefulSet have the names that its controller gives. The pods of the others, which have
random suffixes in a cluster, are named NAME-0, NAME-1 and so on. A CronJob creates one Job, NAME-0, unless one is in
the files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import count, islice
from typing import Any

from gangsched.whatif.world import native_groups
from gangsched.whatif.world.hooks import JOB_INDEX, JOB_SET_TOPOLOGY, follows_a_leader
from gangsched.whatif.world.made import (
    Existing,
    MadePod,
    free_names,
    made_pod,
    manager,
    number,
    owner_of,
    rests,
    template_hash,
)
from gangsched.whatif.world.manifests import Manifest, mapping, mappings

_REVISION = "controller-revision-hash"
_MOST_INDEXES = 100_000
"""Most completions of an Indexed Job, by the API's validation."""
JOB, STATEFUL_SET = ("batch/v1", "Job"), ("apps/v1", "StatefulSet")
Maker = Callable[[Manifest, Existing], Iterator[MadePod]]


def stateful_set(workload: Manifest, existing: Existing) -> Iterator[MadePod]:
    """The pods of a StatefulSet."""
    spec = workload.spec
    first = number(workload, mapping(spec.get("ordinals")).get("start"), "spec.ordinals.start", default=0)
    templates = mappings(spec.get("volumeClaimTemplates"))
    revision = {_REVISION: f"{workload.name}-{template_hash(spec.get('template'))}"}
    one_by_one = spec.get("podManagementPolicy", "OrderedReady") == "OrderedReady"
    previous = ""
    for ordinal in range(first, first + _replicas(workload)):
        name = f"{workload.name}-{ordinal}"
        if existing.has(workload.namespace, name):
            continue
        volumes = {
            str(mapping(claim_template.get("metadata")).get("name")): claim_template for claim_template in templates
        }
        claims = {volume: (f"{volume}-{name}", claim_template) for volume, claim_template in volumes.items()}
        labels = {"statefulset.kubernetes.io/pod-name": name, "apps.kubernetes.io/pod-index": str(ordinal), **revision}
        yield made_pod(workload, name, spec.get("template"), labels=labels, claims=claims, after=previous)
        previous = name if one_by_one else ""


def _deployment(workload: Manifest, existing: Existing) -> Iterator[MadePod]:
    if not existing.has_made(workload, "ReplicaSet"):
        missing = _replicas(workload) - existing.of_deployment(workload.namespace, workload.name)
        template = workload.spec.get("template")
        revision = template_hash(template)
        owner = {"kind": "ReplicaSet", "name": f"{workload.name}-{revision}"}
        for name in free_names(workload, existing, missing):
            yield made_pod(workload, name, template, labels={"pod-template-hash": revision}, owner=owner)


def _replica_set(workload: Manifest, existing: Existing) -> Iterator[MadePod]:
    live = existing.controlled(workload)
    for name in free_names(workload, existing, _replicas(workload) - live):
        yield made_pod(workload, name, workload.spec.get("template"), labels={})


def job(workload: Manifest, existing: Existing) -> Iterator[MadePod]:
    """The pods that a Job creates before any of them ends, and the native group that its controller makes for them.

    With an exclusive topology of JobSet all but the first come once that one has a node, and follow it.
    """
    group, template = native_groups.of_job(workload, existing), workload.spec.get("template")
    if group is None:
        yield from _of_job(workload, template, existing)
        return
    for pod in _of_job(workload, native_groups.naming(template, group), existing):
        yield replace(pod, above=(group,))


def _of_job(workload: Manifest, template: object, existing: Existing) -> Iterator[MadePod]:
    spec, status = workload.spec, workload.status
    if rests(workload) or manager(workload):
        return
    missing = number(workload, spec.get("parallelism"), "spec.parallelism", default=1)
    indexed = spec.get("completionMode") == "Indexed"
    failed = _indexes(status.get("failedIndexes")) if indexed else set()
    ended = failed | _indexes(status.get("completedIndexes")) if indexed else set()
    if spec.get("completions") is not None:
        completions = number(workload, spec["completions"], "spec.completions", default=1)
        succeeded = number(workload, status.get("succeeded"), "status.succeeded", default=0)
        missing = min(missing, completions - max(succeeded + len(failed), len(ended)))
    elif status.get("succeeded"):
        missing = min(missing, number(workload, status.get("active"), "status.active", default=0))
    live = existing.labels_of(workload)
    missing -= len(live)
    labels = {"batch.kubernetes.io/job-name": workload.name, "job-name": workload.name}
    labels |= dict.fromkeys(("batch.kubernetes.io/controller-uid", "controller-uid"), workload.uid)
    if not indexed:
        for name in free_names(workload, existing, missing):
            yield made_pod(workload, name, template, labels=labels)
        return
    taken = ended | {int(text) for pod_labels in live if (text := str(pod_labels.get(JOB_INDEX, ""))).isdecimal()}
    leader = ""
    for index in islice((index for index in count() if index not in taken), max(0, missing)):
        name = f"{workload.name}-{index}"
        if existing.has(workload.namespace, name):
            [name] = free_names(workload, existing, 1, name)
        own = {JOB_INDEX: str(index)}
        pod = made_pod(workload, name, template, labels={**labels, **own})
        annotations = {**pod.annotations, **own}
        follows = str(annotations.get(JOB_SET_TOPOLOGY)) if leader and follows_a_leader(annotations) else ""
        yield replace(pod, annotations=annotations, after=leader if follows else "", follows=follows)
        leader = leader or name


def _cron_job(workload: Manifest, existing: Existing) -> Iterator[MadePod]:
    if not rests(workload) and not existing.has_made(workload, "Job"):
        template = mapping(workload.spec.get("jobTemplate"))
        annotations = mapping(template, "metadata", "annotations")
        new_job = part(workload, JOB, f"{workload.name}-0", mapping(template.get("spec")), annotations=annotations)
        yield from job(new_job, existing)


def _indexes(text: object) -> set[int]:
    """The indexes in a Job's status, such as `1,3-5`."""
    indexes: set[int] = set()
    for interval in str(text or "").split(","):
        first, _, last = interval.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            indexes.update(range(int(first), min(int(last or first), _MOST_INDEXES) + 1))
    return indexes


def part(
    workload: Manifest,
    gvk: tuple[str, str],
    name: str,
    spec: Mapping[str, Any],
    *,
    annotations: Mapping[str, Any] | None = None,
) -> Manifest:
    """Another workload, of this apiVersion and kind, that the workload's controller creates."""
    metadata = {
        "name": name,
        "namespace": workload.namespace,
        "annotations": annotations or {},
        "ownerReferences": [owner_of(workload)],
    }
    api_version, kind = gvk
    return replace(workload, api_version=api_version, kind=kind, body={"metadata": metadata, "spec": spec})


MAKERS: Mapping[tuple[str, str], Maker] = {
    ("apps/v1", "StatefulSet"): stateful_set,
    ("apps/v1", "Deployment"): _deployment,
    ("apps/v1", "ReplicaSet"): _replica_set,
    ("v1", "ReplicationController"): _replica_set,
    ("batch/v1", "Job"): job,
    ("batch/v1", "CronJob"): _cron_job,
}
"""The functions that expand these workloads into pods, by apiVersion and kind."""


def _replicas(workload: Manifest) -> int:
    return number(workload, workload.spec.get("replicas"), "spec.replicas", default=1)
