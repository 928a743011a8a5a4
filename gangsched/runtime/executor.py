"""Sends what the machine decides to the API server, a bounded number of writes at a time, and posts the answers."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import Protocol

from gangsched.core.effects import BindPod, Effect, EmitEvent, PatchPodCondition, PatchStatus
from gangsched.core.events import BindRefused, Event, PodBound, StatusRefused, StatusWritten
from gangsched.core.model import GroupKey
from gangsched.kube.writes import Answer, Outcome
from gangsched.runtime.backlog import Backlog, Job
from gangsched.runtime.metrics import Metrics

_log = logging.getLogger(__name__)

_KINDS: tuple[type[Effect], ...] = (BindPod, PatchStatus, PatchPodCondition, EmitEvent)


class Writes(Protocol):
    """One call to the API server each; none raises for anything that the server or the network does."""

    async def bind(self, effect: BindPod) -> PodBound | BindRefused:
        """Bind the pod."""
        ...

    async def patch_status(self, effect: PatchStatus) -> Answer:
        """Write a PodGroup's status."""
        ...

    async def patch_condition(self, effect: PatchPodCondition) -> Answer:
        """Set a pod's `PodScheduled` condition."""
        ...

    async def emit(self, effect: EmitEvent) -> Answer:
        """Create an Event."""
        ...


class Timer(Protocol):
    """Something that will be done later unless it is cancelled."""

    def cancel(self) -> None:
        """Do not do it."""
        ...


def _later(delay_s: float, action: Callable[[], None]) -> Timer:
    return asyncio.get_running_loop().call_later(delay_s, action)


class Executor:
    """A fixed set of workers that send writes in the order of `Backlog`.

    A binding is sent once; its answer goes to the inbox and the machine decides. The other writes are retried here up
    to `attempts` times with full-jitter back-off while the server is unavailable.
    """

    def __init__(
        self,
        writes: Writes,
        post: Callable[[Iterable[Event]], None],
        *,
        metrics: Metrics,
        on_group_gone: Callable[[GroupKey], None],
        slots: int = 32,
        attempts: int = 8,
        backoff_s: float = 0.5,
        backoff_max_s: float = 30.0,
        patience_s: float = 1.0,
        events_limit: int = 1000,
        monotonic: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
        later: Callable[[float, Callable[[], None]], Timer] = _later,
    ) -> None:
        self._writes = writes
        self._post = post
        self._metrics = metrics
        self._on_group_gone = on_group_gone
        self._slots = slots
        self._attempts = attempts
        self._backoff_s = backoff_s
        self._backoff_max_s = backoff_max_s
        self._monotonic = monotonic
        self._jitter = jitter
        self._later = later
        self._backlog = Backlog(
            slots=slots, patience_s=patience_s, events_limit=events_limit, on_event_dropped=metrics.event_dropped
        )
        self._idle: deque[asyncio.Future[None]] = deque()
        self._retries: dict[Hashable, Timer] = {}
        self._closing = False
        self._quiet = asyncio.Event()
        for kind in _KINDS:
            metrics.read_queue_from(kind.__name__, partial(self._backlog.waiting, kind))

    def submit(self, effects: Iterable[Effect]) -> None:
        """Queue effects in order. Synchronous; while closing, everything is dropped."""
        added = 0
        if self._closing:
            return
        now = self._monotonic()
        for effect in effects:
            older = self._retries.pop(_subject(effect), None)
            if older is not None:
                older.cancel()
            self._backlog.add(effect, now)
            added += 1
        self._wake(added)

    async def run(self) -> None:
        """Work for ever. Only a bug ends it, by raising."""
        async with asyncio.TaskGroup() as workers:
            for number in range(self._slots):
                workers.create_task(self._work(), name=f"executor-{number}")

    async def drain(self, timeout_s: float) -> int:
        """Stop: drop the bindings and pod conditions that wait, let everything in flight end, send statuses and Events.

        Returns how many writes were still in flight or waiting when `timeout_s` had passed; 0 if all ended.
        """
        self._closing = True
        dropped = self._backlog.close()
        if dropped:
            self._metrics.bindings_dropped(dropped)
            _log.info("bindings not sent because of the shutdown", extra={"count": dropped})
        for timer in self._retries.values():
            timer.cancel()
        self._retries.clear()
        self._note_quiet()
        self._wake(self._slots)
        try:
            async with asyncio.timeout(timeout_s):
                await self._quiet.wait()
        except TimeoutError:
            return self._backlog.in_flight + sum(self._backlog.waiting(kind) for kind in _KINDS)
        return 0

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            job = self._backlog.next(self._monotonic())
            if job is None:
                woken = loop.create_future()
                self._idle.append(woken)
                await woken
                continue
            await self._send(job)
            self._backlog.done(job)
            self._note_quiet()

    def _wake(self, count: int) -> None:
        while count > 0 and self._idle:
            woken = self._idle.popleft()
            if not woken.done():
                woken.set_result(None)
                count -= 1

    def _note_quiet(self) -> None:
        if self._closing and self._backlog.in_flight == 0 and self._backlog.empty:
            self._quiet.set()

    async def _send(self, job: Job) -> None:
        match job.effect:
            case BindPod() as effect:
                await self._bind(effect)
            case PatchStatus() as effect:
                self._answered_status(job, effect, await self._writes.patch_status(effect))
            case PatchPodCondition() as effect:
                self._answered(job, await self._writes.patch_condition(effect))
            case EmitEvent() as effect:
                self._answered(job, await self._writes.emit(effect))

    async def _bind(self, effect: BindPod) -> None:
        sent = self._monotonic()
        answer = await self._writes.bind(effect)
        result = answer.why.value if isinstance(answer, BindRefused) else "Bound"
        self._metrics.bound(result, self._monotonic() - sent)
        if isinstance(answer, BindRefused):
            _log.warning(
                "binding refused",
                extra={
                    "pod": f"{effect.namespace}/{effect.name}",
                    "node": effect.node,
                    "why": result,
                    "answer": answer.message,
                },
            )
        self._post((answer,))

    def _answered_status(self, job: Job, effect: PatchStatus, answer: Answer) -> None:
        if answer.outcome is Outcome.WRITTEN:
            reserved = effect.status.reservation is not None
            self._post((StatusWritten(effect.key, answer.resource_version, reserved=reserved),))
        elif answer.outcome is Outcome.GONE:
            self._on_group_gone(effect.key)
        if not self._answered(job, answer) and answer.outcome is not Outcome.WRITTEN:
            self._post((StatusRefused(key=effect.key, stale=answer.outcome is Outcome.STALE),))

    def _answered(self, job: Job, answer: Answer) -> bool:
        """Count the answer; True if the write, or a newer one in its place, will be tried again."""
        kind = type(job.effect).__name__
        self._metrics.written(kind, answer.outcome.value)
        if answer.outcome is Outcome.UNAVAILABLE and not self._closing:
            if self._backlog.superseded(job.effect):
                return True
            if job.attempt + 1 < self._attempts:
                self._retry_later(job, answer.retry_after_s)
                return True
        if answer.outcome not in (Outcome.WRITTEN, Outcome.GONE, Outcome.STALE):
            _log.warning(
                "write given up",
                extra={
                    "kind": kind,
                    "object": _object_of(job.effect),
                    "outcome": answer.outcome.value,
                    "attempts": job.attempt + 1,
                    "answer": answer.message,
                },
            )
        return False

    def _retry_later(self, job: Job, retry_after_s: float) -> None:
        longest = min(self._backoff_s * 2**job.attempt, self._backoff_max_s)
        delay = retry_after_s or longest * self._jitter()
        subject = _subject(job.effect)

        def again() -> None:
            del self._retries[subject]
            self._backlog.add_again(job)
            self._wake(1)

        self._retries[subject] = self._later(delay, again)


def _subject(effect: Effect) -> Hashable:
    """What a newer effect supersedes an older one by; a fresh object where nothing is ever superseded.

    A binding supersedes what was to be said of its pod as unscheduled.
    """
    match effect:
        case PatchStatus(key=key):
            return key
        case PatchPodCondition(uid=uid) | BindPod(uid=uid):
            return uid
        case _:
            return object()


def _object_of(effect: Effect) -> str:
    if isinstance(effect, PatchStatus):
        return str(effect.key)
    return f"{effect.namespace}/{effect.name}"
