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


class _Status(Struct, gc=False):
    succeeded: int | None = None
    conditions: list[wire.Condition] | None = None


class _Job(Struct, gc=False):
    metadata: wire.Meta
    spec: _Spec | None = None
    status: _Status | None = None


def _desired(job: _Job) -> Desired:
    spec = job.spec or _Spec()
    wanted = 1 if spec.parallelism is None else spec.parallelism
    size = wanted if spec.completions is None else min(wanted, spec.completions)
    desired = Desired(size=size, pods=size, idle=_idle(job, spec, size))
    succeeded = _succeeded(job.status or _Status(), size if spec.completions is None else spec.completions)
    if spec.completions is None:
        return desired._replace(succeeded=succeeded if succeeded == size else 0)
    return desired._replace(completions=spec.completions, succeeded=succeeded)


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
