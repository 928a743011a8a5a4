"""Where the engine's knowledge of PodGroups comes from: our own lists, with kopf's watch in between.

kopf says what it sees, but neither when its list is complete nor what vanished across a gap in its watch. So PodGroups
are listed here: before the first pass, whenever kopf has begun a new watch after a list of its own, and when a status
write finds its PodGroup gone. What kopf saw while such a list was on its way may be newer than the list; it is told
again behind it.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple

from gangsched.core.events import Event, GroupGone, GroupSeen, GroupsReplaced
from gangsched.core.model import Group, GroupKey
from gangsched.runtime.metrics import Metrics

_log = logging.getLogger(__name__)

RESOURCE = "podgroups"


class _News(NamedTuple):
    """One thing that kopf saw."""

    group: Group
    gone: bool


class GroupFeed:
    """Posts what is known of PodGroups: single news at once, whole lists when asked for.

    kopf handles objects side by side, so the end of a PodGroup may be told after its successor of the same name was
    seen; news of an object that has a successor is left out.

    `failures` are the kinds of error that `list_groups` raises when the API server does not answer as hoped; it is
    tried again with back-off. `synced` is set once the first list has been posted.
    """

    def __init__(
        self,
        list_groups: Callable[[], Awaitable[Sequence[Group]]],
        post: Callable[[Iterable[Event]], None],
        *,
        metrics: Metrics,
        failures: tuple[type[Exception], ...],
        debounce_s: float = 0.2,
        backoff_max_s: float = 10.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._list_groups = list_groups
        self._post = post
        self._metrics = metrics
        self._failures = failures
        self._debounce_s = debounce_s
        self._backoff_max_s = backoff_max_s
        self._sleep = sleep
        self._jitter = jitter
        self._wanted = asyncio.Event()
        self._awaited: list[asyncio.Future[None]] = []
        self._known: dict[GroupKey, Group] = {}
        self._meanwhile: list[_News] | None = None
        self.synced = asyncio.Event()

    def seen(self, group: Group) -> None:
        """A PodGroup exists in this form."""
        self._take(_News(group, gone=False))

    def gone(self, group: Group) -> None:
        """A PodGroup exists no longer; this was its last form."""
        self._take(_News(group, gone=True))

    def relist(self, cause: str) -> None:
        """Ask for a new list; several requests within a short time become one."""
        self._metrics.relisted(RESOURCE, cause)
        self._wanted.set()

    async def renew(self, cause: str) -> None:
        """List anew and wait until a list that was begun after this call has been posted."""
        posted = asyncio.get_running_loop().create_future()
        self._awaited.append(posted)
        self.relist(cause)
        await posted

    async def run(self) -> None:
        """List at once and then whenever asked to, for ever."""
        await self._list_until_done()
        self.synced.set()
        while True:
            await self._wanted.wait()
            await self._sleep(self._debounce_s)
            self._wanted.clear()
            awaited, self._awaited = self._awaited, []
            await self._list_until_done()
            for posted in awaited:
                if not posted.done():
                    posted.set_result(None)

    def _take(self, news: _News) -> None:
        if self._meanwhile is not None:
            self._meanwhile.append(news)
        group = news.group
        known = self._known.get(group.key)
        if known is not None and (_newer(known, group) or (known == group and not news.gone)):
            return
        if news.gone:
            self._known.pop(group.key, None)
            self._post((GroupGone(key=group.key),))
        else:
            self._known[group.key] = group
            self._post((GroupSeen(group=group),))

    async def _list_until_done(self) -> None:
        attempt = 0
        while True:
            self._meanwhile = []
            try:
                groups = await self._list_groups()
            except self._failures as error:
                attempt += 1
                wait_s = min(2.0**attempt, self._backoff_max_s) * self._jitter()
                _log.warning("PodGroups cannot be listed", extra={"retry_in_s": f"{wait_s:.1f}", "error": error})
                await self._sleep(wait_s)
                continue
            meanwhile, self._meanwhile = self._meanwhile, None
            self._known = {group.key: group for group in groups}
            self._post((GroupsReplaced(groups=tuple(groups)),))
            for news in meanwhile:
                self._take(news)
            return


def _newer(known: Group, other: Group) -> bool:
    """Whether `known` is a later version of the object, or of its successor, than `other`.

    Versions are compared as numbers, which the API server guarantees for all its resources; an unreadable one is never
    the newer.
    """
    return (
        known.resource_version.isdecimal()
        and other.resource_version.isdecimal()
        and int(known.resource_version) > int(other.resource_version)
    )
