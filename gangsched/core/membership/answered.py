"""Stores the results of API calls: bindings on their way, what nodes refuse, and news for the gangs concerned."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from gangsched.core.cluster.avoidance import Avoidance, Tries
from gangsched.core.cluster.cache import Cluster
from gangsched.core.gang import rollback
from gangsched.core.gang.mail import Answered
from gangsched.core.membership.members import Members
from gangsched.core.objects import results
from gangsched.core.objects.results import BindRefused, PodBound, Refused

NoteEvicted = Callable[[results.PodEvicted | results.EvictionRefused, float], object]


class Answers:
    """Stores results for all gangs."""

    def __init__(self, cluster: Cluster, members: Members, avoidance: Avoidance, note_evicted: NoteEvicted) -> None:
        """`note_evicted` is called with the results of evictions of pods without a group."""
        self._note_evicted = note_evicted
        self._cluster = cluster
        self._members = members
        self._avoidance = avoidance

    def note(self, event: results.Result, now: float) -> None:
        """Store one result."""
        members = self._members
        match event:
            case PodBound():
                self._bound(event, now)
            case BindRefused():
                self._refused(event)
            case results.StatusWritten() | results.StatusRefused():
                self._written(event)
            case results.GroupNotMade(key) if key in members.gangs:
                members.tell(members.gangs[key], Answered(event))
            case results.OwnerSeen(uid):
                for gang in members.gangs.values():
                    if rollback.asks_about(gang, uid):
                        members.tell(gang, Answered(event))
            case results.PrebindRefused(uid) | results.PodEvicted(uid) | results.EvictionRefused(uid):
                asking = members.gang_of(uid)
                if asking is not None:
                    members.tell(asking, Answered(event))
                elif not isinstance(event, results.PrebindRefused):
                    self._note_evicted(event, now)

    def _written(self, event: results.StatusWritten | results.StatusRefused) -> None:
        gang = self._members.gangs.get(event.key)
        if gang is None or gang.observed.group is None:
            return
        matters = isinstance(event, results.StatusRefused) or (event.reserved and gang.written.awaited is not None)
        if isinstance(event, results.StatusWritten) and gang.observed.resource_version == gang.written.version:
            # Otherwise the watch was faster, and may already have shown a later write by another client.
            gang.observed.now_at(event.resource_version)
        if matters:
            self._members.tell(gang, Answered(event))

    def _bound(self, event: PodBound, now: float) -> None:
        uid, node = event.uid, event.node
        # Also for pods whose gang is forgotten, such as bound pods without a group.
        self._avoidance.accepted(uid, node)
        flight = self._cluster.flights.of(uid)
        self._cluster.flights.confirmed(uid, node)
        gang = self._members.gang_of(uid)
        if gang is None:
            return
        pod = self._cluster.pods[uid]
        if flight is None and pod.node == node and uid not in gang.operations.bindings:
            return  # the watch was faster
        self._members.tell(gang, Answered(event))
        if flight is None and uid not in gang.operations.bindings and not pod.node:
            # The binding was sent in an earlier term; note the pod as bound before the watch shows it.
            self._members.pod_seen(replace(pod, node=node, bound_at=now))

    def _refused(self, event: BindRefused) -> None:
        uid, node, why = event.uid, event.node, event.why
        flight = self._cluster.flights.of(uid)
        self._cluster.flights.refused(uid, node)
        gang = self._members.gang_of(uid)
        binding = gang.operations.bindings.get(uid) if gang is not None else None
        unknown = binding is None and flight is not None and flight.node == node
        if unknown:
            # Its gang was dropped, or has not taken the binding over yet, so nobody else gives up the place.
            self._cluster.forget(uid)
        if gang is None:
            return
        if why in (Refused.GONE, Refused.CONFLICT):
            self._members.tell(gang, Answered(event))
            if unknown or (binding is not None and binding.node == node):
                self._members.set_aside(uid)
            return
        forbidden = why is Refused.FORBIDDEN
        tries = self._avoidance.refused(gang.key, uid, node, event.message) if forbidden else Tries(0, 0)
        self._members.tell(gang, Answered(event, tries))
        if self._one_too_many_may_arrive(uid, node):
            # This reservation is only held again, and held ones yield to a binding that may still arrive.
            self._cluster.worsen(node)

    def _one_too_many_may_arrive(self, refused: str, node: str) -> bool:
        """Whether another binding to the node, that was withdrawn for lack of room, has no result yet."""
        for uid in self._cluster.on_node.get(node, ()):
            gang = self._members.gang_of(uid)
            binding = gang.operations.bindings.get(uid) if gang is not None and uid != refused else None
            if binding is not None and binding.withdrawn and not self._cluster.pods[uid].node:
                return True
        return False
