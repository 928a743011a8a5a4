"""Cuts a machine's state into pieces for another process, which decides on a copy.

Serialising one piece takes some milliseconds, during which the process that binds does nothing else. Pieces are
therefore bounded by the content of the values, not by their number: a ResourceSlice may have 128 devices, each with 32
attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from gangsched.core.objects.events import Event

MOST = 10_000
"""Maximum `weight` of one piece, unless a single value exceeds it."""


class Piece(NamedTuple):
    """A part of an event: `values` of its last field, None if that is not a tuple. `last`: the event is complete."""

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
        begin, heavy = 0, 0
        for index, value in enumerate(values):
            heavier = weight(value)
            if begin < index and heavy + heavier > MOST:
                yield Piece(type(event), fields[:-1], values[begin:index], last=False)
                begin, heavy = index, 0
            heavy += heavier
        yield Piece(type(event), fields[:-1], values[begin:], last=True)


def weight(value: object) -> int:
    """The number of objects in a value; the time to serialise it is proportional to that."""
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.astuple(value)
    elif isinstance(value, Mapping):
        value = tuple(value.items())
    return sum(map(weight, value), 1) if isinstance(value, tuple | frozenset) else 1


class Collected:
    """Rebuilds events from their pieces; `events` are those that are complete."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._values: list[object] = []

    def take(self, piece: Piece) -> None:
        """Add the next piece."""
        self._values += piece.values or ()
        if piece.last:
            values = () if piece.values is None else (tuple(self._values),)
            self.events.append(piece.kind(*piece.others, *values))
            self._values.clear()
