"""Why a gang waits: the result of the last search for places, kept until there is a reason for another one."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from msgspec import Struct, field

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pause import OPEN, Pause
from gangsched.core.planning.refusal import Refusal


class Wait(Struct):
    """Whether a gang is tried, and if not, what for it waits. Only these methods change it."""

    parked: bool = False
    """Nothing has happened that could help it since it was last tried."""
    refusal: Refusal | None = None
    """Why there is no room for the quorum."""
    refused_members: dict[str, Refusal] = field(default_factory=dict)
    """Why there is none for single members, by UID."""
    refused_since: int = 0
    """The number of improvements on nodes (`queueing.parking`) before the first of these was refused."""
    behind: GroupKey | None = None
    """The gang in its FIFO lane that it may not overtake."""
    pause: Pause = OPEN
    """What keeps members without a node waiting, because such pods fail at once."""
    outside: str = ""
    """Why it is not tried at all: too many groups of its namespace wait ahead of it (`queueing.admission`)."""
    asked: tuple[object, ...] = ()
    """What it asked for: its members, its terms, and which members are bound."""

    # What may help

    def try_again(self) -> None:
        """Something has happened that may help the gang."""
        self.parked = False

    def try_all_again(self) -> None:
        """Something has happened that may help the gang, including its refused single members."""
        self.parked = False
        self.pause = OPEN
        self.refused_members.clear()

    def ask(self, asked: tuple[object, ...]) -> None:
        """Try the gang again with what it asks for now."""
        self.asked = asked
        self.try_all_again()

    def forget_members(self) -> None:
        """The refusals of single members no longer hold."""
        self.refused_members.clear()

    def see(self, asked: tuple[Hashable, ...], viewer: Hashable) -> None:
        """Of what is reserved for others, something else counts for the gang than when it was refused what it asked."""
        if self.refusal is not None and self.refusal.asked == asked:
            self.refusal = self.refusal.seen_by(viewer)
        for uid, refusal in self.refused_members.items():
            if refusal.asked == asked:
                self.refused_members[uid] = refusal.seen_by(viewer)

    def forget_refusal(self) -> None:
        """The quorum fits, or the gang has changed so that its refusal no longer holds."""
        self.refusal = self.behind = None

    def member_has_place(self, uid: str) -> None:
        """A single member that was refused has a node after all."""
        self.refused_members.pop(uid, None)

    def enter(self) -> None:
        """The gang may be tried, for all that waits ahead of it."""
        self.outside = ""

    # What to wait for

    def park(self) -> None:
        """Only the passage of time can help the gang."""
        self.parked = True

    def refuse(self, refusal: Refusal | None, pause: Pause = OPEN) -> None:
        """The quorum was not placed: it does not fit or, with None, something other than room keeps it waiting."""
        self.refusal, self.pause = refusal, pause
        self.parked = True

    def refuse_members(self, refusals: Mapping[str, Refusal], pause: Pause, *, since: int) -> None:
        """These single members do not fit after so many improvements on nodes, perhaps because of the pause."""
        if not self.refused_members:
            self.refused_since = since
        self.refused_members.update(refusals)
        self.pause = pause

    def park_members(self, reliefs: int) -> None:
        """Single members were refused; all are tried again if a node has improved since the first one was."""
        if self.refused_since < reliefs:
            self.try_all_again()
        else:
            self.parked = True

    def stand_behind(self, other: GroupKey | None) -> bool:
        """Wait for the gang that may not be overtaken, None if there is none. Returns whether there is one."""
        self.behind = other
        if other is not None:
            self.refuse(None)
        return other is not None

    def stay_outside(self, why: str) -> None:
        """The gang is not tried, because of those that wait ahead of it."""
        self.outside = why
