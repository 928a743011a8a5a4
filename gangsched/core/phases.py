"""Writes what controllers wait for in other systems' PodGroups: a phase or a condition, after what their gangs do.

Law: a leaf that only reads gangs. Only `state` imports it.

Volcano's PodGroups have a phase. One without pods becomes Inqueue at once: no room is reserved for it, so there is
nothing to wait for. A phase that another client wrote is left alone while it stands.

Kubernetes' own PodGroups have a condition that says whether the group was scheduled. kube-scheduler writes it for each
group of which it schedules a pod, and never takes True back (pkg/scheduler/schedule_one_podgroup.go); so does gangsched
where all pods are its own. Each PodGroup of a tree has its own: True once the tree is scheduled and the PodGroup's
minCount is bound. Its time is renewed when few members are left that existed then, because it tells a new leader
nothing once none is. A message alone is written at the interval of messages.

A write that the watch does not show is repeated, at growing intervals: another writer may have been first, Volcano's
scheduler may be the leader, or the right may be missing.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from msgspec import Struct

from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang
from gangsched.core.membership.installations import Installations
from gangsched.core.membership.surroundings import uses
from gangsched.core.objects.declaration import NATIVE, GroupKey
from gangsched.core.objects.duration import doubled
from gangsched.core.objects.effects import Effect, PutCondition, PutPhase
from gangsched.core.objects.events import ForeignFact, ForeignGroupGone, ForeignGroupSeen, ForeignGroupsHidden
from gangsched.core.objects.podgroup import ForeignGroup, ForeignPhase, GroupCondition, SeenCondition, SeenPhase
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.record import Phase
from gangsched.core.queueing.agenda import Agenda, Due
from gangsched.core.status.native_conditions import Part, condition_of, named_by

LONGEST_RETRY_S = 300.0
"""The longest pause, in seconds, before a write that the watch does not show is repeated."""
Wanted = ForeignPhase | GroupCondition


class _Sent(Struct):
    """The last write to the object of this UID; `tries` counts writes of it that the watch has not shown."""

    uid: str
    wanted: Wanted
    at: float
    tries: int


class Phases:
    """Keeps the statuses of other systems' PodGroups that gangsched may write consistent with their gangs.

    Objects are keyed by namespace, name and, instead of a UID, their dialect. `_named` holds the native groups that the
    pods of a gang name, and `_gangs_of` the gangs whose pods name a native group, which may have another name.
    """

    def __init__(self, policy: Policy, installations: Installations, agenda: Agenda) -> None:
        self._policy = policy
        self._installations = installations
        self._groups: dict[GroupKey, ForeignGroup] = {}
        self._dialects: dict[str, None] = {}
        self._named: dict[GroupKey, frozenset[GroupKey]] = {}
        self._gangs_of: dict[GroupKey, set[GroupKey]] = {}
        self._touched: dict[GroupKey, None] = {}
        self._sent: dict[GroupKey, _Sent] = {}
        self._agenda = agenda

    def note(self, event: ForeignFact) -> None:
        """Objects of another system were added, changed or removed, or have become unreadable."""
        match event:
            case ForeignGroupSeen(group):
                self._see(group)
            case ForeignGroupGone(dialect, key):
                self._forget(_place(dialect, key))
            case ForeignGroupsHidden(dialect):
                for place in [*self._groups]:
                    if place.pod_uid == dialect:
                        self._forget(place)

    def decide(
        self,
        changed: Iterable[GroupKey],
        gangs: Mapping[GroupKey, Gang],
        assessments: Mapping[GroupKey, Assessment],
        now: float,
    ) -> list[Effect]:
        """The writes that are due: for these gangs, for objects that have changed, and repeated ones.

        A gang without an assessment was not reconciled yet, as after a restart: it will be among the changed ones.
        """
        places = self._touched
        self._touched = {}
        for key in changed:
            places |= dict.fromkeys(_place(dialect, key) for dialect in self._dialects)
            places |= dict.fromkeys(self._note_named(key, gangs.get(key)))
        for key in self._installations.take_left():
            places |= dict.fromkeys((*sorted(self._named.get(key, ())), _place(NATIVE, key)))
        places = {place: None for place in places if (key := self._key(place)) in assessments or key not in gangs}
        while (due := self._agenda.take_due(Due.PHASE, now)) is not None:
            places[due] = None
        effects: list[Effect] = []
        parts: dict[GroupKey, dict[str, Part]] = {}
        for place in places:
            key = self._key(place)
            # Only the installation that has a group knows its state.
            if place in self._groups and not self._installations.whose(key):
                wanted = self._wanted(place, gangs.get(key), assessments.get(key), parts)
                effects += self._write(place, wanted, now)
        return effects

    def validate(self, alive: Container[GroupKey]) -> list[str]:
        """A sentence for each entry of an object that is gone, or of a gang that is not among those `alive`."""
        left = [place for place in (*self._sent, *self._touched) if place not in self._groups]
        return [
            *(f"{place}: a status of it is remembered though it is gone" for place in left),
            *(
                f"{key}: native groups of it are remembered though it is gone"
                for key in self._named
                if key not in alive
            ),
        ]

    def _see(self, group: ForeignGroup) -> None:
        if not group.written or self._policy.namespace not in ("", group.key.namespace):
            return
        place = _place(group.dialect, group.key)
        self._groups[place] = group
        self._dialects[group.dialect] = None
        self._touched[place] = None

    def _forget(self, place: GroupKey) -> None:
        for known in (self._groups, self._touched, self._sent):
            known.pop(place, None)
        self._agenda.drop(Due.PHASE, place)

    def _key(self, place: GroupKey) -> GroupKey:
        """The key of the gang to which the object belongs: one whose pods name it, else the one of its name."""
        return min(self._gangs_of.get(place, ()), default=GroupKey(place.namespace, place.name))

    def _note_named(self, key: GroupKey, gang: Gang | None) -> list[GroupKey]:
        """Note which native groups the gang's pods name. Returns these, and those that they do not name any more."""
        now = named_by(gang) if gang is not None else frozenset[GroupKey]()
        before = self._named.pop(key, frozenset())
        if now:
            self._named[key] = now
        for place in before - now:
            self._gangs_of[place].discard(key)
            if not self._gangs_of[place]:
                del self._gangs_of[place]
        for place in now - before:
            self._gangs_of.setdefault(place, set()).add(key)
        return sorted(now | before)

    def _wanted(
        self,
        place: GroupKey,
        gang: Gang | None,
        assessment: Assessment | None,
        parts: dict[GroupKey, dict[str, Part]],
    ) -> Wanted | None:
        """What the object's status should say; None for nothing. `parts` keeps what is found out of each gang."""
        group = self._groups[place]
        if not isinstance(group.phase, SeenCondition):
            return _phase(group, gang, assessment)
        if gang is None or assessment is None or place not in self._named.get(gang.key, ()):
            return None
        if self._has_others(group.key, gang.key):
            return None
        last = self._sent.get(place)
        sent = last.wanted if last is not None and last.uid == group.uid else None
        both = (true for true in (sent, group.phase.condition) if isinstance(true, GroupCondition) and true.scheduled)
        true = max(both, key=lambda condition: (condition.since, condition.generation), default=None)
        wanted = condition_of(gang, assessment, group, group.phase.generation, true, parts)
        return wanted if true is None or (wanted is not None and wanted.scheduled) else true

    def _has_others(self, named: GroupKey, key: GroupKey) -> bool:
        """Whether a pod of another scheduler names the native group, or another one of the tree that is its gang."""
        beside = self._installations.beside
        pods = {**beside(key), **beside(named)} if named != key else beside(key)
        return any(pod.declaration is not None and pod.declaration.native_group for pod in pods.values())

    def _write(self, place: GroupKey, wanted: Wanted | None, now: float) -> list[Effect]:
        group, last = self._groups[place], self._sent.get(place)
        self._agenda.drop(Due.PHASE, place)
        if wanted is None or not _is_open(group.phase, wanted):
            if last is not None:
                last.tries = 0
            return []
        tries = 0
        if last is not None and last.uid == group.uid:
            tries = last.tries if last.wanted == wanted else 0
            if (tries or _only_in_words(last.wanted, wanted)) and now < (due := last.at + self._pause_s(last.tries)):
                self._agenda.set(Due.PHASE, place, due)
                return []
        self._sent[place] = _Sent(group.uid, wanted, now, tries + 1)
        self._agenda.set(Due.PHASE, place, now + self._pause_s(tries + 1))
        return [_effect(group, wanted, now)]

    def _pause_s(self, tries: int) -> float:
        return doubled(self._policy.message_interval_s, max(tries, 1), longest=LONGEST_RETRY_S)


def _place(dialect: str, key: GroupKey) -> GroupKey:
    return GroupKey(key.namespace, key.name, dialect)


def _is_open(seen: SeenPhase | SeenCondition | None, wanted: Wanted) -> bool:
    """Whether the object's status differs from what is wanted and may be written."""
    if isinstance(seen, SeenCondition):
        return isinstance(wanted, GroupCondition) and seen.takes(wanted)
    return seen is not None and seen.text != wanted and (seen.ours or not seen.text)


def _only_in_words(last: Wanted, wanted: Wanted) -> bool:
    return isinstance(last, GroupCondition) and isinstance(wanted, GroupCondition) and last.differs_in_words(wanted)


def _effect(group: ForeignGroup, wanted: Wanted, now: float) -> Effect:
    if isinstance(wanted, ForeignPhase):
        return PutPhase(group.key, group.uid, wanted)
    seen = group.phase if isinstance(group.phase, SeenCondition) else SeenCondition()
    changes = seen.condition is None or seen.condition.scheduled != wanted.scheduled
    return PutCondition(group.key, group.uid, wanted, seen.version, since=wanted.since or (now if changes else 0.0))


def _phase(group: ForeignGroup, gang: Gang | None, assessment: Assessment | None) -> ForeignPhase:
    """The phase that the object should have.

    While the minimum is not bound, pods have still to be created or replaced. Volcano's phase Pending would keep
    controllers from creating them, and its phase Unknown may make them restart the job.
    """
    alive = False
    if gang is not None and assessment is not None and uses(gang, group.dialect):
        if gang.record.phase is Phase.SUCCEEDED:
            return ForeignPhase.COMPLETED
        census = assessment.census
        if len(census.bound) + census.done >= assessment.terms.spec.minimum:
            return ForeignPhase.RUNNING
        alive = bool(census.live)
    over = not alive and isinstance(group.phase, SeenPhase) and group.phase.text == ForeignPhase.COMPLETED
    return ForeignPhase.COMPLETED if over else ForeignPhase.INQUEUE
