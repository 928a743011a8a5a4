"""Stores events where they belong: in the cluster, in the index of members, and in the inbox of a gang.

Law: it runs no logic of a gang, no scheduling cycle, and writes no status. An exception is therefore one over an
object. An object that fails alone, in an empty cluster, is set aside (`core.quarantine`). Whatever has failed, the
state is not to be trusted: the machine builds it anew and stores the event again, and if that fails too, its object is
set aside.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import chain

from gangsched.core.cluster.failures import failed_when
from gangsched.core.membership.answered import Answers
from gangsched.core.objects import events as seen
from gangsched.core.objects import results
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.events import Event, PodGone, PodSeen
from gangsched.core.objects.subjects import is_gone, singles
from gangsched.core.quarantine import Quarantine, fault_of
from gangsched.core.state import State

FORMER_LEADER_S = 15.0
"""Time, in seconds, after the machine begins to decide, in which a binding by another process may be one of the last of
a former leader, and is not reported as a rival's."""


class Intake:
    """Stores events in the machine's state. `synced`: all kinds have been listed, and the machine decides.

    Before `alone_from` (epoch seconds), a binding by another process may be a former leader's. `distrusted`: an event
    has failed, so that the state may be half-changed; `postponed` are the events that failed though their objects do
    not fail alone, each with its error. They are stored `again` once the state was built anew.
    """

    def __init__(self, state: State, quarantine: Quarantine, again: Collection[Event] = ()) -> None:
        self.synced = False
        self.distrusted = False
        self.postponed: list[tuple[Event, Exception]] = []
        self._again = again
        self._quarantine = quarantine
        self.alone_from = float("inf")
        self._state = state
        self._cluster = state.cluster
        self._members = state.members
        self._answers = Answers(state.cluster, state.members, state.avoidance, state.plans.note_result)

    def store(self, events: Iterable[Event], now: float) -> None:
        """Store the events, in order."""
        for event in events:
            for applied in self._quarantine.instead(event) if self._quarantine else (event,):
                try:
                    self._store(applied, now)
                except Exception as error:  # noqa: BLE001 - a defect may raise anything
                    self._contain(applied, event, error)
        if self.distrusted:
            return
        self._state.surroundings.conclude()
        self._hand_over()
        if now < self.alone_from:
            self._members.take_rivals()

    def _store(self, event: Event, now: float) -> None:
        match event:
            case PodSeen(pod):
                self._state.restarts.pod_seen(pod)
                self._members.pod_seen(pod)
            case results.Result():
                self._answers.note(event, now)
            case PodGone(uid):
                self._state.restarts.pod_gone(uid)
                self._members.pod_gone(uid)
            case seen.PodsReplaced(pods):
                # In the order in which they failed, from which the pauses of their makers follow.
                in_order = seen.PodsReplaced(tuple(sorted(pods, key=failed_when)))
                self._take_list(in_order, map(PodGone, self._members.unlisted(pods)), now)
                # Statuses and conditions written for them may have been lost.
                self._members.dirty.note(*self._members.gangs)
            case seen.GroupSeen() | seen.GroupGone() | seen.GroupExpired() | seen.GroupsReplaced():
                self._store_group(event, now)
            case seen.ForeignGroupsReplaced(dialect, groups):
                shown = self._state.surroundings.show(dialect)
                keys = {group.key for group in groups}
                gone = [key for key in self._members.foreign.keys(dialect) if key not in keys]
                self._take_list(event, (seen.ForeignGroupGone(dialect, key) for key in gone), now)
                self._state.surroundings.all_shown(dialect, shown)
            case (
                seen.NodesReplaced() | seen.NamespacesReplaced() | seen.StorageReplaced() | seen.DeviceObjectsReplaced()
            ):
                self._take_list(event, self._state.surroundings.unlisted(event), now)
            case seen.BudgetsReplaced():
                self._cluster.budgets.show()
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
            case _:
                self._state.surroundings.note(event)

    def _store_group(
        self, event: seen.GroupSeen | seen.GroupGone | seen.GroupExpired | seen.GroupsReplaced, now: float
    ) -> None:
        members = self._members
        match event:
            case seen.GroupSeen(group):
                members.group_seen(group)
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
        """Store a complete list, object by object, after what is `gone` according to it."""
        self.store(chain(gone, singles(event)), now)

    def _begin(self, now: float) -> None:
        """Begin to decide: all kinds have been listed. Each gang starts from the record in its PodGroup's status."""
        self._hand_over()
        self.synced = True
        self.alone_from = now + FORMER_LEADER_S
        self._members.enter_all()

    def _hand_over(self) -> None:
        """Drop the gangs of groups that now belong to another installation, and make those that now belong to us."""
        members = self._members
        for key in members.installations.take_doubted():
            try:
                self._settle(key)
            except Exception as error:  # noqa: BLE001 - a defect may raise anything
                self._blame(key, error)
                return

    def _settle(self, key: GroupKey) -> None:
        """Find out which installation owns this doubted group (`core.declarations.installation`).

        When a group passes to another one, what we decided about it is forgotten: reservations are released, and
        nothing more is sent or written. Bound members stay, and bindings in flight keep their places until their
        results arrive. A group that becomes ours starts as after a restart, from the record that the other wrote.
        """
        members, known = self._members, self._members.installations
        gang = members.gangs.get(key)
        declared = known.group(key) is not None or (gang is not None and gang.observed.group is not None)
        if not (declared or known.beside(key) or (gang is not None and gang.observed.pods)):
            known.forget(key)
            return
        owner = known.owner(key, gang)
        if known.serves(owner):
            if known.whose(key):
                members.take_over(key)
        elif gang is not None:
            members.give_up(gang, owner)
        else:
            known.belongs(key, owner)

    # Faults

    def _blame(self, key: GroupKey, error: Exception) -> None:
        """Set aside the PodGroup of this key, or one of its pods, over which it cannot be told whose the group is."""
        members = self._members
        gang = members.gangs.get(key)
        group = members.installations.group(key) or (gang.observed.group if gang is not None else None)
        pods = {**(gang.observed.pods if gang is not None else {}), **members.installations.beside(key)}
        self._fail(seen.GroupSeen(group) if group is not None else PodSeen(next(iter(pods.values()))), error)

    def _contain(self, stored: Event, event: Event, error: Exception) -> None:
        """Have the state built anew after this exception, and set the event's object aside if that does not help.

        `stored` failed, which is the event or what counts instead of it. An object that fails alone, in an empty
        cluster, is set aside at once.

        Raises:
            Exception: the same exception, if the event is about no single object.
        """
        if stored is event and not is_gone(event) and (alone := fault_of([event])) is not None:
            self._quarantine.put(event, alone)
            self.distrusted = True
        elif stored is not event and not self.distrusted:
            self._quarantine.put(event, error)
            self.distrusted = True
        else:
            self._fail(event, error)

    def _fail(self, event: Event, error: Exception) -> None:
        """Store the event again once the state was built anew; after that, set its object aside."""
        if not self.distrusted and event in self._again:
            self._quarantine.put(event, error)
        else:
            self.postponed.append((event, error))
        self.distrusted = True
