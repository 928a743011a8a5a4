"""The API server's discovery: the list at `/apis`, which is small and which every authenticated account may read."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Collection

import msgspec
from msgspec import Struct

from gangsched.kube.client.errors import ApiError, ApiUnreachable, Garbled, readable
from gangsched.kube.client.session import ApiSession

_log = logging.getLogger(__name__)

LOOK_S = 5.0
"""Seconds between requests while a task waits for a group. The answers are small and cost a second of processor time an
hour."""


class _Version(Struct, gc=False, rename="camel"):
    group_version: str = ""


class _Group(Struct, gc=False):
    versions: list[_Version] | None = None


class _Groups(Struct, gc=False):
    groups: list[_Group] | None = None


_GROUPS = msgspec.json.Decoder(_Groups)


async def listed_versions(session: ApiSession) -> frozenset[str]:
    """The groups and versions, such as `scheduling.volcano.sh/v1beta1`, that the API server lists.

    Raises:
        ApiError, ApiUnreachable, Garbled: there was no complete answer.
    """
    response = await session.request("GET", "/apis", essential=False)
    with readable("The list of API groups"):
        groups = _GROUPS.decode(response.checked().body)
    return frozenset(version.group_version for group in groups.groups or () for version in group.versions or ())


class Discovery:
    """Wakes tasks that wait for a group to appear. One request serves all of them; without any there is no request."""

    def __init__(self, session: ApiSession, *, every_s: float = LOOK_S) -> None:
        self._session = session
        self._every_s = every_s
        self._one_at_a_time = asyncio.Lock()
        self._asked_at = -math.inf
        self._turn = 0
        self._listed: frozenset[str] = frozenset()
        self._failure = ""

    async def until_listed(self, versions: Collection[str]) -> None:
        """Wait for an answer, newer than this call, that lists one of these versions.

        A listed version does not necessarily have the wanted kind. A version that is not listed may still be served: a
        server that has just started lists its versions a little later.
        """
        while not (await self._next()).intersection(versions):
            pass

    async def _next(self) -> frozenset[str]:
        """The next answer. The first caller sends the request for all. A failure counts as an empty answer."""
        turn = self._turn
        async with self._one_at_a_time:
            if self._turn == turn:
                await asyncio.sleep(self._asked_at + self._every_s - time.monotonic())
                self._asked_at = time.monotonic()
                self._listed = await self._ask()
                self._turn += 1
            return self._listed

    async def _ask(self) -> frozenset[str]:
        try:
            versions = await listed_versions(self._session)
        except (ApiError, ApiUnreachable, Garbled) as error:
            if not self._failure:
                _log.warning(
                    "reading the API server's discovery failed; new kinds are found once it answers",
                    extra={"error": str(error), "retry_in_s": f"{self._every_s:g}"},
                )
            self._failure = str(error)
            return frozenset()
        self._failure = ""
        return versions
