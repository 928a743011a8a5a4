"""When each gang is due even without an event: a heap whose stale entries are skipped."""

from __future__ import annotations

from collections.abc import Container, Iterator
from heapq import heapify, heappop, heappush

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.queueing.lines import unless_among

_SLACK = 64


class Deadlines:
    """One deadline for each key, in epoch seconds; infinity stands for none."""

    def __init__(self) -> None:
        self._at: dict[GroupKey, float] = {}
        self._heap: list[tuple[float, GroupKey]] = []

    def set(self, key: GroupKey, at: float) -> None:
        """Set the key's deadline, replacing the previous one."""
        if self._at.get(key) == at:
            return
        if at == float("inf"):
            self.drop(key)
            return
        self._at[key] = at
        heappush(self._heap, (at, key))
        if len(self._heap) > 2 * len(self._at) + _SLACK:
            # Stale entries far in the future would otherwise stay for days, until their time comes.
            self._heap = [(at, key) for key, at in self._at.items()]
            heapify(self._heap)

    def hasten(self, key: GroupKey, at: float) -> None:
        """Set the key's deadline to this time unless it has an earlier one."""
        if at < self._at.get(key, float("inf")):
            self.set(key, at)

    def drop(self, key: GroupKey) -> None:
        """Remove the key's deadline."""
        self._at.pop(key, None)

    def next(self) -> float:
        """The earliest deadline; infinity if there is none."""
        while self._heap and self._at.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else float("inf")

    def take_due(self, now: float) -> GroupKey | None:
        """Remove and return the key with the earliest deadline; None if none is due."""
        if self.next() > now:
            return None
        key = heappop(self._heap)[1]
        self.drop(key)
        return key

    def validate(self, alive: Container[GroupKey]) -> Iterator[str]:
        """Contradictions, each as a sentence. A key with a UID may belong to an object that is not a gang."""
        yield from unless_among("the deadlines", [key for key in self._at if not key.pod_uid], alive)
        if not {(at, key) for key, at in self._at.items()} <= set(self._heap):
            yield "a deadline is missing from the heap"
