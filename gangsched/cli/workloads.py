"""Expands StatefulSets, Deployments, ReplicaSets and Jobs into the pods that their controllers would create.

A pod in the files replaces an expanded one: for a StatefulSet a pod with the same name, for the others a pod with the
same controller. Names are those of the StatefulSet controller. The pods of the others, which in a cluster have random
suffixes, are named NAME-0, NAME-1 and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from types import MappingProxyType
from typing import Any

from gangsched.cli.manifests import Manifest, ManifestError, mapping

_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class MadePod:
    """A pod that a controller creates; with `after_previous` only once the previous one runs.

    `claims` are the PersistentVolumeClaims that it creates for the pod, by name.
    """

    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    owner: Mapping[str, Any]
    spec: Mapping[str, Any]
    claims: Mapping[str, Mapping[str, Any]]
    after_previous: bool = False


class Existing:
    """The pods and ReplicaSets in the files."""

    def __init__(self, pods: Sequence[Manifest], replica_sets: Sequence[Manifest]) -> None:
        self._names = {(pod.namespace, pod.name) for pod in pods}
        live = [pod for pod in pods if mapping(pod.body.get("status")).get("phase") not in _ENDED]
        self._controllers = [(pod.namespace, *_controller(pod)) for pod in live]
        self._replica_set_owners = {(each.namespace, *_controller(each)) for each in replica_sets}

    def has(self, namespace: str, name: str) -> bool:
        """Whether there is a pod with this name."""
        return (namespace, name) in self._names

    def controlled(self, namespace: str, kind: str, name: str) -> int:
        """The number of this controller's pods that have not ended."""
        return self._controllers.count((namespace, kind, name))

    def of_deployment(self, namespace: str, name: str) -> int:
        """The number of pods that have not ended and belong to a ReplicaSet with a name of this Deployment's form."""
        return sum(
            (there, kind, owner.rpartition("-")[0]) == (namespace, "ReplicaSet", name)
            for there, kind, owner in self._controllers
        )

    def has_replica_set_of(self, namespace: str, name: str) -> bool:
        """Whether there is a ReplicaSet of this Deployment."""
        return (namespace, "Deployment", name) in self._replica_set_owners


def pods_of(workload: Manifest, existing: Existing) -> list[MadePod]:
    """The pods that the workload's controller would create in addition to the existing ones.

    Raises:
        ManifestError: the workload has no pod template, or a number in it is invalid.
    """
    return list(MAKERS[workload.api_version, workload.kind](workload, existing))


def _stateful_set(workload: Manifest, existing: Existing) -> Iterator[MadePod]:
    spec = workload.spec
    first = _number(workload, mapping(spec.get("ordinals")).get("start"), "spec.ordinals.start", default=0)
    templates = [mapping(each) for each in spec.get("volumeClaimTemplates") or ()]
    one_by_one = spec.get("podManagementPolicy", "OrderedReady") == "OrderedReady"
    for ordinal in range(first, first + _replicas(workload)):
        name = f"{workload.name}-{ordinal}"
        if existing.has(workload.namespace, name):
            continue
        volumes = {str(mapping(each.get("metadata")).get("name")): each for each in templates}
        claims = {volume: (f"{volume}-{name}", each) for volume, each in volumes.items()}
        yield _pod(workload, name, labels={"statefulset.kubernetes.io/pod-name": name}, claims=claims, wait=one_by_one)


def _deployment(workload: Manifest, existing: Existing) -> Iterator[MadePod]:
    if not existing.has_replica_set_of(workload.namespace, workload.name):
        there = existing.of_deployment(workload.namespace, workload.name)
        yield from _numbered(workload, existing, _replicas(workload) - there, owner_kind="ReplicaSet")


def _replica_set(workload: Manifest, existing: Existing) -> Iterator[MadePod]:
    there = existing.controlled(workload.namespace, "ReplicaSet", workload.name)
    yield from _numbered(workload, existing, _replicas(workload) - there)


def _job(workload: Manifest, existing: Existing) -> Iterator[MadePod]:
    spec, status = workload.spec, mapping(workload.body.get("status"))
    ended = any(
        mapping(condition).get("type") in ("Complete", "Failed") and mapping(condition).get("status") == "True"
        for condition in status.get("conditions") or ()
    )
    if spec.get("suspend") is True or ended:
        return
    wanted = _number(workload, spec.get("parallelism"), "spec.parallelism", default=1)
    if spec.get("completions") is not None:
        completions = _number(workload, spec["completions"], "spec.completions", default=1)
        wanted = min(wanted, completions - _number(workload, status.get("succeeded"), "status.succeeded", default=0))
    there = existing.controlled(workload.namespace, "Job", workload.name)
    labels = {"batch.kubernetes.io/job-name": workload.name, "job-name": workload.name}
    yield from _numbered(workload, existing, wanted - there, labels=labels)


MAKERS: Mapping[tuple[str, str], Callable[[Manifest, Existing], Iterator[MadePod]]] = {
    ("apps/v1", "StatefulSet"): _stateful_set,
    ("apps/v1", "Deployment"): _deployment,
    ("apps/v1", "ReplicaSet"): _replica_set,
    ("batch/v1", "Job"): _job,
}
"""The functions that expand workloads into pods, by apiVersion and kind."""


def _numbered(
    workload: Manifest,
    existing: Existing,
    wanted: int,
    *,
    labels: Mapping[str, str] | None = None,
    owner_kind: str = "",
) -> Iterator[MadePod]:
    names = (f"{workload.name}-{number}" for number in count())
    free = (name for name in names if not existing.has(workload.namespace, name))
    for name in islice(free, max(0, wanted)):
        yield _pod(workload, name, labels=labels or {}, owner_kind=owner_kind)


def _pod(
    workload: Manifest,
    name: str,
    *,
    labels: Mapping[str, str],
    claims: Mapping[str, tuple[str, Mapping[str, Any]]] = MappingProxyType({}),
    wait: bool = False,
    owner_kind: str = "",
) -> MadePod:
    template = mapping(workload.spec.get("template"))
    spec = mapping(template.get("spec"))
    if not spec:
        raise ManifestError([f"{workload}: spec.template.spec is missing: write the pods' template"])
    metadata = mapping(template.get("metadata"))
    kind = owner_kind or workload.kind
    volumes = [volume for volume in spec.get("volumes") or () if volume.get("name") not in claims]
    volumes += [
        {"name": volume, "persistentVolumeClaim": {"claimName": claim}} for volume, (claim, _) in claims.items()
    ]
    return MadePod(
        name=name,
        labels={**mapping(metadata.get("labels")), **labels},
        annotations=mapping(metadata.get("annotations")),
        owner={
            "kind": kind,
            "name": workload.name,
            "uid": str(workload.metadata.get("uid") or f"{kind}/{workload.namespace}/{workload.name}"),
            "controller": True,
        },
        spec={**spec, "volumes": volumes},
        claims=dict(claims.values()),
        after_previous=wait,
    )


def _replicas(workload: Manifest) -> int:
    return _number(workload, workload.spec.get("replicas"), "spec.replicas", default=1)


def _number(workload: Manifest, value: object, field: str, *, default: int) -> int:
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ManifestError([f"{workload}: {field} is {value!r}: it must be a whole number of 0 or more"])
    return value


def _controller(manifest: Manifest) -> tuple[str, str]:
    """Kind and name of the object's controller; empty without one."""
    for reference in manifest.metadata.get("ownerReferences") or ():
        if mapping(reference).get("controller") is True:
            return str(reference.get("kind", "")), str(reference.get("name", ""))
    return "", ""
