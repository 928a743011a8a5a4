"""Finds out why a group waits, in a separate process, so that the operator can decide and bind meanwhile.

Deciding about a copy of a large cluster takes seconds, and Python runs one thread at a time. The operator's own loop
only sends its state, in pieces of a few milliseconds with a rest after each. The process answers all users for some
seconds and then ends, which frees its memory.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from gangsched.answers.messages import FAILED, LENGTH_BYTES, TOO_LARGE, UNKNOWN, Message, Question, Start, framed
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.events import Event
from gangsched.kube.client.errors import printable
from gangsched.runtime.memory import CGROUP, free_memory
from gangsched.views.copied import pieces
from gangsched.views.reach import Reach

_log = logging.getLogger(__name__)

COPY_TTL_S = 5.0
"""Time, in seconds, for which one copy answers questions. After a slow first answer, it is twice the time that took."""
ANSWER_TIMEOUT_S = 30.0
"""Longest time, in seconds, for the answer to a question, including its wait; then the question fails."""
MOST_WAITING = 8
"""Maximum number of questions in progress or waiting; further ones are refused at once."""
_REST = 3.0
"""After each piece, the loop rests for this many times the processor time that the piece took."""
_MOST_REST_S = 0.05
_MOST_BYTES = 4 * 2**20
_BUFFER_BYTES = 2**20
_LOGGED = 4000


_LEAST_MEMORY = 128 << 20


class NoAnswer(Exception):  # noqa: N818 - a state of affairs
    """The question was not answered; the client may retry."""


class NoRoom(NoAnswer):
    """There is not enough memory for a copy of the cluster."""


class Examiner:
    """Answers questions, by the settings `settings_json`, about the state that `facts` returns at the time `now`."""

    def __init__(
        self,
        facts: Callable[[], Sequence[Event]],
        *,
        settings_json: str,
        now: Callable[[], float] = time.time,
        command: Sequence[str] = (sys.executable, "-P", "-m", "gangsched.answers.worker"),
        copy_ttl_s: float = COPY_TTL_S,
        answer_timeout_s: float = ANSWER_TIMEOUT_S,
        cgroup: Path = CGROUP,
    ) -> None:
        self._facts = facts
        self._settings = settings_json
        self._now = now
        self._command = command
        self._copy_ttl_s = copy_ttl_s
        self._answer_timeout_s = answer_timeout_s
        self._cgroup = cgroup
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._process: asyncio.subprocess.Process | None = None
        self._ending: set[asyncio.Task[int]] = set()
        self._end: asyncio.TimerHandle | None = None
        self._fresh_until = 0.0
        self.longest_piece_s = 0.0
        """The most processor time, in seconds, that serialising one piece took from the loop."""

    @property
    def is_running(self) -> bool:
        """Whether the process is running."""
        return self._process is not None

    async def explain(self, key: GroupKey, reach: Reach) -> bytes | None:
        """The diagnosis, as JSON; None if there is no such group and no such pod.

        Raises:
            NoRoom: the container has too little memory.
            NoAnswer: too many questions wait, the answer took too long, or the process failed.
        """
        if self._waiting >= MOST_WAITING:
            raise NoAnswer("too many ask")
        self._waiting += 1
        try:
            async with asyncio.timeout(self._answer_timeout_s), self._turn:
                return await self._answer(Question(key, reach))
        except TimeoutError:
            raise NoAnswer("it took too long") from None
        finally:
            self._waiting -= 1

    async def close(self) -> None:
        """End the process."""
        self._drop()
        await asyncio.gather(*self._ending)

    async def _answer(self, question: Question) -> bytes | None:
        asked = time.monotonic()
        is_first = self._process is None or asked >= self._fresh_until
        is_answered = False
        try:
            if is_first:
                self._drop()
                await self._begin()
            await self._send(question)
            answer = await self._read()
            is_answered = True
        except (OSError, EOFError) as error:
            _log.warning("the process that answers tenants has ended", extra={"error": type(error).__name__})
            raise NoAnswer("the process has ended") from error
        finally:
            if not is_answered:
                # The process may be in the middle of this answer, which must not reach the next question.
                self._drop()
        now = time.monotonic()
        if is_first:
            self._fresh_until = asked + max(self._copy_ttl_s, 2 * (now - asked))
        if self._end is not None:
            self._end.cancel()
        self._end = asyncio.get_running_loop().call_later(max(self._fresh_until - now, 0.0), self._expire)
        if answer.startswith(FAILED):
            _log.error("a question of a tenant failed, which is a bug", extra={"error": _last_lines(answer)})
            raise NoAnswer("it failed")
        if answer == TOO_LARGE:
            self._drop()
            raise NoRoom
        return None if answer == UNKNOWN else answer

    async def _begin(self) -> None:
        """Start the process and send it the whole state."""
        free = free_memory(self._cgroup)
        memory = free - free // 4
        if memory < _LEAST_MEMORY:
            raise NoRoom
        self._process = await asyncio.create_subprocess_exec(
            *(*self._command, str(memory)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_BUFFER_BYTES,
            # Further threads of numerical libraries would use up the memory limit.
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )
        await self._send(Start(self._settings, self._now()))
        # All pieces are of one moment: the values are immutable, and later events are not part of the copy.
        began = time.thread_time()
        for piece in pieces(self._facts()):
            sending = self._send(piece)
            took_s = time.thread_time() - began
            self.longest_piece_s = max(self.longest_piece_s, took_s)
            await sending
            await asyncio.sleep(min(_REST * took_s, _MOST_REST_S))
            began = time.thread_time()

    def _send(self, message: Message) -> Awaitable[None]:
        """Write the message; await the result before writing the next one."""
        if self._process is None or self._process.stdin is None:
            raise EOFError
        self._process.stdin.write(framed(pickle.dumps(message, protocol=5)))
        return self._process.stdin.drain()

    async def _read(self) -> bytes:
        if self._process is None or self._process.stdout is None:
            raise EOFError
        length = int.from_bytes(await self._process.stdout.readexactly(LENGTH_BYTES))
        if length > _MOST_BYTES:
            raise EOFError
        return await self._process.stdout.readexactly(length)

    def _expire(self) -> None:
        """End the process unless it is answering; after that answer, this is called again."""
        if not self._turn.locked():
            self._drop()

    def _drop(self) -> None:
        if self._end is not None:
            self._end.cancel()
        process, self._process = self._process, None
        if process is not None:
            # This kills it and closes its pipes; asyncio has no public name for that.
            process._transport.close()  # type: ignore[attr-defined] # noqa: SLF001
            ending = asyncio.get_running_loop().create_task(process.wait())
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)


def _last_lines(answer: bytes) -> str:
    return printable(answer[len(FAILED) :].decode("utf-8", "replace")[-_LOGGED:], limit=_LOGGED)
