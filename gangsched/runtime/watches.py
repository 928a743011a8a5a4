"""All watches of the process: when their state is complete, and which problems delay their updates."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import suppress
from typing import Any

from gangsched.kube.client.contact import REPORTED_AFTER_S
from gangsched.kube.client.reflector import Reflector
from gangsched.kube.foreign.watch import ForeignWatch, settle
from gangsched.runtime.alone import Alone
from gangsched.runtime.leadership import Leadership

_CATCH_UP_S = 5.0
"""Longest time, in seconds, that a new leader waits for interrupted watches to resume. For pods there is no limit."""
_FOREIGN_S = 30.0
"""Longest time, in seconds, that the start waits for the kinds in `foreign` if the API server fails to list them."""
_SETTLE_S = 0.5
"""Wait in seconds after a hand-over, because the former leader's last writes may not have reached our watches yet."""
_SILENT_S = 150.0
"""Silence in seconds after which readiness reports a watch. A quiet watch delivers a bookmark about every minute; after
70 s of silence it counts as dead and is restarted."""


class Watches:
    """All watches, divided by how long the start waits for them.

    All of `needed` are complete before the first decision. Two of them show what former leaders did: `groups` their
    decisions, `pods` their bindings. `foreign` are kinds that an API server need not serve: devices, workloads and
    other systems' groups. The start waits for them for a limited time. It does not wait for `unhurried`.
    """

    def __init__(
        self,
        needed: Sequence[Reflector[Any]],
        *,
        pods: Reflector[Any],
        groups: Reflector[Any],
        foreign: Sequence[ForeignWatch],
        unhurried: Sequence[ForeignWatch],
    ) -> None:
        self._needed = needed
        self._pods = pods
        self._groups = groups
        self._foreign = foreign
        self._unhurried = unhurried
        self.have_listed = False
        """Whether `listed` has returned."""

    def tasks(self) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """The tasks that run until the process ends, each with a name."""
        for reflector in self._needed:
            yield f"reflector of {reflector.resource.name}", reflector.run()
        for watch in (*self._foreign, *self._unhurried):
            yield f"watch of {watch.name}", watch.run()

    async def listed(self) -> None:
        """Wait until every resource has been listed once."""
        for reflector in self._needed:
            await reflector.synced.wait()
        await settle(self._foreign, _FOREIGN_S)
        self.have_listed = True

    async def caught_up(self, mandate: Leadership | Alone) -> None:
        """Wait until the statuses and watches show everything that the last leader did.

        The wait for pods has no limit, as at the start, because a partly bound quorum is not recognised without them.
        """
        if mandate.elected:
            await self._groups.renew("Leading")
        if mandate.handed_over:
            await asyncio.sleep(_SETTLE_S)
        with suppress(TimeoutError):
            async with asyncio.timeout(_CATCH_UP_S):
                for reflector in self._needed:
                    await reflector.going.wait()
        await self._pods.going.wait()

    def problems(self) -> list[str]:
        """The problems that delay updates, one sentence for each resource. Problems of a few seconds are left out."""
        return [problem for problem in map(_why_unheard, self._needed) if problem]


def _why_unheard(reflector: Reflector[Any]) -> str:
    name, now = reflector.resource.name, time.monotonic()
    if not reflector.synced.is_set():
        return f"{name} are not listed yet" + (f": {reflector.problem}" if reflector.problem else "")
    if now - reflector.interrupted_at >= REPORTED_AFTER_S:
        return (
            f"the watch of {name} has been interrupted for {now - reflector.interrupted_at:.0f} s: {reflector.problem}"
        )
    if now - reflector.last_heard > _SILENT_S:
        return f"the watch of {name} has been silent for {now - reflector.last_heard:.0f} s"
    return ""
