"""What the API server's discovery lists: `/apis`, which every authenticated account may read and which is small."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Collection

import msgspec
from msgspec import Struct

from gangsched.kube.errors import UNREADABLE, ApiError, ApiUnreachable, Garbled
from gangsched.kube.session import ApiSession

_log = logging.getLogger(__name__)

LOOK_S = 5.0
"""So often it is asked while somebody waits for something: a small answer, about a second of processor time an hour."""


class _Version(Struct, gc=False, rename="camel"):
    group_version: str = ""


class _Group(Struct, gc=False):
    versions: list[_Version] | None = None


class _Groups(Struct, gc=False):
    groups: list[_Group] | None = None


_GROUPS = msgspec.json.Decoder(_Groups)


async def listed_versions(session: ApiSession) -> frozenset[str]:
    """The groups with a version, such as `scheduling.volcano.sh/v1beta1`, in which the API server says it has kinds.

    Raises:
        ApiError, ApiUnreachable, Garbled: the answer did not come whole.
    """
    answer = await session.request("GET", "/apis", essential=False)
    try:
        found = _GROUPS.decode(answer.checked().body)
    except UNREADABLE as error:
        raise Garbled(f"The list of API groups cannot be read: {error}") from error
    return frozenset(each.group_version for group in found.groups or () for each in group.versions or ())


class Discovery:
    """Tells many who wait when a group appears. One request answers them all; while nobody waits there is none."""

    def __init__(self, session: ApiSession, *, every_s: float = LOOK_S) -> None:
        self._session = session
        self._every_s = every_s
        self._one_at_a_time = asyncio.Lock()
        self._asked = -math.inf
        self._turn = 0
        self._listed: frozenset[str] = frozenset()
        self._failure = ""

    async def until_listed(self, versions: Collection[str]) -> None:
        """Wait for an answer, newer than this call, that lists one of these.

        That a version is listed does not say that it has the kind that is looked for. That it is not listed is no
        proof either: a server that has just been started lists what it serves a little later.
        """
        while not (await self._next()).intersection(versions):
            pass

    async def _next(self) -> frozenset[str]:
        """The next answer; whoever comes first asks for all. None is one that lists nothing."""
        turn = self._turn
        async with self._one_at_a_time:
            if self._turn == turn:
                await asyncio.sleep(self._asked + self._every_s - time.monotonic())
                self._asked = time.monotonic()
                self._listed = await self._ask()
                self._turn += 1
            return self._listed

    async def _ask(self) -> frozenset[str]:
        try:
            found = await listed_versions(self._session)
        except (ApiError, ApiUnreachable, Garbled) as error:
            if not self._failure:
                _log.warning(
                    "cannot ask what the API server serves; what is installed meanwhile is found once it answers",
                    extra={"error": str(error), "retry_in_s": f"{self._every_s:g}"},
                )
            self._failure = str(error)
            return frozenset()
        self._failure = ""
        return found
