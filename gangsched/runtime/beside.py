"""What runs beside the scheduler, for people who look or ask: a fault in it does not end what binds gangs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

_log = logging.getLogger(__name__)

_PAUSE_S = 10.0


async def beside(name: str, work: Callable[[], Awaitable[None]], *, pause_s: float = _PAUSE_S) -> None:
    """Do this work until cancelled; if it fails, log that and begin it again after a pause."""
    while True:
        try:
            await work()
        except Exception:  # noqa: BLE001 - whatever it is, gangs are bound on
            _log.exception(
                "a part of the operator failed, which is a bug: please report it; scheduling goes on, and the part is "
                "started again",
                extra={"part": name, "after_s": pause_s},
            )
        await asyncio.sleep(pause_s)
