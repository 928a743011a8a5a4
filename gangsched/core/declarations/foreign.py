"""What other systems' objects declare, kept apart from the gangs because most of them never have a pod of ours.

An object is hidden while its dialect's objects cannot be read, which is not the same as deleted. What was last known of
a hidden object decides nothing, but the run of its gang goes on once the object is seen again.
"""

from __future__ import annotations

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.events import Event, ForeignGroupsHidden, ForeignGroupsReplaced
from gangsched.core.objects.podgroup import ForeignGroup


class Foreign:
    """The groups by dialect and key."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[GroupKey, ForeignGroup]] = {}
        self._hidden: dict[str, str] = {}

    def find(self, dialect: str, key: GroupKey) -> ForeignGroup | None:
        """What the dialect's object of that name declares; None if there is none, or it is hidden."""
        return None if dialect in self._hidden else self._groups.get(dialect, {}).get(key)

    def why_hidden(self, dialect: str) -> str:
        """Why the dialect's objects cannot be read, in a sentence; empty if they can."""
        return self._hidden.get(dialect, "")

    def keys(self, dialect: str) -> list[GroupKey]:
        """The keys of all groups of the dialect, hidden or not."""
        return list(self._groups.get(dialect, {}))

    def facts(self) -> list[Event]:
        """What was observed, as events for a successor."""
        known: list[Event] = [
            ForeignGroupsReplaced(dialect, tuple(groups.values())) for dialect, groups in self._groups.items()
        ]
        return known + [ForeignGroupsHidden(dialect, why) for dialect, why in self._hidden.items()]

    def keep(self, group: ForeignGroup) -> ForeignGroup | None:
        """Store what an object declares now. Returns what it declared before."""
        known = self._groups.setdefault(group.dialect, {})
        old, known[group.key] = known.get(group.key), group
        return old

    def drop(self, dialect: str, key: GroupKey) -> bool:
        """Forget an object. Returns False if it was not known."""
        return self._groups.get(dialect, {}).pop(key, None) is not None

    def hide(self, dialect: str, why: str) -> None:
        """The dialect's objects cannot be read from now on."""
        self._hidden[dialect] = why

    def show(self, dialect: str) -> bool:
        """The dialect's objects can be read. Returns False if they were not hidden."""
        return self._hidden.pop(dialect, None) is not None
