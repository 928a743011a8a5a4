"""The process that decides on a copy of the cluster: `python -m gangsched.answers.worker`, started by `examiner`.

It reads messages from standard input and answers on standard output, both framed by their length. It is the first to
wait for a processor and the first to end when memory runs out, and it ends with the operator, whose pipe then closes.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

import msgspec

from gangsched.config.settings import Settings
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.events import Event, Synced
from gangsched.views.diagnosis import Copy, Reach
from gangsched.views.diagnosis_json import as_object

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


class Worker:
    """Collects what is sent, and decides at the first question."""

    def __init__(self) -> None:
        self._start = Start("{}", 0.0)
        self._events: list[Event] = []
        self._values: list[object] = []
        self._copy: Copy | None = None

    def take(self, message: Message) -> bytes | None:
        """The answer to a question; None to any other message."""
        if isinstance(message, Start):
            self._start = message
        elif isinstance(message, Piece):
            self._values += message.values or ()
            if message.last:
                values = () if message.values is None else (tuple(self._values),)
                self._events.append(message.kind(*message.others, *values))
                self._values.clear()
        else:
            return self._answer(message)
        return None

    def _answer(self, question: Question) -> bytes:
        if self._copy is None:
            policy = Settings.model_validate_json(self._start.settings).policy()
            self._copy = Copy([*self._events, Synced()], policy=policy, now=self._start.now)
            self._events.clear()
        found = self._copy.diagnose(question.key, question.reach)
        return UNKNOWN if found is None else msgspec.json.encode(as_object(found))


def serve(questions: IO[bytes], answers: IO[bytes]) -> None:
    """Answer until there are no more questions."""
    worker = Worker()
    while (head := questions.read(LENGTH_BYTES)) != b"":
        message: Message = pickle.loads(questions.read(int.from_bytes(head)))  # noqa: S301 - our parent has sent it
        try:
            answer = worker.take(message)
        except Exception:  # noqa: BLE001 - the parent logs it
            answer = FAILED + traceback.format_exc().encode()
        if answer is not None:
            answers.write(framed(answer))
            answers.flush()


def main() -> None:
    """The process."""
    os.nice(19)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    serve(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
