"""Writes that one gang has under way: bindings, evictions, and what was said last."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from gangsched.core.objects.pod import Pod
from gangsched.core.objects.results import EvictionRefused, OwnerSeen
from gangsched.core.objects.status import GroupStatus


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


@dataclass(slots=True)
class Eviction:
    """A member's way off its node. `asked`: the server has been asked and has not answered."""

    asked: bool = False
    tries: int = 0
    retry_at: float = 0.0
    refusal: EvictionRefused | None = None


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


@dataclass(slots=True)
class Told:
    """What people were told last, so that nothing is said twice.

    `unwritten`: the last status was not accepted and is owed again at `retry_at`. `awaited` are the pods
    in a reservation whose writing has not been answered; nothing else is told until then. `message_at` says when a
    message was last written, `basis` what the messages were made of; `behind`: one of them has changed only
    in numbers and is not written yet. `hindered` is the reason of the last Event about members that are kept from a
    scheduled group, `claims` are the owners that one has named. `members` are the reasons on members' conditions, each
    with the time at which it was written. `version` is the PodGroup's that was known when `status` was decided.
    """

    status: GroupStatus | None = None
    version: str = ""
    unwritten: bool = False
    awaited: frozenset[str] | None = None
    retry_at: float = 0.0
    message_at: float = float("-inf")
    basis: tuple[object, ...] = ()
    behind: bool = False
    event: str = ""
    hindered: str = ""
    claims: frozenset[str] = frozenset()
    members: dict[str, tuple[str, float]] = field(default_factory=dict)
    strangers: set[str] = field(default_factory=set)
