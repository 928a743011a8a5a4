"""Decides on a copy of the cluster in a separate process: for what-if, and for what would help a group.

`child` describes the process. It receives the known state of the cluster through its standard input, in pieces of a few
milliseconds with a rest after each, so that the operator decides and binds meanwhile. It is killed if it takes long.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

import msgspec

from gangsched.config.settings import Settings
from gangsched.core.objects.events import Event
from gangsched.page import child
from gangsched.runtime.memory import CGROUP, free_memory
from gangsched.views.copied import pieces

Question = bytes | tuple[str, str]
"""Manifests to try, or namespace and name of a waiting group."""
_REST = 3.0
"""After each piece, the loop is left to others for this many times the processor time that the piece took."""
_MOST_REST_S = 0.05


class WhatIf:
    """Answers one question at a time.

    `facts` returns the known state of the cluster, `now` the time in epoch seconds, and `lacks` a sentence that says
    why the state is insufficient, empty if it is not.
    """

    def __init__(
        self,
        facts: Callable[[], Sequence[Event]],
        settings: Settings,
        *,
        now: Callable[[], float],
        lacks: Callable[[], str] = lambda: "",
        cgroup: Path = CGROUP,
        within_s: float = child.WITHIN_S,
    ) -> None:
        self._facts = facts
        self._settings = settings
        self._now = now
        self._lacks = lacks
        self._cgroup = cgroup
        self._within_s = within_s
        self._turn = asyncio.Lock()
        self.longest_piece_s = 0.0
        """The most processor time, in seconds, that one piece took from the loop."""

    async def tried(self, manifests: bytes) -> dict[str, object]:
        """The outcome of these manifests; `error` says in a sentence why there is none."""
        return await self._answer_in_turn(manifests)

    async def helps(self, namespace: str, name: str) -> dict[str, object]:
        """What would help the group (`helps`), as in `gangsched explain`; `error` as above."""
        return await self._answer_in_turn((namespace, name))

    async def _answer_in_turn(self, question: Question) -> dict[str, object]:
        try:
            # A question that its browser has cancelled ends within this time.
            async with asyncio.timeout(child.TURN_S):
                await self._turn.acquire()
        except TimeoutError:
            return {"error": child.BUSY}
        try:
            return await self._answered(question)
        finally:
            self._turn.release()

    async def _answered(self, question: Question) -> dict[str, object]:
        if why := self._lacks():
            return {"error": why}
        memory = child.memory_for(free_memory(self._cgroup))
        if not memory:
            return {"error": child.NO_ROOM}
        try:
            async with asyncio.timeout(self._within_s):
                return await self._answer(question, memory)
        except TimeoutError:
            return {"error": child.too_slow(self._within_s)}

    async def _answer(self, question: Question, memory: int) -> dict[str, object]:
        process = await asyncio.create_subprocess_exec(
            *child.command(memory, child.CPU_S),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            env=child.environment(os.environ),
        )
        try:
            if process.stdin is None or process.stdout is None:
                raise RuntimeError("a process was started without pipes")
            # The process may end before it has read everything.
            with suppress(ConnectionError):
                # All pieces are of one moment: the values are immutable, and later events are not part of the copy.
                values = chain([(self._settings, self._now(), question)], pieces(self._facts()))
                began = time.thread_time()
                for value in values:
                    process.stdin.write(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
                    took_s = time.thread_time() - began
                    self.longest_piece_s = max(self.longest_piece_s, took_s)
                    await process.stdin.drain()
                    await asyncio.sleep(min(_REST * took_s, _MOST_REST_S))
                    began = time.thread_time()
                process.stdin.close()
            output = await process.stdout.read()
            status = await process.wait()
            if status == -signal.SIGXCPU:
                return {"error": child.too_much_processor_time(child.CPU_S)}
            if status or not output:
                return {"error": child.no_answer(status)}
            answer: dict[str, object] = msgspec.json.decode(output)
            return answer
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
