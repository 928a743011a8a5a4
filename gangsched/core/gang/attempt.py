"""The result of the last attempt to place a gang, kept until there is a reason for another attempt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pause import OPEN, Pause
from gangsched.core.planning.refusal import Refusal


@dataclass(slots=True)
class Attempt:
    """The last attempt. It is changed only by its methods, each of which stands for an event.

    A gang is `parked` while nothing has happened that could help it. `refusal` is why the quorum does not fit,
    `held_up_by` the gang in its FIFO lane that it may not overtake, `refused_members` why single members (by UID) do
    not fit, and `server_said` what the API server said about the last quorum's bindings. `vanguard` are members (by
    UID) that are bound one by one before the others of the quorum under way. `replanned` counts how often all bindings
    were refused and the quorum was planned again at once; `exhausted`: no other node was left for that. `pause` is what
    keeps members without a node waiting, because such pods fail at once. `ask` is what the gang asked for: its members,
    its terms, and which members are bound.
    """

    parked: bool = False
    refusal: Refusal | None = None
    held_up_by: GroupKey | None = None
    server_said: str = ""
    vanguard: Sequence[str] = ()
    replanned: int = 0
    exhausted: bool = False
    pause: Pause = OPEN
    refused_members: dict[str, Refusal] = field(default_factory=dict)
    ask: tuple[object, ...] = ()

    @property
    def says(self) -> bool:
        """Whether the result of the last attempt is known and still holds."""
        return self.refusal is not None or self.held_up_by is not None or bool(self.server_said)

    # Reasons to try again, or not to

    def try_again(self) -> None:
        """Something has happened that may help the gang."""
        self.parked = False

    def try_all_again(self) -> None:
        """Something has happened that may help the gang, including its refused single members."""
        self.parked = False
        self.pause = OPEN
        self.refused_members.clear()

    def asks(self, ask: tuple[object, ...]) -> None:
        """Try the gang again with what it asks for now."""
        self.ask = ask
        self.try_all_again()

    def forget_members(self) -> None:
        """The refusals of single members no longer hold."""
        self.refused_members.clear()

    def spec_changed(self) -> None:
        """The group's spec has changed."""
        self.parked = False
        self.server_said = ""

    def not_tried(self) -> None:
        """The gang is not tried at present, so the result of the last attempt no longer holds."""
        self.forget_refusal()
        self.server_said = ""

    def wait(self) -> None:
        """Park the gang: only the passage of time can help it."""
        self.parked = True

    def forget_refusal(self) -> None:
        """The quorum fits, or the gang has changed so that its refusal no longer holds."""
        self.refusal = self.held_up_by = None

    # Results of a scheduling cycle

    def in_line(self, behind: GroupKey | None) -> bool:
        """Note which gang may not be overtaken, None if there is none. Returns whether there is one."""
        self.held_up_by = behind
        if behind is not None:
            self.refused(None)
        return behind is not None

    def nowhere_else(self) -> None:
        """All bindings were refused, and every node that is left has refused one."""
        self.exhausted = self.parked = True

    def refused(self, refusal: Refusal | None, pause: Pause = OPEN) -> None:
        """The quorum was not placed: it does not fit or, with None, something other than room keeps it waiting."""
        self.refusal, self.pause = refusal, pause
        self.parked = True

    def goes_first(self, vanguard: Sequence[str]) -> None:
        """These members are bound one by one before the others."""
        self.vanguard = vanguard

    def members_refused(self, refusals: Mapping[str, Refusal], pause: Pause) -> None:
        """These single members do not fit, perhaps because of the pause."""
        self.refused_members.update(refusals)
        self.pause = pause

    def member_has_place(self, uid: str) -> None:
        """A single member that was refused has a node after all."""
        self.refused_members.pop(uid, None)

    # Results from the API server

    def heard(self, words: str) -> None:
        """Note what the API server said about a refused binding or write; empty if that no longer holds."""
        self.server_said = words

    def plan_elsewhere(self) -> None:
        """The server has refused all bindings: count that the quorum is planned again on other nodes."""
        self.replanned += 1

    def begin_count(self) -> None:
        """Reset `replanned`: a binding was accepted, or something other than the server keeps the quorum waiting."""
        self.replanned = 0

    def take_exhausted(self) -> bool:
        """Whether `nowhere_else` was called since the last call of this method."""
        exhausted, self.exhausted = self.exhausted, False
        if exhausted:
            self.replanned = 0
        return exhausted

    def succeeded(self) -> None:
        """The quorum is bound."""
        self.forget_refusal()
        self.server_said = ""
        self.vanguard = ()
