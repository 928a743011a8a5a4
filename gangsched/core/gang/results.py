"""What the API server has answered to effects: each answer is noted in the gang that it is about."""

from __future__ import annotations

from msgspec.structs import replace

from gangsched.core.cluster.avoidance import Avoidance, Tries
from gangsched.core.cluster.cache import Cluster
from gangsched.core.gang import bindings, clock, making, rollback
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.membership import Members
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import (
    Answer,
    BindRefused,
    EvictionRefused,
    GroupNotMade,
    OwnerSeen,
    PodBound,
    PodEvicted,
    Refused,
    StatusRefused,
    StatusWritten,
)

STALE_RETRY_S = 0.25
"""A status write that lost a race is tried again once the newer object has had time to arrive."""
FAILED_RETRY_S = 5.0
"""A status write that failed for another reason is tried again after this."""
MOST_REPLANNED = 10
"""A gang all of whose bindings were refused is planned anew at once, on other nodes, so often; then it backs off."""


class Results:
    """Takes answers for all gangs."""

    def __init__(self, cluster: Cluster, members: Members, avoidance: Avoidance, policy: Policy) -> None:
        self._cluster = cluster
        self._members = members
        self._avoidance = avoidance
        self._policy = policy

    def note(self, event: Answer, now: float) -> None:
        """The server has answered."""
        match event:
            case PodBound() | BindRefused():
                self._bound(event, now)
            case StatusWritten() | StatusRefused():
                self._written(event, now)
            case PodEvicted() | EvictionRefused() | OwnerSeen():
                self._undo_answered(event, now)
            case GroupNotMade(key, message):
                gang = self._members.gangs.get(key)
                if gang is not None:
                    making.note_refused(gang, message)
                    self._members.dirty.note(key)

    def _written(self, event: StatusWritten | StatusRefused, now: float) -> None:
        gang = self._members.gangs.get(event.key)
        if gang is None or gang.group is None:
            return
        if isinstance(event, StatusRefused):
            self._members.dirty.note(event.key)
            gang.told.refused(write_again_at=now + (STALE_RETRY_S if event.stale else FAILED_RETRY_S))
            return
        if gang.resource_version == gang.told.version:
            # If not, the watch was faster, and may have shown what somebody else has written since: it shows that once.
            gang.now_at(event.resource_version)
        if event.reserved and gang.told.awaited is not None:
            self._members.dirty.note(event.key)
            gang.durability.written(gang.told.take_awaited() & gang.bindings.keys())

    def _undo_answered(self, event: PodEvicted | EvictionRefused | OwnerSeen, now: float) -> None:
        if isinstance(event, OwnerSeen):
            gangs = self._members.gangs.values()
            asking = [gang for gang in gangs if gang.undo is not None and event.uid in gang.undo.asked]
        else:
            gang = self._members.gang_of(event.uid)
            asking = [gang] if gang is not None else []
        for gang in asking:
            rollback.note_answer(gang, event, now)
            self._members.dirty.note(gang.key)

    def _bound(self, event: PodBound | BindRefused, now: float) -> None:
        if isinstance(event, PodBound):
            # Also of a pod whose gang is forgotten already, as a bound one without a group is.
            self._avoidance.accepted(event.uid, event.node)
        gang = self._members.gang_of(event.uid)
        if gang is None:
            return
        self._members.dirty.note(gang.key)
        if isinstance(event, PodBound):
            bindings.note_bound(gang, self._cluster, event.uid, event.node)
            pod = self._cluster.pods[event.uid]
            if event.uid not in gang.bindings and not pod.node:
                # It was sent in an earlier term, and is known before the watch shows it.
                self._members.pod_seen(replace(pod, node=event.node, bound_at=now))
            return
        if event.why in (Refused.GONE, Refused.CONFLICT):
            binding = gang.bindings.get(event.uid)
            if binding is not None and binding.node == event.node:
                bindings.release(gang, self._cluster, event.uid)
                self._members.set_aside(event.uid)
            return
        tries = Tries(0, 0)
        if event.why is Refused.FORBIDDEN:
            tries = self._avoidance.refused(gang.key, event.uid, event.node, event.message)
        if bindings.note_refused(gang, self._cluster, event, now, tries):
            self._all_refused(gang, event, now)

    def _all_refused(self, gang: Gang, event: BindRefused, now: float) -> None:
        """No binding of the gang stands: it is planned anew on other nodes at once, if the fault may be the node's.

        One member that was refused wherever it was tried before lets the gang back off, and so does the lack of any
        other node, which the pass finds out.
        """
        bindings.release_all(gang, self._cluster)
        gang.attempt.heard(event.message)
        gang.attempt.forget_members()
        may_be_the_node = event.why is Refused.FORBIDDEN and event.uid not in gang.doubted
        if may_be_the_node and gang.attempt.replanned < MOST_REPLANNED:
            gang.attempt.plan_elsewhere()
            return
        gang.attempt.begin_count()
        gang.attempt.wait()
        clock.back_off(gang, now=now, policy=self._policy)
