"""Writes that one gang has under way: bindings, evictions."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from gangsched.core.objects.pod import Pod
from gangsched.core.objects.results import EvictionRefused, OwnerSeen


class BindState(StrEnum):
    """How far a member's binding has come."""

    HELD = "Held"
    """The place is reserved; nothing has been sent, or the last try failed and another is due."""
    SENT = "Sent"
    """A binding is with the API server."""
    BOUND = "Bound"
    """The server has confirmed; the watch has not shown it yet."""


@dataclass(slots=True)
class Binding:
    """A member's way to its node. `retry_at` is when a held place may be tried (again), `tries` how often it was.

    `withdrawn`: it was asked not to be sent; the answer is still to come. `vacant`: the member does not exist yet,
    `pod` stands for it (it has no name) and the place is only ever held; see `core.gang.placeholders`.
    """

    pod: Pod
    node: str
    state: BindState = BindState.HELD
    tries: int = 0
    retry_at: float = 0.0
    complaint: str = ""
    withdrawn: bool = False
    vacant: bool = False

    def sent(self) -> None:
        """It is with the API server."""
        self.state = BindState.SENT
        self.tries += 1

    def confirmed(self) -> None:
        """The server has bound the member."""
        self.state = BindState.BOUND
        self.complaint = ""

    def failed(self, complaint: str, retry_at: float) -> None:
        """The server has not bound the member; the place is kept for another try."""
        self.state = BindState.HELD
        self.retry_at = retry_at
        self.complaint = complaint

    def withdraw(self) -> None:
        """It was asked not to be sent."""
        self.withdrawn = True

    def renew(self, pod: Pod) -> None:
        """The member is known in this form now."""
        self.pod = pod


@dataclass(slots=True)
class Eviction:
    """A member's way off its node. `asked`: the server has been asked and has not answered."""

    asked: bool = False
    tries: int = 0
    retry_at: float = 0.0
    refused_with: EvictionRefused | None = None

    def ask(self) -> None:
        """The server is asked."""
        self.asked = True
        self.tries += 1

    def answered(self) -> None:
        """It has answered."""
        self.asked = False

    def refused(self, refusal: EvictionRefused, retry_at: float) -> None:
        """It would not, for now."""
        self.refused_with = refusal
        self.retry_at = retry_at


@dataclass(slots=True)
class Undo:
    """Members are being evicted so that the gang starts over whole; `core.gang.rollback` explains and does it.

    `restart` names the members that onDegraded Restart evicts, None for an undo, which evicts whoever is bound.
    `evictions` and `spared` (why a member is left where it is) are by UID. `owners` is what is known of their Jobs,
    `asked` when it was asked for, all of which is forgotten at `review_at` and
    found out anew. `note` says what has happened, for a person. `retried`: places were found for the
    rest after all, and nothing more is evicted unless they fail too.
    """

    since: float
    note: str
    restart: frozenset[str] | None = None
    evictions: dict[str, Eviction] = field(default_factory=dict)
    spared: dict[str, str] = field(default_factory=dict)
    owners: dict[str, OwnerSeen] = field(default_factory=dict)
    asked: dict[str, float] = field(default_factory=dict)
    review_at: float = float("inf")
    retried: bool = False


@dataclass(frozen=True, slots=True)
class Barred:
    """A member of a scheduled gang whose binding the server refuses: not tried before `until` (0.0: may be)."""

    until: float
    message: str
    times: int
