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
from pathlib import Path
from typing import IO

import msgspec

from gangsched.answers.messages import FAILED, LENGTH_BYTES, UNKNOWN, Message, Piece, Question, Start, framed
from gangsched.config.settings import Settings
from gangsched.core.objects.events import Event, Synced
from gangsched.views.diagnosis import Copy
from gangsched.views.diagnosis_json import as_object


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
    while len(head := questions.read(LENGTH_BYTES)) == LENGTH_BYTES:
        length = int.from_bytes(head)
        if len(content := questions.read(length)) < length:
            break
        message: Message = pickle.loads(content)  # noqa: S301 - our parent has sent it
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
