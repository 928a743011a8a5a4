"""Runs kopf in a thread with its own event loop and restarts it whenever it ends.

When kopf ends, it cancels all tasks of its event loop that are younger than itself, and many answers of an API server
end it (401, 403, 404, an ERROR in a watch). In a separate event loop neither affects the scheduler.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

from gangsched.core.objects.wording import printable
from gangsched.kube.client.session import ApiSession
from gangsched.operator.memo import Deletion, Memo

_log = logging.getLogger(__name__)

PAUSE_S = 5.0
"""Delay of kopf's start, also after it has ended. Nothing that goes through kopf is urgent, and its start takes a fifth
of a second of processor time, in which the process binds what has waited for it."""
_JOIN_S = 1.0
_ROUNDS, _ROUND_S = 5, 0.1


class KopfThread:
    """kopf in its thread, where it also calls these functions.

    `open_session` opens the connections of kopf's own session. `on_crd` receives the fields that the installed
    CustomResourceDefinition lacks. Without `deletion` finished PodGroups stay.
    """

    def __init__(
        self,
        open_session: Callable[[], ApiSession],
        *,
        on_crd: Callable[[list[str]], None],
        deletion: Deletion | None = None,
        pause_s: float = PAUSE_S,
    ) -> None:
        self._open_session = open_session
        self._on_crd = on_crd
        self._deletion = deletion
        self._pause_s = pause_s
        self._stop = threading.Event()
        self._end: Callable[[], object] = lambda: None
        # A thread that waits for an API server must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="kopf", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        # kopf logs the error that ends it twice, with tracebacks, and then raises it. It is logged once, below.
        logging.getLogger("kopf._core.reactor").setLevel(logging.CRITICAL)
        # A start that is tried again: what hinders it hinders the watches of the scheduler too, which report it.
        logging.getLogger("kopf.activities").setLevel(logging.CRITICAL)
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
        while not self._stop.wait(self._pause_s):
            try:
                asyncio.run(self._watch())
            except Exception as error:  # noqa: BLE001 - no error may stop the scheduler or kopf
                failure = _error_text(error)
                if failure != logged:
                    logged = failure
                    extra = {"error": failure, "again_in_s": f"{self._pause_s:g}"}
                    _log.warning("kopf has ended; it is started again", extra=extra)

    async def _watch(self) -> None:
        import kopf  # noqa: PLC0415 - see the module

        from gangsched.operator.handlers import make_registry  # noqa: PLC0415
        from gangsched.operator.kopf_settings import make_settings  # noqa: PLC0415

        # With a threading.Event, kopf would wait for it in another thread, and this loop could not end before that. A
        # restart of kopf would then take five minutes.
        end = asyncio.Event()
        self._end = partial(asyncio.get_running_loop().call_soon_threadsafe, end.set)
        if self._stop.is_set():
            return
        asyncio.get_running_loop().set_exception_handler(note_left_error)
        session = self._open_session()
        try:
            memo = Memo(session=session, on_crd=self._on_crd, deletion=self._deletion)
            operator = kopf.operator(
                registry=make_registry(deletion=self._deletion is not None),
                settings=make_settings(),
                memo=memo,
                clusterwide=True,
                stop_flag=end,
            )
            await _run_to_the_end(operator, memo.ending)
        finally:
            await session.close()


def note_left_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Note the error of a task that kopf has left when it ended; what has ended kopf is logged apart.

    Of two tasks that an API server's end fails, kopf (seen with 1.45) looks at the error of one. Anything else is
    handled as usual.
    """
    error = context.get("exception")
    if isinstance(context.get("future"), asyncio.Task) and isinstance(error, Exception):
        _log.debug("a task that kopf left has failed", extra={"error": _error_text(error)})
    else:
        loop.default_exception_handler(context)


async def _run_to_the_end(operator: Coroutine[Any, Any, None], ending: asyncio.Event) -> None:
    """Run kopf, and help it to end within about a second once it is `ending`.

    If one of several watches fails, kopf (seen with 1.45) leaves the others for 5 s and then cancels each together with
    a task that it waits for. A watch takes that for a pause and goes on, and kopf waits for ever. So all tasks that
    kopf has left are cancelled here one after another, several times, because one may have begun another.

    Raises:
        Exception: the error that has ended kopf.
    """
    older = asyncio.all_tasks()
    # Both begin before kopf notes which tasks are not its own.
    running, cleaned = asyncio.create_task(operator), asyncio.create_task(ending.wait())
    await asyncio.wait({running, cleaned}, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.wait({running}, timeout=_JOIN_S)
    cleaned.cancel()
    for _ in range(_ROUNDS):
        for task in asyncio.all_tasks() - older - {running, cleaned}:
            task.cancel()
            await asyncio.wait({task}, timeout=_ROUND_S)
        await asyncio.wait({running}, timeout=_ROUND_S)
    async with asyncio.timeout(_JOIN_S):
        await running


def _error_text(error: Exception) -> str:
    """The error that ended kopf, in one line. kopf's own text of an API error is a tuple of objects."""
    status, message = getattr(error, "status", None), getattr(error, "message", None)
    return f"{status} {printable(str(message))}" if status else f"{type(error).__name__}: {printable(str(error))}"
