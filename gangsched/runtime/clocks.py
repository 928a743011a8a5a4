"""The clock for the core, and the measurements of its stages and of the event loop's delay."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from gangsched.core.objects.stats import Stage


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


class StageTimes:
    """Measures the stages of a scheduling cycle for the machine, which has no clock.

    It calls `add` with each stage and its duration in seconds when the stage ends.
    """

    def __init__(self, add: Callable[[str, float], None], *, clock: Callable[[], float] = time.perf_counter) -> None:
        self._add = add
        self._clock = clock
        self._at = 0.0

    def passed(self, stage: Stage | None) -> None:
        """Record that the stage has just ended and the next one begins. None marks the start of a scheduling cycle."""
        now = self._clock()
        if stage is not None:
            self._add(stage, now - self._at)
        self._at = now


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
