"""Decides on a copy of the cluster in a separate process: for what-if, and for what would help a group.

That process is `gangsched.whatif.subprocess_worker`. It receives the known state of the cluster through its standard
input, inherits only the environment variables that Python needs, has limited memory and CPU time, and is killed if it
takes too long.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from gangsched.config.settings import Settings
from gangsched.core.objects.events import Event
from gangsched.runtime.memory import CGROUP, free_memory
from gangsched.views.copied import pieces

_MODULE = "gangsched.whatif.subprocess_worker"
_MOST_MEMORY = 1 << 30
_LEAST_MEMORY = 256 << 20
_CPU_S = 60
_WITHIN_S = 90.0
_TURN_S = 2.0
_KEPT = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL")
Question = bytes | tuple[str, str]
"""Manifests to try, or namespace and name of a waiting group."""
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


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
        within_s: float = _WITHIN_S,
    ) -> None:
        self._facts = facts
        self._settings = settings
        self._now = now
        self._lacks = lacks
        self._cgroup = cgroup
        self._within_s = within_s
        self._turn = asyncio.Lock()

    async def tried(self, manifests: bytes) -> dict[str, object]:
        """The outcome of these manifests; `error` says in a sentence why there is none."""
        return await self._answer_in_turn(manifests)

    async def helps(self, namespace: str, name: str) -> dict[str, object]:
        """What would help the group (`helps`), as in `gangsched explain`; `error` as above."""
        return await self._answer_in_turn((namespace, name))

    async def _answer_in_turn(self, question: Question) -> dict[str, object]:
        try:
            # A question that its browser has cancelled ends within this time.
            async with asyncio.timeout(_TURN_S):
                await self._turn.acquire()
        except TimeoutError:
            return {"error": "Another question is being answered: wait for its answer and ask again."}
        try:
            return await self._answered(question)
        finally:
            self._turn.release()

    async def _answered(self, question: Question) -> dict[str, object]:
        if why := self._lacks():
            return {"error": why}
        memory = min(_MOST_MEMORY, free_memory(self._cgroup) // 2)
        if memory < _LEAST_MEMORY:
            return {
                "error": "The memory limit of this container leaves too little room for a copy of the cluster: raise "
                f"it by {_LEAST_MEMORY * 2 >> 20} MiB, or run gangsched dashboard on your own machine."
            }
        try:
            async with asyncio.timeout(self._within_s):
                return await self._answer(question, memory)
        except TimeoutError:
            return {"error": f"It took longer than {self._within_s:.0f} s: try a part of it."}

    async def _answer(self, question: Question, memory: int) -> dict[str, object]:
        process = await asyncio.create_subprocess_exec(
            # Without -P, Python would import from the current directory.
            *(sys.executable, "-P", "-m", _MODULE, str(memory), str(_CPU_S)),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            env=_ONE_THREAD | {name: os.environ[name] for name in _KEPT if name in os.environ},
        )
        try:
            if process.stdin is None or process.stdout is None:
                raise RuntimeError("a process was started without pipes")
            # The process may end before it has read everything.
            with suppress(ConnectionError):
                for value in ((self._settings, self._now(), question), *pieces(self._facts())):
                    process.stdin.write(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
                    await process.stdin.drain()
                    await asyncio.sleep(0)
                process.stdin.close()
            said = await process.stdout.read()
            status = await process.wait()
            if status == -signal.SIGXCPU:
                return {"error": f"It took more than {_CPU_S} s of processor time, and was ended: try a part of it."}
            if status or not said:
                return {
                    "error": f"The process that tried it ended without an answer (status {status}): it took too much "
                    "memory, or the manifest is nested too deeply. Try a part of it."
                }
            answer: dict[str, object] = msgspec.json.decode(said)
            return answer
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
