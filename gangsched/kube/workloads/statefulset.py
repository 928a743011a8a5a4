"""StatefulSets of Kubernetes. By default each pod is created once the previous one is ready."""

from __future__ import annotations

from typing import Annotated

from msgspec import Raw, Struct

from gangsched.config.workload_registry import WorkloadRow
from gangsched.kube.workloads.template import NOTHING
from gangsched.kube.workloads.workload_fields import means
from gangsched.kube.workloads.workload_kind import Desired, Kind, Mark, Marks, Object

_OWNER = ("apps", "StatefulSet")


ROLE = "replica"
"""The role of all its pods."""


class _StatefulSetSpec(Struct, gc=False, rename="camel"):
    replicas: Annotated[int | None, means("the number of pods")] = None
    pod_management_policy: Annotated[
        str | None, means("unless it is `Parallel`, places are held for the pods after the first")
    ] = None
    template: Annotated[Raw, means("the shape of pods that are created later")] = NOTHING


class _StatefulSet(Object, gc=False):
    spec: _StatefulSetSpec | None = None


def _desired(statefulset: _StatefulSet) -> Desired:
    spec = statefulset.spec or _StatefulSetSpec()
    size = 1 if spec.replicas is None else spec.replicas
    idle = "" if size else "has 0 replicas"
    demand = Desired(size=size, pods=size, idle=idle)
    if spec.pod_management_policy == "Parallel":
        return demand
    remedy = "create the StatefulSet again with podManagementPolicy: Parallel"
    return demand._replace(roles={ROLE: size}, late={ROLE: spec.template}, remedy=remedy)


def _mark(marks: Marks) -> Mark | None:
    return Mark(marks.owner.name, marks.owner.uid, role=ROLE)


def kind(row: WorkloadRow) -> Kind[_StatefulSet]:
    return Kind(row=row, controllers=(_OWNER,), mark=_mark, form=_StatefulSet, desired=_desired)
