"""The composition root: builds every part of the operator, runs them, and ends them in the right order.

Order matters in two places. Everything that must outlive kopf is started before it, because kopf cancels all tasks that
were born after its own start when it ends. And at the end nothing new is decided first, then what is in flight may
end, and only then the ground goes: watches, probes, kopf, connections.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import signal
import socket
import time
from collections.abc import Coroutine, Sequence

import aiohttp

from gangsched.config.settings import InvalidConfig, Settings
from gangsched.core.duration import parse_duration
from gangsched.core.events import Synced
from gangsched.core.machine import Machine
from gangsched.core.model import Group
from gangsched.kube.demands import DEMANDS
from gangsched.kube.dialects.table import Dialects, chosen
from gangsched.kube.discovery import Discovery
from gangsched.kube.errors import AccessDenied, ApiError, ApiUnreachable, CrdMissing, Garbled, KubeError, NoCredentials
from gangsched.kube.foreign import ForeignWatch, groups, settle
from gangsched.kube.lease import LeaseClient, own_namespace
from gangsched.kube.reflector import Reflector
from gangsched.kube.resources import NAMESPACES, NODES, PRIORITY_CLASSES, check_discovery, list_groups, pods
from gangsched.kube.session import ApiSession, connect
from gangsched.kube.writes import ApiWrites
from gangsched.operator.frame import WatchEnded, run_kopf
from gangsched.operator.handlers import make_registry, report_gaps
from gangsched.runtime.backlog import AT_FIRST
from gangsched.runtime.clock import Clock, measure_loop_lag
from gangsched.runtime.election import Timing
from gangsched.runtime.engine import Engine
from gangsched.runtime.executor import Executor
from gangsched.runtime.files import allow_connections
from gangsched.runtime.groups import GroupFeed
from gangsched.runtime.health import Health, ListenError
from gangsched.runtime.inbox import Inbox
from gangsched.runtime.leadership import Leadership, LeaseLost, new_identity
from gangsched.runtime.metrics import Metrics

_log = logging.getLogger(__name__)

ENDED, FAILED, WRONG_USAGE = 0, 1, 2

_TRY_AGAIN = (ApiError, ApiUnreachable, CrdMissing, Garbled)
_DENIED = (401, 403)
_CRD_RETRY_S = 5.0
_DRAIN_S = 20.0
_KOPF_END_S = 10.0
_KOPF_WATCHES_S = 60.0
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
        session = await connect(kubeconfig=kubeconfig, context=context)
    except InvalidConfig as error:
        _log.critical("the configuration cannot be used", extra={"error": str(error)})
        return WRONG_USAGE
    except NoCredentials as error:
        _log.critical("no credentials for an API server", extra={"error": str(error)})
        return WRONG_USAGE
    _log.info("starting", extra={"server": session.server, "schedulers": ",".join(settings.scheduler_names)})
    if dry_run:
        _log.warning("dry run: decisions are logged and counted, nothing is written")
    elif not leader_elect:
        _log.warning("without leader election: no second gangsched may serve the same schedulerName")
    shell = _Shell(
        session,
        settings,
        stop,
        machine=Machine(policy),
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
        _log.error("writes were still on their way at the end", extra={"count": left, "waited_s": _DRAIN_S})
        return FAILED
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
        machine: Machine,
        dry_run: bool,
        leader_elect: bool,
    ) -> None:
        self._session = session
        self._settings = settings
        self._stop = stop
        self._dry_run = dry_run
        self._metrics = Metrics()
        self._inbox = Inbox()
        clock = Clock()
        self._feed = GroupFeed(self._list_groups, self._inbox.post, metrics=self._metrics, failures=_TRY_AGAIN)
        self._leadership = self._make_leadership() if leader_elect else None
        self._executor = Executor(
            ApiWrites(session=session, instance=socket.gethostname(), now=clock.now),
            self._inbox.post,
            metrics=self._metrics,
            on_group_gone=lambda _: self._feed.relist("NotFound"),
            slots=settings.bind_concurrency,
            allowed=self._may_write,
        )
        self._metrics.read_stats_from(machine.stats)
        self._metrics.read_leader_from(self._may_write)
        self._engine = Engine(
            machine,
            self._inbox,
            self._executor.submit,
            now=clock.now,
            metrics=self._metrics,
            muted=dry_run,
        )
        dialects = _dialects(settings)
        self._reflectors = tuple(
            Reflector(session, resource, self._inbox.post, observer=self._metrics)
            for resource in (NAMESPACES, PRIORITY_CLASSES, NODES, pods(dialects))
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
        self._crd_there = False
        self._kopf_ready = asyncio.Event()
        self._kopf_watches = asyncio.Event()
        self._kopf_stop = asyncio.Event()
        self._kopf: asyncio.Task[None] | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def start(self, tasks: asyncio.TaskGroup) -> None:
        """Answer probes and begin; the rest follows once the CRD is there.

        Raises:
            ListenError: the address for probes cannot be listened on.
        """
        await self._health.start(*self._settings.listen_address)
        self._spawn(tasks, "executor", self._executor.run())
        self._spawn(tasks, "engine", self._engine.run())
        self._spawn(tasks, "loop lag", measure_loop_lag(self._metrics.loop_lagged))
        self._spawn(tasks, "start", self._serve(tasks))

    async def end(self) -> int:
        """Decide no more, let what is in flight end, release the lease, then stop everything.

        Returns how many writes did not end. With any the lease is kept until it expires: they may still take effect.
        """
        await self._cancel("start", "engine")
        left = await self._executor.drain(_DRAIN_S)
        if self._leadership is not None and not left:
            await self._cancel("lease")
            await self._leadership.release()
        for task in self._tasks.values():
            task.cancel()
        # Its connections are tasks too, and kopf would wait for them.
        await self._health.stop()
        self._kopf_stop.set()
        if self._kopf is not None:
            await asyncio.wait({self._kopf}, timeout=_KOPF_END_S)
            self._kopf.cancel()
        return left

    async def close(self) -> None:
        """Close what is left open, also after a failure."""
        await self._health.stop()
        await self._session.close()

    def _spawn(self, tasks: asyncio.TaskGroup, name: str, work: Coroutine[object, object, None]) -> None:
        self._tasks[name] = tasks.create_task(work, name=name)

    async def _cancel(self, *names: str) -> None:
        """Cancel those of the tasks that were spawned, and wait until they have ended."""
        ending = {self._tasks[name] for name in names if name in self._tasks}
        for task in ending:
            task.cancel()
        if ending:
            await asyncio.wait(ending)

    async def _serve(self, tasks: asyncio.TaskGroup) -> None:
        await self._wait_for_crd()
        for reflector in self._reflectors:
            self._spawn(tasks, f"reflector of {reflector.resource.name}", reflector.run())
        for watch in (*self._foreign, *self._demands):
            self._spawn(tasks, f"watch of {watch.name}", watch.run())
        self._spawn(tasks, "podgroups", self._feed.run())
        self._kopf = tasks.create_task(self._run_kopf(), name="kopf")
        await self._kopf_ready.wait()
        _take_signals(self._stop)
        await self._await_kopf()
        for synced in (self._feed.synced, *(reflector.synced for reflector in self._reflectors)):
            await synced.wait()
        await settle(self._foreign, _FOREIGN_S)
        if self._leadership is not None:
            await self._lead(self._leadership, tasks)
        await self._session.warm(min(self._settings.bind_concurrency, AT_FIRST))
        self._inbox.post((Synced(),))
        _log.info("everything is listed; scheduling begins")

    async def _lead(self, leadership: Leadership, tasks: asyncio.TaskGroup) -> None:
        """Become the leader and, before anything is decided, learn what the last one did up to its end."""
        await leadership.acquire()
        self._spawn(tasks, "lease", leadership.keep())
        await self._feed.renew("Leading")
        if leadership.handed_over:
            await asyncio.sleep(_SETTLE_S)

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

    def _may_write(self) -> bool:
        return self._leadership.held() if self._leadership is not None else not self._dry_run

    async def _wait_for_crd(self) -> None:
        told = ""
        while True:
            try:
                await self._list_groups(most=1)
                await check_discovery(self._session)
            except _TRY_AGAIN as error:
                if str(error) != told:
                    told = str(error)
                    _log.warning("waiting for PodGroups", extra={"error": told, "retry_in_s": _CRD_RETRY_S})
                await asyncio.sleep(_CRD_RETRY_S)
            else:
                self._crd_there = True
                return

    async def _run_kopf(self) -> None:
        registry = make_registry(self._feed, server=self._session.server, make_client=self._make_client)
        await run_kopf(registry, ready=self._kopf_ready, stop=self._kopf_stop)
        # Without a failure it ends when told to, or by a signal that came before we took the signals back.
        self._stop.set()

    def _make_client(self) -> aiohttp.ClientSession:
        client = self._session.client()
        report_gaps(client, self._note_gap)
        return client

    def _note_gap(self) -> None:
        self._kopf_watches.set()
        self._feed.relist("KopfListed")

    async def _await_kopf(self) -> None:
        """Wait until kopf watches PodGroups: it looks once what the API server serves, and is silent if it misses them.

        Raises:
            WatchEnded: it does not in time.
        """
        try:
            async with asyncio.timeout(_KOPF_WATCHES_S):
                await self._kopf_watches.wait()
        except TimeoutError:
            raise WatchEnded(
                f"the watch of podgroups.gangsched.io has not begun within {_KOPF_WATCHES_S:g} s: the API server does"
                " not answer, or its discovery does not list them; gangsched ends so as to be started anew"
            ) from None

    async def _list_groups(self, *, most: int | None = None) -> Sequence[Group]:
        try:
            groups, _ = await list_groups(self._session, most=most)
        except ApiError as error:
            if error.status in _DENIED:
                raise AccessDenied(
                    f"gangsched may not list podgroups.gangsched.io in all namespaces ({error}):"
                    " give its account a ClusterRole with the verbs list and watch on them."
                ) from error
            raise
        return groups

    def _why_not_alive(self) -> list[str]:
        silent_s = self._engine.silent_s()
        return [f"the engine has not turned for {silent_s:.0f} s"] if silent_s > _ENGINE_SILENT_S else []

    def _why_not_ready(self) -> list[str]:
        if self._stop.is_set():
            return ["shutting down"]
        if not self._crd_there:
            return ["the API server has not listed PodGroups yet; the log says why"]
        problems = [] if self._feed.synced.is_set() else ["podgroups are not listed yet"]
        now = time.monotonic()
        for reflector in self._reflectors:
            name = reflector.resource.name
            if not reflector.synced.is_set():
                problems.append(f"{name} are not listed yet")
            elif now - reflector.last_heard > _WATCH_SILENT_S:
                problems.append(f"nothing was heard of {name} for {now - reflector.last_heard:.0f} s")
        leadership = self._leadership
        if leadership is not None and leadership.problem:
            problems.append(leadership.problem)
        if not problems and not self._engine.synced and not (leadership is not None and leadership.standby):
            problems.append("the first scheduling pass has not ended yet")
        rivals = self._engine.rivals_problem()
        return [*problems, rivals] if rivals else problems

    def _role(self) -> str:
        if self._dry_run:
            return "dry run"
        if self._leadership is None:
            return "acting without leader election"
        return "leading" if self._engine.synced else f"standby; the leader is {self._leadership.leader or 'not known'}"


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


def _leaves(failures: ExceptionGroup[Exception]) -> list[Exception]:
    found: list[Exception] = []
    for failure in failures.exceptions:
        found += _leaves(failure) if isinstance(failure, ExceptionGroup) else [failure]
    return found


def _tell_end(failure: Exception) -> None:
    if isinstance(failure, LeaseLost):
        _log.critical("lost the lease; nothing more is sent", extra={"error": str(failure)})
    elif isinstance(failure, KubeError | ListenError | WatchEnded):
        _log.critical("gangsched cannot go on", extra={"error": str(failure)})
    else:
        _log.critical("gangsched failed", exc_info=failure, extra={"error": f"{type(failure).__name__}: {failure}"})
