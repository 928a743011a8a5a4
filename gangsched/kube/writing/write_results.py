"""The result of a write to the API server, in one form for all kinds of writes."""

from __future__ import annotations

from enum import StrEnum
from http import HTTPStatus
from typing import NamedTuple

from gangsched.core.objects.events import Event
from gangsched.core.objects.results import BindRefused, EvictionRefused
from gangsched.kube.client.errors import ApiError, KubeError


class Outcome(StrEnum):
    """The API server's answer. For refused bindings and evictions see `Refused` and `Spared`."""

    WRITTEN = "Written"
    """The object is written."""
    BOUND = "Bound"
    """The pod is bound to the requested node."""
    EVICTED = "Evicted"
    """The pod is gone, or is terminating."""
    SEEN = "Seen"
    """The look-up has a result."""
    STALE = "Stale"
    """The write's condition no longer holds: the resourceVersion has changed, or the name is taken."""
    GONE = "Gone"
    """The object no longer exists, or another one has its name."""
    UNAVAILABLE = "Unavailable"
    """Throttled, failed or not answered: the same write may succeed later."""
    REFUSED = "Refused"
    """The server rejects it permanently."""


_UNAVAILABLE: str = Outcome.UNAVAILABLE
_DONE = frozenset({Outcome.WRITTEN, Outcome.BOUND, Outcome.EVICTED, Outcome.SEEN})


class WriteResult(NamedTuple):
    """The result of a write.

    `result` is its name in metrics and in the log: one of `Outcome`, `Refused` or `Spared`. The machine receives
    `event` unless the write is retried. `retry_after_s` is the wait that the server requests, 0 if none. `message` is
    for the log; empty if there is nothing to log.
    """

    result: str
    event: Event | None = None
    retry_after_s: float = 0.0
    message: str = ""

    @property
    def done(self) -> bool:
        """Whether the write succeeded."""
        return self.result in _DONE

    @property
    def passing(self) -> bool:
        """Whether the same write may succeed later. This result has the same name for all kinds of writes."""
        return self.result == _UNAVAILABLE


def refused(event: BindRefused | EvictionRefused) -> WriteResult:
    """The answer that passes this event to the machine."""
    return WriteResult(event.why.value, event, event.retry_after_s, event.message)


def failed(error: KubeError, *, event: Event | None = None) -> WriteResult:
    """The answer to a write that failed with this error, if the error's status alone decides the reaction."""
    if not isinstance(error, ApiError):
        return WriteResult(Outcome.UNAVAILABLE, event, message=str(error))
    # A write that carries the UID of an object whose name another one has now is invalid.
    other_uid = error.status == HTTPStatus.UNPROCESSABLE_ENTITY and "metadata.uid" in error.message
    if error.status == HTTPStatus.NOT_FOUND or other_uid:
        return WriteResult(Outcome.GONE, event)
    if error.passing or error.status == HTTPStatus.CONFLICT:
        return WriteResult(Outcome.UNAVAILABLE, event, error.retry_after_s, str(error))
    return WriteResult(Outcome.REFUSED, event, message=str(error))
