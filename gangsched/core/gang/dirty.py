"""Which gangs are to be brought up to date, in the order in which that became known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from gangsched.core.objects.declaration import GroupKey


class Dirty:
    """Each gang once; whoever is noted again keeps its place."""

    def __init__(self) -> None:
        self._keys: dict[GroupKey, None] = {}

    def note(self, *keys: GroupKey) -> None:
        """Something has happened to these."""
        self.note_all(keys)

    def note_all(self, keys: Iterable[GroupKey]) -> None:
        """Something has happened to these."""
        for key in keys:
            self._keys[key] = None

    def done(self, key: GroupKey) -> None:
        """It is brought up to date."""
        del self._keys[key]

    def first(self) -> GroupKey | None:
        """Who has waited longest; None if nobody waits."""
        return next(iter(self._keys), None)

    def beyond(self, number: int) -> list[GroupKey]:
        """All but the first so many."""
        return list(islice(self._keys, number, None))

    def forget_all(self) -> None:
        """Nobody is to be brought up to date."""
        self._keys.clear()

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[GroupKey]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)
