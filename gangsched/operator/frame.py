"""How kopf runs: in a thread with an event loop of its own, begun again whenever it ends.

When kopf ends it cancels every task of its event loop that is younger than itself, and much that an API server may
answer ends it (401, 403, 404, an ERROR in a watch). In a loop of its own neither touches the scheduler.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain, repeat

import kopf

from gangsched.api.crd import NAME
from gangsched.kube.errors import printable
from gangsched.kube.session import ApiSession
from gangsched.operator.handlers import CRDS, make_registry

_log = logging.getLogger(__name__)

PAUSE_S = 10.0
"""After kopf has ended it is begun again so much later."""
_JOIN_S = 1.0


class _Backoffs:
    """Pauses between kopf's tries of one request, in seconds, without end: an outage of the API server ends nobody."""

    def __iter__(self) -> Iterator[float]:
        return chain((1.0, 1.0, 2.0, 3.0, 5.0, 8.0), repeat(13.0))


def make_settings() -> kopf.OperatorSettings:
    """Reduce kopf to watching one CustomResourceDefinition: alone, silent, without Events or looking for anything new.

    `worker_limit` stays unset because an idle worker keeps its slot.
    """
    settings = kopf.OperatorSettings()
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.posting.enabled = False
    settings.queueing.worker_limit = None
    settings.queueing.idle_timeout = 1.0
    settings.queueing.exit_timeout = 2.0
    settings.watching.field_selectors[CRDS] = f"metadata.name={NAME}"
    settings.watching.server_timeout = 300
    settings.watching.connect_timeout = 5
    settings.watching.inactivity_timeout = 70
    settings.networking.request_timeout = 15
    settings.networking.enforce_retry_after = True
    settings.networking.error_backoffs = _Backoffs()
    # With a time limit kopf kills the whole process so long after its own end (seen with 1.45).
    settings.process.ultimate_exiting_timeout = None
    return settings


class Frame:
    """kopf in its thread. `open_session` is called there, and gives what kopf's own session is made of.

    `on_crd` is told, in that thread, which fields the installed CustomResourceDefinition lacks.
    """

    def __init__(
        self,
        open_session: Callable[[], ApiSession],
        *,
        on_crd: Callable[[list[str]], None],
        pause_s: float = PAUSE_S,
    ) -> None:
        self._open_session = open_session
        self._on_crd = on_crd
        self._pause_s = pause_s
        self._stop = threading.Event()
        self._end: Callable[[], object] = lambda: None
        # A thread that waits for an API server must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="kopf", daemon=True)

    def start(self) -> None:
        """Begin."""
        for name in ("kopf", "kopf.objects"):
            logging.getLogger(name).setLevel(logging.WARNING)
        # What ends kopf it logs twice, with tracebacks, and then raises; it is told once, from here.
        logging.getLogger("kopf._core.reactor").setLevel(logging.CRITICAL)
        self._thread.start()

    async def stop(self) -> None:
        """End it, or leave it behind if it does not end within a second; nothing happens if it was not begun."""
        self._stop.set()
        with suppress(RuntimeError):  # its event loop has ended just now
            self._end()
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join, _JOIN_S)

    def _run(self) -> None:
        told = ""
        while not self._stop.is_set():
            try:
                asyncio.run(self._watch())
            except Exception as error:  # noqa: BLE001 - whatever it is, the scheduler goes on and so does kopf
                failure = _said(error)
                if failure != told:
                    told = failure
                    extra = {"error": failure, "again_in_s": f"{self._pause_s:g}"}
                    _log.warning("the watch of our CustomResourceDefinition has ended", extra=extra)
            self._stop.wait(self._pause_s)

    async def _watch(self) -> None:
        # For a threading.Event kopf would wait in a thread of its own, without which this loop could not end: whatever
        # had ended kopf, it would be begun again only after five minutes.
        end = asyncio.Event()
        self._end = partial(asyncio.get_running_loop().call_soon_threadsafe, end.set)
        if self._stop.is_set():
            return
        session = self._open_session()
        try:
            registry = make_registry(server=session.server, make_client=session.client, on_crd=self._on_crd)
            await kopf.operator(registry=registry, settings=make_settings(), clusterwide=True, stop_flag=end)
        finally:
            await session.close()


def _said(error: Exception) -> str:
    """What ended kopf, in a line: its errors of the API show as tuples of objects."""
    status, message = getattr(error, "status", None), getattr(error, "message", None)
    return f"{status} {printable(str(message))}" if status else f"{type(error).__name__}: {printable(str(error))}"
