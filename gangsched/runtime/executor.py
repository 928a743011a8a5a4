"""Sends what the machine decides to the API server, a bounded number of writes at a time, and posts the answers."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from functools import partial

from gangsched.core.objects.effects import (
    BindPod,
    DropDemand,
    Effect,
    EmitEvent,
    EvictPod,
    LookUpOwner,
    MakeGroup,
    PatchPodCondition,
    PatchStatus,
    PutDemand,
    WithdrawBinding,
)
from gangsched.core.objects.events import Event, GroupSeen
from gangsched.core.objects.results import (
    BindRefused,
    EvictionRefused,
    GroupNotMade,
    OwnerSeen,
    Refused,
    StatusRefused,
    StatusWritten,
)
from gangsched.kube.owners import Unanswered
from gangsched.kube.writes import Answer, Outcome
from gangsched.runtime.backlog import Backlog, Job
from gangsched.runtime.calls import Timer, Writes
from gangsched.runtime.metrics import Metrics

_log = logging.getLogger(__name__)

_KINDS: tuple[type[Effect], ...] = (
    BindPod,
    EvictPod,
    LookUpOwner,
    MakeGroup,
    PatchStatus,
    PatchPodCondition,
    PutDemand,
    DropDemand,
    EmitEvent,
)
Told = PatchStatus | PatchPodCondition | EmitEvent | PutDemand | DropDemand
_OUTCOMES = {GroupSeen: Outcome.WRITTEN, GroupNotMade: Outcome.REFUSED, type(None): Outcome.STALE}
# More than any back-off needs; without a limit the factor would in the end be too large for a float.
_MOST_DOUBLINGS = 16
_UNCERTAIN_S = 10.0
"""A binding without an answer has taken effect after so long, and the watch has shown it, or it never does."""


def _later(delay_s: float, action: Callable[[], None]) -> Timer:
    return asyncio.get_running_loop().call_later(delay_s, action)


class Executor:
    """Sends the writes of one term of leadership, in the order of `Backlog`, by a fixed set of workers.

    A binding, an eviction or a PodGroup to be made is sent once; its answer goes to the inbox and the machine decides.
    The other writes are retried here up to `attempts` times with full-jitter back-off while the server is unavailable,
    a look-up of an owner until it is answered, because the machine waits for it.

    `allowed`, whether the term lasts, is asked immediately before anything is sent. Once it says no, what was decided
    is forgotten and nothing is posted: another process may lead already. The next term has an executor of its own.
    """

    def __init__(
        self,
        writes: Writes,
        post: Callable[[Iterable[Event]], None],
        *,
        metrics: Metrics,
        slots: int = 32,
        attempts: int = 8,
        backoff_s: float = 0.5,
        backoff_max_s: float = 30.0,
        patience_s: float = 1.0,
        telling_patience_s: float = 5.0,
        events_limit: int = 5000,
        allowed: Callable[[], bool] = lambda: True,
        monotonic: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
        later: Callable[[float, Callable[[], None]], Timer] = _later,
    ) -> None:
        self._writes = writes
        self._post = post
        self._metrics = metrics
        self._slots = slots
        self._attempts = attempts
        self._backoff_s = backoff_s
        self._backoff_max_s = backoff_max_s
        self._allowed = allowed
        self._withheld = False
        self._demands_refused = False
        self._monotonic = monotonic
        self._jitter = jitter
        self._later = later
        self._backlog = Backlog(
            slots=slots,
            patience_s=patience_s,
            telling_patience_s=telling_patience_s,
            events_limit=events_limit,
            on_event_dropped=metrics.event_dropped,
        )
        self._idle: deque[asyncio.Future[None]] = deque()
        self._retries: dict[Hashable, Timer] = {}
        self._closing = False
        self._cut = False
        self._quiet = asyncio.Event()
        self._uncertain: dict[str, tuple[float, BindPod]] = {}
        for kind in _KINDS:
            metrics.read_queue_from(kind.__name__, partial(self._backlog.waiting, kind))

    def submit(self, effects: Iterable[Effect]) -> None:
        """Queue effects in order. Synchronous; while closing, everything is dropped."""
        added = 0
        if self._closing:
            return
        now = self._monotonic()
        for effect in effects:
            if isinstance(effect, WithdrawBinding):
                self._withdraw(effect)
                continue
            if isinstance(effect, LookUpOwner) and effect.uid in self._retries:
                continue
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

    def unanswered(self) -> list[BindPod]:
        """The bindings that may have happened without our knowing; to be asked for when `run` has ended."""
        return [effect for _, effect in self._uncertain.values()]

    async def drain(self, timeout_s: float, *, telling_s: float) -> int:
        """Stop: let bindings and evictions in flight end, send statuses and Events for `telling_s`, drop the rest.

        Returns how many bindings and evictions were still in flight when `timeout_s` had passed; 0 if all ended.
        """
        self._closing = True
        dropped = self._backlog.close()
        if any(dropped):
            self._metrics.dropped(bindings=dropped.bindings, evictions=dropped.evictions)
            _log.info("bindings and evictions not sent because of the shutdown", extra=dropped._asdict())
        for timer in self._retries.values():
            timer.cancel()
        self._retries.clear()
        self._note_quiet()
        self._wake(self._slots)
        if not await self._quiet_within(telling_s):
            self._cut = True
            untold = self._backlog.clear()
            if untold:
                _log.info("statuses and Events not sent because of the shutdown", extra={"count": untold})
            self._note_quiet()
            await self._quiet_within(timeout_s - telling_s)
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
            job = self._backlog.next(self._monotonic())
            if job is None:
                woken = loop.create_future()
                self._idle.append(woken)
                await woken
                continue
            if not self._backlog.empty:
                # There may be work for one more: an answer can free more slots than the one it came in.
                self._wake(1)
            if self._allowed():
                await self._send(job)
            else:
                self._withhold(job)
            self._backlog.done(job)
            self._note_quiet()

    def _wake(self, count: int) -> None:
        while count > 0 and self._idle:
            woken = self._idle.popleft()
            if not woken.done():
                woken.set_result(None)
                count -= 1

    def _note_quiet(self) -> None:
        awaited = self._backlog.acting if self._cut else self._backlog.in_flight
        if self._closing and awaited == 0 and self._backlog.empty:
            self._quiet.set()

    def _withdraw(self, effect: WithdrawBinding) -> None:
        if self._backlog.withdraw(effect):
            self._metrics.binding_withdrawn()
            said = "it was withdrawn before it was sent"
            self._post((BindRefused(uid=effect.uid, node=effect.node, why=Refused.WITHDRAWN, message=said),))

    def _withhold(self, job: Job) -> None:
        self._metrics.withheld(type(job.effect).__name__)
        if not self._withheld:
            self._withheld = True
            _log.warning("nothing more is sent: this process may not write any longer, for another may lead by now")

    async def _send(self, job: Job) -> None:
        match job.effect:
            case BindPod() as effect:
                await self._bind(effect)
            case EvictPod() as effect:
                await self._evict(effect)
            case LookUpOwner() as effect:
                self._answered_owner(job, effect, await self._writes.look_up_owner(effect))
            case MakeGroup() as effect:
                await self._make(effect)
            case PatchStatus() as effect:
                self._answered_status(job, effect, await self._writes.patch_status(effect))
            case PatchPodCondition() as effect:
                self._answered(job, effect, await self._writes.patch_condition(effect))
            case EmitEvent() as effect:
                self._answered(job, effect, await self._writes.emit(effect))
            case PutDemand() as effect:
                self._answered(job, effect, await self._writes.put_demand(effect))
            case DropDemand() as effect:
                self._answered(job, effect, await self._writes.drop_demand(effect))

    async def _bind(self, effect: BindPod) -> None:
        sent = self._monotonic()
        self._note_sent(effect, sent)
        answer = await self._writes.bind(effect)
        if not (isinstance(answer, BindRefused) and answer.why is Refused.UNAVAILABLE):
            self._uncertain.pop(effect.uid, None)
        result = answer.why.value if isinstance(answer, BindRefused) else "Bound"
        self._metrics.bound(result, self._monotonic() - sent)
        if isinstance(answer, BindRefused):
            if answer.why is Refused.UNAVAILABLE:
                self._backlog.slow_down()
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

    def _note_sent(self, effect: BindPod, now: float) -> None:
        while self._uncertain:
            uid, (sent, _) = next(iter(self._uncertain.items()))
            if now - sent < _UNCERTAIN_S:
                break
            del self._uncertain[uid]
        self._uncertain.pop(effect.uid, None)
        self._uncertain[effect.uid] = now, effect

    async def _evict(self, effect: EvictPod) -> None:
        answer = await self._writes.evict(effect)
        result = answer.why.value if isinstance(answer, EvictionRefused) else "Evicted"
        self._metrics.evicted(result)
        pod = f"{effect.namespace}/{effect.name}"
        if isinstance(answer, EvictionRefused):
            _log.warning("eviction refused", extra={"pod": pod, "why": result, "answer": answer.message})
        else:
            _log.info("evicted", extra={"pod": pod})
        self._post((answer,))

    async def _make(self, effect: MakeGroup) -> None:
        """Create it. Only the watch shows it: an answer that comes after the PodGroup's end would revive it."""
        answer = await self._writes.make_group(effect)
        self._metrics.written(type(effect).__name__, _OUTCOMES[type(answer)].value)
        if isinstance(answer, GroupSeen):
            _log.info("made a PodGroup, in which places of a group stand", extra={"podgroup": str(effect.key)})
        elif answer is not None:
            _log.warning("a PodGroup was not made", extra={"podgroup": str(effect.key), "answer": answer.message})
            self._post((answer,))

    def _answered_owner(self, job: Job, effect: LookUpOwner, answer: OwnerSeen | Unanswered) -> None:
        kind = type(effect).__name__
        if isinstance(answer, OwnerSeen):
            self._metrics.written(kind, "Seen")
            self._post((answer,))
            return
        self._metrics.written(kind, Outcome.UNAVAILABLE.value)
        if job.attempt + 1 == self._attempts:
            owner = f"{effect.namespace}/{effect.name}"
            _log.warning("a Job could not be read yet; trying on", extra={"job": owner, "answer": answer.message})
        if not self._closing:
            self._retry_later(job, answer.retry_after_s)

    def _answered_status(self, job: Job, effect: PatchStatus, answer: Answer) -> None:
        if answer.outcome is Outcome.WRITTEN:
            reserved = effect.status.reservation is not None
            self._post((StatusWritten(effect.key, answer.resource_version, reserved=reserved),))
        if not self._answered(job, effect, answer) and answer.outcome is not Outcome.WRITTEN:
            self._post((StatusRefused(key=effect.key, stale=answer.outcome is Outcome.STALE),))

    def _answered(self, job: Job, effect: Told, answer: Answer) -> bool:
        """Count the answer; True if the write, or a newer one in its place, will be tried again."""
        kind = type(effect).__name__
        self._metrics.written(kind, answer.outcome.value)
        if answer.outcome is Outcome.UNAVAILABLE and not self._closing:
            if self._backlog.superseded(effect):
                return True
            if job.attempt + 1 < self._attempts:
                self._retry_later(job, answer.retry_after_s)
                return True
        given_up = answer.outcome not in (Outcome.WRITTEN, Outcome.GONE, Outcome.STALE)
        if isinstance(effect, PutDemand | DropDemand):
            # The machine goes on asking; what keeps them from being written is most often the same for all.
            given_up, self._demands_refused = given_up and not self._demands_refused, given_up
        if given_up:
            _log.warning(
                "write given up",
                extra={
                    "kind": kind,
                    "object": _object_of(effect),
                    "outcome": answer.outcome.value,
                    "attempts": job.attempt + 1,
                    "answer": answer.message,
                },
            )
        return False

    def _retry_later(self, job: Job, retry_after_s: float) -> None:
        longest = min(self._backoff_s * 2 ** min(job.attempt, _MOST_DOUBLINGS), self._backoff_max_s)
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
        case PatchStatus(key=key) | PutDemand(key=key) | DropDemand(key=key):
            return key
        case PatchPodCondition(uid=uid) | BindPod(uid=uid) | LookUpOwner(uid=uid):
            return uid
        case _:
            return object()


def _object_of(effect: Told) -> str:
    return f"{effect.namespace}/{effect.name}" if isinstance(effect, PatchPodCondition | EmitEvent) else str(effect.key)
