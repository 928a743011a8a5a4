"""How long what runs will last, by the last runs of the same owner: the mean of the last two, or of the only one.

What a CronJob or a workflow repeats takes about as long each time. The mean of the last two run times predicts better
than longer memories (Tsafrir, Etsion, Feitelson 2007, "Backfilling using system-generated predictions rather than user
runtime estimates"). Runs are those of objects that still exist: PodGroups that have succeeded, from when they were
scheduled, and complete Jobs, from their start, unless a PodGroup of theirs tells better. A Job that is a part of
something larger, such as a JobSet, is no run. Nothing else is kept.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

from gangsched.core.contention.ends import began_at
from gangsched.core.declarations.automatic import job_of
from gangsched.core.declarations.foreign import Foreign
from gangsched.core.gang.gang import Gang
from gangsched.core.membership.members import Members
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import ForeignGroup, Group
from gangsched.core.objects.record import Phase
from gangsched.core.objects.workload import SERIES_OF

_LAST = 2
_MOST_LEVELS = 8
"""Of so many owners, one above the other, the last one is the owner of a run."""
_REPEATS = "CronJob"
"""What such an object creates are runs of it, whoever owns it."""
_READ = 24
"""Cost, in units of the budget, of reading an object and of sorting a run."""


class _Run(NamedTuple):
    """A run that has succeeded, in epoch seconds. That `of_a_job` has the time in it for which its pods waited."""

    finished: float
    began: float
    of_a_job: bool


class FormerRuns:
    """The last runs by the UID of their owner, as they were when `read` came to its end."""

    def __init__(self, members: Members) -> None:
        self._members = members
        self._above: dict[str, str] = {}
        self._runs: dict[str, list[_Run]] = {}

    def read(self) -> Generator[int, None, None]:
        """Find out how long all runs took; yields what each object costs, in units of the budget."""
        foreign, of_jobs = self._members.foreign, dict[str, _Run]()
        for group in foreign.workloads():
            facts = group.workload
            if facts is not None and facts.owner and facts.title != _REPEATS:
                self._above[group.uid] = facts.owner
                if facts.began and facts.succeeded_at and not _is_part(group, foreign):
                    of_jobs[group.uid] = _Run(facts.succeeded_at, facts.began, of_a_job=True)
            yield _READ
        for gang in [*self._members.gangs.values()]:
            podgroup = gang.observed.group
            if podgroup is not None and podgroup.owner and (run := _run_of(podgroup)) is not None:
                of_jobs.pop(podgroup.owner, None)
                self._note(podgroup.owner, run)
            yield _READ
        for uid, run in of_jobs.items():
            self._note(uid, run)
            yield _READ

    def _note(self, uid: str, run: _Run) -> None:
        """Count a run of the object with this UID, or of the one above it, if it is one of the last."""
        if run.began < run.finished:
            runs = self._runs.setdefault(self._owner(uid), [])
            runs.append(run)
            runs.sort()
            del runs[:-_LAST]

    def end_of(self, pod: Pod, gang: Gang | None, now: float) -> float | None:
        """When the pod will have left its node if it takes as long as the last runs of its owner, in epoch seconds.

        None if these are not known. One that waits begins now.
        """
        if not self._runs:
            return None
        group = gang.observed.group if gang is not None else None
        owner = group.owner if group is not None else ""
        if not owner and pod.owner is not None:
            owner = pod.owner.uid
        runs = self._runs.get(self._owner(owner)) if owner else None
        if not runs:
            return None
        job = job_of(pod, self._members.foreign) if pod.node and all(run.of_a_job for run in runs) else None
        began = job.began if job is not None and job.began else began_at(pod, gang, now)
        return began + sum(run.finished - run.began for run in runs) / len(runs)

    def _owner(self, uid: str) -> str:
        """The UID of the topmost known owner."""
        for _ in range(_MOST_LEVELS):
            above = self._above.get(uid)
            if above is None:
                break
            uid = above
        return uid


def _is_part(job: ForeignGroup, foreign: Foreign) -> bool:
    """Whether the Job is one of several of another object, which ends with all of them."""
    return any(dialect != job.dialect for dialect, _ in foreign.dependents(SERIES_OF, job.key))


def _run_of(group: Group) -> _Run | None:
    """The group's run, from when it was scheduled; None if it has not succeeded."""
    status = group.status
    if status.phase is not Phase.SUCCEEDED or not status.scheduled_time:
        return None
    return _Run(status.finished_at, status.scheduled_time, of_a_job=False)
