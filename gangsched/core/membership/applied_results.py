"""Applies the results of API calls to the gangs concerned."""

from __future__ import annotations

from msgspec.structs import replace

from gangsched.core.cluster.avoidance import Avoidance, Tries
from gangsched.core.cluster.cache import Cluster
from gangsched.core.gang import bindings, clock, making, parts, prebinding, rollback
from gangsched.core.gang.gang import Gang
from gangsched.core.membership.members import Members
from gangsched.core.objects import results
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import BindRefused, PodBound, Refused

STALE_RETRY_S = 0.25
"""Delay in seconds before a status write that lost a race is retried; by then the newer object has usually arrived."""
FAILED_RETRY_S = 5.0
"""Delay in seconds before a status write that failed for another reason is retried."""
MOST_REPLANNED = 10
"""How often a gang all of whose bindings were refused is planned again at once on other nodes; then it backs off."""


class Results:
    """Applies results for all gangs."""

    def __init__(self, cluster: Cluster, members: Members, avoidance: Avoidance, policy: Policy) -> None:
        self._cluster = cluster
        self._members = members
        self._avoidance = avoidance
        self._policy = policy

    def note(self, event: results.Result, now: float) -> None:
        """Apply one result."""
        members = self._members
        match event:
            case PodBound() | BindRefused():
                self._bound(event, now)
            case results.StatusWritten() | results.StatusRefused():
                self._written(event, now)
            case results.PrebindRefused(uid):
                preparing = members.gang_of(uid)
                if preparing is not None:
                    prebinding.note_refused(preparing, event, now)
                    members.dirty.note(preparing.key)
            case results.GroupNotMade(key, message) if key in members.gangs:
                making.note_refused(members.gangs[key], message)
                members.dirty.note(key)
            case results.OwnerSeen(uid):
                for gang in members.gangs.values():
                    if rollback.asks_about(gang, uid):
                        rollback.note_result(gang, event, now)
                        members.dirty.note(gang.key)
            case results.PodEvicted(uid) | results.EvictionRefused(uid):
                evicted_of = members.gang_of(uid)
                if evicted_of is not None:
                    rollback.note_result(evicted_of, event, now)
                    members.dirty.note(evicted_of.key)

    def _written(self, event: results.StatusWritten | results.StatusRefused, now: float) -> None:
        gang = self._members.gangs.get(event.key)
        if gang is None or gang.observed.group is None:
            return
        if isinstance(event, results.StatusRefused):
            self._members.dirty.note(event.key)
            gang.written.refused(write_again_at=now + (STALE_RETRY_S if event.stale else FAILED_RETRY_S))
            return
        if gang.observed.resource_version == gang.written.version:
            # Otherwise the watch was faster, and may already have shown a later write by another client.
            gang.observed.now_at(event.resource_version)
        if event.reserved and gang.written.awaited is not None:
            self._members.dirty.note(event.key)
            # A member that is to be bound elsewhere meanwhile is not secured by what was written.
            held = {(uid, binding.node) for uid, binding in gang.operations.bindings.items()}
            gang.durability.written(uid for uid, _ in gang.written.take_awaited() & held)

    def _bound(self, event: PodBound | BindRefused, now: float) -> None:
        uid, node = event.uid, event.node
        if isinstance(event, PodBound):
            # Also for pods whose gang is forgotten, such as bound pods without a group.
            self._avoidance.accepted(uid, node)
        gang = self._members.gang_of(uid)
        if gang is None:
            return
        self._members.dirty.note(gang.key)
        if isinstance(event, PodBound):
            bindings.note_bound(gang, self._cluster, uid, node)
            pod = self._cluster.pods[uid]
            if uid not in gang.operations.bindings and not pod.node:
                # The binding was sent in an earlier term; note the pod as bound before the watch shows it.
                self._members.pod_seen(replace(pod, node=node, bound_at=now))
        elif event.why in (Refused.GONE, Refused.CONFLICT):
            if uid in gang.operations.bindings and gang.operations.bindings[uid].node == node:
                bindings.release(gang, self._cluster, uid)
                self._members.set_aside(uid)
        else:
            forbidden = event.why is Refused.FORBIDDEN
            tries = self._avoidance.refused(gang.key, uid, node, event.message) if forbidden else Tries(0, 0)
            part = gang.operations.part_of(uid)
            if bindings.note_refused(gang, self._cluster, event, now, tries):
                if part is None:
                    self._all_refused(gang, event, now)
                else:
                    note = f"The API server refused all of its bindings: {event.message}"
                    parts.give_up(gang, self._cluster, part, note, now=now, policy=self._policy)
            if self._one_too_many_may_arrive(node):
                # This reservation is only held again, and held ones yield to a binding that may still arrive.
                self._cluster.worsen(node)

    def _one_too_many_may_arrive(self, node: str) -> bool:
        """Whether a binding to the node that was withdrawn for lack of room has no result yet."""
        for uid in self._cluster.on_node.get(node, ()):
            gang = self._members.gang_of(uid)
            if gang is not None and uid in gang.operations.bindings and gang.operations.bindings[uid].withdrawn:
                return True
        return False

    def _all_refused(self, gang: Gang, event: BindRefused, now: float) -> None:
        """No binding of the gang stands: plan it again on other nodes at once, if the fault may be the node's.

        The gang backs off if one member has been refused wherever it was tried. It also backs off if there is no other
        node, which the scheduling cycle finds out.
        """
        bindings.release_all(gang, self._cluster)
        gang.attempt.heard(event.message)
        gang.attempt.forget_members()
        may_be_the_node = event.why is Refused.FORBIDDEN and event.uid not in gang.operations.doubted
        if may_be_the_node and gang.attempt.replanned < MOST_REPLANNED:
            gang.attempt.plan_elsewhere()
            return
        gang.attempt.begin_count()
        gang.attempt.wait()
        clock.back_off(gang, now=now, policy=self._policy)
