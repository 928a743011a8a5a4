"""LeaderWorkerSets: each replica, a leader and its workers, is a gang.

The leaders belong to one StatefulSet, the workers of each leader to another. The labels of each pod contain the name of
the set and the index of the replica. An annotation contains the size of the replica, which a rolling update changes for
one replica after the other. With `startupPolicy` LeaderReady, workers are created once their leader is ready, and
placeholders are reserved for them.
"""

from __future__ import annotations

from msgspec import Raw, Struct

from gangsched.config.workloads import Row
from gangsched.kube import wire
from gangsched.kube.workloads.kind import Asked, Kind, Mark, Marks
from gangsched.kube.workloads.template import NOTHING

_NAME = "leaderworkerset.sigs.k8s.io/name"
_REPLICA = "leaderworkerset.sigs.k8s.io/group-index"
_ALL_ANEW = "RecreateGroupOnPodRestart"
_SIZE = "leaderworkerset.sigs.k8s.io/size"
_WORKER = "leaderworkerset.sigs.k8s.io/worker-index"
_LEADERS, _WORKERS = "leader", "worker"


class _Template(Struct, gc=False, rename="camel"):
    size: int | None = None
    restart_policy: str | None = None
    worker_template: Raw = NOTHING


class _Spec(Struct, gc=False, rename="camel"):
    replicas: int | None = None
    leader_worker_template: _Template | None = None
    startup_policy: str | None = None


class _Set(Struct, gc=False):
    metadata: wire.Meta
    spec: _Spec | None = None


def _mark(marks: Marks) -> Mark | None:
    name, replica = marks.labels.get(_NAME, ""), marks.labels.get(_REPLICA, "")
    if not name or not replica:
        return None
    size = marks.annotations.get(_SIZE, "")
    role = {None: "", "0": _LEADERS}.get(marks.labels.get(_WORKER), _WORKERS)
    return Mark(name, part=replica, role=role, size=int(size) if size.isdecimal() and int(size) else None)


def _asked(found: _Set) -> Asked:
    spec = found.spec or _Spec()
    made = spec.leader_worker_template or _Template()
    size = 1 if made.size is None else made.size
    replicas = 1 if spec.replicas is None else spec.replicas
    asked = Asked(
        size=size,
        pods=size * replicas,
        idle="" if replicas else "has 0 replicas",
        recreates_all=made.restart_policy in (None, _ALL_ANEW),
    )
    if spec.startup_policy != "LeaderReady" or size <= 1:
        return asked
    return asked._replace(
        roles={_LEADERS: 1, _WORKERS: size - 1},
        late={_WORKERS: made.worker_template},
        remedy="set startupPolicy: LeaderCreated in the LeaderWorkerSet",
    )


def kind(row: Row) -> Kind[_Set]:
    return Kind(row=row, controllers=(("apps", "StatefulSet"),), mark=_mark, form=_Set, asked=_asked)
