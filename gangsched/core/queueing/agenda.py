"""What is due at which time even without an event: a heap for each kind, whose stale entries are skipped."""

from __future__ import annotations

from collections.abc import Container, Iterator
from enum import StrEnum
from heapq import heapify, heappop, heappush

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.queueing.lines import unless_among

_NEVER = float("inf")
_SLACK = 64


class Due(StrEnum):
    """What is to be done. The key of a time is a gang's or, where no gang is concerned, another object's."""

    RECONCILE = "Reconcile"
    """Bring the gang up to date."""
    STATUS = "Status"
    """Write the gang's status."""
    PHASE = "Phase"
    """Write the status of another system's object again."""
    REPORT = "Report"
    """Report a pod that no scheduler has noticed."""


class Agenda:
    """One time for each kind and key, in epoch seconds; infinity stands for none."""

    def __init__(self) -> None:
        self._at: dict[Due, dict[GroupKey, float]] = {what: {} for what in Due}
        self._heaps: dict[Due, list[tuple[float, GroupKey]]] = {what: [] for what in Due}

    def set(self, what: Due, key: GroupKey, at: float) -> None:
        """Set when this is due, replacing the previous time."""
        times, heap = self._at[what], self._heaps[what]
        if times.get(key, _NEVER) == at:
            return
        if at == _NEVER:
            self.drop(what, key)
            return
        times[key] = at
        heappush(heap, (at, key))
        if len(heap) > 2 * len(times) + _SLACK:
            # Stale entries far in the future would otherwise stay for days, until their time comes.
            heap[:] = [(at, key) for key, at in times.items()]
            heapify(heap)

    def hasten(self, what: Due, key: GroupKey, at: float) -> None:
        """Set when this is due, unless it is due earlier."""
        if at < self._at[what].get(key, _NEVER):
            self.set(what, key, at)

    def drop(self, what: Due, key: GroupKey) -> None:
        """This is due at no time."""
        self._at[what].pop(key, None)

    def next(self) -> float:
        """The earliest time; infinity if there is none."""
        return min((self._first(what) for what, heap in self._heaps.items() if heap), default=_NEVER)

    def take_due(self, what: Due, now: float) -> GroupKey | None:
        """Remove and return the key for which this has been due longest; None if it is due for none."""
        if not self._heaps[what] or self._first(what) > now:
            return None
        key = heappop(self._heaps[what])[1]
        self.drop(what, key)
        return key

    def _first(self, what: Due) -> float:
        heap, times = self._heaps[what], self._at[what]
        while heap and times.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else _NEVER

    def validate(self, alive: Container[GroupKey]) -> Iterator[str]:
        """Contradictions, each as a sentence. A key with a UID may belong to an object that is not a gang."""
        gangs = [key for what in (Due.RECONCILE, Due.STATUS) for key in self._at[what] if not key.pod_uid]
        yield from unless_among("what is due", gangs, alive)
        for what, times in self._at.items():
            if not {(at, key) for key, at in times.items()} <= set(self._heaps[what]):
                yield f"{what}: a time is missing from the heap"
