"""How long what runs will last, by the last runs of the same owner: the mean of two that have succeeded.

What a CronJob or a workflow repeats takes about as long each time. The mean of the last two run times predicts better
than longer memories (Tsafrir, Etsion, Feitelson 2007, "Backfilling using system-generated predictions rather than user
runtime estimates"). Runs are those of objects that still exist: PodGroups that have succeeded, from when they were
scheduled, and complete Jobs, from their start, unless a PodGroup of theirs tells better. Nothing else is kept.
"""

from __future__ import annotations

from collections.abc import Generator

from gangsched.core.gang.gang import Gang
from gangsched.core.membership.members import Members
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import Group
from gangsched.core.objects.record import Phase

_LAST = 2
_MOST_LEVELS = 8
"""Of so many owners, one above the other, the last one is the owner of a run."""
_RUN = 8
"""Cost, in units of the budget, of reading an object."""
_Run = tuple[float, float]


class History:
    """The last runs by the UID of their owner, as they were when `read` came to its end."""

    def __init__(self) -> None:
        self._above: dict[str, str] = {}
        self._runs: dict[str, list[_Run]] = {}

    def read(self, members: Members) -> Generator[int, None, None]:
        """Find out how long all runs took; yields what each object costs, in units of the budget."""
        of_jobs: dict[str, _Run] = {}
        for uid, facts in members.foreign.workloads():
            if facts.owner:
                self._above[uid] = facts.owner
                if facts.ran is not None:
                    of_jobs[uid] = facts.ran
            yield _RUN
        of_groups: list[tuple[str, _Run]] = []
        for gang in [*members.gangs.values()]:
            group = gang.observed.group
            if group is not None and group.owner and (ran := _ran(group)) is not None:
                of_groups.append((group.owner, ran))
                of_jobs.pop(group.owner, None)
            yield _RUN
        for uid, ran in [*of_jobs.items(), *of_groups]:
            self._runs.setdefault(self._owner(uid), []).append(ran)
        for runs in self._runs.values():
            runs.sort(key=lambda run: run[1])
            del runs[:-_LAST]

    def lasts_s(self, pod: Pod, gang: Gang | None) -> float | None:
        """How many seconds the pod will be on its node if it takes as long as the last runs of its owner."""
        group = gang.observed.group if gang is not None else None
        owner = group.owner if group is not None else ""
        if not owner and pod.owner is not None:
            owner = pod.owner.uid
        runs = self._runs.get(self._owner(owner)) if owner else None
        return sum(finished - began for began, finished in runs) / len(runs) if runs else None

    def _owner(self, uid: str) -> str:
        """The one above all others."""
        for _ in range(_MOST_LEVELS):
            above = self._above.get(uid)
            if above is None:
                break
            uid = above
        return uid


def _ran(group: Group) -> _Run | None:
    """From when the group was scheduled until it had succeeded; None if it has not."""
    status = group.status
    if status.record is None or status.phase is not Phase.SUCCEEDED or not status.record.scheduled_at:
        return None
    return status.record.scheduled_at, status.finished_at
