"""JobSets: the pods of all Jobs of a JobSet are one gang, whose roles are the replicated Jobs.

With `startupPolicy` InOrder, or a dependency on Ready, a Job is created once others are ready: places are held for its
pods. One that is created once others are complete is no part of the gang before that, as they are none after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Raw, Struct

from gangsched.config.workloads import Row
from gangsched.core.objects.workload import Series
from gangsched.kube import wire
from gangsched.kube.workloads.kind import Asked, Kind, Mark, Marks, has_ended
from gangsched.kube.workloads.template import NOTHING

_NAME = "jobset.sigs.k8s.io/jobset-name"
_UID = "jobset.sigs.k8s.io/jobset-uid"
_ROLE = "jobset.sigs.k8s.io/replicatedjob-name"
_COMPLETE = "Complete"


class _JobSpec(Struct, gc=False):
    parallelism: int | None = None
    completions: int | None = None
    template: Raw = NOTHING

    @property
    def pods(self) -> int:
        """How many pods it has at a time."""
        parallel = 1 if self.parallelism is None else self.parallelism
        return parallel if self.completions is None else min(parallel, self.completions)


class _Template(Struct, gc=False):
    spec: _JobSpec | None = None


class _Dependency(Struct, gc=False):
    name: str = ""
    status: str = ""


class _ReplicatedJob(Struct, gc=False, rename="camel"):
    name: str = ""
    replicas: int | None = None
    template: _Template | None = None
    depends_on: list[_Dependency] | None = None

    @property
    def jobs(self) -> int:
        """How many Jobs it has."""
        return 1 if self.replicas is None else self.replicas

    @property
    def job(self) -> _JobSpec:
        """The spec of each of them."""
        return (self.template or _Template()).spec or _JobSpec()


class _StartupPolicy(Struct, gc=False, rename="camel"):
    startup_policy_order: str = ""


class _Spec(Struct, gc=False, rename="camel"):
    replicated_jobs: list[_ReplicatedJob] | None = None
    startup_policy: _StartupPolicy | None = None
    suspend: bool | None = None


class _Jobs(Struct, gc=False):
    """The state of one replicated Job's Jobs."""

    name: str = ""
    succeeded: int = 0


class _Status(Struct, gc=False, rename="camel"):
    conditions: list[wire.Condition] | None = None
    replicated_jobs_status: list[_Jobs] | None = None


class _JobSet(Struct, gc=False):
    metadata: wire.Meta
    spec: _Spec | None = None
    status: _Status | None = None


def _mark(marks: Marks) -> Mark | None:
    name = marks.labels.get(_NAME, "")
    return Mark(name, marks.labels.get(_UID, ""), role=marks.labels.get(_ROLE, "")) if name else None


def _asked(found: _JobSet) -> Asked:
    spec = found.spec or _Spec()
    jobs = spec.replicated_jobs or []
    done = _done(found, jobs)
    roles: Counter[str] = Counter()
    late: dict[str, Raw] = {}
    in_order = spec.startup_policy is not None and spec.startup_policy.startup_policy_order == "InOrder"
    not_yet: set[str] = set()
    for number, each in enumerate(jobs):
        awaited = each.depends_on or ()
        to_end = {other.name for other in awaited if other.status == _COMPLETE}
        if to_end - done or not_yet & {other.name for other in awaited}:
            not_yet.add(each.name)
        roles[each.name] += 0 if each.name in done | not_yet else each.jobs * each.job.pods
        if (in_order and number) or len(to_end) < len(awaited):
            late[each.name] = each.job.template
    size = roles.total()
    asked = Asked(
        size=size,
        pods=size,
        roles=roles,
        idle=_idle(found, spec, sum(each.jobs * each.job.pods for each in jobs)),
        late=late,
        remedy="create the JobSet again without startupPolicy InOrder and dependsOn" if late else "",
    )
    series = tuple(_series(found.metadata.name or "", each) for each in jobs if roles[each.name])
    if all(each.completions <= each.pods for each in series):
        return asked
    completions = sum(len(each.jobs) * each.completions for each in series)
    complete = found.status is not None and has_ended(found.status.conditions, "Completed")
    return asked._replace(completions=completions, succeeded=completions if complete else 0, series=series)


def _series(name: str, replicated: _ReplicatedJob) -> Series:
    """The Jobs of a replicated Job, by the names that the JobSet of this name gives them."""
    job = replicated.job
    return Series(
        role=replicated.name,
        jobs=tuple(f"{name}-{replicated.name}-{index}" for index in range(replicated.jobs)),
        pods=job.pods,
        completions=job.pods if job.completions is None else job.completions,
    )


def _done(found: _JobSet, jobs: Sequence[_ReplicatedJob]) -> set[str]:
    """The replicated Jobs that others wait for to end, and that have ended, by name."""
    number = {each.name: each.jobs for each in jobs}
    awaited = {other.name for each in jobs for other in each.depends_on or () if other.status == _COMPLETE}
    stands = (found.status.replicated_jobs_status if found.status is not None else None) or ()
    return {each.name for each in stands if each.name in awaited and each.succeeded >= number.get(each.name, 0)}


def _idle(found: _JobSet, spec: _Spec, size: int) -> str:
    if found.status is not None and has_ended(found.status.conditions, "Completed", "Failed"):
        return "has ended"
    if spec.suspend:
        return "is suspended"
    return "" if size else "has no pods"


def kind(row: Row) -> Kind[_JobSet]:
    return Kind(row=row, controllers=(("batch", "Job"),), mark=_mark, form=_JobSet, asked=_asked)
