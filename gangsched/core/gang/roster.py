"""Which of a gang's members belong to which run, and to the quorum under way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class Roster:
    """Sets of members by UID, changed by these methods alone.

    `past` are of earlier runs, `recorded` of this one and their end is in the record. `chosen` were given places as
    parts of the quorum under way; `inherited` were bound by a former leader, by a rival or after they had been given
    up, so that a quorum may have been begun with them. Of those `leaving` the eviction was accepted. `emptied`: since
    the gang was last brought up to date, its last live member went and then another came.
    """

    __slots__ = ("chosen", "emptied", "inherited", "leaving", "past", "recorded")

    def __init__(self) -> None:
        self.past: frozenset[str] = frozenset()
        self.recorded: set[str] = set()
        self.chosen: set[str] = set()
        self.inherited: set[str] = set()
        self.leaving: set[str] = set()
        self.emptied = False

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
        """These have places as parts of the quorum under way, or, if it was begun `anew`, they alone."""
        if anew:
            self.chosen = set()
        self.chosen.update(uids)

    def inherit(self, uid: str) -> None:
        """The member was bound without having been asked for just now."""
        self.inherited.add(uid)

    def inherit_only(self, uids: Iterable[str] = ()) -> None:
        """A quorum may have been begun with these, and with no others that were inherited."""
        self.inherited = set(uids)

    def leave(self, uid: str) -> None:
        """The member's eviction was accepted."""
        self.leaving.add(uid)

    def keep(self, there: Mapping[str, object]) -> None:
        """Forget who is leaving or was chosen and not `there` any more."""
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
        """Whether that has happened since this was last asked."""
        emptied, self.emptied = self.emptied, False
        return emptied
