"""How kopf runs: in a thread with an event loop of its own, begun again whenever it ends.

When kopf ends it cancels every task of its event loop that is younger than itself, and much that an API server may
answer ends it (401, 403, 404, an ERROR in a watch). In a loop of its own neither touches the scheduler.

Nobody waits for what it tells, but at the start thousands of pods may wait for all the processor time that there is:
kopf is imported, and begins, some seconds later.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from gangsched.kube.errors import printable
from gangsched.kube.session import ApiSession

_log = logging.getLogger(__name__)

BEGIN_S = 10.0
"""So long after the start."""
PAUSE_S = 10.0
"""After kopf has ended it is begun again so much later."""
_JOIN_S = 1.0


class Frame:
    """kopf in its thread. `open_session` is called there, and gives what kopf's own session is made of.

    `on_crd` is told, in that thread, which fields the installed CustomResourceDefinition lacks.
    """

    def __init__(
        self,
        open_session: Callable[[], ApiSession],
        *,
        on_crd: Callable[[list[str]], None],
        begin_s: float = BEGIN_S,
        pause_s: float = PAUSE_S,
    ) -> None:
        self._open_session = open_session
        self._on_crd = on_crd
        self._begin_s = begin_s
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
        self._stop.wait(self._begin_s)
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
        import kopf  # noqa: PLC0415 - see the module

        from gangsched.operator.handlers import make_registry, make_settings  # noqa: PLC0415

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
