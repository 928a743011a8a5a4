"""The phase of a gang without a PodGroup, whose phase no object records."""

from __future__ import annotations

from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.states import PLACED
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import Phase

UNREAD = (Reason.POD_GROUP_UNREADABLE, Reason.OWNER_UNKNOWN)
"""Reasons of members whose group the operator knows less about than a caller who may read more."""


def phase_of(gang: Gang, assessment: Assessment) -> Phase:
    """The phase of a gang without a PodGroup, by what the API server shows of its members.

    A copy of a cluster knows neither since when such a gang lacks a member nor what is being bound. So with some of
    what it needs bound it is Degraded at once, and Queued until then.
    """
    live, phase = gang.live(), gang.record.phase
    if not live:
        return phase
    bound = sum(bool(pod.node) for pod in live)
    if phase in PLACED:
        return phase if bound >= assessment.minimum else Phase.DEGRADED
    if not assessment.facts.complete or unread_member(gang) is not None:
        return Phase.PENDING
    return Phase.DEGRADED if bound else Phase.QUEUED


def unread_member(gang: Gang) -> Pod | None:
    """A member whose condition says that the operator may not read what declares the gang; None if there is none."""
    return next((pod for pod in gang.live() if pod.condition_reason in UNREAD), None)
