"""PyTorchJobs and the other training jobs of Kubeflow's API v1: one gang each, whose roles are the replica types."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from gangsched.config.workloads import Row
from gangsched.core.objects.workload import COMPLETED, ENDED
from gangsched.kube import wire
from gangsched.kube.workloads.kind import Desired, Kind, Mark, Marks, has_ended

GROUP = "kubeflow.org"
_TYPE = "training.kubeflow.org/replica-type"


class Replicas(Struct, gc=False):
    """One type of replicas."""

    replicas: int | None = None


class RunPolicy(Struct, gc=False):
    """The fields of a job's run policy that gangsched reads."""

    suspend: bool | None = None


class _Spec(Struct, gc=False, rename="camel"):
    """Each kind of job has one of the first five fields."""

    pytorch: dict[str, Replicas] | None = msgspec.field(default=None, name="pytorchReplicaSpecs")
    tf: dict[str, Replicas] | None = msgspec.field(default=None, name="tfReplicaSpecs")
    xgb: dict[str, Replicas] | None = msgspec.field(default=None, name="xgbReplicaSpecs")
    paddle: dict[str, Replicas] | None = msgspec.field(default=None, name="paddleReplicaSpecs")
    jax: dict[str, Replicas] | None = msgspec.field(default=None, name="jaxReplicaSpecs")
    run_policy: RunPolicy | None = None


class Status(Struct, gc=False):
    """The fields of a job's status that gangsched reads."""

    conditions: list[wire.Condition] | None = None


class _Job(Struct, gc=False):
    metadata: wire.Meta
    spec: _Spec | None = None
    status: Status | None = None


def _desired(job: _Job) -> Desired:
    spec = job.spec or _Spec()
    types = spec.pytorch or spec.tf or spec.xgb or spec.paddle or spec.jax or {}
    return desired(roles_of(types), spec.run_policy, job.status)


def roles_of(types: Mapping[str, Replicas]) -> dict[str, int]:
    """The number of replicas by type, named as in the pods' labels."""
    return {name.lower(): 1 if each.replicas is None else each.replicas for name, each in types.items()}


def desired(roles: Mapping[str, int], policy: RunPolicy | None, status: Status | None) -> Desired:
    """The demand of a job with these roles."""
    size = sum(roles.values())
    idle = "" if size else "has no replicas"
    if policy is not None and policy.suspend:
        idle = "is suspended"
    if status is not None and has_ended(status.conditions, "Failed"):
        idle = ENDED
    if status is not None and has_ended(status.conditions, "Succeeded"):
        idle = COMPLETED
    return Desired(size=size, pods=size, roles=roles, idle=idle)


def kind(row: Row) -> Kind[_Job]:
    def mark(marks: Marks) -> Mark:
        return Mark(marks.owner.name, marks.owner.uid, role=marks.labels.get(_TYPE, ""))

    return Kind(row=row, controllers=((GROUP, row.kind),), mark=mark, form=_Job, desired=_desired)
