"""What a machine knows, in pieces for another process, which decides on a copy.

Making one piece takes about two milliseconds, for which the process that binds does nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from gangsched.core.objects.events import Event

MOST = 500
"""So many values are in one piece."""


class Piece(NamedTuple):
    """Values of the last field of an event, if it may have many, else None. `last` ends the event."""

    kind: type[Event]
    others: tuple[object, ...]
    values: tuple[object, ...] | None
    last: bool


def pieces(events: Iterable[Event]) -> Iterator[Piece]:
    """The events as pieces of bounded size."""
    for event in events:
        fields = msgspec.structs.astuple(event)
        values = fields[-1] if fields else None
        if type(values) is not tuple:
            yield Piece(type(event), fields, None, last=True)
            continue
        for begin in range(0, max(len(values), 1), MOST):
            yield Piece(type(event), fields[:-1], values[begin : begin + MOST], last=begin + MOST >= len(values))


class Collected:
    """The `events` of the pieces that were taken in."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._values: list[object] = []

    def take(self, piece: Piece) -> None:
        """Take the next piece in."""
        self._values += piece.values or ()
        if piece.last:
            values = () if piece.values is None else (tuple(self._values),)
            self.events.append(piece.kind(*piece.others, *values))
            self._values.clear()
