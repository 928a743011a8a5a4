"""All watches of the process together: when what they bring is whole, and what keeps news from coming."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import suppress
from typing import Any

from gangsched.kube.contact import TOLD_AFTER_S
from gangsched.kube.foreign import ForeignWatch, settle
from gangsched.kube.reflector import Reflector
from gangsched.runtime.alone import Alone
from gangsched.runtime.leadership import Leadership

_CATCH_UP_S = 5.0
"""So long a new leader waits for watches that were interrupted, after an outage."""
_FOREIGN_S = 30.0
"""So long other systems' groups are waited for at the start where the API server fails to list them."""
_SETTLE_S = 0.5
"""What a leader that has just let go did last may still be on its way to our watches."""
_SILENT_S = 150.0
"""A quiet watch brings a bookmark about every minute; after 70 s of silence it is taken for dead and begun anew."""


class Watches:
    """`needed` are all whole before anything is decided, `groups`, one of them, holds what former leaders decided.

    `foreign` are other systems' groups, without which it goes on after a while; `unhurried` keep nobody waiting.
    """

    def __init__(
        self,
        needed: Sequence[Reflector[Any]],
        *,
        groups: Reflector[Any],
        foreign: Sequence[ForeignWatch],
        unhurried: Sequence[ForeignWatch],
    ) -> None:
        self._needed = needed
        self._groups = groups
        self._foreign = foreign
        self._unhurried = unhurried

    def tasks(self) -> Iterator[tuple[str, Coroutine[object, object, None]]]:
        """What has to run for ever, each with a name."""
        for reflector in self._needed:
            yield f"reflector of {reflector.resource.name}", reflector.run()
        for watch in (*self._foreign, *self._unhurried):
            yield f"watch of {watch.name}", watch.run()

    async def listed(self) -> None:
        """Wait until everything is listed once."""
        for reflector in self._needed:
            await reflector.synced.wait()
        await settle(self._foreign, _FOREIGN_S)

    async def caught_up(self, mandate: Leadership | Alone) -> None:
        """Learn what the last leader did up to its end: it stands in the statuses, and in what the watches bring."""
        if mandate.elected:
            await self._groups.renew()
        if mandate.handed_over:
            await asyncio.sleep(_SETTLE_S)
        with suppress(TimeoutError):
            async with asyncio.timeout(_CATCH_UP_S):
                for reflector in self._needed:
                    await reflector.going.wait()

    def problems(self) -> list[str]:
        """What keeps news from coming, in a sentence for each kind; nothing that lasts only for some seconds."""
        return [problem for problem in map(_why_unheard, self._needed) if problem]


def _why_unheard(reflector: Reflector[Any]) -> str:
    name, now = reflector.resource.name, time.monotonic()
    if not reflector.synced.is_set():
        return f"{name} are not listed yet" + (f": {reflector.problem}" if reflector.problem else "")
    if now - reflector.interrupted_at >= TOLD_AFTER_S:
        return (
            f"the watch of {name} has been interrupted for {now - reflector.interrupted_at:.0f} s: {reflector.problem}"
        )
    if now - reflector.last_heard > _SILENT_S:
        return f"nothing was heard of {name} for {now - reflector.last_heard:.0f} s"
    return ""
