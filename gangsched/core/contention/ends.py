"""When what runs will have ended: by a limit, by what it declares, or never by itself.

A limit is certain: the kubelet or the Job controller ends a pod at its `activeDeadlineSeconds`, and the API server
removes one that terminates. A declared run time is a promise: it is counted on, and whoever overstays it gives way. A
service runs until somebody scales it down.
"""

from __future__ import annotations

from typing import NamedTuple

from gangsched.core.cluster.claims import Claim
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


def end_of(claim: Claim, gang: Gang | None, foreign: Foreign, now: float) -> End:
    """When the pod of the claim will have left its node; `gang` is the one that it belongs to."""
    pod = claim.pod
    if pod.terminating:
        # One that should be gone for long stays for as long as nobody can tell.
        at = UNKNOWN if not pod.gone_by or pod.gone_by + OVERDUE_S <= now else max(now, pod.gone_by)
        return End(at, at)
    began = pod.lifetime.start or pod.bound_at or now
    limits = [began + pod.lifetime.deadline_s] if pod.lifetime.deadline_s is not None else []
    job = job_of(pod, foreign)
    limits += [job.ends_by] if job is not None and job.ends_by else []
    certain = min(limits) + pod.lifetime.grace_s if limits else UNKNOWN
    declared = _declared(pod, gang, pod.bound_at or now)
    if certain == declared == UNKNOWN and pod.owner is not None and pod.owner.kind in _SERVICES:
        return End(ENDLESS, ENDLESS)
    return End(certain, min(certain, declared))


def _declared(pod: Pod, gang: Gang | None, bound_at: float) -> float:
    """When the pod will have ended by what it or its group declares, its grace period included."""
    if pod.lifetime.expected_s is not None:
        return bound_at + pod.lifetime.expected_s + pod.lifetime.grace_s
    group = gang.observed.group if gang is not None else None
    expected_s = group.spec.expected_s if group is not None and group.spec is not None else None
    if gang is None or expected_s is None:
        return UNKNOWN
    return (gang.record.scheduled_at or bound_at) + expected_s + pod.lifetime.grace_s
