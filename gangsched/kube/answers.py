"""What came of a write to the API server, in one form for all writes."""

from __future__ import annotations

from enum import StrEnum
from http import HTTPStatus
from typing import NamedTuple

from gangsched.core.objects.events import Event
from gangsched.core.objects.results import BindRefused, EvictionRefused
from gangsched.kube.errors import ApiError, KubeError


class Outcome(StrEnum):
    """How the API server answered. For refused bindings and evictions see `Refused` and `Spared`."""

    WRITTEN = "Written"
    """It stands."""
    BOUND = "Bound"
    """The pod is bound as it was asked for."""
    EVICTED = "Evicted"
    """The pod is gone, or is terminating."""
    SEEN = "Seen"
    """What was to be found out is known."""
    STALE = "Stale"
    """It was conditional on what is no longer so: a resourceVersion, or that the name is free."""
    GONE = "Gone"
    """The object does not exist any more, or another one has its name."""
    UNAVAILABLE = "Unavailable"
    """Throttled, failed or not answered: the same write may succeed later."""
    REFUSED = "Refused"
    """The server will not accept it however often it is sent."""


_UNAVAILABLE: str = Outcome.UNAVAILABLE
_DONE = frozenset({Outcome.WRITTEN, Outcome.BOUND, Outcome.EVICTED, Outcome.SEEN})


class Answer(NamedTuple):
    """What came of a write.

    `result` is its word in metrics and in the log: one of `Outcome`, `Refused` or `Spared`. `event` is what the machine
    is told unless the write is tried again. `retry_after_s` is what the server asked for, 0 without. `message` is what
    the log says; empty where nobody needs to know.
    """

    result: str
    event: Event | None = None
    retry_after_s: float = 0.0
    message: str = ""

    @property
    def done(self) -> bool:
        """Whether what was asked for is so."""
        return self.result in _DONE

    @property
    def passing(self) -> bool:
        """Whether the same write may succeed later; the word is the same for every kind of write."""
        return self.result == _UNAVAILABLE


def refused(event: BindRefused | EvictionRefused) -> Answer:
    """The answer of which the machine is told so."""
    return Answer(event.why.value, event, event.retry_after_s, event.message)


def failed(error: KubeError, *, event: Event | None = None) -> Answer:
    """The answer to a write that failed so, where its status alone says what is to be done about it."""
    if not isinstance(error, ApiError):
        return Answer(Outcome.UNAVAILABLE, event, message=str(error))
    if error.status == HTTPStatus.NOT_FOUND:
        return Answer(Outcome.GONE, event)
    if error.passing or error.status == HTTPStatus.CONFLICT:
        return Answer(Outcome.UNAVAILABLE, event, error.retry_after_s, str(error))
    return Answer(Outcome.REFUSED, event, message=str(error))
