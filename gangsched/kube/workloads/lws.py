"""LeaderWorkerSets: each replica, a leader and its workers, is a gang.

Leaders belong to one StatefulSet, the workers of each to another. All carry the name of the set, the index of their
replica as labels, and the size of their replica, which a rolling update changes for one replica after the other.
"""

from __future__ import annotations

from msgspec import Struct

from gangsched.config.workloads import Row
from gangsched.kube import wire
from gangsched.kube.workloads.kind import Asked, Kind, Mark, Marks

_NAME = "leaderworkerset.sigs.k8s.io/name"
_REPLICA = "leaderworkerset.sigs.k8s.io/group-index"
_ALL_ANEW = "RecreateGroupOnPodRestart"
_SIZE = "leaderworkerset.sigs.k8s.io/size"


class _Template(Struct, gc=False, rename="camel"):
    size: int | None = None
    restart_policy: str | None = None


class _Spec(Struct, gc=False, rename="camel"):
    replicas: int | None = None
    leader_worker_template: _Template | None = None


class _Set(Struct, gc=False):
    metadata: wire.Meta
    spec: _Spec | None = None


def _mark(marks: Marks) -> Mark | None:
    name, replica = marks.labels.get(_NAME, ""), marks.labels.get(_REPLICA, "")
    if not name or not replica:
        return None
    size = marks.annotations.get(_SIZE, "")
    return Mark(name, part=replica, size=int(size) if size.isdecimal() and int(size) else None)


def _asked(found: _Set) -> Asked:
    spec = found.spec or _Spec()
    template = spec.leader_worker_template or _Template()
    size = 1 if template.size is None else template.size
    replicas = 1 if spec.replicas is None else spec.replicas
    return Asked(
        size=size,
        pods=size * replicas,
        idle="" if replicas else "has 0 replicas",
        all_anew=template.restart_policy in (None, _ALL_ANEW),
    )


def kind(row: Row) -> Kind[_Set]:
    return Kind(row=row, controllers=(("apps", "StatefulSet"),), mark=_mark, form=_Set, asked=_asked)
