"""Sends the machine's decisions to the API server, with bounded concurrency, and posts the results."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterable
from functools import partial
from typing import Protocol

from gangsched.core.objects.effects import Effect
from gangsched.core.objects.events import Event
from gangsched.kube.writing.write_results import WriteResult
from gangsched.runtime.backlog import Backlog
from gangsched.runtime.metrics import Metrics
from gangsched.runtime.write import BINDINGS, Job, Retry, Table, Withdrawal

_log = logging.getLogger(__name__)

# More than any back-off needs. Without a limit the factor would eventually overflow a float.
_MOST_DOUBLINGS = 16
_UNCERTAIN_S = 10.0
"""After this time an unanswered binding has either taken effect and appeared in the watch, or never will."""
INFORMING_PATIENCE_S = 10.0
"""The longest time that writes which inform people wait for a pause between bindings."""

LookUp = Callable[[], Awaitable[Event | None]]
"""Finds the outcome of a write; None if it had no effect. Raises a KubeError if it cannot find out."""


class Timer(Protocol):
    """An action that runs later unless it is cancelled."""

    def cancel(self) -> None:
        """Cancel the action."""
        ...


def _later(delay_s: float, action: Callable[[], None]) -> Timer:
    return asyncio.get_running_loop().call_later(delay_s, action)


class Executor:
    """Sends the writes of one term of leadership, in the order of `Backlog`, with a fixed set of workers.

    `table` says how each kind of write is sent and how failures are handled. `Retry.SOME` gives up after `attempts`.
    `post` receives the events for the machine.

    Immediately before each write the executor calls `allowed` to check that the term lasts. Once the term has ended,
    decisions are dropped and nothing is posted, because another process may already lead. The next term has its own
    executor.
    """

    def __init__(
        self,
        table: Table,
        post: Callable[[Iterable[Event]], None],
        *,
        metrics: Metrics,
        slots: int = 32,
        attempts: int = 8,
        backoff_s: float = 0.5,
        backoff_max_s: float = 30.0,
        patience_s: float = 1.0,
        informing_patience_s: float = INFORMING_PATIENCE_S,
        events_limit: int = 5000,
        allowed: Callable[[], bool] = lambda: True,
        monotonic: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
        later: Callable[[float, Callable[[], None]], Timer] = _later,
    ) -> None:
        self._table = table
        self._post = post
        self._metrics = metrics
        self._slots = slots
        self._attempts = attempts
        self._backoff_s = backoff_s
        self._backoff_max_s = backoff_max_s
        self._allowed = allowed
        self._withheld = False
        self._failing: set[str] = set()
        self._monotonic = monotonic
        self._jitter = jitter
        self._later = later
        self._backlog = Backlog(
            slots=slots,
            patience_s=patience_s,
            informing_patience_s=informing_patience_s,
            events_limit=events_limit,
            on_event_dropped=metrics.event_dropped,
        )
        self._idle: deque[asyncio.Future[None]] = deque()
        self._retries: dict[Hashable, Timer] = {}
        self._alarm: tuple[float, Timer] | None = None
        self._closing = False
        self._cut = False
        self._quiet = asyncio.Event()
        self._uncertain: dict[Hashable, tuple[float, LookUp]] = {}
        for kind, row in table.items():
            if not isinstance(row, Withdrawal):
                metrics.read_queue_from(kind.__name__, partial(self._backlog.waiting, kind))

    def submit(self, effects: Iterable[Effect]) -> None:
        """Queue effects in order. Synchronous. Drops everything during shutdown."""
        added = 0
        if self._closing:
            return
        now = self._monotonic()
        for effect in effects:
            row = self._table[type(effect)]
            if isinstance(row, Withdrawal):
                self._withdraw(row, effect)
                continue
            job = row.job(effect, now)
            if job.served_by_others and job.key in self._retries:
                continue
            for key in (job.key, job.overrules):
                older = self._retries.pop(key, None)
                if older is not None:
                    older.cancel()
            self._backlog.add(job)
            added += 1
        self._wake(added)

    async def run(self) -> None:
        """Work until cancelled. Only a bug ends it otherwise, with an exception."""
        async with asyncio.TaskGroup() as workers:
            for number in range(self._slots):
                workers.create_task(self._work(), name=f"executor-{number}")

    def unanswered(self) -> list[LookUp]:
        """Look-ups for the writes whose outcome is unknown. Call it after `run` has ended."""
        return [outcome for _, outcome in self._uncertain.values()]

    async def drain(self, timeout_s: float, *, informing_s: float) -> int:
        """Stop: await bindings and evictions in flight, send statuses and Events for `informing_s`, drop the rest.

        Returns the number of bindings and evictions still in flight after `timeout_s`; 0 if all ended.
        """
        self._closing = True
        dropped = self._backlog.close()
        for kind, count in dropped.items():
            self._metrics.not_sent(kind, "Dropped", count)
        if dropped:
            _log.info("bindings and evictions not sent because of the shutdown", extra=dict(dropped))
        for timer in self._retries.values():
            timer.cancel()
        self._retries.clear()
        self._note_quiet()
        self._wake(self._slots)
        if not await self._quiet_within(informing_s):
            self._cut = True
            unsent = self._backlog.clear()
            if unsent:
                _log.info("statuses and Events not sent because of the shutdown", extra={"count": unsent})
            self._note_quiet()
            await self._quiet_within(timeout_s - informing_s)
        return self._backlog.acting

    async def _quiet_within(self, timeout_s: float) -> bool:
        try:
            async with asyncio.timeout(timeout_s):
                await self._quiet.wait()
        except TimeoutError:
            return False
        return True

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            now = self._monotonic()
            job = self._backlog.next(now)
            if job is None:
                self._wake_at(self._backlog.due(now), now)
                woken = loop.create_future()
                self._idle.append(woken)
                await woken
                continue
            if not self._backlog.empty:
                # Wake one more worker: a result can free more slots than its own.
                self._wake(1)
            if self._allowed():
                await self._send(job)
            else:
                self._withhold(job)
            self._backlog.done(job, self._monotonic())
            self._note_quiet()

    def _wake(self, count: int) -> None:
        while count > 0 and self._idle:
            woken = self._idle.popleft()
            if not woken.done():
                woken.set_result(None)
                count -= 1

    def _wake_at(self, due: float, now: float) -> None:
        """Wake a worker at the time that is `due`, unless one is woken before."""
        if due == float("inf") or (self._alarm is not None and self._alarm[0] <= due):
            return
        if self._alarm is not None:
            self._alarm[1].cancel()
        self._alarm = due, self._later(due - now, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self._wake(1)

    def _note_quiet(self) -> None:
        awaited = self._backlog.acting if self._cut else self._backlog.in_flight
        if self._closing and awaited == 0 and self._backlog.empty:
            self._quiet.set()

    def _withdraw(self, row: Withdrawal[Effect], effect: Effect) -> None:
        withdrawn = self._backlog.withdraw(row.key(effect))
        if withdrawn is not None:
            self._metrics.not_sent(withdrawn.kind, "Withdrawn")
            self._post((row.answer(effect),))

    def _withhold(self, job: Job) -> None:
        self._metrics.withheld(job.kind)
        if not self._withheld:
            self._withheld = True
            _log.warning("writing stops: this process's term of leadership has ended, and another replica may lead")

    async def _send(self, job: Job) -> None:
        sent = self._monotonic()
        if job.write.outcome is not None:
            self._note_sent(job.key, partial(job.write.outcome, job.effect), sent)
        answer = await job.write.send(job.effect)
        self._metrics.answered(job.kind, answer.result, self._monotonic() - sent)
        again = False
        if answer.passing:
            again = self._tried_again(job, answer)
            if job.lane in BINDINGS:
                self._backlog.slow_down()
        else:
            self._uncertain.pop(job.key, None)
        self._log_outcome(job, answer, again=again)
        if answer.event is not None and not again:
            self._post((answer.event,))

    def _note_sent(self, key: Hashable, outcome: LookUp, now: float) -> None:
        while self._uncertain:
            oldest, (sent, _) = next(iter(self._uncertain.items()))
            if now - sent < _UNCERTAIN_S:
                break
            del self._uncertain[oldest]
        self._uncertain.pop(key, None)
        self._uncertain[key] = now, outcome

    def _tried_again(self, job: Job, answer: WriteResult) -> bool:
        """Schedule a retry of a write that may succeed later; True if it, or a newer one in its place, will be sent."""
        retry = job.write.retry
        if self._closing or retry is Retry.NEVER:
            return False
        if self._backlog.superseded(job):
            return True
        if retry is Retry.SOME and job.attempt + 1 >= self._attempts:
            return False
        self._retry_later(job, answer.retry_after_s)
        return True

    def _log_outcome(self, job: Job, answer: WriteResult, *, again: bool) -> None:
        """Log the outcome. A write that is retried without limit is logged once, after `attempts` attempts."""
        write = job.write
        if not answer.message:
            self._failing.discard(job.kind)
            if write.done and answer.done:
                _log.info(write.done, extra={"kind": job.kind, "object": write.about(job.effect)})
            return
        endless = write.retry is Retry.UNTIL_ANSWERED
        if job.attempt + 1 != self._attempts if endless else again:
            return
        if write.repeated and job.kind in self._failing:
            return
        self._failing.add(job.kind)
        _log.warning(
            write.failed,
            extra={
                "kind": job.kind,
                "object": write.about(job.effect),
                "why": str(answer.result),
                "attempts": job.attempt + 1,
                "answer": answer.message,
            },
        )

    def _retry_later(self, job: Job, retry_after_s: float) -> None:
        longest = min(self._backoff_s * 2 ** min(job.attempt, _MOST_DOUBLINGS), self._backoff_max_s)
        delay = retry_after_s or longest * self._jitter()

        def again() -> None:
            del self._retries[job.key]
            self._backlog.add_again(job)
            self._wake(1)

        self._retries[job.key] = self._later(delay, again)
