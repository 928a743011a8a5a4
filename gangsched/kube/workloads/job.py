"""Jobs of Kubernetes: as many pods at a time as `parallelism`, but not more than `completions`."""

from __future__ import annotations

from msgspec import Struct

from gangsched.config.workloads import Row
from gangsched.core.objects.workload import COMPLETED, ENDED
from gangsched.kube import wire
from gangsched.kube.workloads.kind import Desired, Kind, controlled, has_ended

_OWNER = ("batch", "Job")
_COMPLETES = ("Complete", "SuccessCriteriaMet")
_FAILS = ("Failed", "FailureTarget")
"""The conditions of a Job that has ended, or that creates no more pods and ends once its last pods are gone."""


class _Spec(Struct, gc=False):
    parallelism: int | None = None
    completions: int | None = None
    suspend: bool | None = None


class _Status(Struct, gc=False, rename="camel"):
    active: int | None = None
    succeeded: int | None = None
    failed_indexes: str | None = None
    conditions: list[wire.Condition] | None = None


class _Job(Struct, gc=False):
    metadata: wire.Meta
    spec: _Spec | None = None
    status: _Status | None = None


def _desired(job: _Job) -> Desired:
    spec = job.spec or _Spec()
    wanted = 1 if spec.parallelism is None else spec.parallelism
    size = wanted if spec.completions is None else min(wanted, spec.completions)
    status, idle = job.status or _Status(), _idle(job, spec, size)
    if spec.completions is None:
        succeeded = _succeeded(status, wanted)
        # Such a Job creates no pod any more once one has succeeded, and ends when the others have ended.
        left = min(wanted, status.succeeded + (status.active or 0)) if status.succeeded and not idle else wanted
        counted = succeeded if succeeded == wanted else 0
        return Desired(size=left, pods=left, idle=idle, succeeded=counted, given_up=0 if counted else wanted - left)
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


def _succeeded(status: _Status, completions: int) -> int:
    """The number of pods that have succeeded. In a complete Job it is `completions`, even with a success policy."""
    return completions if has_ended(status.conditions, *_COMPLETES) else status.succeeded or 0


def _idle(job: _Job, spec: _Spec, size: int) -> str:
    status = job.status or _Status()
    if has_ended(status.conditions, *_COMPLETES):
        return COMPLETED
    if has_ended(status.conditions, *_FAILS):
        return ENDED
    if spec.suspend:
        return "is suspended"
    return "" if size else "has parallelism 0"


def kind(row: Row) -> Kind[_Job]:
    return Kind(row=row, controllers=(_OWNER,), mark=controlled(*_OWNER), form=_Job, desired=_desired)
