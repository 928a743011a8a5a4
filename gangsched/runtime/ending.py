"""How the process comes to its end: somebody asks for it by a signal, or a task of it fails."""

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


async def unless(stop: asyncio.Event, work: Coroutine[object, object, T]) -> T | None:
    """What the work gives, which has no time limit of its own; None if it is to stop before."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if working.done():
        return working.result()
    working.cancel()
    return None


def tell_failures(failures: ExceptionGroup[Exception]) -> None:
    """Log each of them: a fault of our own with its traceback, what a person can mend as one sentence."""
    for failure in failures.exceptions:
        if isinstance(failure, ExceptionGroup):
            tell_failures(failure)
        elif isinstance(failure, ListenError):
            _log.critical("gangsched cannot go on", extra={"error": str(failure)})
        else:
            said = f"{type(failure).__name__}: {failure}"
            _log.critical("gangsched failed", exc_info=failure, extra={"error": said})
