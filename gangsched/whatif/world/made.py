"""Pods that a controller would create, and which of them are in the files already."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from types import MappingProxyType
from typing import Any

from gangsched.whatif.world.manifests import Manifest, ManifestError, mapping, mappings

RECORDED = "gangsched.io/recorded"
"""Annotation of a workload in a snapshot: its pods are in the snapshot too, so it is not expanded."""
MOST_PODS = 150_000
"""Maximum number of pods that are expanded: Kubernetes supports no more in a cluster."""
_OF_KUBEFLOW = ("kubeflow.org/training-operator", "kubeflow.org/mpi-operator")
_OF_RAY = ("ray.io/kuberay-operator",)
_CONTROLLERS = {
    "Job": ("kubernetes.io/job-controller",),
    "JobSet": ("jobset.sigs.k8s.io/jobset-controller",),
    "TrainJob": ("trainer.kubeflow.org/trainjob-controller",),
    **dict.fromkeys(("RayCluster", "RayJob", "RayService"), _OF_RAY),
    **dict.fromkeys(("MPIJob", "PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob"), _OF_KUBEFLOW),
}
"""The values of `managedBy` for which the workload's own controller creates its pods, by kind."""
_ENDED = ("Succeeded", "Failed")
_ENDS = {"Complete", "Completed", *_ENDED}
"""The conditions of workloads that have ended, and RayJobs' `jobDeploymentStatus`."""
_NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class MadePod:
    """A pod that a controller creates; if `after` names a pod, only once that one runs, and with `once_ended` only when
    others have ended.

    `doubt` is a clause that says why the controller could make it otherwise; empty if there is none.

    `template` is the spec in the pod template, the same object for all pods of a template. `volumes` replace its
    volumes. `claims` are the PersistentVolumeClaims that the controller creates for the pod, by name. `maker` is the
    object whose controller creates the pod; those in `above` are created on the way to it. If `follows` names a node
    label, the value that it has on the node of the pod `after` becomes part of the node selector.
    """

    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    owner: Mapping[str, Any]
    template: Mapping[str, Any]
    volumes: Sequence[Mapping[str, Any]]
    claims: Mapping[str, Mapping[str, Any]]
    maker: Manifest
    above: tuple[Manifest, ...] = ()
    after: str = ""
    once_ended: bool = False
    doubt: str = ""
    follows: str = ""


class Existing:
    """The pods in the files, and the other objects that controllers create or read."""

    def __init__(self, pods: Sequence[Manifest], others: Sequence[Manifest]) -> None:
        self._names = {(pod.namespace, pod.name) for pod in pods}
        live = [pod for pod in pods if pod.status.get("phase") not in _ENDED]
        self._controlled: defaultdict[tuple[str, str, str], list[tuple[str, Manifest]]] = defaultdict(list)
        for pod in live:
            kind, name, uid = _controller(pod)
            self._controlled[pod.namespace, kind, name].append((uid, pod))
        self._others = {(other.namespace, other.kind, other.name): other for other in others}
        self._by_controller = {(other.namespace, other.kind, *_controller(other)[:2]): other for other in others}

    def has(self, namespace: str, name: str) -> bool:
        """Whether there is a pod with this name."""
        return (namespace, name) in self._names

    def has_object(self, namespace: str, kind: str, name: str) -> bool:
        """Whether there is a workload of this kind and name."""
        return (namespace, kind, name) in self._others

    def object(self, namespace: str | None, kind: str, name: str) -> Manifest | None:
        """The object of this kind and name, for kinds without namespaces with None; None if there is none."""
        if namespace is not None:
            return self._others.get((namespace, kind, name))
        return next((other for (_, *rest), other in self._others.items() if rest == [kind, name]), None)

    def pods_of(self, workload: Manifest) -> list[Manifest]:
        """This controller's pods that have not ended.

        Pods of another object that had its name, and hence another UID, are not its pods.
        """
        mine = self._controlled.get((workload.namespace, workload.kind, workload.name), ())
        own_uid = str(workload.metadata.get("uid") or "")
        return [pod for uid, pod in mine if uid in ("", own_uid) or not own_uid]

    def labels_of(self, workload: Manifest) -> list[Mapping[str, Any]]:
        """The labels of each of this controller's pods that has not ended."""
        return [pod.labels for pod in self.pods_of(workload)]

    def controlled(self, workload: Manifest, labels: Mapping[str, str] = _NONE) -> int:
        """The number of this controller's pods that have not ended and have these labels."""
        return sum(labels.items() <= pod_labels.items() for pod_labels in self.labels_of(workload))

    def of_deployment(self, namespace: str, name: str) -> int:
        """The number of pods that have not ended and belong to a ReplicaSet with a name of this Deployment's form."""
        return sum(
            len(pods)
            for (space, kind, owner), pods in self._controlled.items()
            if (space, kind, owner.rpartition("-")[0]) == (namespace, "ReplicaSet", name)
        )

    def has_made(self, workload: Manifest, kind: str) -> bool:
        """Whether the workload controls an object of this kind in the files."""
        return self.made_by(workload, kind) is not None

    def made_by(self, workload: Manifest, kind: str) -> Manifest | None:
        """An object of this kind in the files that the workload controls; None if there is none."""
        return self._by_controller.get((workload.namespace, kind, workload.kind, workload.name))

    def objects(self, namespace: str, kind: str) -> Iterator[Manifest]:
        """The objects of this kind in the namespace."""
        return (manifest for (space, of, _), manifest in self._others.items() if (space, of) == (namespace, kind))


def made_pod(
    workload: Manifest,
    name: str,
    template: object,
    *,
    labels: Mapping[str, str],
    field: str = "spec.template",
    owner: Mapping[str, Any] = _NONE,
    claims: Mapping[str, tuple[str, Mapping[str, Any]]] = _NONE,
    after: str = "",
) -> MadePod:
    """A pod of the template, which the workload has in that field; `labels` are added to the template's.

    `owner` are the fields in which the pod's owner differs from the workload.

    Raises:
        ManifestError: the template has no spec.
    """
    spec = mapping(template, "spec")
    if not spec:
        raise ManifestError([f"{workload}: {field}.spec is missing: write the pods' template"])
    metadata = mapping(template, "metadata")
    volumes = [volume for volume in mappings(spec.get("volumes")) if volume.get("name") not in claims]
    volumes += [
        {"name": volume, "persistentVolumeClaim": {"claimName": claim}} for volume, (claim, _) in claims.items()
    ]
    return MadePod(
        name=name,
        labels={**mapping(metadata.get("labels")), **labels},
        annotations=mapping(metadata.get("annotations")),
        owner={**owner_of(workload), **owner},
        template=spec,
        volumes=volumes,
        claims=dict(claims.values()),
        maker=workload,
        after=after,
    )


def with_parts(
    template: object, *, labels: Mapping[str, Any], annotations: Mapping[str, Any], **spec: object
) -> Mapping[str, Any]:
    """The pod template with these labels and annotations in addition, and these fields of the spec."""
    original = mapping(template)
    metadata = mapping(original.get("metadata"))
    joined = {
        "labels": {**mapping(metadata.get("labels")), **labels},
        "annotations": {**mapping(metadata.get("annotations")), **annotations},
    }
    own = mapping(original.get("spec"))
    return {**original, "metadata": {**metadata, **joined}, "spec": {**own, **spec} if own and spec else own}


def with_init_container(
    template: object, name: str, requests: Mapping[str, str], limits: Mapping[str, str]
) -> Mapping[str, Any]:
    """The pod template with an init container that a controller adds."""
    container = {"name": name, "resources": {"requests": requests, "limits": limits}}
    containers = mappings(mapping(template, "spec").get("initContainers"))
    return with_parts(template, labels={}, annotations={}, initContainers=[*containers, container])


def template_hash(template: object) -> str:
    """A text by which a controller labels the pods of this template; the controllers' own is another one."""
    return hashlib.sha256(json.dumps(template, sort_keys=True, default=str).encode()).hexdigest()[:10]


def owner_of(workload: Manifest) -> dict[str, Any]:
    """The owner reference of the objects that the workload's controller creates."""
    return {
        "apiVersion": workload.api_version,
        "kind": workload.kind,
        "name": workload.name,
        "uid": workload.uid,
        "controller": True,
    }


def free_names(workload: Manifest, existing: Existing, needed: int, prefix: str = "") -> Iterator[str]:
    """The `needed` number of unused names PREFIX-NUMBER; the prefix is by default the workload's name."""
    names = (f"{prefix or workload.name}-{number}" for number in count())
    return islice((name for name in names if not existing.has(workload.namespace, name)), max(0, needed))


def number(workload: Manifest, value: object, field: str, *, default: int, most: int | None = None) -> int:
    """The number in a field of the workload.

    Raises:
        ManifestError: the value is not a whole number of 0 or more, or is above `most`, as many as can be expanded.
    """
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ManifestError([f"{workload}: {field} is {value!r}: it must be a whole number of 0 or more"])
    if most is not None and value > most:
        raise ManifestError([f"{workload}: {field} is {value}, more than the {most} that simulate expands: reduce it"])
    return value


def rests(workload: Manifest) -> str:
    """Why the workload wants no pods, a clause: it is suspended, and how to change it, or has ended; else empty."""
    policy = mapping(workload.spec.get("runPolicy"))
    for field, value in (
        ("spec.suspend", workload.spec.get("suspend")),
        ("spec.runPolicy.suspend", policy.get("suspend")),
    ):
        if value is True:
            return f"{field} is true: set it to false to ask about it"
    status = workload.status
    ended = {
        condition.get("type") for condition in mappings(status.get("conditions")) if condition.get("status") == "True"
    }
    return "it has ended" if {*ended, status.get("jobDeploymentStatus")} & _ENDS else ""


def manager(workload: Manifest) -> str:
    """The controller that the workload names instead of its own, such as Kueue's for other clusters; empty if none.

    What pods that controller creates, and where, is not known.
    """
    own = _CONTROLLERS.get(workload.kind)
    policy = mapping(workload.spec.get("runPolicy")) if own is _OF_KUBEFLOW else workload.spec
    controller = str(policy.get("managedBy") or "")
    return "" if own is None or controller in own else controller


def is_recorded(workload: Manifest) -> bool:
    """Whether the files are a snapshot with the workload's pods."""
    return RECORDED in workload.annotations


def controller_of(manifest: Manifest) -> Mapping[str, Any]:
    """The owner reference that names the object's controller: the first such one; empty without one."""
    owners = mappings(manifest.metadata.get("ownerReferences"))
    return next((owner for owner in owners if owner.get("controller") is True), _NONE)


def _controller(manifest: Manifest) -> tuple[str, str, str]:
    """Kind, name and UID of the object's controller; empty without one."""
    owner = controller_of(manifest)
    kind, name, uid = (str(owner.get(key) or "") for key in ("kind", "name", "uid"))
    return kind, name, uid
