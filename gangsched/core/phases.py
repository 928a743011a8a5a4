"""Writes the phase of other systems' PodGroups, for controllers that create no pods before a scheduler has done so.

Law: a leaf that only reads gangs. Only `state` imports it.

A PodGroup without pods becomes Inqueue at once: no room is reserved for it, so there is nothing to wait for. A phase
that another client wrote is left alone while it stands. A write that the watch does not show is repeated, at growing
intervals: another writer may have been first, or Volcano's scheduler may be the leader.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gangsched.core.gang.gang import Gang
from gangsched.core.gang.lifecycle import Assessment
from gangsched.core.membership.installations import Installations
from gangsched.core.membership.surroundings import uses
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.effects import Effect, PutPhase
from gangsched.core.objects.events import (
    ForeignFact,
    ForeignGroupGone,
    ForeignGroupSeen,
    ForeignGroupsHidden,
)
from gangsched.core.objects.podgroup import ForeignGroup, ForeignPhase
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.record import Phase
from gangsched.core.objects.retry import doubled
from gangsched.core.queueing.deadlines import Deadlines

LONGEST_RETRY_S = 300.0
"""The longest pause, in seconds, before a write that the watch does not show is repeated."""


@dataclass(slots=True)
class _Sent:
    """The last write to the object of this UID; `tries` counts writes of this phase that the watch has not shown."""

    uid: str
    phase: ForeignPhase
    at: float
    tries: int


class Phases:
    """Keeps the phases of other systems' PodGroups that gangsched may write consistent with their gangs."""

    def __init__(self, policy: Policy, installations: Installations) -> None:
        self._policy = policy
        self._installations = installations
        self._groups: dict[GroupKey, ForeignGroup] = {}
        self._touched: dict[GroupKey, None] = {}
        self._sent: dict[GroupKey, _Sent] = {}
        self._due = Deadlines()

    def note(self, event: ForeignFact) -> None:
        """Objects of another system were added, changed or removed, or have become unreadable."""
        match event:
            case ForeignGroupSeen(group):
                self._see(group)
            case ForeignGroupGone(dialect, key):
                self._forget(dialect, key)
            case ForeignGroupsHidden(dialect):
                for key in [*self._groups]:
                    self._forget(dialect, key)

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
        if not self._groups:
            return []
        keys = dict.fromkeys((*self._touched, *(key for key in changed if key in self._groups)))
        keys = {key: None for key in keys if key in assessments or key not in gangs}
        # Only the installation that has a group knows its state.
        keys = {key: None for key in keys if not self._installations.whose(key)}
        self._touched.clear()
        while (key := self._due.take_due(now)) is not None:
            if not self._installations.whose(key):
                keys[key] = None
        return [
            effect
            for key in keys
            for effect in self._write(key, _wanted(self._groups[key], gangs.get(key), assessments.get(key)), now)
        ]

    def next_due(self) -> float:
        """When the next write is due even without an event, in epoch seconds; infinity if none is."""
        return self._due.next()

    def validate(self) -> list[str]:
        """A sentence for each entry of an object that is gone."""
        left = [key for key in (*self._sent, *self._touched) if key not in self._groups]
        return [
            *(f"{key}: a phase of it is remembered though it is gone" for key in left),
            *self._due.validate(self._groups),
        ]

    def _see(self, group: ForeignGroup) -> None:
        if group.phase is None or self._policy.namespace not in ("", group.key.namespace):
            return
        self._groups[group.key] = group
        self._touched[group.key] = None

    def _forget(self, dialect: str, key: GroupKey) -> None:
        if key in self._groups and self._groups[key].dialect == dialect:
            del self._groups[key]
            self._touched.pop(key, None)
            self._sent.pop(key, None)
            self._due.drop(key)

    def _write(self, key: GroupKey, wanted: ForeignPhase, now: float) -> list[Effect]:
        group, last = self._groups[key], self._sent.get(key)
        seen = group.phase
        if seen is None or seen.text == wanted or (seen.text and not seen.ours):
            self._sent.pop(key, None)
            self._due.drop(key)
            return []
        again = last is not None and (last.uid, last.phase) == (group.uid, wanted)
        if last is not None and again and now < (due := last.at + self._pause_s(last.tries)):
            self._due.set(key, due)
            return []
        tries = last.tries + 1 if last is not None and again else 1
        self._sent[key] = _Sent(group.uid, wanted, now, tries)
        self._due.set(key, now + self._pause_s(tries))
        return [PutPhase(key, group.uid, wanted)]

    def _pause_s(self, tries: int) -> float:
        return doubled(self._policy.message_interval_s, tries, longest=LONGEST_RETRY_S)


def _wanted(group: ForeignGroup, gang: Gang | None, assessment: Assessment | None) -> ForeignPhase:
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
    over = not alive and group.phase is not None and group.phase.text == ForeignPhase.COMPLETED
    return ForeignPhase.COMPLETED if over else ForeignPhase.INQUEUE
