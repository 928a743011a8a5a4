"""Which gangs are to be reconciled, in the order in which that became known."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from gangsched.core.objects.declaration import GroupKey


class Dirty(dict[GroupKey, None]):
    """Each gang once; one that is noted again keeps its place."""

    def note(self, *keys: GroupKey) -> None:
        """Something has happened to these."""
        self.note_all(keys)

    def note_all(self, keys: Iterable[GroupKey]) -> None:
        """Something has happened to these."""
        self.update(dict.fromkeys(keys))

    def done(self, key: GroupKey) -> None:
        """The gang is up to date."""
        del self[key]

    def first(self) -> GroupKey | None:
        """The gang that has waited longest; None if none waits."""
        return next(iter(self), None)

    def beyond(self, number: int) -> list[GroupKey]:
        """All but the first `number`."""
        return list(islice(self, number, None))

    def forget_all(self) -> None:
        """No gang is to be reconciled."""
        self.clear()
