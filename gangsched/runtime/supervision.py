"""Runs optional parts beside the scheduler, such as the page: a fault in one of them does not stop scheduling."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

_log = logging.getLogger(__name__)

_PAUSE_S = 10.0


async def supervise(name: str, work: Callable[[], Awaitable[None]], *, pause_s: float = _PAUSE_S) -> None:
    """Run the work until cancelled. If it fails, log the failure; restart it after a pause."""
    while True:
        try:
            await work()
        except Exception:  # noqa: BLE001 - no fault here may stop scheduling
            _log.exception(
                "a part of the operator failed, which is a bug: please report it; scheduling continues, and the part "
                "is restarted",
                extra={"part": name, "after_s": pause_s},
            )
        await asyncio.sleep(pause_s)
