"""The mandate of a process without leader election: it leads for as long as the API server answers.

A long outage of the API server ends the term here too, and the next term begins as after a start. Decisions from before
the outage are as obsolete as those of a former leader: deadlines have passed that count only while the API server
answers (contract rule 1), and the cluster may have changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

_LOOK_S = 0.5


class Alone:
    """Replaces `Leadership`. `away_s` returns the seconds since the API server stopped answering, 0 if it answers."""

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
        """Whether this process may act: always, because there is no other replica."""
        return True

    async def acquire(self) -> None:
        """Wait until the API server answers."""
        while self._away_s() > 0:
            await self._sleep(_LOOK_S)

    async def keep(self) -> str:
        """Wait until the API server has not answered for `limit_s`; return the reason."""
        while self._away_s() < self._limit_s:
            await self._sleep(_LOOK_S)
        self.term += 1
        return f"the API server has not answered for {self._limit_s:g} s"

    async def release(self, *, timeout_s: float) -> None:
        """Do nothing: there is no lease."""

    def role(self, *, decides: bool) -> str:  # noqa: ARG002 - `Leadership` needs it
        """The role of this replica, as /readyz shows it."""
        return "acting without leader election"
