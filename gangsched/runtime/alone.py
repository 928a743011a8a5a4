"""The mandate of a process that elects nobody: it leads for as long as the API server answers.

What was decided before a long outage is worth no more than what a former leader decided: deadlines have passed that
count only while the API server answers (contract rule 1), and everything may have changed. So such an outage ends the
term here too, and the next one begins as after a start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

_LOOK_S = 0.5


class Alone:
    """Stands in for `Leadership`. `away_s` says for how many seconds the API server has not answered, 0 if it does."""

    elected = handed_over = standby = False
    problem = ""

    def __init__(
        self,
        away_s: Callable[[], float],
        *,
        limit_s: float,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.term = 1
        self._away_s = away_s
        self._limit_s = limit_s
        self._sleep = sleep

    def held(self) -> bool:
        """Whether this process may act: nobody else does."""
        return True

    async def acquire(self) -> None:
        """Wait until the API server answers."""
        while self._away_s() > 0:
            await self._sleep(_LOOK_S)

    async def keep(self) -> str:
        """Wait until the API server has been away for the limit; say so."""
        while self._away_s() < self._limit_s:
            await self._sleep(_LOOK_S)
        self.term += 1
        return f"the API server has not answered for {self._limit_s:g} s"

    async def release(self, *, timeout_s: float) -> None:
        """Nobody waits for it."""

    def role(self, *, decides: bool) -> str:  # noqa: ARG002 - of a leader it says whether it leads
        """What this replica does."""
        return "acting without leader election"
