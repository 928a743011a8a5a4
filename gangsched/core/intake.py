"""What has happened is applied to the cluster and the gangs, event by event, whatever it costs.

Law: it knows no scheduling cycle and tells nobody. Where an event concerns one gang and its logic fails over it, what
was observed is kept all the same, and the gang is parked (`core.containment`). Every other exception goes on.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from gangsched.core.autoscaling.scaling import Scaling
from gangsched.core.cluster.cache import Cluster
from gangsched.core.containment import Containment
from gangsched.core.gang.membership import Members
from gangsched.core.gang.results import Results
from gangsched.core.gang.surroundings import Surroundings
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.events import (
    DemandFact,
    Event,
    ForeignFact,
    GroupGone,
    GroupSeen,
    GroupsReplaced,
    PodGone,
    PodSeen,
    PodsReplaced,
    Synced,
    TimePassed,
)
from gangsched.core.objects.faults import Step
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.results import (
    Answer,
    BindRefused,
    EvictionRefused,
    OwnerSeen,
    PodBound,
    PodEvicted,
)

FORMER_LEADER_S = 15.0
"""For so long after it begins to decide, bindings by somebody else may be a former leader's last ones."""


class Intake:
    """Takes events for the machine. `synced`: it was said that all is listed, from now on the machine decides.

    Until `alone_from` bindings by somebody else may be a former leader's.
    """

    def __init__(
        self,
        cluster: Cluster,
        members: Members,
        *,
        results: Results,
        surroundings: Surroundings,
        scaling: Scaling,
        containment: Containment,
    ) -> None:
        self.synced = False
        self.alone_from = float("inf")
        self._cluster = cluster
        self._members = members
        self._results = results
        self._surroundings = surroundings
        self._scaling = scaling
        self._containment = containment

    def take(self, events: Iterable[Event], now: float) -> None:
        """Apply them, in order."""
        for event in events:
            try:
                self._apply(event, now)
            except Exception as error:  # noqa: BLE001 - a defect may raise anything
                self._contain(event, error, now)
        if now < self.alone_from:
            self._members.take_rivals()

    def _apply(self, event: Event, now: float) -> None:
        match event:
            case PodSeen(pod):
                self._members.pod_seen(pod)
            case PodGone(uid):
                self._containment.answered(uid)
                self._members.pod_gone(uid)
            case PodsReplaced(pods):
                self.take(map(PodGone, self._members.unlisted(pods)), now)
                for pod in pods:
                    try:
                        self._members.pod_seen(pod)
                    except Exception as error:  # noqa: BLE001 - a defect may raise anything
                        self._contain(PodSeen(pod), error, now)
                # What was told of them may have been lost.
                self._members.dirty.note_all(self._members.gangs)
            case GroupSeen(group):
                self._members.group_seen(group, now=now, synced=self.synced)
            case GroupGone(key):
                self._members.group_gone(key)
            case GroupsReplaced(groups):
                listed = {group.key for group in groups}
                declared = [key for key, gang in self._members.gangs.items() if gang.group is not None]
                gone = [key for key in declared if key not in listed]
                self.take([*map(GroupGone, gone), *map(GroupSeen, groups)], now)
            case ForeignFact():
                self._surroundings.note_foreign(event, now)
            case DemandFact():
                self._scaling.note(event)
            case Synced():
                self._begin(now)
            case TimePassed():
                pass
            case PodBound(uid) | BindRefused(uid):
                self._containment.answered(uid)
                self._results.note(event, now)
            case _ if isinstance(event, Answer):
                self._results.note(event, now)
            case _:
                self._surroundings.note(event)

    def _begin(self, now: float) -> None:
        """Everything has been listed once: decide from now on, with what the PodGroups' status remembers."""
        self.synced = True
        self.alone_from = now + FORMER_LEADER_S
        for gang in list(self._members.gangs.values()):
            self._members.dirty.note(gang.key)
            if gang.key in self._containment.parked:
                continue
            try:
                self._members.adopt(gang, now)
            except Exception as error:  # noqa: BLE001 - a defect may raise anything
                self._containment.park(gang.key, Step.RECOVERY, error, now)

    # Faults

    def _contain(self, event: Event, error: Exception, now: float) -> None:
        """Note what was observed, by itself, and park the gangs that it concerns.

        Raises:
            Exception: the same one, if it concerns no gang.
        """
        concerned = self._observe(event, now) or self._unfiled(event)
        if not concerned:
            raise error
        for key in concerned:
            self._containment.park(key, Step.EVENT, error, now)

    def _unfiled(self, event: Event) -> list[GroupKey]:
        """The gangs that still speak of a pod which was just being taken out of them."""
        uid = event.pod.uid if isinstance(event, PodSeen) else getattr(event, "uid", "")
        gangs = self._members.gangs.items()
        return [key for key, gang in gangs if uid in gang.pods or uid in gang.strangers or uid in gang.bindings]

    def _observe(self, event: Event, now: float) -> list[GroupKey]:
        """Know what the event says was observed, and nothing that follows from it. Returns the gangs it concerns."""
        match event:
            case PodSeen(pod):
                return self._observe_pod(pod)
            case PodGone(uid):
                last = self._cluster.remove_pod(uid)
                was_in = None if last is None else self._members.key(last)
                return self._members.file(uid) or [key for key in self._members.gangs if key == was_in]
            case PodBound(uid, node):
                known = self._cluster.pods.get(uid)
                if known is None:
                    return []
                return self._observe_pod(known if known.node else replace(known, node=node, bound_at=now))
            case BindRefused(uid) | PodEvicted(uid) | EvictionRefused(uid):
                return self._members.file(uid)
            case OwnerSeen(uid):
                gangs = self._members.gangs.values()
                return [each.key for each in gangs if each.undo is not None and uid in each.undo.asked]
            case GroupSeen(group):
                gang = self._members.gangs.get(group.key)
                if gang is None:
                    return []
                gang.declare(group)
                return [group.key]
            case _:
                key = getattr(event, "key", None)
                named = [gang for known, gang in self._members.gangs.items() if known == key]
                for gang in named if isinstance(event, GroupGone) else ():
                    gang.declare(None)
                return [gang.key for gang in named]

    def _observe_pod(self, pod: Pod) -> list[GroupKey]:
        known = self._cluster.pods.get(pod.uid)
        if known is not None and known.node and not pod.node:
            pod = replace(pod, node=known.node, bound_at=known.bound_at)
        self._cluster.set_pod(pod)
        concerned = self._members.file(pod.uid)
        if not concerned and pod.terminal:
            self._cluster.remove_pod(pod.uid)
        return concerned
