"""The description of a kind of write. All other modules treat all kinds alike."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import Any, Generic, NamedTuple, TypeVar

from gangsched.core.objects.effects import Effect
from gangsched.core.objects.events import Event
from gangsched.kube.writing.write_results import WriteResult

E = TypeVar("E")


class Lane(StrEnum):
    """Where a write waits. Each lane is first in, first out; `runtime.backlog` defines their order."""

    RESERVATION = auto()
    """A status with a reservation, for which bindings wait, or a phase, for which another system's controller does."""
    BINDING = auto()
    """A binding of a quorum."""
    ABOVE = auto()
    """A binding of a member above its gang's minimum."""
    ACTION = auto()
    """Other changes: those that roll back gangs and have a deadline, and those that bindings wait for: pre-bindings and
    new PodGroups. A second write with the key of one that waits or is in flight is not added: one result serves both.
    """
    STATUS = auto()
    """Informs people about a group; still sent during shutdown."""
    DETAIL = auto()
    """Informs people about single pods, or autoscalers."""
    EVENT = auto()
    """Informs people, in a bounded queue that drops its oldest. Yields to STATUS and DETAIL for a while; still sent
    during shutdown."""


BINDINGS = frozenset({Lane.BINDING, Lane.ABOVE})
INFORMING = frozenset({Lane.STATUS, Lane.DETAIL, Lane.EVENT})
SENT_AT_THE_END = frozenset({Lane.RESERVATION, Lane.STATUS, Lane.EVENT})


class Retry(Enum):
    """How a write that may succeed later is retried."""

    NEVER = auto()
    """It is not retried: the machine receives the failure and decides."""
    SOME = auto()
    """It is retried with full-jitter back-off, as often as the executor allows, unless a newer one replaces it."""
    UNTIL_ANSWERED = auto()
    """It is retried with back-off and without limit, because the machine waits for it."""


@dataclass(frozen=True, kw_only=True)
class Write(Generic[E]):
    """How writes of one kind are sent.

    `key`: of several writes with one key, at most one is in flight, and only the newest waits. Without a key all are
    sent. `overrules` is the key of a write that this one makes pointless: if that one waits, it is dropped; if it is in
    flight, this one waits for its result, and the overruled one is not retried. `send` never raises for a failure of
    the server or the network. `outcome` finds, after a term of leadership, the result of a write that was sent and not
    answered (None if it had no effect), and raises a KubeError if it cannot. `about` names the object in the log. The
    log line is `done`, if that is set, or `failed`. If the machine repeats a failing write itself (`repeated`), the
    failure is logged once, until a write of the kind succeeds.
    """

    lane: Callable[[E], Lane]
    key: Callable[[E], Hashable] | None
    send: Callable[[E], Awaitable[WriteResult]]
    retry: Retry
    about: Callable[[E], str]
    overrules: Callable[[E], Hashable] | None = None
    outcome: Callable[[E], Awaitable[Event | None]] | None = None
    done: str = ""
    failed: str = "write given up"
    repeated: bool = False

    def job(self, effect: E, since: float) -> Job:
        """A job for this write that began to wait at `since`."""
        return Job(
            effect,
            self,
            self.lane(effect),
            self.key(effect) if self.key is not None else object(),
            self.overrules(effect) if self.overrules is not None else None,
            since,
        )


@dataclass(frozen=True, kw_only=True)
class Withdrawal(Generic[E]):
    """An effect that sends nothing: the write that waits under its key is dropped and answered with `answer`."""

    key: Callable[[E], Hashable]
    answer: Callable[[E], Event]


Table = Mapping[type[Effect], Write[Any] | Withdrawal[Any]]


class Job(NamedTuple):
    """A waiting write. `since` is when it began to wait, on any monotonic clock; `attempt` counts past attempts."""

    effect: Any
    write: Write[Any]
    lane: Lane
    key: Hashable
    overrules: Hashable | None
    since: float
    attempt: int = 0

    @property
    def kind(self) -> str:
        """The name of its kind in metrics and the log."""
        return type(self.effect).__name__

    @property
    def served_by_others(self) -> bool:
        """Whether a job with its key that waits or is in flight makes it unnecessary."""
        return self.lane is Lane.ACTION
