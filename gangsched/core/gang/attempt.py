"""What the last try to place a gang has come to, until something is a reason for another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.planning.refusal import Refusal


class Attempt:
    """Changed by its methods alone, each of which says what has happened.

    A gang is `parked` while nothing has happened that could help it. `refusal` is why its quorum has no places,
    `held_up_by` the gang whose turn it is before this one's, `refused_members` why single members (by UID) have none,
    and `server_said` what the API server said of the last quorum's bindings. `vanguard` are members (by UID) that go
    one by one before the others of the quorum under way. `replanned` is how often all its bindings were refused and it
    was planned again at once, `exhausted` whether there was no other node left for that.
    """

    __slots__ = (
        "_refused_members",
        "exhausted",
        "held_up_by",
        "parked",
        "refusal",
        "replanned",
        "server_said",
        "vanguard",
    )

    def __init__(self) -> None:
        self.parked = False
        self.refusal: Refusal | None = None
        self.held_up_by: GroupKey | None = None
        self.server_said = ""
        self.vanguard: Sequence[str] = ()
        self.replanned = 0
        self.exhausted = False
        self._refused_members: dict[str, Refusal] = {}

    @property
    def refused_members(self) -> Mapping[str, Refusal]:
        """Why single members, by UID, have no places."""
        return self._refused_members

    # Reasons to try again, or not to

    def try_again(self) -> None:
        """Something has happened that may help."""
        self.parked = False

    def try_all_again(self) -> None:
        """Something has happened that may help, also the single members that were refused."""
        self.parked = False
        self._refused_members.clear()

    def forget_members(self) -> None:
        """What single members were refused for does not hold any more."""
        self._refused_members.clear()

    def wait(self) -> None:
        """Nothing can help before time has passed."""
        self.parked = True

    def forget_refusal(self) -> None:
        """Why there are no places says nothing any more of the gang as it is now."""
        self.refusal = self.held_up_by = None

    # What a scheduling cycle finds

    def in_line(self, behind: GroupKey | None) -> bool:
        """Note whose turn it is before this one. Returns whether it is another gang's."""
        self.held_up_by = behind
        if behind is not None:
            self.refusal = None
            self.parked = True
        return behind is not None

    def nowhere_else(self) -> None:
        """All its bindings were refused, and no node is left that has not refused one."""
        self.exhausted = self.parked = True

    def refused(self, refusal: Refusal) -> None:
        """There is no room for the quorum."""
        self.refusal = refusal
        self.parked = True

    def stopped(self) -> None:
        """A cap keeps it from having its places; there may be room."""
        self.refusal = None
        self.parked = True

    def has_places(self) -> None:
        """The quorum has places."""
        self.refusal = None

    def goes_first(self, vanguard: Sequence[str]) -> None:
        """These members go one by one before the others."""
        self.vanguard = vanguard

    def members_refused(self, refusals: Mapping[str, Refusal]) -> None:
        """There is no room for these single members."""
        self._refused_members.update(refusals)

    def member_has_place(self, uid: str) -> None:
        """A single member has a place after all."""
        self._refused_members.pop(uid, None)

    # What the API server says

    def heard(self, words: str) -> None:
        """The server has said why it does not bind; empty: that is over."""
        self.server_said = words

    def plan_elsewhere(self) -> None:
        """The server has refused all bindings: the quorum is planned again on other nodes."""
        self.replanned += 1

    def begin_count(self) -> None:
        """A binding stands, or another reason than the server keeps the quorum from its places."""
        self.replanned = 0

    def take_exhausted(self) -> bool:
        """Whether no other node was left since this was last asked."""
        exhausted, self.exhausted = self.exhausted, False
        if exhausted:
            self.replanned = 0
        return exhausted

    def succeeded(self) -> None:
        """The quorum is bound."""
        self.refusal = self.held_up_by = None
        self.server_said = ""
        self.vanguard = ()
