"""Runs kopf in a thread with its own event loop and restarts it whenever it ends.

When kopf ends, it cancels all tasks of its event loop that are younger than itself, and many answers of an API server
end it (401, 403, 404, an ERROR in a watch). In a separate event loop neither affects the scheduler.

The results of kopf are not urgent, but at the start thousands of pods may need all the processor time. Therefore kopf
is imported and started some seconds later.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from gangsched.core.objects.wording import printable
from gangsched.kube.client.session import ApiSession

_log = logging.getLogger(__name__)

BEGIN_S = 10.0
"""Delay of kopf after the start of the process."""
PAUSE_S = 10.0
"""Delay of kopf's restart after it has ended."""
_JOIN_S = 1.0


class KopfThread:
    """kopf in its thread. It calls `open_session` there for the connections of kopf's own session.

    It also calls `on_crd` there, with the fields that the installed CustomResourceDefinition lacks.
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
        """Start the thread."""
        # kopf logs the error that ends it twice, with tracebacks, and then raises it. It is logged once, below.
        logging.getLogger("kopf._core.reactor").setLevel(logging.CRITICAL)
        self._thread.start()

    async def stop(self) -> None:
        """Stop the thread, or abandon it if it does not end within a second. Does nothing if it was not started."""
        self._stop.set()
        with suppress(RuntimeError):  # its event loop has just ended
            self._end()
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join, _JOIN_S)

    def _run(self) -> None:
        logged = ""
        self._stop.wait(self._begin_s)
        while not self._stop.is_set():
            try:
                asyncio.run(self._watch())
            except Exception as error:  # noqa: BLE001 - no error may stop the scheduler or kopf
                failure = _said(error)
                if failure != logged:
                    logged = failure
                    extra = {"error": failure, "again_in_s": f"{self._pause_s:g}"}
                    _log.warning("the watch of our CustomResourceDefinition has ended", extra=extra)
            self._stop.wait(self._pause_s)

    async def _watch(self) -> None:
        import kopf  # noqa: PLC0415 - see the module

        from gangsched.operator.handlers import make_registry, make_settings  # noqa: PLC0415

        # With a threading.Event, kopf would wait for it in another thread, and this loop could not end before that. A
        # restart of kopf would then take five minutes.
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
    """The error that ended kopf, in one line. kopf's own text of an API error is a tuple of objects."""
    status, message = getattr(error, "status", None), getattr(error, "message", None)
    return f"{status} {printable(str(message))}" if status else f"{type(error).__name__}: {printable(str(error))}"
