"""Jobs of Kubernetes: as many pods at a time as `parallelism`, but not more than `completions`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Raw, Struct

from gangsched.api.times import parse_if_set, parse_time
from gangsched.config.workload_registry import WorkloadRow
from gangsched.core.objects.workload import COMPLETED, ENDED
from gangsched.kube import wire
from gangsched.kube.terms.failure_policies import FailurePolicy, why_counted
from gangsched.kube.workloads.workload_fields import ABSENT, ignored, means
from gangsched.kube.workloads.workload_kind import Desired, Kind, Object, controlled, has_ended

_OWNER = ("batch", "Job")
_COMPLETES = ("Complete", "SuccessCriteriaMet")
_FAILS = ("Failed", "FailureTarget")
"""The conditions of a Job that has ended, or that creates no more pods and ends once its last pods are gone."""


class _Gang(Struct, gc=False, rename="camel"):
    min_count: Annotated[int | None, means("the minimum")] = None


class _Policy(Struct, gc=False):
    basic: Annotated[Raw, means("no gang, also in a labelled namespace; an annotation takes precedence")] = ABSENT
    gang: _Gang | None = None


class _Level(Struct, gc=False):
    key: Annotated[str, means("all its pods in one domain of this label")] = ""


class _Constraints(Struct, gc=False):
    topology: list[_Level] | None = None


class _Scheduling(Struct, gc=False, rename="camel"):
    """The Job's own terms for scheduling, since Kubernetes 1.37 with the feature gate WorkloadWithJob."""

    scheduling_policy: _Policy | None = None
    scheduling_constraints: _Constraints | None = None
    disruption_mode: Annotated[Raw, ignored("whether its pods are preempted together")] = ABSENT
    resource_claims: Annotated[
        Raw, means("claims that its pods share: those of the group that its controller makes")
    ] = ABSENT


class _JobSpec(Struct, gc=False, rename="camel"):
    parallelism: Annotated[int | None, means("the number of pods at a time")] = None
    completions: Annotated[int | None, means("how many pods must succeed: what the Job still owes")] = None
    suspend: Annotated[bool | None, means("no pods are wanted")] = None
    active_deadline_seconds: Annotated[int | None, means("with `status.startTime`, when it ends at the latest")] = None
    pod_failure_policy: Annotated[
        FailurePolicy | None, means("whether an eviction counts as a failure, in preemption")
    ] = None
    scheduling: _Scheduling | None = None


class _Uncounted(Struct, gc=False):
    succeeded: Annotated[list[str] | None, means("pods that succeeded and that `succeeded` does not count yet")] = None


class _JobStatus(Struct, gc=False, rename="camel"):
    start_time: Annotated[str | None, means("when its time began to run")] = None
    completion_time: Annotated[str | None, means("with `startTime`, how long the run took that has succeeded")] = None
    active: Annotated[int | None, means("without `completions`, the pods that are left after the first success")] = None
    succeeded: Annotated[int | None, means("completions that are not owed any more")] = None
    uncounted_terminated_pods: _Uncounted | None = None
    failed_indexes: Annotated[
        str | None, means("indexes that failed for good (`backoffLimitPerIndex`), which nobody owes any more")
    ] = None
    conditions: Annotated[
        list[wire.ConditionState] | None,
        means("`Complete`, `SuccessCriteriaMet` (`successPolicy`), `Failed` and `FailureTarget`: it has ended"),
    ] = None


class _Job(Object, gc=False):
    spec: _JobSpec | None = None
    status: _JobStatus | None = None


def _desired(job: _Job) -> Desired:
    spec = job.spec or _JobSpec()
    patient = not why_counted("", spec.pod_failure_policy)
    desired = _counted(job, spec)
    status = job.status or _JobStatus()
    return desired._replace(
        gang=_gang(spec),
        topology=_topology(spec.scheduling),
        patient=patient,
        ends_by=_ends_by(job, spec),
        began=parse_if_set(status.start_time),
        succeeded_at=parse_if_set(status.completion_time),
    )


def _ends_by(job: _Job, spec: _JobSpec) -> float:
    """When its own limit ends the Job, in epoch seconds; 0.0 if it has none, or has not begun."""
    start = job.status.start_time if job.status is not None else None
    if spec.active_deadline_seconds is None or start is None:
        return 0.0
    return parse_time(start) + spec.active_deadline_seconds


def _topology(scheduling: _Scheduling | None) -> str:
    """The label whose domains the Job names; empty without one. The API server takes one at most."""
    constraints = scheduling.scheduling_constraints if scheduling is not None else None
    return next((level.key for level in (constraints.topology if constraints is not None else None) or ()), "")


def _counted(job: _Job, spec: _JobSpec) -> Desired:
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    size = parallelism if spec.completions is None else min(parallelism, spec.completions)
    status, idle, least = job.status or _JobStatus(), _idle(job, spec, size), _least(spec)
    if spec.completions is None:
        if not status.succeeded or idle:
            return Desired(size=parallelism, pods=parallelism, idle=idle, least=least)
        # Such a Job creates no pod any more once one has succeeded, and ends when the others have ended.
        uncounted = status.uncounted_terminated_pods or _Uncounted()
        left = min(parallelism, status.succeeded + len(uncounted.succeeded or ()) + (status.active or 0))
        return Desired(size=left, pods=left, idle=idle, least=least, completions=left, succeeded=status.succeeded)
    return Desired(
        size=size,
        pods=size,
        idle=idle,
        least=least,
        completions=spec.completions,
        succeeded=_succeeded(status, spec.completions),
        given_up=number_of_indexes(status.failed_indexes or ""),
    )


def _least(spec: _JobSpec) -> int | None:
    """The minimum that the Job states itself."""
    policy = spec.scheduling.scheduling_policy if spec.scheduling is not None else None
    return policy.gang.min_count if policy is not None and policy.gang is not None else None


def _gang(spec: _JobSpec) -> bool | None:
    """False if the Job asks for no gang; None if it leaves that to others."""
    policy = spec.scheduling.scheduling_policy if spec.scheduling is not None else None
    return False if policy is not None and policy.basic != ABSENT else None


def number_of_indexes(text: str) -> int:
    """How many indexes a Job's status lists as intervals, such as `1,3-5`. What cannot be read counts as none."""
    number = 0
    for interval in filter(None, text.split(",")):
        first, _, last = interval.partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():
            return 0
        number += max(0, int(last or first) - int(first) + 1)
    return number


def _succeeded(status: _JobStatus, completions: int) -> int:
    """The number of pods that have succeeded. In a complete Job it is `completions`, even with a success policy."""
    return completions if has_ended(status.conditions, *_COMPLETES) else status.succeeded or 0


def _idle(job: _Job, spec: _JobSpec, size: int) -> str:
    status = job.status or _JobStatus()
    if has_ended(status.conditions, *_COMPLETES):
        return COMPLETED
    if has_ended(status.conditions, *_FAILS):
        return ENDED
    if spec.suspend:
        return "is suspended"
    return "" if size else "has parallelism 0"


def kind(row: WorkloadRow) -> Kind[_Job]:
    return Kind(row=row, controllers=(_OWNER,), mark=controlled(*_OWNER), form=_Job, desired=_desired)
