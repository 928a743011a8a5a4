"""Expands LeaderWorkerSets as LWS v0.9.0 does: pkg/controllers and pkg/webhooks."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from gangsched.whatif.world import builtin_workloads
from gangsched.whatif.world.builtin_workloads import part
from gangsched.whatif.world.hooks import LWS_SUBGROUP_TOPOLOGY, LWS_TOPOLOGY
from gangsched.whatif.world.made import MOST_PODS, Existing, MadePod, number, template_hash, with_parts
from gangsched.whatif.world.manifests import Manifest, mapping, mappings

LEADER_WORKER_SET = ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")

_DOMAIN = "leaderworkerset.sigs.k8s.io"
_SETS = "disaggregatedset.x-k8s.io"
_REVISION = 8
_TEMPLATES = ("leaderTemplate", "workerTemplate")


def leader_worker_set(workload: Manifest, existing: Existing) -> Iterator[MadePod]:
    """The pods of a LeaderWorkerSet. With an exclusive topology workers come once their leader has a node."""
    parts = mapping(workload.spec.get("leaderWorkerTemplate"))
    replicas = number(workload, workload.spec.get("replicas"), "spec.replicas", default=1, most=MOST_PODS)
    size = number(workload, parts.get("size"), "spec.leaderWorkerTemplate.size", default=1)
    follows = str(workload.annotations.get(LWS_TOPOLOGY) or "")
    waits = workload.spec.get("startupPolicy") == "LeaderReady" or bool(follows)
    annotations = _annotations(workload, size)
    revision = template_hash(parts)
    for index in range(replicas):
        leader = f"{workload.name}-{index}"
        group = _group(workload, leader, index, revision)
        for pod in _leader(workload, existing, index, annotations):
            labels = {**pod.labels, **group, **_subgroup(workload, leader, size, 0)}
            yield dataclasses.replace(pod, labels=labels)
        for pod in _workers(workload, existing, leader, size, annotations):
            worker_index = int(pod.name.rpartition("-")[2])
            own = {f"{_DOMAIN}/worker-index": str(worker_index), **_subgroup(workload, leader, size, worker_index)}
            labels = {**pod.labels, **group, **own}
            yield dataclasses.replace(pod, labels=labels, after=leader if waits else "", follows=follows)


def disaggregated_set(workload: Manifest, existing: Existing) -> Iterator[MadePod]:
    """The pods of the LeaderWorkerSet of each role, as LWS v0.9.0 does: pkg/controllers/disaggregatedset."""
    roles = mappings(workload.spec.get("roles"))
    templates = [mapping(role, "spec", "leaderWorkerTemplate") for role in roles]
    revision = template_hash(templates)[:_REVISION]
    for role, template in zip(roles, templates, strict=True):
        title = str(role.get("name", ""))
        name = f"{workload.name}-{revision}-{title}"
        if existing.has_object(workload.namespace, LEADER_WORKER_SET[1], name):
            continue
        labels = {f"{_SETS}/name": workload.name, f"{_SETS}/role": title, f"{_SETS}/revision": revision}
        labels |= {"app": f"{workload.name}-{title}"}
        parts = {
            key: with_parts(value, labels=labels, annotations={}) if key in _TEMPLATES and value else value
            for key, value in template.items()
        }
        spec = {**mapping(role.get("spec")), "leaderWorkerTemplate": parts}
        annotations = mapping(role, "metadata", "annotations")
        worker_set = part(workload, LEADER_WORKER_SET, name, spec, annotations=annotations)
        for pod in leader_worker_set(worker_set, existing):
            yield dataclasses.replace(pod, above=(worker_set, *pod.above))


def _leader(workload: Manifest, existing: Existing, index: int, annotations: Mapping[str, str]) -> Iterator[MadePod]:
    if existing.has_object(workload.namespace, "StatefulSet", workload.name):
        return
    parts = mapping(workload.spec.get("leaderWorkerTemplate"))
    template = parts.get("leaderTemplate") or parts.get("workerTemplate")
    leader_template = with_parts(template, labels={f"{_DOMAIN}/worker-index": "0"}, annotations=annotations)
    own = _set(parts, leader_template, start=index, replicas=1)
    yield from builtin_workloads.stateful_set(
        part(workload, builtin_workloads.STATEFUL_SET, workload.name, own), existing
    )


def _workers(
    workload: Manifest, existing: Existing, leader: str, size: int, annotations: Mapping[str, str]
) -> Iterator[MadePod]:
    if existing.has_object(workload.namespace, "StatefulSet", leader):
        return
    parts = mapping(workload.spec.get("leaderWorkerTemplate"))
    leading = {**annotations, f"{_DOMAIN}/leader-name": leader}
    worker_template = with_parts(parts.get("workerTemplate"), labels={}, annotations=leading)
    own = _set(parts, worker_template, start=1, replicas=max(0, size - 1))
    yield from builtin_workloads.stateful_set(part(workload, builtin_workloads.STATEFUL_SET, leader, own), existing)


def _set(parts: Mapping[str, Any], template: object, *, start: int, replicas: int) -> dict[str, Any]:
    """The spec of a StatefulSet of leaders or workers. All pods have the claims of the LeaderWorkerSet's templates."""
    return {
        "replicas": replicas,
        "ordinals": {"start": start},
        "podManagementPolicy": "Parallel",
        "template": template,
        "volumeClaimTemplates": parts.get("volumeClaimTemplates"),
    }


def _annotations(workload: Manifest, size: int) -> dict[str, str]:
    """The annotations of all pods of the set."""
    declared = workload.annotations
    subgroups = _subgroups(workload)
    result = {f"{_DOMAIN}/size": str(size)}
    if topology := declared.get(LWS_TOPOLOGY):
        result[LWS_TOPOLOGY] = str(topology)
    if subgroups:
        result[f"{_DOMAIN}/subgroup-size"] = str(_subgroup_size(workload))
        if topology := declared.get(LWS_SUBGROUP_TOPOLOGY):
            result[LWS_SUBGROUP_TOPOLOGY] = str(topology)
    return result


def _group(workload: Manifest, leader: str, index: int, revision: str) -> dict[str, str]:
    return {
        f"{_DOMAIN}/name": workload.name,
        f"{_DOMAIN}/group-index": str(index),
        f"{_DOMAIN}/group-key": _key(workload.namespace, leader),
        f"{_DOMAIN}/template-revision-hash": revision,
    }


def _subgroups(workload: Manifest) -> Mapping[str, Any]:
    return mapping(workload.spec, "leaderWorkerTemplate", "subGroupPolicy")


def _subgroup_size(workload: Manifest) -> int:
    value = _subgroups(workload).get("subGroupSize")
    return max(1, number(workload, value, "spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize", default=1))


def _subgroup(workload: Manifest, leader: str, size: int, position: int) -> dict[str, str]:
    """The labels of the subgroup of the pod at this place in its group; none if there are no subgroups."""
    policy = _subgroups(workload)
    if not policy or (position == 0 and policy.get("subGroupPolicyType") == "LeaderExcluded"):
        return {}
    length = _subgroup_size(workload)
    # Where one pod is left over, it is the leader, which belongs to the first subgroup.
    index = 0 if position == 0 else (position - 1 if (size - 1) % length == 0 else position) // length
    return {f"{_DOMAIN}/subgroup-index": str(index), f"{_DOMAIN}/subgroup-key": _key(leader, str(index))}


def _key(*names: str) -> str:
    """Derived as the controller does, so that this label groups pods as in a cluster."""
    return hashlib.sha1("/".join(names).encode(), usedforsecurity=False).hexdigest()
