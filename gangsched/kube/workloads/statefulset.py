"""StatefulSets of Kubernetes."""

from __future__ import annotations

from msgspec import Struct

from gangsched.config.workloads import Row
from gangsched.kube import wire
from gangsched.kube.workloads.kind import Asked, Kind, controlled

_OWNER = ("apps", "StatefulSet")


class _Spec(Struct, gc=False):
    replicas: int | None = None


class _StatefulSet(Struct, gc=False):
    metadata: wire.Meta
    spec: _Spec | None = None


def _asked(found: _StatefulSet) -> Asked:
    replicas = (found.spec or _Spec()).replicas
    size = 1 if replicas is None else replicas
    return Asked(size=size, pods=size, idle="" if size else "has 0 replicas")


def kind(row: Row) -> Kind[_StatefulSet]:
    return Kind(row=row, controllers=(_OWNER,), mark=controlled(*_OWNER), form=_StatefulSet, asked=_asked)
