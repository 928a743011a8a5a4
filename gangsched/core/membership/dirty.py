"""The queue of gangs to be reconciled, in the order in which they were noted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from gangsched.core.objects.declaration import GroupKey


class Dirty(dict[GroupKey, None]):
    """Holds each gang once; a gang that is noted again keeps its position."""

    def note(self, *keys: GroupKey) -> None:
        """Add these gangs."""
        self.update(dict.fromkeys(keys))

    def take(self) -> Iterator[GroupKey]:
        """Remove and yield all gangs, longest waiting first; the caller reconciles each."""
        while self:
            key = next(iter(self))
            del self[key]
            yield key

    def take_beyond(self, number: int) -> Iterator[GroupKey]:
        """Remove and yield, in order, all gangs after the first `number`; the caller brings each up to date."""
        for key in list(islice(self, number, None)):
            del self[key]
            yield key

    def forget_all(self) -> None:
        """Remove all gangs."""
        self.clear()
