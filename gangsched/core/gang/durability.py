"""Which of a gang's places are written down, so that a restart knows of them (design rule 4)."""

from __future__ import annotations

from collections.abc import Iterable


class Durability:
    """Changed by these methods alone.

    `asked_at` is since when places must be written down before anything relies on them, 0.0 if they need not; those of
    members `secured` (by UID) are. `unmade`: the API server would not make the PodGroup in which they were to stand,
    and the gang goes on without.
    """

    __slots__ = ("asked_at", "secured", "unmade")

    def __init__(self) -> None:
        self.asked_at = 0.0
        self.secured: frozenset[str] = frozenset()
        self.unmade = False

    def covers(self, uid: str) -> bool:
        """Whether the place may be relied on: it is written down, or need not be."""
        return not self.asked_at or uid in self.secured

    def ask(self, now: float) -> None:
        """The gang's places must be durable from now on."""
        self.asked_at = now

    def needless(self) -> None:
        """They need not be any more."""
        self.asked_at = 0.0

    def could_not(self) -> None:
        """They cannot be: there is no PodGroup to write them to, and none is made."""
        self.unmade = True
        self.asked_at = 0.0

    def written(self, uids: Iterable[str]) -> None:
        """The status holds the places of these."""
        self.secured = frozenset(uids)

    def found(self, uids: Iterable[str], asked_at: float) -> None:
        """A former leader had asked for it, and the status holds the places of these."""
        self.secured, self.asked_at = frozenset(uids), asked_at

    def hand_over(self, old: str, new: str) -> None:
        """Another member has the place."""
        if old in self.secured:
            self.secured = self.secured - {old} | {new}

    def release(self, uid: str) -> None:
        """The place is given up."""
        if uid in self.secured:
            self.secured -= {uid}

    def drop(self) -> None:
        """The object in which the places stood is gone."""
        self.secured, self.asked_at = frozenset(), 0.0

    def end(self) -> None:
        """No place is held any more."""
        self.secured, self.asked_at, self.unmade = frozenset(), 0.0, False
