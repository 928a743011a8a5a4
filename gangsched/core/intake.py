"""Applies events to the cluster and the gangs, one by one and without a budget.

Law: it runs no scheduling cycle and writes no status. If a gang's logic fails on an event, what was observed is still
kept, and the gang is parked (`core.containment`). After an exception that concerns no gang, the event's object is set
aside (`core.quarantine`) and the state is not to be trusted: the machine rebuilds it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from msgspec.structs import replace

from gangsched.core.cluster.failures import failed_when
from gangsched.core.declarations.trees import TREE_KINDS
from gangsched.core.gang import rollback
from gangsched.core.membership import handover
from gangsched.core.membership.applied_results import Results
from gangsched.core.objects import events as seen
from gangsched.core.objects import results
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.events import Event, PodGone, PodSeen
from gangsched.core.objects.faults import FaultyStep
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.subjects import is_gone, singles
from gangsched.core.quarantine import Quarantine, fault_of
from gangsched.core.state import State

FORMER_LEADER_S = 15.0
"""Time, in seconds, after the machine begins to decide, in which a binding by another process may be one of the last of
a former leader, and is not reported as a rival's."""


class Intake:
    """Applies events to the machine's state. `synced`: all kinds have been listed, and the machine decides.

    Before `alone_from` (epoch seconds), a binding by another process may be a former leader's. `distrusted`: an object
    was set aside, so that the state may be half-changed; `postponed` are the events that failed after that, which may
    be for that reason alone.
    """

    def __init__(self, state: State, quarantine: Quarantine) -> None:
        self.synced = False
        self.distrusted = False
        self.postponed: list[Event] = []
        self._quarantine = quarantine
        self.alone_from = float("inf")
        self._state = state
        self._cluster = state.cluster
        self._members = state.members
        self._results = Results(state.cluster, state.members, state.avoidance, state.policy)

    def take(self, events: Iterable[Event], now: float) -> None:
        """Apply the events, in order."""
        for event in events:
            for found in self._quarantine.instead(event) if self._quarantine else (event,):
                try:
                    self._apply(found, now)
                except Exception as error:  # noqa: BLE001 - a defect may raise anything
                    self._contain(found, event, error, now)
        if self.distrusted:
            return
        self._hand_over(now)
        if now < self.alone_from:
            self._members.take_rivals()

    def _apply(self, event: Event, now: float) -> None:
        match event:
            case PodSeen(pod):
                self._state.restarts.pod_seen(pod)
                self._members.pod_seen(pod)
            case PodGone(uid):
                self._state.restarts.pod_gone(uid)
                self._state.containment.no_longer_in_flight(uid)
                self._members.pod_gone(uid)
            case seen.PodsReplaced(pods):
                # In the order in which they failed, from which the pauses of their makers follow.
                in_order = seen.PodsReplaced(tuple(sorted(pods, key=failed_when)))
                self._take_list(in_order, map(PodGone, self._members.unlisted(pods)), now)
                # Statuses and conditions written for them may have been lost.
                self._members.dirty.note(*self._members.gangs)
            case seen.GroupSeen() | seen.GroupGone() | seen.GroupExpired() | seen.GroupsReplaced():
                self._apply_to_group(event, now)
            case seen.ForeignGroupsReplaced(dialect, groups):
                shown = self._state.surroundings.show(dialect)
                there = {group.key for group in groups}
                gone = [key for key in self._members.foreign.keys(dialect) if key not in there]
                self._take_list(event, (seen.ForeignGroupGone(dialect, key) for key in gone), now)
                self._state.surroundings.infer_unseen(dialect, shown, now)
            case (
                seen.NodesReplaced() | seen.NamespacesReplaced() | seen.StorageReplaced() | seen.DeviceObjectsReplaced()
            ):
                self._take_list(event, self._state.surroundings.unlisted(event), now)
            case seen.ForeignFact():
                self._state.phases.note(event)
                self._state.surroundings.note_foreign(event)
            case seen.DemandFact():
                self._state.scaling.note(event)
            case seen.Synced():
                self._begin(now)
            case seen.TimePassed():
                pass
            case results.PodBound(uid) | results.BindRefused(uid):
                self._state.containment.no_longer_in_flight(uid)
                self._results.note(event, now)
            case _ if isinstance(event, results.Result):
                self._results.note(event, now)
            case _:
                self._state.surroundings.note(event)

    def _apply_to_group(
        self, event: seen.GroupSeen | seen.GroupGone | seen.GroupExpired | seen.GroupsReplaced, now: float
    ) -> None:
        members = self._members
        match event:
            case seen.GroupSeen(group):
                members.group_seen(group, now=now, synced=self.synced)
            case seen.GroupGone(key):
                members.group_gone(key)
            case seen.GroupExpired() if self.synced:
                self._state.expired.note(event)
            case seen.GroupsReplaced(groups):
                listed = {group.key for group in groups}
                declared = [key for key, gang in members.gangs.items() if gang.observed.group is not None]
                declared += [group.key for group in members.installations.groups()]
                gone = [key for key in declared if key not in listed]
                self._take_list(event, map(seen.GroupGone, gone), now)

    def _take_list(self, event: Event, gone: Iterable[Event], now: float) -> None:
        """Apply a complete list, object by object, after what is `gone` according to it."""
        self.take(chain(gone, singles(event)), now)

    def _begin(self, now: float) -> None:
        """Begin to decide: all kinds have been listed. Each gang recovers from the record in its PodGroup's status."""
        self._hand_over(now)
        self.synced = True
        self.alone_from = now + FORMER_LEADER_S
        for gang in list(self._members.gangs.values()):
            self._members.dirty.note(gang.key)
            if gang.key not in self._state.containment.parked:
                try:
                    self._members.resume(gang, now)
                except Exception as error:  # noqa: BLE001 - a defect may raise anything
                    self._state.containment.park(gang.key, FaultyStep.RECOVERY, error, now)

    def _hand_over(self, now: float) -> None:
        """Hand over groups that now belong to another installation, and take those that now belong to us."""
        members = self._members
        for key in members.installations.take_doubted():
            try:
                handover.settle(members, self._cluster, key, now=now, synced=self.synced)
            except Exception as error:  # noqa: BLE001 - a defect may raise anything
                if key in members.gangs:
                    self._state.containment.park(key, FaultyStep.EVENT, error, now)
                    continue
                group = members.installations.group(key)
                pods = members.installations.beside(key).values()
                self._quarantine.put(seen.GroupSeen(group) if group is not None else PodSeen(next(iter(pods))), error)
                self.distrusted = True
                return

    # Faults

    def _contain(self, applied: Event, event: Event, error: Exception, now: float) -> None:
        """Keep only what the event observed, and park the gangs that it concerns; if none, set its object aside.

        `applied` failed, which is the event or what counts instead of it. An object that fails alone, in an empty
        cluster, is always set aside. Once the state is distrusted no other one is: its event is applied again after the
        state was rebuilt.

        Raises:
            Exception: the same exception, if the event is about no single object.
        """
        if applied is event and not is_gone(event) and (alone := fault_of([event])) is not None:
            self._quarantine.put(event, alone)
            self.distrusted = True
            return
        if self.distrusted:
            self.postponed.append(event)
            return
        concerned: list[GroupKey] = []
        if applied is event:
            try:
                concerned = self._observe(event, now) or self._unfiled(event)
            except Exception as again:  # noqa: BLE001 - a defect may raise anything
                error = again
        for key in concerned:
            self._state.containment.park(key, FaultyStep.EVENT, error, now)
        if not concerned:
            self._quarantine.put(event, error)
            self.distrusted = True

    def _unfiled(self, event: Event) -> list[GroupKey]:
        """The gangs that still contain the event's pod, whose removal from them failed half-way."""
        uid = event.pod.uid if isinstance(event, PodSeen) else getattr(event, "uid", "")
        gangs = self._members.gangs.items()
        return [
            key
            for key, gang in gangs
            if uid in gang.observed.pods or uid in gang.observed.foreign_pods or uid in gang.operations.bindings
        ]

    def _observe(self, event: Event, now: float) -> list[GroupKey]:
        """Store what the event observed, without its consequences. Returns the gangs that it concerns."""
        gangs = self._members.gangs
        match event:
            case PodSeen(pod):
                return self._observe_pod(pod)
            case PodGone(uid):
                last = self._cluster.remove_pod(uid)
                was_in = None if last is None else self._members.key(last)
                self._members.installations.pod_gone(uid)
                return self._members.file(uid) or [key for key in gangs if key == was_in]
            case results.PodBound(uid, node):
                known = self._cluster.pods.get(uid)
                if known is None:
                    return []
                return self._observe_pod(known if known.node else replace(known, node=node, bound_at=now))
            case results.BindRefused(uid) | results.PodEvicted(uid) | results.EvictionRefused(uid):
                return self._members.file(uid)
            case seen.ForeignGroupSeen(foreign):
                return self._observe_foreign(foreign.dialect, foreign.key)
            case seen.ForeignGroupGone(dialect, named):
                return self._observe_foreign(dialect, named)
            case results.OwnerSeen(uid):
                return [key for key, gang in gangs.items() if rollback.asks_about(gang, uid)]
        group = event.group if isinstance(event, seen.GroupSeen) else None
        key = group.key if group is not None else getattr(event, "key", None)
        if key not in gangs:
            return []
        if isinstance(event, seen.GroupSeen | seen.GroupGone):
            gangs[key].observed.declare(group)
        return [key]

    def _observe_foreign(self, dialect: str, key: GroupKey) -> list[GroupKey]:
        """Update the pods that another system's object declares; the object itself was stored before the failure."""
        members = self._members
        concerned = [key] if key in members.gangs else []
        uids = [
            uid
            for place in ((dialect, key), *members.foreign.dependents(dialect, key))
            for uid in members.undeclared.of(*place)
        ]
        if dialect in TREE_KINDS:
            uids += [uid for leaf in members.foreign.leaves(dialect, key) for uid in members.undeclared.naming(leaf)]
        for uid in dict.fromkeys(uids):
            concerned += self._observe_pod(self._cluster.pods[uid])
        return list(dict.fromkeys(concerned))

    def _observe_pod(self, pod: Pod) -> list[GroupKey]:
        pod = self._members.undeclared.declared(pod)
        known = self._cluster.pods.get(pod.uid)
        if known is not None and known.node and not pod.node:
            pod = replace(pod, node=known.node, bound_at=known.bound_at)
        self._cluster.set_pod(pod)
        concerned = self._members.file(pod.uid)
        if not concerned and pod.terminal:
            self._cluster.remove_pod(pod.uid)
        return concerned
