"""Measures how long the stages of one call of the machine take, which has no clock itself."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from gangsched.core.objects.stats import Stage


class StageTimes:
    """Tells `add` the stage and its seconds as each ends."""

    def __init__(self, add: Callable[[str, float], None], *, clock: Callable[[], float] = perf_counter) -> None:
        self._add = add
        self._clock = clock
        self._at = 0.0

    def passed(self, stage: Stage | None) -> None:
        """The stage has ended just now, and the next begins; with None a call begins."""
        now = self._clock()
        if stage is not None:
            self._add(stage, now - self._at)
        self._at = now
