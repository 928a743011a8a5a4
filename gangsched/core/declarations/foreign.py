"""Stores what other systems' objects declare, apart from the gangs, because most of them never have a pod of ours.

An object is hidden while its dialect's objects cannot be read, which is not the same as deleted. What was last known of
a hidden object decides nothing, but the run of its gang goes on once the object is seen again.

A workload's object may lie below another one (`core.declarations.top_owners`), and counts as seen once both have been.
An object above that may not be read is ignored. The root of a tree of groups stands for all of the tree
(`core.declarations.trees`).
"""

from __future__ import annotations

from collections.abc import Iterator

from gangsched.core.declarations import trees
from gangsched.core.declarations.top_owners import below, with_minimum
from gangsched.core.objects.declaration import COMPOSITE, NATIVE, GroupKey
from gangsched.core.objects.events import Event, ForeignGroupsHidden, ForeignGroupsReplaced
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.core.objects.workload import SERIES_OF, TopOwner

Place = tuple[str, GroupKey]
"""A dialect and the key of one of its objects."""


class Foreign:
    """The groups by dialect and key, and for each object's place the objects that depend on it.

    `jobs` grows whenever it is another Job that is patient, or another time at which a limit ends one.
    """

    def __init__(self) -> None:
        self.jobs = 0
        self._groups: dict[str, dict[GroupKey, ForeignGroup]] = {}
        self._hidden: dict[str, ForeignGroupsHidden] = {}
        self._dependents: dict[Place, set[Place]] = {}
        self._trees: dict[GroupKey, ForeignGroup] = {}

    def find(self, dialect: str, key: GroupKey) -> ForeignGroup | None:
        """What the dialect's object of that name declares; None if there is none, or it or one above it is hidden."""
        return None if self._why(dialect) is not None else self.known(dialect, key)

    def known(self, dialect: str, key: GroupKey) -> ForeignGroup | None:
        """Like `find`, but also for an object that is hidden itself."""
        group = self._groups.get(dialect, {}).get(key)
        if dialect == COMPOSITE:
            return self._tree(group) if group is not None else None
        top = _top_of(group)
        if group is None or top is None:
            return group
        if self.is_denied(top.kind):
            return with_minimum(group)
        above = None if top.kind in self._hidden else self._groups.get(top.kind, {}).get(_place(top, key)[1])
        return below(group, above) if above is not None and above.uid == top.uid else None

    def stored(self, dialect: str, key: GroupKey) -> ForeignGroup | None:
        """What is known of this object alone, without those above and below it."""
        return self._groups.get(dialect, {}).get(key)

    def tree_of(self, dialect: str, key: GroupKey) -> str:
        """The name of the root of the tree above this object; empty if none is above it (`trees.root_of`)."""
        return trees.root_of(self._groups.get(dialect, {}).get(key), self._groups)

    def leaves(self, dialect: str, key: GroupKey) -> Iterator[GroupKey]:
        """The keys of the native PodGroups of the tree that are this object or are below it."""
        places, seen = [(dialect, key)], set[Place]()
        while places:
            place = places.pop()
            if place in seen:
                continue
            seen.add(place)
            if place[0] == NATIVE:
                yield place[1]
            else:
                places += self.dependents(*place)

    def _why(self, dialect: str) -> ForeignGroupsHidden | None:
        """Why the dialect's objects cannot be read; a tree cannot without those of either kind."""
        hidden = self._hidden.get(dialect)
        return self._hidden.get(NATIVE) if hidden is None and dialect == COMPOSITE else hidden

    def _tree(self, root: ForeignGroup) -> ForeignGroup:
        if root.key not in self._trees:
            self._trees[root.key] = trees.whole(root, self._below)
        return self._trees[root.key]

    def _below(self, key: GroupKey) -> list[ForeignGroup]:
        """The objects directly below this CompositePodGroup, the oldest first."""
        groups = [self._groups[dialect][below] for dialect, below in self.dependents(COMPOSITE, key)]
        return sorted(groups, key=lambda group: (group.created, group.key.name, group.dialect))

    def why_hidden(self, dialect: str) -> str:
        """Why the dialect's objects cannot be read, in a sentence; empty if they can."""
        hidden = self._why(dialect)
        return hidden.why if hidden is not None else ""

    def is_denied(self, dialect: str) -> bool:
        """Whether the right to read the dialect's objects is missing."""
        hidden = self._hidden.get(dialect)
        return hidden is not None and hidden.denied

    def awaited(self, dialect: str, key: GroupKey) -> TopOwner | None:
        """The object above the dialect's object of that name, if that is the only one not seen yet."""
        group = self._groups.get(dialect, {}).get(key) if dialect not in self._hidden else None
        return _top_of(group) if self.find(dialect, key) is None else None

    def sees(self, dialect: str) -> bool:
        """Whether objects of the dialect can be read and have been."""
        return dialect in self._groups and dialect not in self._hidden

    def dependents(self, dialect: str, key: GroupKey) -> list[Place]:
        """The objects on whose pods the dialect's object of that name has a say.

        They lie below it, as in a tree of groups, or it counts successes among their pods, as a Job does for those of
        its JobSet.
        """
        return sorted(self._dependents.get((dialect, key), ()))

    def dependents_of_all(self, dialect: str) -> list[Place]:
        """The objects on whose pods any object of the dialect has a say."""
        return sorted({place for by, places in self._dependents.items() if by[0] == dialect for place in places})

    def keys(self, dialect: str) -> list[GroupKey]:
        """The keys of all groups of the dialect, hidden or not."""
        return list(self._groups.get(dialect, {}))

    def workloads(self) -> list[ForeignGroup]:
        """The objects of workloads that are there now, or were when they could be read last."""
        return [group for groups in self._groups.values() for group in groups.values() if group.workload is not None]

    def facts(self) -> list[Event]:
        """Everything observed, as events for a successor."""
        known: list[Event] = [
            ForeignGroupsReplaced(dialect, tuple(groups.values())) for dialect, groups in self._groups.items()
        ]
        return known + list(self._hidden.values())

    def keep(self, group: ForeignGroup) -> None:
        """Store what an object declares now."""
        self.jobs += _job(self.stored(group.dialect, group.key)) != _job(group)
        self._unlink(group.dialect, group.key)
        self._groups.setdefault(group.dialect, {})[group.key] = group
        for place in _depends_on(group):
            self._dependents.setdefault(place, set()).add((group.dialect, group.key))

    def drop(self, dialect: str, key: GroupKey) -> None:
        """Forget an object."""
        self.jobs += _job(self.stored(dialect, key)) != _job(None)
        self._unlink(dialect, key)
        self._groups.get(dialect, {}).pop(key, None)

    def _unlink(self, dialect: str, key: GroupKey) -> None:
        if dialect in trees.TREE_KINDS:
            self._trees.clear()
        group = self._groups.get(dialect, {}).get(key)
        for place in _depends_on(group) if group is not None else ():
            self._dependents[place].discard((dialect, key))
            if not self._dependents[place]:
                del self._dependents[place]

    def hide(self, hidden: ForeignGroupsHidden) -> None:
        """Note that the dialect's objects cannot be read from now on."""
        self._hidden[hidden.dialect] = hidden

    def show(self, dialect: str) -> bool:
        """Note that the dialect's objects can be read. Returns False if they were not hidden."""
        return self._hidden.pop(dialect, None) is not None


def _job(group: ForeignGroup | None) -> tuple[str, float]:
    """The UID of a patient Job, empty for anything else, and when a limit ends a Job."""
    facts = group.workload if group is not None else None
    return (group.uid if facts.patient else "", facts.ends_by) if group is not None and facts is not None else ("", 0.0)


def _top_of(group: ForeignGroup | None) -> TopOwner | None:
    return group.workload.top if group is not None and group.workload is not None else None


def _depends_on(group: ForeignGroup) -> set[Place]:
    """The places of objects that have a say on this one's pods: the one above it, and the Jobs that count its pods."""
    top, all_series = _top_of(group), group.workload.series if group.workload is not None else ()
    above = {_place(top, group.key)} if top is not None else set()
    if group.parent:
        above.add((COMPOSITE, GroupKey(group.key.namespace, group.parent)))
    return above | {(SERIES_OF, GroupKey(group.key.namespace, name)) for series in all_series for name in series.jobs}


def _place(top: TopOwner, key: GroupKey) -> Place:
    """The place of the object above the one with this key."""
    return top.kind, GroupKey(key.namespace, top.name)
