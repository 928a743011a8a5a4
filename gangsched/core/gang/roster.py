"""Which members belong to which run and to the quorum under way, and which reservations are durable (design rule 4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct, field


class Roster(Struct):
    """Sets of members by UID; only these methods change them.

    `past` belong to earlier runs; `recorded` belong to this run, and the record counts them as ended. `chosen` were
    given nodes as parts of the quorum under way; `inherited` were bound by a former leader, by another scheduler, or
    after gangsched had given them up, so that a quorum may have begun with them. `leaving` are members whose eviction
    was accepted. `emptied`: since the gang was last reconciled, its last live member went and then another one came.
    """

    past: frozenset[str] = frozenset()
    recorded: set[str] = field(default_factory=set)
    chosen: set[str] = field(default_factory=set)
    inherited: set[str] = field(default_factory=set)
    leaving: set[str] = field(default_factory=set)
    emptied: bool = False

    def begin_run(self, past: Iterable[str]) -> None:
        """Begin another run, to which these members do not belong."""
        self.past = frozenset(past)
        self.recorded = set()

    def end_run(self, past: Iterable[str]) -> None:
        """End the run to which these members belonged."""
        self.past = frozenset(past)

    def count(self, *uids: str) -> None:
        """Note that the record counts these members as ended."""
        self.recorded.update(uids)

    def choose(self, uids: Iterable[str], *, replace: bool = False) -> None:
        """Note that these members have nodes in the quorum under way; only these if it has just begun (`replace`)."""
        if replace:
            self.chosen = set()
        self.chosen.update(uids)

    def inherit(self, uid: str) -> None:
        """Note that the member was bound although gangsched had not just sent its binding."""
        self.inherited.add(uid)

    def inherit_only(self, uids: Iterable[str] = ()) -> None:
        """Make these the only inherited members: those with which a quorum may have begun."""
        self.inherited = set(uids)

    def leave(self, uid: str) -> None:
        """Note that the member's eviction was accepted."""
        self.leaving.add(uid)

    def keep(self, there: Mapping[str, object]) -> None:
        """Forget leaving and chosen members that are not `there` any more."""
        self.leaving -= self.leaving.difference(there)
        self.chosen -= self.chosen.difference(there)

    def forget(self, uid: str) -> None:
        """Forget a member that no longer exists."""
        if uid in self.past:
            self.past -= {uid}
        self.recorded.discard(uid)
        self.inherited.discard(uid)

    def note_emptied(self) -> None:
        """Note that the last live member has gone and another one has come."""
        self.emptied = True

    def forget_emptied(self) -> None:
        """The run of the last live member that has gone is over."""
        self.emptied = False


class Durability(Struct):
    """Which reservations are written to the PodGroup's status. Only these methods change it.

    `asked_at` is the time since which reservations must be written before anything relies on them, 0.0 if they need not
    be. The reservations of the members `secured` (by UID) are written. `unmade`: the API server refused to create the
    PodGroup that was to hold them, and the gang goes on without.
    """

    asked_at: float = 0.0
    secured: frozenset[str] = frozenset()
    unmade: bool = False

    def covers(self, uid: str) -> bool:
        """Whether the member's reservation may be relied on: it is written, or need not be."""
        return not self.asked_at or uid in self.secured

    def ask(self, now: float) -> None:
        """Require the gang's reservations to be durable from now on."""
        self.asked_at = now

    def needless(self) -> None:
        """The reservations need not be durable any more."""
        self.asked_at = 0.0

    def could_not(self) -> None:
        """Give up durability: there is no PodGroup to write the reservations to, and none can be created."""
        self.unmade = True
        self.asked_at = 0.0

    def written(self, uids: Iterable[str]) -> None:
        """Note that the status holds the reservations of these members."""
        self.secured = frozenset(uids)

    def found(self, uids: Iterable[str], asked_at: float) -> None:
        """A former leader needed durable reservations, and the status holds those of these members."""
        self.secured, self.asked_at = frozenset(uids), asked_at

    def hand_over(self, old: str, new: str) -> None:
        """Another member takes over the reservation."""
        if old in self.secured:
            self.secured = self.secured - {old} | {new}

    def release(self, uid: str) -> None:
        """The member's reservation is released."""
        if uid in self.secured:
            self.secured -= {uid}

    def drop(self) -> None:
        """The PodGroup that held the reservations is gone."""
        self.secured, self.asked_at = frozenset(), 0.0

    def end(self) -> None:
        """The gang has no reservations any more."""
        self.drop()
        self.unmade = False
