"""The end of the process: by a signal, or because one of its tasks fails."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Coroutine
from typing import TypeVar

from gangsched.runtime.health import ListenError

_log = logging.getLogger(__name__)

T = TypeVar("T")


def take_signals(stop: asyncio.Event) -> None:
    """Make SIGTERM and SIGINT set `stop`; a second signal ends the process at once."""
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT)

    def end(received: signal.Signals) -> None:
        _log.info("ending", extra={"signal": received.name})
        stop.set()
        for signum in signals:
            loop.remove_signal_handler(signum)

    for signum in signals:
        loop.add_signal_handler(signum, end, signum)


async def unless_stopped(stop: asyncio.Event, work: Coroutine[object, object, T]) -> T | None:
    """The result of the work, which has no time limit; None if `stop` is set first."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if working.done():
        return working.result()
    working.cancel()
    return None


def log_failures(failures: ExceptionGroup[Exception]) -> None:
    """Log each failure: a bug with its traceback, a problem that a person can fix as one sentence."""
    for failure in failures.exceptions:
        if isinstance(failure, ExceptionGroup):
            log_failures(failure)
        elif isinstance(failure, ListenError):
            _log.critical("gangsched cannot continue", extra={"error": str(failure)})
        else:
            text = f"{type(failure).__name__}: {failure}"
            _log.critical("gangsched failed", exc_info=failure, extra={"error": text})
