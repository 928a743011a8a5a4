"""LeaderWorkerSets: each replica, a leader and its workers, is a gang.

The leaders belong to one StatefulSet, the workers of each leader to another. The labels of each pod contain the name of
the set and the index of the replica. An annotation contains the size of the replica, which a rolling update changes for
one replica after the other: the leader's is that of its revision, the workers' that of the object when their
StatefulSet was created, which has as many and is never scaled. So if they differ, the workers' is right. With
`startupPolicy` LeaderReady, workers are created once their leader is ready, and with an exclusive topology once it has
a node, whose domain they then select (`pod_controller.go` in sigs.k8s.io/lws at v0.9.0). Placeholders are reserved for
them.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Raw, Struct

from gangsched.config.workload_registry import WorkloadRow
from gangsched.core.objects.declaration import Beside
from gangsched.kube.workloads.template import NOTHING
from gangsched.kube.workloads.workload_fields import means
from gangsched.kube.workloads.workload_kind import Desired, Kind, Mark, Marks, Object

_NAME = "leaderworkerset.sigs.k8s.io/name"
_REPLICA = "leaderworkerset.sigs.k8s.io/group-index"
_RECREATE_ALL = "RecreateGroupOnPodRestart"
_SIZE = "leaderworkerset.sigs.k8s.io/size"
_WORKER = "leaderworkerset.sigs.k8s.io/worker-index"
_GROUP_KEY = "leaderworkerset.sigs.k8s.io/group-key"
EXCLUSIVE = "leaderworkerset.sigs.k8s.io/exclusive-topology"
"""The annotation with the node label whose domains take one replica each."""
BY_SUBGROUP = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"
"""The annotation with the node label whose domains take one subgroup of a replica each."""
_LEADERS, _WORKERS = "leader", "worker"


class _Template(Struct, gc=False, rename="camel"):
    size: Annotated[int | None, means("the number of pods of each gang")] = None
    restart_policy: Annotated[
        str | None, means("with `RecreateGroupOnPodRestart`, the default, no pod is bound while old ones terminate")
    ] = None
    worker_template: Annotated[Raw, means("the shape of workers that are created later")] = NOTHING


class _LeaderWorkerSetSpec(Struct, gc=False, rename="camel"):
    replicas: Annotated[int | None, means("the number of gangs")] = None
    leader_worker_template: _Template | None = None
    startup_policy: Annotated[str | None, means("with `LeaderReady` places are held for the workers")] = None


class _Set(Object, gc=False):
    spec: _LeaderWorkerSetSpec | None = None


def _mark(marks: Marks) -> Mark | None:
    name, replica = marks.labels.get(_NAME, ""), marks.labels.get(_REPLICA, "")
    if not name or not replica:
        return None
    size = marks.annotations.get(_SIZE, "")
    role = {None: "", "0": _LEADERS}.get(marks.labels.get(_WORKER), _WORKERS)
    number = int(size) if size.isdecimal() and int(size) else None
    return Mark(name, part=replica, role=role, size=number, early=role == _LEADERS)


def _desired(lws: _Set) -> Desired:
    spec = lws.spec or _LeaderWorkerSetSpec()
    template = spec.leader_worker_template or _Template()
    size = 1 if template.size is None else template.size
    replicas = 1 if spec.replicas is None else spec.replicas
    desired = Desired(
        size=size,
        pods=size * replicas,
        idle="" if replicas else "has 0 replicas",
        recreates_all=template.restart_policy in (None, _RECREATE_ALL),
    )
    annotations = lws.metadata.annotations or {}
    topology, waits = annotations.get(EXCLUSIVE), spec.startup_policy == "LeaderReady"
    if (not topology and not waits) or size <= 1:
        return desired
    remedy = _remedy(exclusive=bool(topology), waits=waits)
    if BY_SUBGROUP in annotations:
        raise ValueError(
            "its workers are created only once their leader has a node or is ready, and each subgroup of them has a "
            f"domain of its own, so that no places can be reserved for them: {remedy}, or remove the annotation "
            f"{BY_SUBGROUP}."
        )
    return desired._replace(
        roles={_LEADERS: 1, _WORKERS: size - 1},
        late={_WORKERS: template.worker_template},
        beside={_WORKERS: Beside(_LEADERS, _GROUP_KEY, topology)} if topology else {},
        remedy=remedy,
    )


def _remedy(*, exclusive: bool, waits: bool) -> str:
    """How to have all pods created at once."""
    if not exclusive:
        return "set startupPolicy: LeaderCreated in the LeaderWorkerSet"
    return f"remove the annotation {EXCLUSIVE} of the LeaderWorkerSet" + (
        " and set its startupPolicy to LeaderCreated" if waits else ""
    )


def kind(row: WorkloadRow) -> Kind[_Set]:
    return Kind(
        row=row,
        controllers=(("apps", "StatefulSet"),),
        mark=_mark,
        form=_Set,
        desired=_desired,
        annotations={
            EXCLUSIVE: "places are held for the workers, in the leader's domain",
            BY_SUBGROUP: "refused where workers are created later; otherwise the pods carry it themselves",
        },
    )
