"""How kopf runs: its settings, and one call that runs it until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from itertools import chain, repeat

import kopf


class _Backoffs:
    """Pauses between kopf's tries of one request, in seconds, without end: an outage of the API server ends nobody."""

    def __iter__(self) -> Iterator[float]:
        return chain((1.0, 1.0, 2.0, 3.0, 5.0, 8.0), repeat(13.0))


def make_settings() -> kopf.OperatorSettings:
    """Reduce kopf to watching: alone, silent, without Events, without looking for new resources or namespaces.

    `worker_limit` stays unset because an idle worker keeps its slot: a limit would throttle new PodGroups.
    """
    settings = kopf.OperatorSettings()
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.posting.enabled = False
    settings.queueing.worker_limit = None
    settings.queueing.idle_timeout = 1.0
    settings.queueing.exit_timeout = 2.0
    settings.watching.server_timeout = 300
    settings.watching.connect_timeout = 5
    settings.watching.inactivity_timeout = 70
    settings.watching.chunk_size = 500
    settings.networking.request_timeout = 15
    settings.networking.enforce_retry_after = True
    settings.networking.error_backoffs = _Backoffs()
    settings.process.ultimate_exiting_timeout = 30
    return settings


class WatchEnded(Exception):  # noqa: N818 - a state of affairs
    """kopf cannot watch PodGroups any longer; the message says why."""


async def run_kopf(registry: kopf.OperatorRegistry, *, ready: asyncio.Event, stop: asyncio.Event) -> None:
    """Watch PodGroups in all namespaces until `stop` is set; `ready` is set once kopf's own start is over.

    kopf takes SIGINT and SIGTERM for itself as it starts and then ends when they arrive: whoever wants them sets
    handlers of their own after `ready`. As it ends it cancels every task that was born after its start, foreign ones
    too: tasks that must outlive it have to exist before.

    Raises:
        WatchEnded: the API server refused for good, for example because the CustomResourceDefinition was deleted.
    """
    for name in ("kopf", "kopf.objects"):
        logging.getLogger(name).setLevel(logging.WARNING)
    # What ends kopf it logs twice, with tracebacks, and then raises; it is told once, from here.
    logging.getLogger("kopf._core.reactor").setLevel(logging.CRITICAL)
    try:
        await kopf.operator(
            registry=registry, settings=make_settings(), clusterwide=True, ready_flag=ready, stop_flag=stop
        )
    except Exception as error:
        raise WatchEnded(f"the watch of podgroups.gangsched.io has ended ({type(error).__name__}: {error})") from error
