"""Measures the duration of each stage of a scheduling cycle for the machine, which has no clock."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from gangsched.core.objects.stats import Stage


class StageTimes:
    """Calls `add` with each stage and its duration in seconds when the stage ends."""

    def __init__(self, add: Callable[[str, float], None], *, clock: Callable[[], float] = perf_counter) -> None:
        self._add = add
        self._clock = clock
        self._at = 0.0

    def passed(self, stage: Stage | None) -> None:
        """Record that the stage has just ended and the next one begins. None marks the start of a scheduling cycle."""
        now = self._clock()
        if stage is not None:
            self._add(stage, now - self._at)
        self._at = now
