"""When what runs will have ended: by a limit, by what it declares, or never by itself.

A limit is certain: the kubelet or the Job controller ends a pod at its `activeDeadlineSeconds`, and the API server
removes one that terminates. A declared run time is a promise: it is counted on, and whoever overstays it is evicted
where others wait for nothing else (`core.contention.overdue`). A service runs until somebody scales it down.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from gangsched.core.contention.pool import OVERDUE_S
from gangsched.core.declarations.automatic import job_of
from gangsched.core.declarations.foreign import Foreign
from gangsched.core.gang.gang import Gang
from gangsched.core.objects.pod import Pod

UNKNOWN, ENDLESS = 1e15, 2e15
"""Ends that nothing tells, in the order in which they are waited for: services last."""
_SERVICES = frozenset({"ReplicaSet", "StatefulSet", "DaemonSet", "Node", "LeaderWorkerSet"})
"""Kinds of controllers whose pods do not end by themselves; a mirror pod belongs to its node."""


class End(NamedTuple):
    """When something will have left its node, in epoch seconds; UNKNOWN or ENDLESS if nothing tells. `certain` is by
    limits alone, `promised` also by what is declared.
    """

    certain: float
    promised: float


LIMITED, DECLARED, OF_FORMER_RUNS = range(3)
"""How much doubt there is about an expected end: only a limit counts, a promise, or former runs."""


class Expected(NamedTuple):
    """When something is expected to have left its node, in epoch seconds as in `End`, and how much `doubt` there is."""

    at: float
    doubt: int


def end_of(pod: Pod, gang: Gang | None, foreign: Foreign, now: float, *, ours: bool = True) -> End:
    """When the pod, which is on its node or may be from now on, will have left it; `gang` is the one it belongs to.

    Only one of `ours` is taken at its word, because no other can be evicted when it is overdue.
    """
    if pod.terminating:
        at = _at(pod.gone_by, now) if pod.gone_by else UNKNOWN
        return End(at, at)
    limits = _limits(pod, foreign, now)
    certain = _at(min(limits) + pod.lifetime.grace_s, now) if limits else UNKNOWN
    declared = _declared(pod, gang, now) if ours else UNKNOWN
    if certain == declared == UNKNOWN and pod.owner is not None and pod.owner.kind in _SERVICES:
        return End(ENDLESS, ENDLESS)
    return End(certain, min(certain, declared))


def is_overdue(pod: Pod, foreign: Foreign) -> bool:
    """Whether the pod, whose end nothing tells, should have ended by itself already."""
    return pod.terminating or bool(_limits(pod, foreign, 0.0))


def expected_end(pod: Pod, end: End, as_before: float | None, now: float) -> Expected:
    """When the pod, whose `end` is known so far, is expected to have left.

    What it has declared counts first, then the end `as_before`, if it takes as long as its owner's last runs. Who has
    nothing but a limit may end at any time.
    """
    if end.promised < end.certain:
        return Expected(end.promised, DECLARED)
    if as_before is not None and not pod.terminating and end.certain <= UNKNOWN:
        at = _at(as_before, now)
        if at < UNKNOWN:
            return Expected(min(at, end.certain), OF_FORMER_RUNS)
    return Expected(now if end.certain < UNKNOWN else end.certain, LIMITED)


def last_end(pods: Iterable[Pod], gang: Gang, foreign: Foreign, now: float, *, by_promises: bool) -> float:
    """When all of these members will have ended that are bound now, by their limits alone or also `by_promises`."""
    ends = (end_of(pod, gang, foreign, now) for pod in pods)
    return max((end.promised if by_promises else end.certain for end in ends), default=now)


def _limits(pod: Pod, foreign: Foreign, now: float) -> list[float]:
    began = pod.lifetime.start or pod.bound_at or now
    limits = [began + pod.lifetime.deadline_s] if pod.lifetime.deadline_s is not None else []
    job = job_of(pod, foreign)
    return [*limits, job.ends_by] if job is not None and job.ends_by else limits


def _at(end: float, now: float) -> float:
    """One that should have ended long ago stays for as long as nobody can tell."""
    return UNKNOWN if end + OVERDUE_S <= now else max(now, end)


def _declared(pod: Pod, gang: Gang | None, now: float) -> float:
    """When the pod will have ended by what it or its group declares, its grace period included."""
    if pod.lifetime.expected_s is not None:
        return max(now, (pod.bound_at or now) + pod.lifetime.expected_s) + pod.lifetime.grace_s
    group = gang.observed.group if gang is not None else None
    expected_s = group.spec.expected_s if group is not None and group.spec is not None else None
    if gang is None or expected_s is None:
        return UNKNOWN
    return max(now, began_at(pod, gang, now) + expected_s) + pod.lifetime.grace_s


def began_at(pod: Pod, gang: Gang | None, now: float) -> float:
    """When the pod's run began, in epoch seconds: with its group; now if it has not."""
    return (gang.record.scheduled_at if gang is not None else 0.0) or pod.bound_at or now
