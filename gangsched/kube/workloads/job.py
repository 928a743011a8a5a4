"""Jobs of Kubernetes: as many pods at a time as `parallelism`, but never more than are still to complete."""

from __future__ import annotations

from msgspec import Struct

from gangsched.config.workloads import Row
from gangsched.kube import wire
from gangsched.kube.workloads.kind import Asked, Kind, controlled, has_ended

_OWNER = ("batch", "Job")
_ENDS = ("Complete", "SuccessCriteriaMet", "Failed", "FailureTarget")
"""The conditions of a Job that has ended, or makes no more pods and ends once those that it has are gone."""


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


def _asked(job: _Job) -> Asked:
    spec = job.spec or _Spec()
    wanted = 1 if spec.parallelism is None else spec.parallelism
    size = wanted if spec.completions is None else min(wanted, spec.completions)
    asked = Asked(size=size, pods=size, idle=_idle(job, spec, size))
    status = job.status or _Status()
    # Complete by a success policy too, as many as must have succeeded.
    complete = has_ended(status.conditions, "Complete", "SuccessCriteriaMet")
    if spec.completions is None or spec.completions <= wanted:
        return asked._replace(succeeded=size) if complete else asked
    succeeded = spec.completions if complete else status.succeeded or 0
    return asked._replace(completions=spec.completions, succeeded=succeeded)


def _idle(job: _Job, spec: _Spec, size: int) -> str:
    if job.status is not None and has_ended(job.status.conditions, *_ENDS):
        return "has ended"
    if spec.suspend:
        return "is suspended"
    return "" if size else "has parallelism 0"


def kind(row: Row) -> Kind[_Job]:
    return Kind(row=row, controllers=(_OWNER,), mark=controlled(*_OWNER), form=_Job, asked=_asked)
