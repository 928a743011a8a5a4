"""Who has left on a snapshot for a trial."""

from __future__ import annotations

from collections.abc import Collection

from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.removable import Removable


class Departures:
    """The units that have left on a snapshot, by number, until `restore` brings it back to what it was."""

    def __init__(self, removable: Removable) -> None:
        self._removable = removable
        self._away: frozenset[int] = frozenset()
        self._mark: int | None = None

    def let_leave(self, snapshot: Snapshot, chosen: Collection[int]) -> int:
        """Let these have left, and nobody else. Returns the number of pods that changed."""
        away = frozenset(chosen)
        if self._mark is None:
            self._mark = snapshot.mark()
        back, new = self._removable.claims(self._away - away), self._removable.claims(away - self._away)
        snapshot.stay(back)
        snapshot.leave(new)
        self._away = away
        return len(back) + len(new)

    def restore(self, snapshot: Snapshot) -> None:
        """Bring the snapshot back to what it was."""
        if self._mark is not None:
            snapshot.undo(self._mark)
        self._away, self._mark = frozenset(), None
