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
        self._at: dict[Due, dict[GroupKey, float]] = {due: {} for due in Due}
        self._heaps: dict[Due, list[tuple[float, GroupKey]]] = {due: [] for due in Due}

    def set(self, due: Due, key: GroupKey, at: float) -> None:
        """Set when this is due, replacing the previous time."""
        times, heap = self._at[due], self._heaps[due]
        if times.get(key, _NEVER) == at:
            return
        if at == _NEVER:
            self.drop(due, key)
            return
        times[key] = at
        heappush(heap, (at, key))
        if len(heap) > 2 * len(times) + _SLACK:
            # Stale entries far in the future would otherwise stay for days, until their time comes.
            heap[:] = [(at, key) for key, at in times.items()]
            heapify(heap)

    def hasten(self, due: Due, key: GroupKey, at: float) -> None:
        """Set when this is due, unless it is due earlier."""
        if at < self._at[due].get(key, _NEVER):
            self.set(due, key, at)

    def drop(self, due: Due, key: GroupKey) -> None:
        """This is due at no time."""
        self._at[due].pop(key, None)

    def next(self) -> float:
        """The earliest time; infinity if there is none."""
        return min((self._first(due) for due, heap in self._heaps.items() if heap), default=_NEVER)

    def take_due(self, due: Due, now: float) -> GroupKey | None:
        """Remove and return the key for which this has been due longest; None if it is due for none."""
        if not self._heaps[due] or self._first(due) > now:
            return None
        key = heappop(self._heaps[due])[1]
        self.drop(due, key)
        return key

    def _first(self, due: Due) -> float:
        heap, times = self._heaps[due], self._at[due]
        while heap and times.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else _NEVER

    def validate(self, alive: Container[GroupKey]) -> Iterator[str]:
        """Contradictions, each as a sentence. A key with a UID may belong to an object that is not a gang."""
        gangs = [key for due in (Due.RECONCILE, Due.STATUS) for key in self._at[due] if not key.pod_uid]
        yield from unless_among("what is due", gangs, alive)
        for due, times in self._at.items():
            if not {(at, key) for key, at in times.items()} <= set(self._heaps[due]):
                yield f"{due}: a time is missing from the heap"
