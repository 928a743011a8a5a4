"""What people were told last of a gang, so that nothing is said twice."""

from __future__ import annotations

from dataclasses import dataclass, field

from gangsched.core.objects.status import GroupStatus


@dataclass(slots=True)
class Told:
    """Changed by its methods, and by the status writer.

    `unwritten`: the last status was not accepted and is owed again at `write_again_at`. `awaited` are the pods
    in a reservation whose writing has not been answered; nothing else is told until then. `message_at` says when a
    message was last written, `basis` what the messages were made of; `behind`: one of them has changed only
    in numbers and is not written yet. `hindered` is the reason of the last Event about members that are kept from a
    scheduled group, `named_owners` are the owners that one has named. `members` are the reasons on members' conditions,
    each with the time at which it was written. `version` is the PodGroup's that was known when `status` was decided.
    """

    status: GroupStatus | None = None
    version: str = ""
    unwritten: bool = False
    awaited: frozenset[str] | None = None
    write_again_at: float = 0.0
    message_at: float = float("-inf")
    basis: tuple[object, ...] = ()
    behind: bool = False
    event: str = ""
    hindered: str = ""
    named_owners: frozenset[str] = frozenset()
    members: dict[str, tuple[str, float]] = field(default_factory=dict)
    strangers: set[str] = field(default_factory=set)

    def owe(self, status: GroupStatus | None) -> None:
        """This status is to be written, though nothing in it has been decided since."""
        self.status = status
        self.unwritten = True

    def said_message(self, now: float) -> None:
        """A message of a condition is written."""
        self.message_at = now

    def said_to_member(self, uid: str, reason: str, now: float) -> None:
        """The member's condition is written with this reason."""
        self.members[uid] = (reason, now)

    def said_of_stranger(self, uid: str) -> None:
        """An Event says that the pod is no member."""
        self.strangers.add(uid)

    def forget_pod(self, uid: str) -> None:
        """What was said of the pod goes with it."""
        self.members.pop(uid, None)
        self.strangers.discard(uid)

    def another_run(self) -> None:
        """What was said of the last run may have to be said again."""
        self.event = ""

    def recall(self, status: GroupStatus, event: str) -> None:
        """A former leader has written this status, and told of this reason."""
        self.status = status
        self.event = event

    def wrote(self, status: GroupStatus, version: str, awaited: frozenset[str] | None) -> None:
        """This status is on its way to the PodGroup of that version; with the places of these it must be answered."""
        self.status = status
        self.version = version
        self.unwritten = False
        if awaited is not None:
            self.awaited = awaited

    def unheard(self, status: GroupStatus) -> None:
        """This would be said if there were a PodGroup."""
        self.status = status

    def refused(self, write_again_at: float) -> None:
        """The status was not accepted, and is owed again then."""
        self.unwritten = True
        self.awaited = None
        self.write_again_at = write_again_at

    def take_awaited(self) -> frozenset[str]:
        """The status with these places was accepted."""
        awaited, self.awaited = self.awaited or frozenset(), None
        return awaited

    def said(self, event: str) -> str:
        """An Event of this reason. Returns the one before."""
        before, self.event = self.event, event
        return before
