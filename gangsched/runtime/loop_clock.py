"""The clock for the core, and a measurement of the event loop's delay."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable


class Clock:
    """Seconds since the epoch that never step backwards.

    The wall clock is read once and the monotonic clock is added to it, so that a correction of the system time neither
    ends nor prolongs a running wait.
    """

    def __init__(self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._offset = wall() - monotonic()

    def now(self) -> float:
        """The current time in seconds since the epoch."""
        return self._offset + self._monotonic()


async def measure_loop_lag(
    observe: Callable[[float], None],
    *,
    interval_s: float = 1.0,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> None:
    """Once per interval, until cancelled, pass `observe` the seconds by which the event loop woke this task late."""
    while True:
        due = monotonic() + interval_s
        await sleep(interval_s)
        observe(max(0.0, monotonic() - due))
