"""What the operator sends to the process that decides on a copy, and how that process answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.events import Event
from gangsched.views.reach import Reach

MOST = 500
"""So many values are in one message: making it takes 2 ms, for which the operator does nothing else."""
LENGTH_BYTES = 8
FAILED, UNKNOWN = b"!", b"?"
"""How an answer begins that is none: this process failed, and the rest says how; there is no such group."""


class Start(NamedTuple):
    """The first message: by which settings to decide, as JSON, and when."""

    settings: str
    now: float


class Piece(NamedTuple):
    """Values of the last field of an event, if it may have many, else None. `last` ends the event."""

    kind: type[Event]
    others: tuple[object, ...]
    values: tuple[object, ...] | None
    last: bool


class Question(NamedTuple):
    """Everything has been sent: what is to be explained, and to whom."""

    key: GroupKey
    reach: Reach


Message = Start | Piece | Question


def pieces(events: Iterable[Event]) -> Iterator[Piece]:
    """The events as messages of bounded size."""
    for event in events:
        fields = msgspec.structs.astuple(event)
        values = fields[-1] if fields else None
        if type(values) is not tuple:
            yield Piece(type(event), fields, None, last=True)
            continue
        for begin in range(0, max(len(values), 1), MOST):
            yield Piece(type(event), fields[:-1], values[begin : begin + MOST], last=begin + MOST >= len(values))


def framed(message: bytes) -> bytes:
    """The message with its length before it."""
    return len(message).to_bytes(LENGTH_BYTES) + message
