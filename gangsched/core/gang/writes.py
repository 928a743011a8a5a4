"""Writes of one gang that are under way: pre-bindings, bindings and evictions."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from gangsched.core.objects.pod import Pod
from gangsched.core.objects.prebindings import Prebinding
from gangsched.core.objects.results import EvictionRefused, OwnerSeen


class BindState(StrEnum):
    """How far a member's binding has come."""

    HELD = "Held"
    """The node is reserved; nothing was sent, or the last try failed and another is due."""
    SENT = "Sent"
    """A binding is with the API server."""
    BOUND = "Bound"
    """The server has confirmed; the watch has not shown it yet."""


@dataclass(slots=True)
class Errand:
    """A pre-binding of a member. `retry_at` is when it may be written (again), `tries` how often that was tried.

    `made`: the watch has shown it. `done`: it holds.
    """

    what: Prebinding
    made: bool = False
    done: bool = False
    tries: int = 0
    retry_at: float = 0.0
    complaint: str = ""

    def sent(self, again_at: float) -> None:
        """It was sent to the API server, and is sent again at that time if nothing is heard of it."""
        self.tries += 1
        self.retry_at = again_at

    def put_off(self) -> None:
        """It is sent once the watch shows a change."""
        self.retry_at = float("inf")

    def failed(self, complaint: str, retry_at: float) -> None:
        """The server has not written it."""
        self.retry_at = retry_at
        self.complaint = complaint

    def shown(self, *, done: bool) -> None:
        """The watch shows it, and whether it holds."""
        self.made = True
        self.done = done
        self.complaint = ""


@dataclass(slots=True)
class Binding:
    """A member's reservation and binding. `retry_at` is when it may be sent (again), `tries` how often it was sent.

    `errands` must be done before it is sent; they were begun at `since`. `above`: the member is above the minimum.

    `withdrawn`: its withdrawal was asked for and has not been answered. `vacant`: the member does not exist yet, `pod`
    is a placeholder (it has no name) and is never sent; see `core.gang.placeholders`.
    """

    pod: Pod
    node: str
    state: BindState = BindState.HELD
    tries: int = 0
    retry_at: float = 0.0
    complaint: str = ""
    withdrawn: bool = False
    vacant: bool = False
    errands: tuple[Errand, ...] = ()
    since: float = 0.0
    above: bool = False

    @property
    def awaits(self) -> Errand | None:
        """The first pre-binding that does not hold yet."""
        # Written out, because all bindings are asked at each look at a gang, and few have any.
        for errand in self.errands:
            if not errand.done:
                return errand
        return None

    @property
    def prebindings(self) -> tuple[Prebinding, ...]:
        """What must hold before it is sent."""
        return tuple(errand.what for errand in self.errands)

    def sent(self) -> None:
        """It was sent to the API server."""
        self.state = BindState.SENT
        self.tries += 1

    def confirmed(self) -> None:
        """The server has bound the member."""
        self.state = BindState.BOUND
        self.complaint = ""

    def failed(self, complaint: str, retry_at: float) -> None:
        """The server has not bound the member; the node stays reserved for another try."""
        self.state = BindState.HELD
        self.retry_at = retry_at
        self.complaint = complaint

    def withdraw(self) -> None:
        """Its withdrawal was asked for."""
        self.withdrawn = True

    def begin(self, now: float) -> None:
        """Its pre-bindings are awaited from now on, if they were not before."""
        self.since = self.since or now

    def renew(self, pod: Pod) -> None:
        """The member has changed to this form."""
        self.pod = pod


@dataclass(slots=True)
class Eviction:
    """The eviction of a member. `asked`: it was sent and has not been answered."""

    asked: bool = False
    tries: int = 0
    retry_at: float = 0.0
    refused_with: EvictionRefused | None = None

    def ask(self) -> None:
        """It was sent."""
        self.asked = True
        self.tries += 1

    def answered(self) -> None:
        """The server has answered."""
        self.asked = False

    def refused(self, refusal: EvictionRefused, retry_at: float) -> None:
        """The server has refused it for now."""
        self.refused_with = refusal
        self.retry_at = retry_at


@dataclass(slots=True)
class Undo:
    """A rollback: members are evicted so that the gang is scheduled again as a whole; see `core.gang.rollback`.

    `restart` names the members that onDegraded Restart evicts; None for a rollback of a quorum, which evicts all bound
    members. `evictions` and `spared` (why a member is not evicted) are by UID. `owners` is what is known of their Jobs
    and `asked` when that was requested; both are forgotten at `review_at` and requested again. `note` says what has
    happened, for a person. `retried`: the rest was placed after all, and nothing more is evicted unless that fails too.
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
    """A member of a scheduled gang whose binding the server refused: not tried before `until` (0.0: may be tried)."""

    until: float
    message: str
    times: int
