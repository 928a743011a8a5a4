"""MPIJobs: launcher and workers are one gang, which succeeds when the launcher succeeds.

In the API v2beta1 the launcher's pod belongs to a Job and is recognised by its labels. If the launcher is created only
once the workers are ready, a placeholder is reserved for it.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Raw, Struct

from gangsched.config.workload_registry import WorkloadRow
from gangsched.kube.workloads.kubeflow import GROUP, Replicas, RunPolicy, Status, desired, roles_of
from gangsched.kube.workloads.template import NOTHING
from gangsched.kube.workloads.workload_fields import means
from gangsched.kube.workloads.workload_kind import Desired, Kind, Mark, Marks, Object

_NAME = "training.kubeflow.org/job-name"
_OPERATOR = ("training.kubeflow.org/operator-name", "mpi-operator")
_ROLE = "training.kubeflow.org/job-role"
_TYPE = "training.kubeflow.org/replica-type"
_LAUNCHER = "launcher"
_LATE = "WaitForWorkersReady"


class _Replicas(Replicas, gc=False):
    template: Annotated[Raw, means("the shape of a launcher that is created later")] = NOTHING


class _MpiJobSpec(Struct, gc=False, rename="camel"):
    types: dict[str, _Replicas] | None = msgspec.field(default=None, name="mpiReplicaSpecs")
    run_policy: RunPolicy | None = None
    launcher_creation_policy: Annotated[
        str | None, means("with `WaitForWorkersReady` a place is held for the launcher")
    ] = None


class _Job(Object, gc=False):
    spec: _MpiJobSpec | None = None
    status: Status | None = None


def _mark(marks: Marks) -> Mark | None:
    labels, owner = marks.labels, marks.owner
    role = labels.get(_TYPE) or labels.get(_ROLE, "")
    if owner.api_group == GROUP:
        return Mark(owner.name, owner.uid, role=role)
    if labels.get(_OPERATOR[0]) != _OPERATOR[1] or not labels.get(_NAME):
        return None
    return Mark(labels[_NAME], role=role)


def _desired(job: _Job) -> Desired:
    spec = job.spec or _MpiJobSpec()
    demand = desired(roles_of(spec.types or {}), spec.run_policy, job.status)
    if spec.launcher_creation_policy != _LATE:
        return demand
    late = {
        name.lower(): replicas.template for name, replicas in (spec.types or {}).items() if name.lower() == _LAUNCHER
    }
    return demand._replace(late=late, remedy="create the MPIJob again with launcherCreationPolicy: AtStartup")


def kind(row: WorkloadRow) -> Kind[_Job]:
    return Kind(
        row=row,
        controllers=((GROUP, row.kind), ("batch", "Job")),
        mark=_mark,
        form=_Job,
        desired=_desired,
        leading=_LAUNCHER,
    )
