"""Terms of leadership: each begins with the lease, and its decisions end with it.

Each term has its own executor. When the lease is lost, the term sends nothing more, its requests are cancelled, and the
engine's machine is discarded. The replica is a standby again: it keeps what it has observed and forgets what it has
decided. Every next term, of any replica, begins like the first one: it reads the statuses, finds the outcome of
unanswered bindings, and only then lets the machine decide.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from gangsched.core.objects.events import Event
from gangsched.kube.client.errors import KubeError
from gangsched.runtime.engine import Engine
from gangsched.runtime.executor import Executor, LookUp

_log = logging.getLogger(__name__)

_RETRY_S = 0.5
_AT_ONCE = 32


class Mandate(Protocol):
    """Makes this process the leader and says when it stops leading: `Leadership` or `Alone`."""

    @property
    def term(self) -> int:
        """Grows when a term has ended."""
        ...

    def held(self) -> bool:
        """Whether this process may act now."""
        ...

    async def acquire(self) -> None:
        """Wait until this process leads."""
        ...

    async def keep(self) -> str:
        """Wait until this process stops leading; return the reason."""
        ...


class Terms:
    """The terms of one process, one after another.

    `make_executor` receives a function that says whether the term lasts. Without `make_executor` nothing is sent.
    `prepare` brings the machine's knowledge up to date at the start of a term.
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
        """Campaign, lead and stand by until cancelled. Only a bug ends it otherwise, with an exception."""
        while True:
            await self._mandate.acquire()
            why = await self._term()
            self._engine.stand_down()
            _log.warning("no longer leading; standing by, as after a start", extra={"why": why})

    def may_write(self) -> bool:
        """Whether this process may write now: it leads, and it is no dry run."""
        return self._make_executor is not None and self._mandate.held()

    async def drain(self, timeout_s: float, *, informing_s: float) -> int:
        """Send nothing new and wait for the writes in flight; see `Executor.drain`."""
        return 0 if self._executor is None else await self._executor.drain(timeout_s, informing_s=informing_s)

    async def _term(self) -> str:
        """Lead until the mandate is lost; return the reason."""
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
        """Bring everything up to date, then start to decide."""
        await self._prepare()
        await self._read_back(self._unanswered)
        self._unanswered = []
        self._engine.lead(executor.submit if executor is not None else None)
        _log.info("everything is listed; scheduling begins")

    async def _read_back(self, look_ups: Sequence[LookUp]) -> None:
        """Find the outcomes of unanswered writes and post them."""
        slots = asyncio.Semaphore(_AT_ONCE)

        async def read(look_up: LookUp) -> None:
            async with slots:
                while True:
                    try:
                        event = await look_up()
                    except KubeError:
                        await asyncio.sleep(_RETRY_S)
                    else:
                        break
            if event is not None:
                self._post((event,))

        await asyncio.gather(*map(read, look_ups))


def _lasting(mandate: Mandate) -> Callable[[], bool]:
    """Return a function that says whether the current term still lasts."""
    term = mandate.term
    return lambda: mandate.term == term and mandate.held()
