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
    status, scheduling = job.status or _JobStatus(), spec.scheduling or _Scheduling()
    policy = scheduling.scheduling_policy or _Policy()
    constraints = scheduling.scheduling_constraints or _Constraints()
    return _counted(spec, status)._replace(
        # None leaves it to others.
        gang=False if policy.basic != ABSENT else None,
        least=(policy.gang or _Gang()).min_count,
        # The API server takes one level at most.
        topology=next((level.key for level in constraints.topology or ()), ""),
        patient=not why_counted("", spec.pod_failure_policy),
        ends_by=_ends_by(spec, status),
        began=parse_if_set(status.start_time),
        succeeded_at=parse_if_set(status.completion_time),
    )


def _ends_by(spec: _JobSpec, status: _JobStatus) -> float:
    """When its own limit ends the Job, in epoch seconds; 0.0 if it has none, or has not begun."""
    if spec.active_deadline_seconds is None or status.start_time is None:
        return 0.0
    return parse_time(status.start_time) + spec.active_deadline_seconds


def _counted(spec: _JobSpec, status: _JobStatus) -> Desired:
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    size = parallelism if spec.completions is None else min(parallelism, spec.completions)
    idle = _idle(spec, status, size)
    if spec.completions is None:
        if not status.succeeded or idle:
            return Desired(size=parallelism, pods=parallelism, idle=idle)
        # Such a Job creates no pod any more once one has succeeded, and ends when the others have ended.
        uncounted = status.uncounted_terminated_pods or _Uncounted()
        left = min(parallelism, status.succeeded + len(uncounted.succeeded or ()) + (status.active or 0))
        return Desired(size=left, pods=left, idle=idle, completions=left, succeeded=status.succeeded)
    return Desired(
        size=size,
        pods=size,
        idle=idle,
        completions=spec.completions,
        succeeded=_succeeded(status, spec.completions),
        given_up=number_of_indexes(status.failed_indexes or ""),
    )


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


def _idle(spec: _JobSpec, status: _JobStatus, size: int) -> str:
    if has_ended(status.conditions, *_COMPLETES):
        return COMPLETED
    if has_ended(status.conditions, *_FAILS):
        return ENDED
    if spec.suspend:
        return "is suspended"
    return "" if size else "has parallelism 0"


def kind(row: WorkloadRow) -> Kind[_Job]:
    return Kind(row=row, controllers=(_OWNER,), mark=controlled(*_OWNER), form=_Job, desired=_desired)
