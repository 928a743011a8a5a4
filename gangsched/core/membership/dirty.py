"""Which gangs are to be reconciled, in the order in which that became known."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from gangsched.core.objects.declaration import GroupKey


class Dirty(dict[GroupKey, None]):
    """Each gang once; one that is noted again keeps its place."""

    def note(self, *keys: GroupKey) -> None:
        """Something has happened to these."""
        self.update(dict.fromkeys(keys))

    def take(self) -> Iterator[GroupKey]:
        """The gangs, longest waiting first; each of them is then up to date."""
        while self:
            key = next(iter(self))
            del self[key]
            yield key

    def take_beyond(self, number: int) -> Iterator[GroupKey]:
        """All but the first `number` at present, in order; each of them is then up to date."""
        for key in list(islice(self, number, None)):
            del self[key]
            yield key

    def forget_all(self) -> None:
        """No gang is to be reconciled."""
        self.clear()
