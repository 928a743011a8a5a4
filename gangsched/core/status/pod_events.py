"""One Event on each waiting member, after its condition has had the same reason for some seconds.

`kubectl describe pod` shows Events, but not the messages of conditions. There may be tens of thousands of waiting pods,
so gangs take turns: at most 20 such Events are emitted in a second, and those that would have to wait too long are
dropped.
"""

from __future__ import annotations

from collections.abc import Iterator

from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.clock import NEVER
from gangsched.core.gang.gang import Gang
from gangsched.core.objects.effects import Effect, EmitEvent
from gangsched.core.objects.pod import Pod, by_age
from gangsched.core.objects.reasons import Reason
from gangsched.core.status import member_conditions

ACTION = "Waiting"
"""The action of these Events, which sets them apart from Events about a gang."""
PER_S = 20
"""Maximum number of these Events per second."""
LONGEST_DELAY_S = 60.0
"""Longest time, in seconds, that a gang waits for its turn. A gang that would wait longer emits no Events on its
members: with so many waiting pods, users look at their groups."""


class RateLimit:
    """Decides when a gang may emit Events on its members: gangs take turns, in the order in which they ask."""

    def __init__(self) -> None:
        self._free_at = 0.0

    def allot(self, number: int, now: float) -> float:
        """The time at which `number` Events, at most PER_S, may be emitted; NEVER if that would be too late."""
        turn = max(self._free_at, now)
        if turn > now + LONGEST_DELAY_S:
            return NEVER
        self._free_at = turn + number / PER_S
        return turn


def emit(gang: Gang, assessment: Assessment, rate_limit: RateLimit, group_message: str, now: float) -> list[Effect]:
    """The Events that may be emitted now."""
    written = gang.written
    if now < written.pods_at:
        return []
    owed = list(_owed(gang, assessment, now))
    batch = owed[:PER_S]
    if batch and not written.has_slot:
        turn = rate_limit.allot(len(batch), now)
        if turn == NEVER:
            written.pod_events_emitted({pod.uid: reason for pod, reason in owed})
            owed = batch = []
        elif turn > now:
            written.pods_due(turn, has_slot=True)
            return []
    written.pod_events_emitted({pod.uid: reason for pod, reason in batch})
    written.pods_due(now if len(owed) > len(batch) else _next(gang, now))
    return [
        _event(pod, reason, member_conditions.message(gang, assessment, pod, reason, group_message))
        for pod, reason in batch
    ]


def _owed(gang: Gang, assessment: Assessment, now: float) -> Iterator[tuple[Pod, Reason]]:
    """Waiting members whose condition has had its reason for long enough, and that have no Event with it yet.

    Without a PodGroup the gang's own Event is on its oldest member, which gets no other.
    """
    written = gang.written
    oldest = None if gang.observed.group is not None else min(assessment.census.live, key=by_age, default=None)
    for pod, reason in member_conditions.conditions(gang, assessment):
        told = written.members.get(pod.uid)
        lasts = told is not None and told.reason == reason and now >= told.at + member_conditions.EVENT_AFTER_S
        if lasts and written.on_pods.get(pod.uid) != reason and pod is not oldest:
            yield pod, reason


def _next(gang: Gang, now: float) -> float:
    """When the next of the conditions written recently will have had its reason for long enough."""
    due = (told.at + member_conditions.EVENT_AFTER_S for told in gang.written.members.values())
    return min((at for at in due if at > now), default=NEVER)


def _event(pod: Pod, reason: Reason, note: str) -> EmitEvent:
    return EmitEvent("Pod", pod.namespace, pod.name, pod.uid, "Warning", reason, ACTION, note)
