"""Which members belong to which run and to the quorum under way, and which reservations are durable (design rule 4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class Roster:
    """Sets of members by UID, changed by these methods alone.

    `past` are of earlier runs; `recorded` are of this run and their end is in the record. `chosen` were given nodes as
    parts of the quorum under way; `inherited` were bound by a former leader, by a rival or after they had been given
    up, so that a quorum may have been begun with them. `leaving` are those whose eviction was accepted. `emptied`:
    since the gang was last reconciled, its last live member went and then another came.
    """

    past: frozenset[str] = frozenset()
    recorded: set[str] = field(default_factory=set)
    chosen: set[str] = field(default_factory=set)
    inherited: set[str] = field(default_factory=set)
    leaving: set[str] = field(default_factory=set)
    emptied: bool = False

    def begin_run(self, past: Iterable[str]) -> None:
        """Another run begins, to which these do not belong."""
        self.past = frozenset(past)
        self.recorded = set()

    def end_run(self, past: Iterable[str]) -> None:
        """The run has ended, to which these belonged."""
        self.past = frozenset(past)

    def count(self, *uids: str) -> None:
        """The end of these is in the record."""
        self.recorded.update(uids)

    def choose(self, uids: Iterable[str], *, anew: bool = False) -> None:
        """These have nodes as parts of the quorum under way; with `anew` (it has just begun) they alone."""
        if anew:
            self.chosen = set()
        self.chosen.update(uids)

    def inherit(self, uid: str) -> None:
        """The member was bound though no binding of it was just sent."""
        self.inherited.add(uid)

    def inherit_only(self, uids: Iterable[str] = ()) -> None:
        """A quorum may have been begun with these, and with no others that were inherited."""
        self.inherited = set(uids)

    def leave(self, uid: str) -> None:
        """The member's eviction was accepted."""
        self.leaving.add(uid)

    def keep(self, there: Mapping[str, object]) -> None:
        """Forget members that were leaving or chosen and are not `there` any more."""
        self.leaving -= self.leaving.difference(there)
        self.chosen -= self.chosen.difference(there)

    def forget(self, uid: str) -> None:
        """The member exists no longer."""
        if uid in self.past:
            self.past -= {uid}
        self.recorded.discard(uid)
        self.inherited.discard(uid)

    def note_emptied(self) -> None:
        """The last live member has gone, and another has come."""
        self.emptied = True

    def take_emptied(self) -> bool:
        """Whether that has happened since the last call."""
        emptied, self.emptied = self.emptied, False
        return emptied


@dataclass(slots=True)
class Durability:
    """Which reservations are written to the PodGroup's status. Changed by these methods alone.

    `asked_at` is since when reservations must be written before anything relies on them, 0.0 if they need not; those of
    members `secured` (by UID) are. `unmade`: the API server refused to create the PodGroup that was to hold them, and
    the gang goes on without.
    """

    asked_at: float = 0.0
    secured: frozenset[str] = frozenset()
    unmade: bool = False

    def covers(self, uid: str) -> bool:
        """Whether the reservation may be relied on: it is written, or need not be."""
        return not self.asked_at or uid in self.secured

    def ask(self, now: float) -> None:
        """The gang's reservations must be durable from now on."""
        self.asked_at = now

    def needless(self) -> None:
        """They need not be durable any more."""
        self.asked_at = 0.0

    def could_not(self) -> None:
        """They cannot be durable: there is no PodGroup to write them to, and none is created."""
        self.unmade = True
        self.asked_at = 0.0

    def written(self, uids: Iterable[str]) -> None:
        """The status holds the reservations of these."""
        self.secured = frozenset(uids)

    def found(self, uids: Iterable[str], asked_at: float) -> None:
        """A former leader needed them durable, and the status holds the reservations of these."""
        self.secured, self.asked_at = frozenset(uids), asked_at

    def hand_over(self, old: str, new: str) -> None:
        """Another member has the reservation."""
        if old in self.secured:
            self.secured = self.secured - {old} | {new}

    def release(self, uid: str) -> None:
        """The reservation is released."""
        if uid in self.secured:
            self.secured -= {uid}

    def drop(self) -> None:
        """The PodGroup that held the reservations is gone."""
        self.secured, self.asked_at = frozenset(), 0.0

    def end(self) -> None:
        """Nothing is reserved any more."""
        self.drop()
        self.unmade = False
