"""The order of everything that waits (contract rule 6), and the gangs that are to be brought up to date, in that order.

A gang's exact place is known only once it has been reconciled. Until then `earliest` bounds it from below: nothing
behind that place may be planned before the gang has been looked at. Places are found when they are asked for, once for
all that was noted about a gang since.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from heapq import heapify, heappop, heappush

from gangsched.core.declarations.foreign import Foreign
from gangsched.core.declarations.terms import priority_of
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.podgroup import ForeignGroup, Group
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.priority_class import PriorityClasses

OrderKey = tuple[bool, int, float, str, str]
"""The sort key of contract rule 6: whether it is no repair, minus the priority with aging, creation in epoch seconds,
name."""
PATIENCE = 64
"""Number of calls that a gang waits behind more urgent ones that keep arriving."""
_SLACK = 64


def order_key(gang: Gang, assessment: Assessment) -> OrderKey:
    """Repairs first, then priority with aging, then age, then namespace/name (contract rule 6)."""
    terms, priority = assessment.terms, assessment.terms.priority + assessment.aged
    return (not assessment.want.repair, -priority, terms.created, gang.key.namespace, gang.key.name)


def earliest(gang: Gang, *, foreign: Foreign, policy: Policy, priority_classes: PriorityClasses) -> OrderKey:
    """A place that the gang's own cannot be before, whatever reconciling it will find; it costs no look at its pods.

    The priority is at most the highest of what its pods, its PodGroup and other systems' objects ask for, and its age
    at most that of the oldest of them. A gang that has or had a bound member, or has bindings, may want a repair.
    """
    seen, key = gang.observed, gang.key
    doing = gang.operations
    may_repair = bool(seen.traits.bound or gang.record.scheduled_at or doing.bindings or doing.comes_back)
    aged = policy.aging.most if policy.aging.every_s else 0
    if seen.traits.objects is None:
        return (not may_repair, -policy.max_priority - aged, 0.0, key.namespace, key.name)
    own = seen.traits.priority
    priority, created = min(own, policy.max_priority), seen.traits.created
    places = [(dialect, GroupKey(key.namespace, name or key.name)) for dialect, name in seen.traits.objects]
    declaring: list[Group | ForeignGroup | None] = [seen.group, *(foreign.find(*place) for place in places)]
    for group in declaring:
        if group is None:
            continue
        if group.spec is not None:
            priority = max(priority, priority_of(group.spec, own, priority_classes, policy)[0])
        created = min(created, group.created)
    return (not may_repair, -priority - aged, created, key.namespace, key.name)


class Dirty(Collection[GroupKey]):
    """Holds each gang once. `earliest` tells the earliest place that a gang may have in the order."""

    def __init__(self, earliest: Callable[[GroupKey], OrderKey]) -> None:
        self._earliest = earliest
        self._call = 0
        self._noted: dict[GroupKey, int] = {}
        self._moved: dict[GroupKey, None] = {}
        self._places: dict[GroupKey, OrderKey] = {}
        self._heap: list[tuple[OrderKey, GroupKey]] = []

    def __contains__(self, key: object) -> bool:
        return key in self._noted

    def __iter__(self) -> Iterator[GroupKey]:
        return iter(self._noted)

    def __len__(self) -> int:
        return len(self._noted)

    def begin_call(self, number: int) -> None:
        """Gangs that are noted from now on wait since this call of the machine."""
        self._call = number

    def note(self, *keys: GroupKey) -> None:
        """Add these gangs, or find the places of those that are here already anew."""
        for key in keys:
            self._noted.setdefault(key, self._call)
            self._moved[key] = None

    @property
    def since(self) -> float:
        """The call since which the gang waits that has waited longest; infinity if none waits."""
        return next(iter(self._noted.values()), float("inf"))

    @property
    def first(self) -> OrderKey | None:
        """The earliest place of a gang that waits; None if none waits."""
        self._place()
        while self._heap and self._places.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take_first(self) -> GroupKey:
        """Remove and return the gang with the earliest place, which the caller reconciles; one must wait."""
        # The place of a single gang, as there is most often, decides nothing.
        several = len(self._noted) > 1 and self.first is not None
        return self._take(heappop(self._heap)[1] if several else next(iter(self._noted)))

    def take_longest_waiting(self) -> GroupKey:
        """Remove and return the gang that has waited longest, which the caller reconciles; one must wait."""
        return self._take(next(iter(self._noted)))

    def forget_all(self) -> None:
        """Remove all gangs."""
        for known in (self._noted, self._moved, self._places):
            known.clear()
        self._heap = []

    def _take(self, key: GroupKey) -> GroupKey:
        del self._noted[key]
        self._moved.pop(key, None)
        self._places.pop(key, None)
        if not self._noted:
            self._heap = []
        return key

    def _place(self) -> None:
        moved, self._moved = self._moved, {}
        for key in moved:
            place = self._earliest(key)
            if self._places.get(key) != place:
                self._places[key] = place
                heappush(self._heap, (place, key))
        if len(self._heap) > 2 * len(self._places) + _SLACK:
            self._heap = [(place, key) for key, place in self._places.items()]
            heapify(self._heap)
