"""Terms of leadership: each begins with the lease, and what was decided in it ends with it.

A term has an executor of its own. When the lease is lost nothing more of the term is sent, its requests are given up,
and the engine's machine is discarded: this replica is a standby again, which knows what it has seen and nothing of
what was decided. The next term, of this replica as of any other, begins like the first one: statuses are read, what
became of bindings without an answer is found out, and only then the machine decides.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from gangsched.core.objects.events import Event
from gangsched.kube.errors import KubeError
from gangsched.runtime.engine import Engine
from gangsched.runtime.executor import Executor, LookUp

_log = logging.getLogger(__name__)

_RETRY_S = 0.5
_AT_ONCE = 32


class Mandate(Protocol):
    """What makes this process the leader, and says when it is one no more: `Leadership` or `Alone`."""

    @property
    def term(self) -> int:
        """Grows when a term has ended."""
        ...

    def held(self) -> bool:
        """Whether this process may act now."""
        ...

    async def acquire(self) -> None:
        """Wait until it leads."""
        ...

    async def keep(self) -> str:
        """Wait until it leads no more; why."""
        ...


class Terms:
    """All the terms of one process, one after the other.

    `make_executor` is given what says whether the term lasts; without it nothing is sent. `prepare` brings what the
    machine knows up to date once a term has begun.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        mandate: Mandate,
        make_executor: Callable[[Callable[[], bool]], Executor] | None,
        prepare: Callable[[], Awaitable[None]],
        post: Callable[[Iterable[Event]], None],
    ) -> None:
        self._engine = engine
        self._mandate = mandate
        self._make_executor = make_executor
        self._prepare = prepare
        self._post = post
        self._executor: Executor | None = None
        self._unanswered: list[LookUp] = []

    async def run(self) -> None:
        """Campaign, lead and stand by for ever. Only a bug ends it, by raising."""
        while True:
            await self._mandate.acquire()
            why = await self._term()
            self._engine.stand_down()
            _log.warning("not leading any more; standing by, as after a start", extra={"why": why})

    def may_write(self) -> bool:
        """Whether this process may write now: it leads, and not only to see what it would do."""
        return self._make_executor is not None and self._mandate.held()

    async def drain(self, timeout_s: float, *, telling_s: float) -> int:
        """Send nothing new; wait for what is in flight. See `Executor.drain`."""
        return 0 if self._executor is None else await self._executor.drain(timeout_s, telling_s=telling_s)

    async def _term(self) -> str:
        """Lead until the mandate is lost; give the reason."""
        executor = self._make_executor(_lasting(self._mandate)) if self._make_executor is not None else None
        self._executor = executor
        async with asyncio.TaskGroup() as tasks:
            working = [tasks.create_task(executor.run(), name="executor")] if executor is not None else []
            working.append(tasks.create_task(self._begin(executor), name="begin"))
            why = await self._mandate.keep()
            for task in working:
                task.cancel()
        self._executor = None
        if executor is not None:
            self._unanswered += executor.unanswered()
        return why

    async def _begin(self, executor: Executor | None) -> None:
        """Bring everything up to date, then decide."""
        await self._prepare()
        await self._read_back(self._unanswered)
        self._unanswered = []
        self._engine.lead(executor.submit if executor is not None else None)
        _log.info("everything is listed; scheduling begins")

    async def _read_back(self, look_ups: Sequence[LookUp]) -> None:
        """Find out of writes without an answer what became of them, and post it."""
        slots = asyncio.Semaphore(_AT_ONCE)

        async def read(look_up: LookUp) -> None:
            async with slots:
                while True:
                    try:
                        found = await look_up()
                    except KubeError:
                        await asyncio.sleep(_RETRY_S)
                    else:
                        break
            if found is not None:
                self._post((found,))

        await asyncio.gather(*map(read, look_ups))


def _lasting(mandate: Mandate) -> Callable[[], bool]:
    """Says whether the term that begins now still lasts."""
    term = mandate.term
    return lambda: mandate.term == term and mandate.held()
