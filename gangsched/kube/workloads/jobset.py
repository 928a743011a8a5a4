"""JobSets: the pods of all Jobs of a JobSet are one gang, whose roles are the replicated Jobs."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from gangsched.config.workloads import Row
from gangsched.kube import wire
from gangsched.kube.workloads.kind import Asked, Kind, Mark, Marks, has_ended

_NAME = "jobset.sigs.k8s.io/jobset-name"
_UID = "jobset.sigs.k8s.io/jobset-uid"
_ROLE = "jobset.sigs.k8s.io/replicatedjob-name"


class _JobSpec(Struct, gc=False):
    parallelism: int | None = None
    completions: int | None = None


class _Template(Struct, gc=False):
    spec: _JobSpec | None = None


class _ReplicatedJob(Struct, gc=False):
    name: str = ""
    replicas: int | None = None
    template: _Template | None = None


class _Spec(Struct, gc=False, rename="camel"):
    replicated_jobs: list[_ReplicatedJob] | None = None
    suspend: bool | None = None


class _Status(Struct, gc=False):
    conditions: list[wire.Condition] | None = None


class _JobSet(Struct, gc=False):
    metadata: wire.Meta
    spec: _Spec | None = None
    status: _Status | None = None


def _mark(marks: Marks) -> Mark | None:
    name = marks.labels.get(_NAME, "")
    return Mark(name, marks.labels.get(_UID, ""), role=marks.labels.get(_ROLE, "")) if name else None


def _asked(found: _JobSet) -> Asked:
    spec = found.spec or _Spec()
    roles: Counter[str] = Counter()
    for each in spec.replicated_jobs or ():
        roles[each.name] += _pods(each)
    size = roles.total()
    return Asked(size=size, pods=size, roles=roles, idle=_idle(found, spec, size))


def _pods(job: _ReplicatedJob) -> int:
    spec = (job.template or _Template()).spec or _JobSpec()
    parallel = 1 if spec.parallelism is None else spec.parallelism
    return (1 if job.replicas is None else job.replicas) * (
        parallel if spec.completions is None else min(parallel, spec.completions)
    )


def _idle(found: _JobSet, spec: _Spec, size: int) -> str:
    if found.status is not None and has_ended(found.status.conditions, "Completed", "Failed"):
        return "has ended"
    if spec.suspend:
        return "is suspended"
    return "" if size else "has no pods"


def kind(row: Row) -> Kind[_JobSet]:
    return Kind(row=row, controllers=(("batch", "Job"),), mark=_mark, form=_JobSet, asked=_asked)
