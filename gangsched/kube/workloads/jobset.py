"""JobSets: the pods of all Jobs of a JobSet are one gang, whose roles are the replicated Jobs.

With `startupPolicy` InOrder, or a dependency on Ready, a Job is created once others are ready, and placeholders are
reserved for its pods. A Job that is created once others are complete joins the gang only then, and those leave it.

With an exclusive topology, each Job has a domain of its own. JobSet's webhook gives the first pod of a Job, its leader,
affinity to the pods of its Job and anti-affinity to those of others. It refuses the other pods until the leader has a
node; then they get the leader's domain as a selector. Each such Job is therefore a role, and placeholders like its
leader are reserved for the other pods. With the node-selector strategy, these pods need no special treatment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

from msgspec import Raw, Struct

from gangsched.config.workload_registry import WorkloadRow
from gangsched.core.objects.workload import COMPLETED, ENDED, Series
from gangsched.kube import wire
from gangsched.kube.dialects.dialect import quoted
from gangsched.kube.dialects.dialect_kind import MOST_ROLES
from gangsched.kube.workloads.template import NOTHING
from gangsched.kube.workloads.workload_fields import means
from gangsched.kube.workloads.workload_kind import Desired, Kind, Mark, Marks, Object, has_ended

_NAME = "jobset.sigs.k8s.io/jobset-name"
_UID = "jobset.sigs.k8s.io/jobset-uid"
_ROLE = "jobset.sigs.k8s.io/replicatedjob-name"
_INDEX = "jobset.sigs.k8s.io/job-index"
_EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
_BY_SELECTOR = "alpha.jobset.sigs.k8s.io/node-selector"
_COMPLETE = "Complete"
_AT_ONCE = "without startupPolicy InOrder and dependsOn"


class _JobSpec(Struct, gc=False):
    parallelism: Annotated[int | None, means("the number of pods of each Job at a time")] = None
    completions: Annotated[int | None, means("how many pods of each Job must succeed: what it still owes")] = None
    template: Annotated[Raw, means("the shape of pods that are created later")] = NOTHING

    @property
    def pods(self) -> int:
        """Number of pods at a time."""
        parallel = 1 if self.parallelism is None else self.parallelism
        return parallel if self.completions is None else min(parallel, self.completions)


class _JobMeta(Struct, gc=False):
    annotations: Annotated[wire.Strings | None, means("the exclusive topology of these Jobs")] = None


class _Template(Struct, gc=False):
    metadata: _JobMeta | None = None
    spec: _JobSpec | None = None


class _Dependency(Struct, gc=False):
    name: Annotated[str, means("the replicated Job that must come first")] = ""
    status: Annotated[
        str, means("`Ready`: places are held for these Jobs; `Complete`: they join the gang when the others leave it")
    ] = ""


class _ReplicatedJob(Struct, gc=False, rename="camel"):
    name: Annotated[str, means("the role of the pods")] = ""
    replicas: Annotated[int | None, means("the number of Jobs")] = None
    template: _Template | None = None
    depends_on: list[_Dependency] | None = None

    @property
    def jobs(self) -> int:
        """Number of Jobs."""
        return 1 if self.replicas is None else self.replicas

    @property
    def job(self) -> _JobSpec:
        """The spec of each Job."""
        return (self.template or _Template()).spec or _JobSpec()

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations of each Job."""
        meta = (self.template or _Template()).metadata
        return (meta.annotations if meta is not None else None) or {}


class _StartupPolicy(Struct, gc=False, rename="camel"):
    startup_policy_order: Annotated[str, means("with `InOrder` places are held for the later Jobs")] = ""


class _JobSetSpec(Struct, gc=False, rename="camel"):
    replicated_jobs: list[_ReplicatedJob] | None = None
    startup_policy: _StartupPolicy | None = None
    suspend: Annotated[bool | None, means("no pods are wanted")] = None


MOST_JOBS = 10_000
"""Maximum number of Jobs of a JobSet. Its replicas may be any number, and the name of each Job is kept."""


class _Jobs(Struct, gc=False):
    """The state of one replicated Job's Jobs."""

    name: Annotated[str, means("the replicated Job")] = ""
    succeeded: Annotated[int, means("whether the Jobs are complete on which others depend")] = 0


class _JobSetStatus(Struct, gc=False, rename="camel"):
    conditions: Annotated[
        list[wire.ConditionState] | None,
        means("`Completed` (`successPolicy`) and `Failed` (`failurePolicy`): the JobSet has ended"),
    ] = None
    replicated_jobs_status: list[_Jobs] | None = None


class _JobSet(Object, gc=False):
    spec: _JobSetSpec | None = None
    status: _JobSetStatus | None = None


def _mark(marks: Marks) -> Mark | None:
    name, role = marks.labels.get(_NAME, ""), marks.labels.get(_ROLE, "")
    if _is_exclusive(marks.annotations):
        role = _role_of(role, marks.labels.get(_INDEX, ""))
    return Mark(name, marks.labels.get(_UID, ""), role=role) if name else None


def _is_exclusive(annotations: Mapping[str, str]) -> bool:
    """Whether pods with these annotations must wait for a leader."""
    return _EXCLUSIVE in annotations and _BY_SELECTOR not in annotations


def _role_of(replicated_job: str, index: int | str) -> str:
    """The role of a single Job. The dot keeps it apart from the names of replicated Jobs, which contain none."""
    return f"{replicated_job}.{index}"


def _desired(jobset: _JobSet) -> Desired:
    spec = jobset.spec or _JobSetSpec()
    jobs = spec.replicated_jobs or []
    if sum(job.jobs for job in jobs) > MOST_JOBS:
        raise ValueError(
            f"it has more than {MOST_JOBS} Jobs, whose names are not kept: use fewer, with more pods each."
        )
    done = _done(jobset, jobs)
    roles: Counter[str] = Counter()
    late: dict[str, Raw | None] = {}
    remedies: list[str] = []
    series: list[Series] = []
    name = jobset.metadata.name or ""
    leaders = 0
    in_order = spec.startup_policy is not None and spec.startup_policy.startup_policy_order == "InOrder"
    not_yet: set[str] = set()
    for number, replicated in enumerate(jobs):
        awaited = replicated.depends_on or ()
        to_end = {other.name for other in awaited if other.status == _COMPLETE}
        if to_end - done or not_yet & {other.name for other in awaited}:
            not_yet.add(replicated.name)
        present = 0 if replicated.name in done | not_yet else replicated.jobs
        waits = (in_order and number) or len(to_end) < len(awaited)
        if _is_exclusive({**(jobset.metadata.annotations or {}), **replicated.annotations}):
            if waits:
                raise ValueError(
                    f"the Jobs of {quoted(replicated.name)} have an exclusive topology and are created only once "
                    "others are ready, so that no places can be reserved for them: create the JobSet again "
                    f"{_AT_ONCE}, or without the annotation {_EXCLUSIVE}."
                )
            if replicated.job.pods <= 1:
                leaders += present * replicated.job.pods
                series += _series(name, replicated, {"": range(present)})
                continue
            if len(roles) + present > MOST_ROLES:
                raise ValueError(
                    f"a gang has at most {MOST_ROLES} roles, and each Job with an exclusive topology is one: use the "
                    f"annotation {_BY_SELECTOR} too, or fewer Jobs."
                )
            late |= dict.fromkeys(of_each := [_role_of(replicated.name, index) for index in range(present)])
            roles.update(dict.fromkeys(of_each, replicated.job.pods))
            remedies.append(f"use the annotation {_BY_SELECTOR} too")
            series += _series(name, replicated, {role: [index] for index, role in enumerate(of_each)})
            continue
        roles[replicated.name] += present * replicated.job.pods
        if waits:
            late[replicated.name] = replicated.job.template
            remedies.append(f"create the JobSet again {_AT_ONCE}")
        series += _series(name, replicated, {replicated.name: range(present)})
    size = roles.total() + leaders
    desired = Desired(
        size=size,
        pods=size,
        roles=roles,
        idle=_idle(jobset, spec, sum(job.jobs * job.job.pods for job in jobs)),
        late=late,
        remedy=remedies[0] if late else "",
        not_yet=tuple(sorted(not_yet)),
    )
    completions = sum(len(part.jobs) * part.completions for part in series)
    complete = jobset.status is not None and has_ended(jobset.status.conditions, "Completed")
    return desired._replace(completions=completions, succeeded=completions if complete else 0, series=tuple(series))


def _series(name: str, replicated: _ReplicatedJob, indices: Mapping[str, Sequence[int]]) -> Iterator[Series]:
    """The Jobs of a replicated Job, with the names that the JobSet `name` gives them; `indices` are theirs, by role."""
    job = replicated.job
    for role, role_indices in indices.items():
        if role_indices:
            yield Series(
                role=role,
                jobs=tuple(f"{name}-{replicated.name}-{index}" for index in role_indices),
                pods=job.pods,
                completions=job.pods if job.completions is None else job.completions,
            )


def _done(jobset: _JobSet, jobs: Sequence[_ReplicatedJob]) -> set[str]:
    """The names of the replicated Jobs whose completion others depend on and that are complete."""
    number = {job.name: job.jobs for job in jobs}
    awaited = {other.name for job in jobs for other in job.depends_on or () if other.status == _COMPLETE}
    stands = (jobset.status.replicated_jobs_status if jobset.status is not None else None) or ()
    return {
        status.name for status in stands if status.name in awaited and status.succeeded >= number.get(status.name, 0)
    }


def _idle(jobset: _JobSet, spec: _JobSetSpec, size: int) -> str:
    status = jobset.status or _JobSetStatus()
    if has_ended(status.conditions, "Completed"):
        return COMPLETED
    if has_ended(status.conditions, "Failed"):
        return ENDED
    if spec.suspend:
        return "is suspended"
    return "" if size else "has no pods"


def kind(row: WorkloadRow) -> Kind[_JobSet]:
    return Kind(
        row=row,
        controllers=(("batch", "Job"),),
        mark=_mark,
        form=_JobSet,
        desired=_desired,
        annotations={
            _EXCLUSIVE: "places are held for the pods of each Job that wait for its first one",
            _BY_SELECTOR: "all pods are created at once, and none waits for another",
        },
    )
