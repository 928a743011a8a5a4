"""Time as the core needs it, and how late the event loop is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable


class Clock:
    """Seconds since the epoch that never step backwards.

    The wall clock is read once; from then on the monotonic clock is added, so that a corrected system time neither ends
    nor prolongs a running wait.
    """

    def __init__(self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._offset = wall() - monotonic()

    def now(self) -> float:
        """The present, in seconds since the epoch."""
        return self._offset + self._monotonic()


async def measure_loop_lag(
    observe: Callable[[float], None],
    *,
    interval_s: float = 1.0,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> None:
    """Tell `observe`, once per interval and for ever, by how many seconds the event loop woke this task too late."""
    while True:
        due = monotonic() + interval_s
        await sleep(interval_s)
        observe(max(0.0, monotonic() - due))
