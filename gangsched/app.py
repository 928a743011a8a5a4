"""The composition root: builds all parts of the operator, runs them, and stops them in the right order.

Shutdown first stops new decisions, then waits for the writes in flight, and only then stops what they depend on: the
lease, watches, probes, kopf and connections.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from gangsched.config.invalid_config import InvalidConfig
from gangsched.config.published import published
from gangsched.config.settings import Settings
from gangsched.core.machine import Machine
from gangsched.core.objects.policy import Policy
from gangsched.kube.client.contact import Problem
from gangsched.kube.client.discovery import Discovery
from gangsched.kube.client.errors import NoCredentials
from gangsched.kube.client.lease import SETTINGS, LeaseClient
from gangsched.kube.client.reflector import Reflector
from gangsched.kube.client.session import ApiSession, connect
from gangsched.kube.client.token_files import own_namespace
from gangsched.kube.dialects.dialect_table import chosen
from gangsched.kube.foreign.demand_objects import DEMANDS
from gangsched.kube.foreign.watch import ForeignWatch, groups
from gangsched.kube.reading.device_values import DEVICES, subject
from gangsched.kube.reading.disruption_values import WATCHED_BUDGETS
from gangsched.kube.reading.namespaces import is_missing
from gangsched.kube.reading.watched_resources import GROUPS, NAMESPACES, NODES, PRIORITY_CLASSES, STORAGE, pods
from gangsched.kube.workloads import workload_table as workloads
from gangsched.kube.workloads.template_admission import ADDING, Admission, Reader
from gangsched.kube.workloads.workload_watches import objects, read_again, watch_adding
from gangsched.kube.writing.volcano_phases import Rival
from gangsched.operator.kopf_thread import KopfThread
from gangsched.operator.memo import Deletion
from gangsched.runtime.alone import Alone
from gangsched.runtime.backlog import AT_FIRST
from gangsched.runtime.clocks import Clock, StageTimes, measure_loop_lag
from gangsched.runtime.effect_table import table
from gangsched.runtime.election import Timing
from gangsched.runtime.ending import log_failures, take_signals, unless_stopped
from gangsched.runtime.engine import Engine
from gangsched.runtime.executor import Executor
from gangsched.runtime.files import allow_connections
from gangsched.runtime.health import Health
from gangsched.runtime.inbox import Inbox
from gangsched.runtime.leadership import Leadership, new_identity
from gangsched.runtime.leadership_terms import Terms
from gangsched.runtime.metrics import Metrics
from gangsched.runtime.probes import Readiness
from gangsched.runtime.supervision import supervise
from gangsched.runtime.watches import Watches

if TYPE_CHECKING:
    from gangsched.page.service import Service

_log = logging.getLogger(__name__)

ENDED, FAILED, WRONG_USAGE = 0, 1, 2

_DRAIN_S, _INFORM_S = 7.0, 1.0
"""Time limits of a shutdown, in seconds. It waits for bindings and evictions in flight, whose own time limit is 6 s;
within that time it sends statuses and Events for the second limit. A whole shutdown takes less than 10 s."""
_RELEASE_S = 1.5


async def run(
    settings: Settings,
    *,
    kubeconfig: str | None,
    context: str | None,
    dry_run: bool,
    leader_elect: bool,
    show_page: Callable[[str], None] | None = None,
) -> int:
    """Run the operator until SIGTERM or SIGINT; return the exit status.

    `show_page` gets the address of the page, which is otherwise logged.
    """
    stop = asyncio.Event()
    take_signals(stop)
    try:
        policy = settings.policy(seed=secrets.randbits(32))
        allow_connections(settings.bind_concurrency)
        session = await unless_stopped(stop, connect(kubeconfig=kubeconfig, context=context))
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
        _log.warning("running without leader election: no second gangsched may serve the same schedulerName")
    shell = _Shell(
        session,
        settings,
        stop,
        policy=policy,
        dry_run=dry_run,
        leader_elect=leader_elect and not dry_run,
        show_page=show_page,
    )
    try:
        async with asyncio.TaskGroup() as tasks:
            await shell.start(tasks)
            await stop.wait()
            left = await shell.end()
    except ExceptionGroup as failures:
        log_failures(failures)
        return FAILED
    finally:
        await shell.close()
    if left:
        _log.warning(
            "bindings or evictions were still unanswered at shutdown; the lease is left to expire",
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
        show_page: Callable[[str], None] | None = None,
    ) -> None:
        self._session = session
        self._settings = settings
        self._metrics = Metrics()
        self._inbox = Inbox()
        self._clock = Clock()
        session.contact.observer = self._metrics
        session.contact.counter = self._metrics.api_answered
        for problem in Problem:
            self._metrics.read_problem_from(problem.value, partial(session.contact.lasts_s, problem))
        lease = settings.volcano.scheduler_lease
        self._rival = Rival(
            LeaseClient(session=session, namespace=lease.namespace, name=lease.name, essential=False), self._clock.now
        )
        self._mandate = self._leadership() if leader_elect else self._alone()
        self._policy = policy
        self._engine = Engine(
            self._make_machine,
            self._inbox,
            now=self._clock.now,
            metrics=self._metrics,
        )
        self._terms = Terms(
            self._engine,
            mandate=self._mandate,
            make_executor=None if dry_run else self._executor,
            prepare=self._prepare,
            post=self._inbox.post,
        )
        self._metrics.read_leader_from(self._terms.may_write)
        self._admission = Admission()
        self._workloads: list[tuple[Reader, ForeignWatch]] = []
        self._adding: list[Reflector[Any]] = []
        self._watches = self._make_watches()
        readiness = Readiness(
            self._engine, session.contact, watches=self._watches, mandate=self._mandate, stop=stop, dry_run=dry_run
        )
        self._health = Health(
            self._metrics,
            alive=readiness.why_not_alive,
            ready=readiness.why_not_ready,
            role=readiness.role,
            notes=readiness.notes,
        )
        loop = asyncio.get_running_loop()
        self._kopf = KopfThread(
            partial(session.for_loop, loop),
            on_crd=self._metrics.crd_seen,
            deletion=Deletion.of(
                settings.pod_groups,
                leads=lambda: self._terms.may_write() and self._engine.synced,
                post=lambda expired: loop.call_soon_threadsafe(self._inbox.post, expired),
            ),
        )
        self._page = self._make_page(show_page) if settings.page.enabled else None
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def start(self, tasks: asyncio.TaskGroup) -> None:
        """Answer probes, watch and campaign.

        Raises:
            ListenError: the server for probes or for the page cannot listen on its address.
        """
        await self._health.start(*self._settings.listen_address)
        if self._page is not None:
            await self._page.start()
        self._kopf.start()
        working = {
            "engine": self._engine.run(),
            "loop lag": measure_loop_lag(self._metrics.loop_lagged),
            **dict(self._watches.tasks()),
            **{f"watch of {reflector.resource.name}": watch_adding(reflector) for reflector in self._adding},
            "workloads": read_again(self._admission, self._workloads),
            "terms": self._serve(),
        }
        if self._page is not None:
            working["page"] = supervise("page", self._page.run)
        self._tasks = {name: tasks.create_task(work, name=name) for name, work in working.items()}

    async def end(self) -> int:
        """Stop deciding, wait for the writes in flight, release the lease, then stop everything.

        Returns the number of writes that did not end. If there are any, the lease is not released and expires, because
        they may still take effect.
        """
        await self._cancel("engine")
        left = await self._terms.drain(_DRAIN_S, informing_s=_INFORM_S)
        await self._cancel("terms")
        if not left:
            await self._mandate.release(timeout_s=_RELEASE_S)
        for task in self._tasks.values():
            task.cancel()
        return left

    async def close(self) -> None:
        """Close everything that is still open, also after a failure."""
        if self._page is not None:
            await self._page.close()
        await self._health.stop()
        await self._kopf.stop()
        await self._session.close()

    async def _cancel(self, name: str) -> None:
        """Cancel the task and wait until it has ended."""
        task = self._tasks[name]
        task.cancel()
        await asyncio.wait({task})

    async def _serve(self) -> None:
        """Wait until every resource has been listed once, then campaign and lead."""
        await self._watches.listed()
        only = self._settings.namespace
        if only and await is_missing(self._session, only):
            _log.warning(
                "the only namespace whose pods are scheduled does not exist: create it, or correct --namespace",
                extra={"namespace": only},
            )
        await self._terms.run()

    async def _prepare(self) -> None:
        await self._watches.caught_up(self._mandate)
        await self._session.warm(min(self._settings.bind_concurrency, AT_FIRST))

    def _make_watches(self) -> Watches:
        dialects, kinds = chosen(self._settings), workloads.chosen(self._settings)
        reflector = partial(Reflector, self._session, post=self._inbox.post, observer=self._metrics)
        self._adding += (reflector(resource, post=self._admission.take) for resource in ADDING)
        watch = partial(
            ForeignWatch,
            self._session,
            post=self._inbox.post,
            observer=self._metrics,
            discovery=Discovery(self._session),
        )
        pod_groups = reflector(GROUPS)
        all_pods = reflector(pods(dialects, kinds))
        for kind in kinds.kinds.values():
            reader = self._admission.reader()
            self._workloads.append((reader, watch(objects(kind, reader), after=self._adding)))
        others = map(reflector, (NAMESPACES, PRIORITY_CLASSES, NODES))
        return Watches(
            (*map(reflector, STORAGE.values()), *others, all_pods, pod_groups),
            pods=all_pods,
            groups=pod_groups,
            foreign=[
                *(watch(subject(kind)) for kind in DEVICES),
                *([watch(WATCHED_BUDGETS)] if self._settings.preemption.enabled else []),
                *(watch(groups(dialect, kind)) for dialect, kind in dialects.kinds.items()),
                *(workload_watch for _, workload_watch in self._workloads),
            ],
            unhurried=[watch(DEMANDS)] if DEMANDS.dialect in self._settings.dialects else [],
        )

    def _make_machine(self) -> Machine:
        """The machine of the next term."""
        self._machine = Machine(self._policy, passed=StageTimes(self._metrics.stage_took).passed)
        return self._machine

    def _make_page(self, show: Callable[[str], None] | None) -> Service:
        from gangsched.page.service import Service  # noqa: PLC0415 - loaded only if enabled

        return Service(
            self._settings,
            machine=lambda: self._machine,
            facts=self._engine.facts,
            now=self._clock.now,
            ready=lambda: self._watches.have_listed,
            decides=lambda: self._engine.synced,
            show=show,
        )

    def _executor(self, lasting: Callable[[], bool]) -> Executor:
        return Executor(
            table(self._session, instance=socket.gethostname(), now=self._clock.now, rival=self._rival),
            self._inbox.post,
            metrics=self._metrics,
            slots=self._settings.bind_concurrency,
            allowed=lasting,
        )

    def _leadership(self) -> Leadership:
        chosen = self._settings.leader_election
        return Leadership(
            LeaseClient(
                # Its own connection, so that neither other requests nor the limit of open files delay a renewal.
                session=self._session.separate(),
                namespace=chosen.resource_namespace or own_namespace(),
                name=chosen.resource_name,
                annotations={SETTINGS: published(self._settings)},
            ),
            identity=new_identity(),
            timing=Timing.of(chosen),
            metrics=self._metrics,
        )

    def _alone(self) -> Alone:
        return Alone(
            partial(self._session.contact.lasts_s, Problem.UNREACHABLE),
            limit_s=Timing.of(self._settings.leader_election).renew_s,
        )
