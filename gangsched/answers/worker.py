"""The process that decides on a copy of the cluster: `python -m gangsched.answers.worker`, started by `examiner`.

It reads messages from standard input and answers on standard output, both framed by their length. It runs at the lowest
CPU priority, and it ends with the operator, because the pipe then closes. Its argument is its memory limit in bytes: a
container that exceeds its own limit is killed with all its processes, including the operator.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
import sys
import traceback
from pathlib import Path
from typing import IO

import msgspec

from gangsched.answers.messages import FAILED, LENGTH_BYTES, TOO_LARGE, UNKNOWN, Message, Question, Start, framed
from gangsched.config.settings import Settings
from gangsched.core.objects.events import Synced
from gangsched.views.copied import Collected, Piece
from gangsched.views.diagnosis import Copy
from gangsched.views.diagnosis_json import as_object

SKIPPED_BYTES = 1 << 16
"""A message that does not fit into memory is skipped in reads of this size."""


class Worker:
    """Collects the state that is sent, and decides at the first question."""

    def __init__(self) -> None:
        self._start = Start("{}", 0.0)
        self._collected = Collected()
        self._copy: Copy | None = None
        self._is_full = False

    def give_up(self) -> None:
        """Give up for lack of memory: drop the whole state, and answer every question with TOO_LARGE from now on."""
        self._is_full, self._copy, self._collected = True, None, Collected()

    def take(self, message: Message) -> bytes | None:
        """The answer to a question; None for any other message."""
        if self._is_full:
            return TOO_LARGE if isinstance(message, Question) else None
        if isinstance(message, Start):
            self._start = message
        elif isinstance(message, Piece):
            self._collected.take(message)
        elif isinstance(message, Question):
            return self._answer(message)
        return None

    def _answer(self, question: Question) -> bytes:
        if self._copy is None:
            policy = Settings.model_validate_json(self._start.settings).policy()
            self._copy = Copy([*self._collected.events, Synced()], policy=policy, now=self._start.now)
            self._collected = Collected()
        found = self._copy.diagnose(question.key, question.reach)
        return UNKNOWN if found is None else msgspec.json.encode(as_object(found))


def serve(questions: IO[bytes], answers: IO[bytes]) -> None:
    """Answer until there are no more questions."""
    worker = Worker()
    while len(head := questions.read(LENGTH_BYTES)) == LENGTH_BYTES:
        length = int.from_bytes(head)
        message: Message | None = None
        try:
            if len(content := questions.read(length)) < length:
                break
        except MemoryError:
            # CPython allocates before it reads, so the whole message is still in the pipe.
            worker.give_up()
            for begin in range(0, length, SKIPPED_BYTES):
                questions.read(min(SKIPPED_BYTES, length - begin))
            continue
        try:
            message = pickle.loads(content)  # noqa: S301 - our parent process has sent it
            answer = worker.take(message)
        except MemoryError:
            worker.give_up()
            answer = TOO_LARGE if isinstance(message, Question) else None
        except Exception:  # noqa: BLE001 - the parent logs it
            answer = FAILED + traceback.format_exc().encode()
        if answer is not None:
            answers.write(framed(answer))
            answers.flush()


def main() -> None:
    """Run the process."""
    os.nice(19)
    most = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    with contextlib.suppress(OSError):
        # Where the kernel kills single processes, it kills this one first.
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    serve(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
