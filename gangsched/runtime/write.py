"""What must be known of a kind of write to send it: everything else treats all kinds alike."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import Any, Generic, NamedTuple, TypeVar

from gangsched.core.objects.effects import Effect
from gangsched.core.objects.events import Event
from gangsched.kube.answers import Answer

E = TypeVar("E")


class Lane(StrEnum):
    """Where a write waits. Each lane is first in, first out; `runtime.backlog` says which goes first."""

    RESERVATION = auto()
    """Bindings wait for it."""
    BINDING = auto()
    """Of a quorum."""
    ABOVE = auto()
    """A binding of a member above its gang's minimum."""
    UNDOING = auto()
    """What undoes gangs and has a deadline, and what bindings wait for in a while. What waits or is in flight under a
    key serves whoever asks again."""
    STATUS = auto()
    """Tells people of a group; still sent at the end."""
    DETAIL = auto()
    """Speaks of single pods or to autoscalers."""
    EVENT = auto()
    """Tells people too, in a bounded queue that drops its oldest; yields to both for a while, and is still sent at the
    end."""


BINDINGS = frozenset({Lane.BINDING, Lane.ABOVE})
TELLING = frozenset({Lane.STATUS, Lane.DETAIL, Lane.EVENT})
SENT_AT_THE_END = frozenset({Lane.RESERVATION, Lane.STATUS, Lane.EVENT})


class Retry(Enum):
    """What becomes of a write that may succeed later."""

    NEVER = auto()
    """The machine is told and decides."""
    SOME = auto()
    """It is tried so many times as the executor allows, with full-jitter back-off, unless a newer one takes its
    place."""
    UNTIL_ANSWERED = auto()
    """It is tried for ever, with back-off: the machine waits for it."""


@dataclass(frozen=True, kw_only=True)
class Write(Generic[E]):
    """How writes of one kind are sent.

    `key`: of writes with one key one is in flight at most, and only the newest waits; without it all are sent.
    `overrules` is the key of what this write makes pointless: it is dropped where it waits, waited for where it is in
    flight, and not tried again. `send` never raises for anything that the server or the network does. `outcome` finds
    out, after a term of leadership, what became of one that was sent and not answered (None if nothing has); it raises
    a KubeError where it cannot. `about` names the object in the log, which says `done` where that is set, and `failed`;
    where the machine goes on asking for what fails (`repeated`) once, until one of the kind succeeds.
    """

    lane: Callable[[E], Lane]
    key: Callable[[E], Hashable] | None
    send: Callable[[E], Awaitable[Answer]]
    retry: Retry
    about: Callable[[E], str]
    overrules: Callable[[E], Hashable] | None = None
    outcome: Callable[[E], Awaitable[Event | None]] | None = None
    done: str = ""
    failed: str = "write given up"
    repeated: bool = False

    def job(self, effect: E, since: float) -> Job:
        """This write, which waits from now on."""
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
    """An effect that sends nothing: what waits under its key is not sent, and answered with `answer`."""

    key: Callable[[E], Hashable]
    answer: Callable[[E], Event]


Table = Mapping[type[Effect], Write[Any] | Withdrawal[Any]]


class Job(NamedTuple):
    """A write that waits: since when (seconds of any monotonic clock) and how often it was tried before."""

    effect: Any
    write: Write[Any]
    lane: Lane
    key: Hashable
    overrules: Hashable | None
    since: float
    attempt: int = 0

    @property
    def kind(self) -> str:
        """What metrics and the log call its kind."""
        return type(self.effect).__name__

    @property
    def served_by_others(self) -> bool:
        """Whether one that waits or is in flight under its key serves it too."""
        return self.lane is Lane.UNDOING
