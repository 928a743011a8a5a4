"""What it means for gangs that another system's object appears, changes, goes, or cannot be read."""

from __future__ import annotations

from gangsched.core.gang import clock, recovery
from gangsched.core.gang.gang import Gang, forget_run, forget_what_was_told
from gangsched.core.gang.membership import Members
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.events import (
    ForeignFact,
    ForeignGroupGone,
    ForeignGroupSeen,
    ForeignGroupsHidden,
    ForeignGroupsReplaced,
)
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.reasons import Reason


class ForeignObjects:
    """Keeps `Members.foreign`, and the runs of the gangs that such objects declare, in step with what is seen."""

    def __init__(self, members: Members, policy: Policy) -> None:
        self._members = members
        self._foreign = members.foreign
        self._policy = policy

    def note(self, event: ForeignFact, now: float) -> None:
        """Another system's object appeared, changed or went, or they cannot be read, or can be again."""
        match event:
            case ForeignGroupSeen(group):
                self._foreign_seen(group)
            case ForeignGroupGone(dialect, key):
                self._foreign_gone(dialect, key)
            case ForeignGroupsHidden(dialect, why):
                self._foreign.hide(dialect, why)
                self._all_speaking_of(dialect)
            case ForeignGroupsReplaced(dialect, groups):
                shown = self._all_speaking_of(dialect) if self._foreign.show(dialect) else []
                listed = {group.key for group in groups}
                for key in self._foreign.keys(dialect):
                    if key not in listed:
                        self._foreign_gone(dialect, key)
                for group in groups:
                    self._foreign_seen(group)
                for gang in shown:
                    self._look_back(gang, now)

    def _foreign_seen(self, group: ForeignGroup) -> None:
        if self._policy.namespace and group.key.namespace != self._policy.namespace:
            return
        old = self._foreign.keep(group)
        if old == group:
            return
        gang = self._speaking_of(group.dialect, group.key)
        if gang is None:
            return
        if old is None:
            if _rests_on_others(gang):
                forget_what_was_told(gang)
        elif old.uid != group.uid:
            self._over(gang)
        elif (old.spec, old.error) != (group.spec, group.error):
            clock.begin_anew(gang)

    def _foreign_gone(self, dialect: str, key: GroupKey) -> None:
        if self._foreign.drop(dialect, key):
            gang = self._speaking_of(dialect, key)
            if gang is not None:
                self._over(gang)

    def _over(self, gang: Gang) -> None:
        """The object that declared the gang exists no longer, and its run neither; bound members stay (rule 10)."""
        if _rests_on_others(gang):
            forget_run(gang)
            forget_what_was_told(gang)

    def _look_back(self, gang: Gang, now: float) -> None:
        """Find out what could not be found when we began to decide, as the gang's terms have been hidden until now."""
        if gang.reason == Reason.POD_GROUP_UNREADABLE and not (gang.record.scheduled_at or gang.begun()):
            recovery.find_begun(gang, foreign=self._foreign, policy=self._policy, now=now)

    def _all_speaking_of(self, dialect: str) -> list[Gang]:
        return [gang for key in self._members.gangs if (gang := self._speaking_of(dialect, key)) is not None]

    def _speaking_of(self, dialect: str, key: GroupKey) -> Gang | None:
        """The gang of that name, which is to be brought up to date, if the dialect's object says its terms."""
        gang = self._members.gangs.get(key)
        says = [] if gang is None else [pod.declaration for pod in gang.pods.values()]
        if not any(say is not None and dialect in say.objects for say in says):
            return None
        self._members.dirty.note(key)
        return gang


def _rests_on_others(gang: Gang) -> bool:
    """Whether no user's PodGroup says the gang's terms beside other systems' objects; one that we made only repeats."""
    return gang.group is None or gang.group.made
