"""What other systems' objects declare, kept apart from the gangs because most of them never have a pod of ours.

An object is hidden while its dialect's objects cannot be read, which is not the same as deleted. What was last known of
a hidden object decides nothing, but the run of its gang goes on once the object is seen again.

An object of a workload may lie below another one (`core.declarations.tops`), and is seen once both are. An object above
that may not be read says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from gangsched.core.declarations.tops import below, with_minimum
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.events import Event, ForeignGroupsHidden, ForeignGroupsReplaced
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.core.objects.workload import SERIES_OF, Top

Place = tuple[str, GroupKey]
"""A dialect and the key of one of its objects."""


class Foreign:
    """The groups by dialect and key; by an object's place those that lie below it, and those that it counts for."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[GroupKey, ForeignGroup]] = {}
        self._hidden: dict[str, ForeignGroupsHidden] = {}
        self._below: dict[Place, set[Place]] = {}
        self._counted: dict[Place, set[Place]] = {}

    def find(self, dialect: str, key: GroupKey) -> ForeignGroup | None:
        """What the dialect's object of that name declares; None if there is none, or it or one above it is hidden."""
        return None if dialect in self._hidden else self.known(dialect, key)

    def known(self, dialect: str, key: GroupKey) -> ForeignGroup | None:
        """The same, also if it is hidden itself."""
        found = self._groups.get(dialect, {}).get(key)
        top = _top_of(found)
        if found is None or top is None:
            return found
        if self.is_denied(top.kind):
            return with_minimum(found)
        above = None if top.kind in self._hidden else self._groups.get(top.kind, {}).get(_place(top, key)[1])
        return below(found, above) if above is not None and above.uid == top.uid else None

    def why_hidden(self, dialect: str) -> str:
        """Why the dialect's objects cannot be read, in a sentence; empty if they can."""
        hidden = self._hidden.get(dialect)
        return hidden.why if hidden is not None else ""

    def is_denied(self, dialect: str) -> bool:
        """Whether the right to read the dialect's objects is missing."""
        hidden = self._hidden.get(dialect)
        return hidden is not None and hidden.denied

    def awaited(self, dialect: str, key: GroupKey) -> Top | None:
        """The object above the dialect's object of that name, if only that has not been seen."""
        found = self._groups.get(dialect, {}).get(key) if dialect not in self._hidden else None
        return _top_of(found) if self.find(dialect, key) is None else None

    def sees(self, dialect: str) -> bool:
        """Whether objects of the dialect can be read and have been."""
        return dialect in self._groups and dialect not in self._hidden

    def counted(self, dialect: str, key: GroupKey) -> list[Place]:
        """The objects for whose pods the dialect's object of that name counts, as a Job does for its JobSet."""
        return sorted(self._counted.get((dialect, key), ()))

    def counted_all(self, dialect: str) -> list[Place]:
        """The objects for whose pods objects of the dialect count."""
        return sorted({place for by, places in self._counted.items() if by[0] == dialect for place in places})

    def below(self, dialect: str, key: GroupKey) -> list[Place]:
        """The objects below the dialect's object of that name."""
        return sorted(self._below.get((dialect, key), ()))

    def below_all(self, dialect: str) -> list[Place]:
        """The objects below all objects of the dialect."""
        return sorted(place for top, places in self._below.items() if top[0] == dialect for place in places)

    def keys(self, dialect: str) -> list[GroupKey]:
        """The keys of all groups of the dialect, hidden or not."""
        return list(self._groups.get(dialect, {}))

    def facts(self) -> list[Event]:
        """What was observed, as events for a successor."""
        known: list[Event] = [
            ForeignGroupsReplaced(dialect, tuple(groups.values())) for dialect, groups in self._groups.items()
        ]
        return known + list(self._hidden.values())

    def keep(self, group: ForeignGroup) -> None:
        """Store what an object declares now."""
        self._unlink(group.dialect, group.key)
        self._groups.setdefault(group.dialect, {})[group.key] = group
        for index, place in self._links(group):
            index.setdefault(place, set()).add((group.dialect, group.key))

    def drop(self, dialect: str, key: GroupKey) -> None:
        """Forget an object."""
        self._unlink(dialect, key)
        self._groups.get(dialect, {}).pop(key, None)

    def _unlink(self, dialect: str, key: GroupKey) -> None:
        group = self._groups.get(dialect, {}).get(key)
        for index, place in self._links(group) if group is not None else ():
            index[place].discard((dialect, key))
            if not index[place]:
                del index[place]

    def _links(self, group: ForeignGroup) -> Iterator[tuple[dict[Place, set[Place]], Place]]:
        """The indexes that lead to the object, each with the place under which it stands there."""
        top = _top_of(group)
        if top is not None:
            yield self._below, _place(top, group.key)
        for each in group.workload.series if group.workload is not None else ():
            for name in each.jobs:
                yield self._counted, (SERIES_OF, GroupKey(group.key.namespace, name))

    def hide(self, hidden: ForeignGroupsHidden) -> None:
        """The dialect's objects cannot be read from now on."""
        self._hidden[hidden.dialect] = hidden

    def show(self, dialect: str) -> bool:
        """The dialect's objects can be read. Returns False if they were not hidden."""
        return self._hidden.pop(dialect, None) is not None


def _top_of(group: ForeignGroup | None) -> Top | None:
    return group.workload.top if group is not None and group.workload is not None else None


def _place(top: Top, key: GroupKey) -> Place:
    """Where the object above the one with this key is."""
    return top.kind, GroupKey(key.namespace, top.name)
