"""A watched kind of object: where it is listed, and how its objects are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import msgspec
from msgspec import Raw

from gangsched.core.objects.events import Event
from gangsched.kube import wire

PAGE = 500
LIST_TIMEOUT_S = 60.0
Value = TypeVar("Value")


class _Object(Protocol):
    """The part that all kinds of objects have."""

    metadata: wire.Meta


Sent = TypeVar("Sent", bound=_Object)


@dataclass(frozen=True, kw_only=True)
class Resource(Generic[Value]):
    """A kind of object, its path and its conversion to events.

    `read` returns the object's resourceVersion and its value for the core, and raises `msgspec.DecodeError` if it is
    unreadable; `form` has the fields that it decodes, None if they are not listed. `selector` selects objects by their
    labels, empty for all. `optional`: gangsched works without the kind, for example one of another system.
    `if_missing` says what to do if it is not served.
    """

    name: str
    path: str
    read: Callable[[Raw], tuple[str | None, Value]]
    seen: Callable[[Value], Event]
    gone: Callable[[wire.Meta], Event]
    replaced: Callable[[tuple[Value, ...]], Event]
    selector: str = ""
    optional: bool = False
    if_missing: str = ""
    form: type[Any] | None = None


def reading(form: type[Sent], value: Callable[[Sent], Value]) -> Callable[[Raw], tuple[str | None, Value]]:
    """A `Resource.read` that decodes objects of this form and converts them with `value`."""
    decoder = msgspec.json.Decoder(form)

    def read(raw: Raw) -> tuple[str | None, Value]:
        sent = decoder.decode(raw)
        return sent.metadata.resource_version, value(sent)

    return read
