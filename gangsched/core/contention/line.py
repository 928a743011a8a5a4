"""The groups for which others may be asked to leave, in order."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Container, Iterator

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.queueing.order import OrderKey


class Line:
    """Groups in the order of contract rule 6."""

    def __init__(self) -> None:
        self._ranks: dict[GroupKey, OrderKey] = {}
        self._waiting: list[tuple[OrderKey, GroupKey]] = []

    def __bool__(self) -> bool:
        """Whether any group waits."""
        return bool(self._waiting)

    def __contains__(self, key: object) -> bool:
        """Whether the group waits."""
        return key in self._ranks

    def __iter__(self) -> Iterator[GroupKey]:
        """The groups, the first in the order first, as they are now."""
        return iter([key for _, key in self._waiting])

    def first(self, number: int) -> list[GroupKey]:
        """The first groups in the order, at most so many, as they are now."""
        return [key for _, key in self._waiting[:number]]

    def file(self, key: GroupKey, rank: OrderKey | None) -> bool:
        """Put the group where it belongs, or with None take it out. Returns whether that has changed anything."""
        if self._ranks.get(key) == rank:
            return False
        self.drop(key)
        if rank is not None:
            self._ranks[key] = rank
            insort(self._waiting, (rank, key))
        return True

    def drop(self, key: GroupKey) -> None:
        """Take the group out."""
        before = self._ranks.pop(key, None)
        if before is not None:
            del self._waiting[bisect_left(self._waiting, (before, key))]

    def validate(self, alive: Container[GroupKey]) -> list[str]:
        """Contradictions, each as a sentence."""
        if sorted((rank, key) for key, rank in self._ranks.items()) != self._waiting:
            return ["the groups that may preempt others are out of order"]
        return [f"{key}: may preempt others though it is gone" for key in self._ranks if key not in alive]
