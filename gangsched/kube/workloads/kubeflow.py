"""PyTorchJobs and the other training jobs of Kubeflow's API v1: one gang each, whose roles are the replica types.

The minimum is the one that the job states: `schedulingPolicy.minAvailable`, which the training operator itself hands to
schedulers of gangs; else for an elastic job the least number of workers that it may be scaled down to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Raw, Struct

from gangsched.config.workload_registry import WorkloadRow
from gangsched.core.objects.workload import COMPLETED, ENDED
from gangsched.kube import wire
from gangsched.kube.dialects.dialect_kind import wait_s
from gangsched.kube.workloads.workload_fields import ABSENT, ignored, means
from gangsched.kube.workloads.workload_kind import Desired, Kind, Mark, Marks, Object, has_ended

GROUP = "kubeflow.org"
_WORKER = "worker"
_TYPE = "training.kubeflow.org/replica-type"


class Replicas(Struct, gc=False):
    """One type of replicas."""

    replicas: Annotated[int | None, means("the number of pods of the role")] = None


class SchedulingPolicy(Struct, gc=False, rename="camel"):
    """What a job asks of a scheduler of gangs."""

    min_available: Annotated[int | None, means("the minimum of the gang as a whole, of whatever roles")] = None
    priority_class: Annotated[str | None, means("the gang's PriorityClass")] = None
    schedule_timeout_seconds: Annotated[int | None, means("the longest wait; 0 for the default")] = None
    min_resources: Annotated[Raw, ignored("the resources that must be free before the first pod starts")] = ABSENT
    queue: Annotated[Raw, ignored("the queue and its quota")] = ABSENT


class RunPolicy(Struct, gc=False, rename="camel"):
    """The fields of a job's run policy that gangsched reads."""

    suspend: Annotated[bool | None, means("no pods are wanted")] = None
    scheduling_policy: SchedulingPolicy | None = None


class _ElasticPolicy(Struct, gc=False, rename="camel"):
    min_replicas: Annotated[int | None, means("the minimum of the role `worker`")] = None


class _TrainingJobSpec(Struct, gc=False, rename="camel"):
    """Each kind of job has one of the first five fields."""

    pytorch: dict[str, Replicas] | None = msgspec.field(default=None, name="pytorchReplicaSpecs")
    tf: dict[str, Replicas] | None = msgspec.field(default=None, name="tfReplicaSpecs")
    xgb: dict[str, Replicas] | None = msgspec.field(default=None, name="xgbReplicaSpecs")
    paddle: dict[str, Replicas] | None = msgspec.field(default=None, name="paddleReplicaSpecs")
    jax: dict[str, Replicas] | None = msgspec.field(default=None, name="jaxReplicaSpecs")
    run_policy: RunPolicy | None = None
    elastic_policy: _ElasticPolicy | None = None


class Status(Struct, gc=False):
    """The fields of a job's status that gangsched reads."""

    conditions: Annotated[list[wire.ConditionState] | None, means("`Succeeded` and `Failed`: the job has ended")] = None


class _Job(Object, gc=False):
    spec: _TrainingJobSpec | None = None
    status: Status | None = None


def _desired(job: _Job) -> Desired:
    spec = job.spec or _TrainingJobSpec()
    types = spec.pytorch or spec.tf or spec.xgb or spec.paddle or spec.jax or {}
    roles = roles_of(types)
    demand = desired(roles, spec.run_policy, job.status)
    least = spec.elastic_policy.min_replicas if spec.elastic_policy is not None else None
    if least is None or _WORKER not in roles:
        return demand
    roles = {**roles, _WORKER: min(roles[_WORKER], max(0, least))}
    return demand._replace(roles=roles, size=sum(roles.values()))


def roles_of(types: Mapping[str, Replicas]) -> dict[str, int]:
    """The number of replicas by type, named as in the pods' labels."""
    return {name.lower(): 1 if spec.replicas is None else spec.replicas for name, spec in types.items()}


def desired(roles: Mapping[str, int], policy: RunPolicy | None, status: Status | None) -> Desired:
    """The demand of a job with these roles.

    Raises:
        ValueError: its longest wait is out of range; a sentence for a person.
    """
    size = sum(roles.values())
    idle = "" if size else "has no replicas"
    if policy is not None and policy.suspend:
        idle = "is suspended"
    if status is not None and has_ended(status.conditions, "Failed"):
        idle = ENDED
    if status is not None and has_ended(status.conditions, "Succeeded"):
        idle = COMPLETED
    scheduling = (policy.scheduling_policy if policy is not None else None) or SchedulingPolicy()
    return Desired(
        size=size,
        pods=size,
        roles=roles,
        idle=idle,
        least=scheduling.min_available,
        priority_class=scheduling.priority_class or "",
        time_s=wait_s("spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds", scheduling.schedule_timeout_seconds),
    )


def kind(row: WorkloadRow) -> Kind[_Job]:
    def mark(marks: Marks) -> Mark:
        return Mark(marks.owner.name, marks.owner.uid, role=marks.labels.get(_TYPE, ""))

    return Kind(row=row, controllers=((GROUP, row.kind),), mark=mark, form=_Job, desired=_desired)
