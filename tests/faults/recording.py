"""A recording of one machine in a file: its policy, every batch of events it got, and every effect it decided.

Each frame is a length (4 bytes, big-endian) and that many bytes of msgpack. One is written before each call of `handle`
and one after it. A process that is killed thus loses at most the frame it was writing, and one that fails leaves the
events that made it fail.
"""

from __future__ import annotations

import itertools
import struct
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gangsched.core.machine import Machine
from gangsched.core.objects import effects, events
from gangsched.core.objects.policy import Policy


def _kinds(base: type[Struct]) -> list[type[Struct]]:
    """The leaf subclasses, which msgspec distinguishes by their tags."""
    below = base.__subclasses__()
    return [kind for each in below for kind in _kinds(each)] if below else [base]


if TYPE_CHECKING:
    from gangsched.core.objects.effects import Effect
    from gangsched.core.objects.events import Event
else:
    Effect, Event = (reduce(or_, _kinds(base)) for base in (effects.Effect, events.Event))

_LENGTH = struct.Struct(">I")


class Begun(Struct, frozen=True, tag=True, tag_field="frame"):
    """The machine was created with this policy."""

    policy: Policy


class Given(Struct, frozen=True, tag=True, tag_field="frame"):
    """`handle` was called."""

    events: tuple[Event, ...]
    now: float


class Decided(Struct, frozen=True, tag=True, tag_field="frame"):
    """`handle` returned these effects."""

    effects: tuple[Effect, ...]


Frame = Begun | Given | Decided
_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[Frame] = msgspec.msgpack.Decoder(Frame)


class RecordedMachine:
    """A machine whose calls of `handle` are recorded; everything else is delegated unchanged."""

    def __init__(self, machine: Machine, policy: Policy, path: Path) -> None:
        self._machine = machine
        # Unbuffered: written data is in the kernel and survives when this process is killed.
        self._file = path.open("wb", buffering=0)
        weakref.finalize(self, self._file.close)
        # Strategies are code and cannot be recorded; a replay uses gangsched's own.
        self._write(Begun(replace(policy, strategies={})))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._machine, name)

    def handle(self, events: Sequence[Event], now: float) -> list[Effect]:
        """As `Machine.handle`."""
        self._write(Given(tuple(events), now))
        effects = self._machine.handle(events, now)
        self._write(Decided(tuple(effects)))
        return effects

    def _write(self, frame: Frame) -> None:
        encoded = _ENCODER.encode(frame)
        self._file.write(_LENGTH.pack(len(encoded)) + encoded)


def recorder(path: Path) -> Callable[..., RecordedMachine]:
    """A replacement for `Machine`: the first machine created is recorded at `path`, further ones beside it."""
    numbers = itertools.count(1)

    def make(policy: Policy, **ways: Any) -> RecordedMachine:
        number = next(numbers)
        name = path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")
        return RecordedMachine(Machine(policy, **ways), policy, name)

    return make


@dataclass(frozen=True)
class Turn:
    """One call of `handle`. `effects` is None where the recording ends before the call did."""

    events: tuple[Event, ...]
    now: float
    effects: tuple[Effect, ...] | None


@dataclass(frozen=True)
class Recording:
    """The content of a file; a truncated last frame is ignored."""

    policy: Policy
    turns: tuple[Turn, ...]


class NoRecording(Exception):  # noqa: N818 - names what is missing
    """The file does not begin like a recording."""


def read(path: Path) -> Recording:
    """Read the recording.

    Raises:
        NoRecording: the file is not a recording, or the process was killed before it had written the first frame.
    """
    frames = list(_frames(path.read_bytes()))
    if not frames or not isinstance(frames[0], Begun):
        raise NoRecording(f"{path} holds no recording of a machine")
    turns: list[Turn] = []
    for frame in frames[1:]:
        if isinstance(frame, Given):
            turns.append(Turn(frame.events, frame.now, None))
        elif isinstance(frame, Decided):
            turns[-1] = Turn(turns[-1].events, turns[-1].now, frame.effects)
    return Recording(frames[0].policy, tuple(turns))


def _frames(content: bytes) -> Iterator[Frame]:
    at = 0
    while at + _LENGTH.size <= len(content):
        (length,) = _LENGTH.unpack_from(content, at)
        at += _LENGTH.size
        if at + length > len(content):
            return
        yield _DECODER.decode(content[at : at + length])
        at += length


def replay(recording: Recording, make: Callable[[Policy], Machine] = Machine) -> str:
    """Give the events to a fresh machine; describes the first difference in its effects, empty if there is none."""
    machine = make(recording.policy)
    for number, turn in enumerate(recording.turns, start=1):
        effects = machine.handle(turn.events, turn.now)
        if turn.effects is None:
            # The process ended inside this call: there is nothing to compare with.
            continue
        if difference := _difference(turn.effects, effects):
            return f"turn {number} of {len(recording.turns)}, at {turn.now:.3f}: {difference}"
    return ""


def _difference(recorded: Sequence[Effect], replayed: Sequence[Effect]) -> str:
    if list(recorded) == list(replayed):
        return ""
    if sorted(map(repr, recorded)) == sorted(map(repr, replayed)):
        return f"the same {len(recorded)} effects in another order"
    pairs = itertools.zip_longest(recorded, replayed)
    first, (was, now) = next((at, pair) for at, pair in enumerate(pairs, start=1) if pair[0] != pair[1])
    return f"effect {first} was {was!r}, replayed it is {now!r}"
