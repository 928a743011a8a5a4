"""The composition root: builds every part of the operator, runs them, and ends them in the right order.

At the end nothing new is decided first, then what is in flight may end, and only then the ground goes: the lease,
watches, probes, kopf, connections.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import signal
import socket
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial

from gangsched.config.settings import InvalidConfig, Settings
from gangsched.core.machine import Machine
from gangsched.core.objects.duration import parse_duration
from gangsched.core.objects.policy import Policy
from gangsched.kube.contact import TOLD_AFTER_S, Problem
from gangsched.kube.demands import DEMANDS
from gangsched.kube.dialects.table import Dialects, chosen
from gangsched.kube.discovery import Discovery
from gangsched.kube.errors import NoCredentials
from gangsched.kube.foreign import ForeignWatch, groups, settle
from gangsched.kube.lease import LeaseClient, own_namespace
from gangsched.kube.reflector import Reflector
from gangsched.kube.resources import GROUPS, NAMESPACES, NODES, PRIORITY_CLASSES, pods
from gangsched.kube.session import ApiSession, connect
from gangsched.operator.frame import Frame
from gangsched.runtime.alone import Alone
from gangsched.runtime.backlog import AT_FIRST
from gangsched.runtime.clock import Clock, measure_loop_lag
from gangsched.runtime.effects import table
from gangsched.runtime.election import Timing
from gangsched.runtime.engine import Engine
from gangsched.runtime.executor import Executor
from gangsched.runtime.files import allow_connections
from gangsched.runtime.health import Health, ListenError
from gangsched.runtime.inbox import Inbox
from gangsched.runtime.leadership import Leadership, new_identity
from gangsched.runtime.metrics import Metrics
from gangsched.runtime.terms import Terms

_log = logging.getLogger(__name__)

ENDED, FAILED, WRONG_USAGE = 0, 1, 2

_DRAIN_S, _TELL_S = 7.0, 1.0
"""At the end so long is waited for bindings and evictions in flight, whose own time limit is 6 s, and so long is told
what people wait for; the whole end takes less than 10 s."""
_RELEASE_S = 1.5
_CATCH_UP_S = 5.0
"""So long a new leader waits for watches that were interrupted, after an outage."""
_FOREIGN_S = 30.0
"""So long other systems' groups are waited for at the start where the API server fails to list them."""
_SETTLE_S = 0.5
"""What a leader that has just let go did last may still be on its way to our watches."""
_ENGINE_SILENT_S = 30.0
_WATCH_SILENT_S = 150.0
"""A quiet watch brings a bookmark about every minute; after 70 s of silence it is taken for dead and begun anew."""


async def run(
    settings: Settings, *, kubeconfig: str | None, context: str | None, dry_run: bool, leader_elect: bool
) -> int:
    """Run the operator until SIGTERM or SIGINT; return the exit status."""
    stop = asyncio.Event()
    _take_signals(stop)
    try:
        policy = settings.policy(seed=secrets.randbits(32))
        allow_connections(settings.bind_concurrency)
        session = await _unless(stop, connect(kubeconfig=kubeconfig, context=context))
    except InvalidConfig as error:
        _log.critical("the configuration cannot be used", extra={"error": str(error)})
        return WRONG_USAGE
    except NoCredentials as error:
        _log.critical("no credentials for an API server", extra={"error": str(error)})
        return WRONG_USAGE
    if session is None:
        _log.info("ended")
        return ENDED
    _log.info("starting", extra={"server": session.server, "schedulers": ",".join(settings.scheduler_names)})
    if dry_run:
        _log.warning("dry run: decisions are logged and counted, nothing is written")
    elif not leader_elect:
        _log.warning("without leader election: no second gangsched may serve the same schedulerName")
    shell = _Shell(
        session,
        settings,
        stop,
        policy=policy,
        dry_run=dry_run,
        leader_elect=leader_elect and not dry_run,
    )
    try:
        async with asyncio.TaskGroup() as tasks:
            await shell.start(tasks)
            await stop.wait()
            left = await shell.end()
    except ExceptionGroup as failures:
        for failure in _leaves(failures):
            _tell_end(failure)
        return FAILED
    finally:
        await shell.close()
    if left:
        _log.warning(
            "bindings or evictions were not answered before the end; the lease is left to expire",
            extra={"count": left, "waited_s": _DRAIN_S},
        )
    _log.info("ended")
    return ENDED


class _Shell:
    """All parts of the operator, wired to each other."""

    def __init__(
        self,
        session: ApiSession,
        settings: Settings,
        stop: asyncio.Event,
        *,
        policy: Policy,
        dry_run: bool,
        leader_elect: bool,
    ) -> None:
        self._session = session
        self._settings = settings
        self._stop = stop
        self._dry_run = dry_run
        self._metrics = Metrics()
        self._inbox = Inbox()
        self._clock = Clock()
        session.contact.observer = self._metrics
        for problem in Problem:
            self._metrics.read_problem_from(problem.value, partial(session.contact.lasts_s, problem))
        self._leadership = self._make_leadership() if leader_elect else None
        self._metrics.read_leader_from(self._may_write)
        self._engine = Engine(partial(Machine, policy), self._inbox, now=self._clock.now, metrics=self._metrics)
        self._terms = Terms(
            self._engine,
            mandate=self._leadership or self._alone(),
            make_executor=None if dry_run else self._make_executor,
            prepare=self._prepare,
            post=self._inbox.post,
        )
        dialects = _dialects(settings)
        watched = (NAMESPACES, PRIORITY_CLASSES, NODES, pods(dialects))
        self._groups = Reflector(session, GROUPS, self._inbox.post, observer=self._metrics)
        self._reflectors = (
            *(Reflector(session, resource, self._inbox.post, observer=self._metrics) for resource in watched),
            self._groups,
        )
        discovery = Discovery(session)
        self._foreign = tuple(
            ForeignWatch(session, groups(dialect, kind), self._inbox.post, observer=self._metrics, discovery=discovery)
            for dialect, kind in dialects.kinds.items()
        )
        # What an autoscaler is asked for keeps nobody waiting at the start.
        self._demands = (
            [ForeignWatch(session, DEMANDS, self._inbox.post, observer=self._metrics, discovery=discovery)]
            if DEMANDS.dialect in settings.dialects
            else []
        )
        self._health = Health(self._metrics, alive=self._why_not_alive, ready=self._why_not_ready, role=self._role)
        self._kopf = Frame(partial(session.elsewhere, asyncio.get_running_loop()), on_crd=self._metrics.crd_seen)
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def start(self, tasks: asyncio.TaskGroup) -> None:
        """Answer probes, watch and campaign.

        Raises:
            ListenError: the address for probes cannot be listened on.
        """
        await self._health.start(*self._settings.listen_address)
        self._kopf.start()
        self._spawn(tasks, "engine", self._engine.run())
        self._spawn(tasks, "loop lag", measure_loop_lag(self._metrics.loop_lagged))
        for reflector in self._reflectors:
            self._spawn(tasks, f"reflector of {reflector.resource.name}", reflector.run())
        for watch in (*self._foreign, *self._demands):
            self._spawn(tasks, f"watch of {watch.name}", watch.run())
        self._spawn(tasks, "terms", self._serve())

    async def end(self) -> int:
        """Decide no more, let what is in flight end, release the lease, then stop everything.

        Returns how many writes did not end. With any the lease is kept until it expires: they may still take effect.
        """
        await self._cancel("engine")
        left = await self._terms.drain(_DRAIN_S, telling_s=_TELL_S)
        await self._cancel("terms")
        if self._leadership is not None and not left:
            await self._leadership.release(timeout_s=_RELEASE_S)
        for task in self._tasks.values():
            task.cancel()
        return left

    async def close(self) -> None:
        """Close what is left open, also after a failure."""
        await self._health.stop()
        await self._kopf.stop()
        await self._session.close()

    def _spawn(self, tasks: asyncio.TaskGroup, name: str, work: Coroutine[object, object, None]) -> None:
        self._tasks[name] = tasks.create_task(work, name=name)

    async def _cancel(self, name: str) -> None:
        """Cancel the task and wait until it has ended."""
        task = self._tasks[name]
        task.cancel()
        await asyncio.wait({task})

    async def _serve(self) -> None:
        """Wait until everything is listed once, then campaign and lead."""
        for reflector in self._reflectors:
            await reflector.synced.wait()
        await settle(self._foreign, _FOREIGN_S)
        await self._terms.run()

    async def _prepare(self) -> None:
        """Learn what the last leader did up to its end: it stands in the statuses, and in what the watches bring."""
        if self._leadership is not None:
            await self._groups.renew()
            if self._leadership.handed_over:
                await asyncio.sleep(_SETTLE_S)
        with suppress(TimeoutError):
            async with asyncio.timeout(_CATCH_UP_S):
                for reflector in self._reflectors:
                    await reflector.going.wait()
        await self._session.warm(min(self._settings.bind_concurrency, AT_FIRST))

    def _make_executor(self, lasting: Callable[[], bool]) -> Executor:
        return Executor(
            table(self._session, instance=socket.gethostname(), now=self._clock.now),
            self._inbox.post,
            metrics=self._metrics,
            slots=self._settings.bind_concurrency,
            allowed=lasting,
        )

    def _make_leadership(self) -> Leadership:
        chosen = self._settings.leader_election
        return Leadership(
            LeaseClient(
                # Whatever else is on its way, and however few files are left to open: the lease is renewed.
                session=self._session.apart(),
                namespace=chosen.resource_namespace or own_namespace(),
                name=chosen.resource_name,
            ),
            identity=new_identity(),
            timing=Timing(
                lease_s=parse_duration(chosen.lease_duration),
                renew_s=parse_duration(chosen.renew_deadline),
                retry_s=parse_duration(chosen.retry_period),
            ),
            metrics=self._metrics,
        )

    def _alone(self) -> Alone:
        deadline = parse_duration(self._settings.leader_election.renew_deadline)
        return Alone(partial(self._session.contact.lasts_s, Problem.UNREACHABLE), limit_s=deadline)

    def _may_write(self) -> bool:
        return self._leadership.held() if self._leadership is not None else not self._dry_run

    def _why_not_alive(self) -> list[str]:
        silent_s = self._engine.silent_s()
        return [f"the engine has not turned for {silent_s:.0f} s"] if silent_s > _ENGINE_SILENT_S else []

    def _why_not_ready(self) -> list[str]:
        if self._stop.is_set():
            return ["shutting down"]
        problems = self._session.contact.problems()
        problems += [problem for problem in map(_why_unheard, self._reflectors) if problem]
        leadership = self._leadership
        if leadership is not None and leadership.problem:
            problems.append(leadership.problem)
        if not problems and not self._engine.synced and not (leadership is not None and leadership.standby):
            problems.append("this replica neither leads nor stands by yet: its first scheduling pass has not ended")
        rivals = self._engine.rivals_problem()
        return [*problems, rivals] if rivals else problems

    def _role(self) -> str:
        if self._dry_run:
            return "dry run"
        if self._leadership is None:
            return "acting without leader election"
        return "leading" if self._engine.synced else f"standby; the leader is {self._leadership.leader or 'not known'}"


def _why_unheard(reflector: Reflector[object]) -> str:
    """What keeps a watch from bringing news, in a sentence; empty if nothing does, or only for some seconds."""
    name, now = reflector.resource.name, time.monotonic()
    if not reflector.synced.is_set():
        return f"{name} are not listed yet" + (f": {reflector.problem}" if reflector.problem else "")
    if now - reflector.interrupted_at >= TOLD_AFTER_S:
        return (
            f"the watch of {name} has been interrupted for {now - reflector.interrupted_at:.0f} s: {reflector.problem}"
        )
    if now - reflector.last_heard > _WATCH_SILENT_S:
        return f"nothing was heard of {name} for {now - reflector.last_heard:.0f} s"
    return ""


def _dialects(settings: Settings) -> Dialects:
    return chosen(settings.dialects, settings.pfnet, settings.spark, in_turn=settings.fifo.spark_drivers)


def _take_signals(stop: asyncio.Event) -> None:
    """Have SIGTERM and SIGINT set `stop`; a second one then ends the process at once."""
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT)

    def end(received: signal.Signals) -> None:
        _log.info("ending", extra={"signal": received.name})
        stop.set()
        for each in signals:
            loop.remove_signal_handler(each)

    for each in signals:
        loop.add_signal_handler(each, end, each)


async def _unless(stop: asyncio.Event, work: Coroutine[object, object, ApiSession]) -> ApiSession | None:
    """What the work gives, which has no time limit of its own; None if it is to stop before."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if working.done():
        return working.result()
    working.cancel()
    return None


def _leaves(failures: ExceptionGroup[Exception]) -> list[Exception]:
    found: list[Exception] = []
    for failure in failures.exceptions:
        found += _leaves(failure) if isinstance(failure, ExceptionGroup) else [failure]
    return found


def _tell_end(failure: Exception) -> None:
    if isinstance(failure, ListenError):
        _log.critical("gangsched cannot go on", extra={"error": str(failure)})
    else:
        _log.critical("gangsched failed", exc_info=failure, extra={"error": f"{type(failure).__name__}: {failure}"})
