"""Keeps the core informed of one kind of object: a list, then a watch that goes on where it was interrupted.

The rules
    A list is consistent (it asks for no resourceVersion) and comes in pages, so it is never older than what was seen
    before a gap. It is posted as one event with all objects; the core finds out what has gone.
    A watch begins at the last version seen. An ordinary end, also one by which the server cuts off a slow reader, is
    followed by the next watch at once. A failure is followed by one after a full-jitter back-off; after three in a row
    the list begins anew, as it does when the server no longer has the version (410).
    Missing rights end the reflector: waiting would not grant them. So does an optional kind that is not served.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Generic, Protocol

import msgspec
from msgspec import Raw

from gangsched.core.events import Event
from gangsched.kube import wire
from gangsched.kube.errors import AccessDenied, ApiError, ApiUnreachable, Expired, Garbled, KubeError, NotServed
from gangsched.kube.resources import LIST_TIMEOUT_S, PAGE, Resource, Value
from gangsched.kube.session import ApiSession
from gangsched.kube.watching import LineSplitter

_log = logging.getLogger(__name__)

_FAILURES_BEFORE_LIST = 3
_BATCH = 200

_PAGE = msgspec.json.Decoder(wire.Page)
_EVENT = msgspec.json.Decoder(wire.WatchEvent)
_VERSIONED = msgspec.json.Decoder(wire.Versioned)
_STATUS = msgspec.json.Decoder(wire.Status)
_UNREADABLE = (msgspec.DecodeError, RecursionError)
"""What decoding raises: the second for what is nested more deeply than any object of an API server."""


class Observer(Protocol):
    """Counts what reflectors do."""

    def watch_events(self, resource: str, count: int) -> None:
        """So many watch events of this resource arrived."""

    def relisted(self, resource: str, cause: str) -> None:
        """This resource has to be listed again: `Expired`, `ListExpired` or `Failures`."""


@dataclass(frozen=True, kw_only=True)
class Timing:
    """How long a reflector waits, in seconds.

    `backoff_s` doubles with each failure in a row up to `backoff_max_s`; the wait is a random part of it. A stream from
    which nothing comes for `silent_s` is taken for dead, as the server sends a bookmark about every 60 s. Watches end
    after a random time within `watch_s`, so that connections spread over API servers again. One that ends within
    `short_s` and has brought nothing counts as a failure.
    """

    backoff_s: float = 0.5
    backoff_max_s: float = 30.0
    silent_s: float = 70.0
    watch_s: tuple[int, int] = (240, 480)
    short_s: float = 1.0


_TIMING = Timing()


class Reflector(Generic[Value]):
    """Posts every change of one resource, in batches.

    `synced` is set once the first list has been posted. `last_heard` is when anything last came from the server, on the
    clock of `time.monotonic`; minus infinity before that.
    """

    def __init__(
        self,
        session: ApiSession,
        resource: Resource[Value],
        post: Callable[[Sequence[Event]], None],
        *,
        observer: Observer,
        timing: Timing = _TIMING,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.resource = resource
        self.synced = asyncio.Event()
        self.last_heard = float("-inf")
        self._session = session
        self._post = post
        self._observer = observer
        self._timing = timing
        self._jitter = jitter
        self._version = ""
        self._failures = 0

    async def run(self) -> None:
        """List and watch for ever.

        Raises:
            AccessDenied: the credentials are not accepted or lack the right to list and watch the resource.
            NotServed: the resource is optional, and the API server does not know it.
        """
        while True:
            try:
                if not self._version:
                    await self._list()
                await self._watch()
            except Expired as error:
                self._list_anew("Expired" if self._version else "ListExpired")
                await self._pause(error)
            except (ApiError, ApiUnreachable, Garbled) as error:
                self._end_if_hopeless(error)
                if self._version and self._failures + 1 >= _FAILURES_BEFORE_LIST:
                    self._list_anew("Failures")
                await self._pause(error)

    def _list_anew(self, cause: str) -> None:
        self._version = ""
        self._observer.relisted(self.resource.name, cause)

    async def _pause(self, error: KubeError) -> None:
        """Wait before the next attempt, the longer the more failures there were in a row."""
        longest = min(self._timing.backoff_s * 2.0**self._failures, self._timing.backoff_max_s)
        asked_s = error.retry_after_s if isinstance(error, ApiError) else 0.0
        wait_s = max(asked_s, longest * self._jitter())
        self._failures = min(self._failures + 1, 30)
        _log.warning(
            "watch interrupted",
            extra={"resource": self.resource.name, "error": str(error), "retry_in_s": f"{wait_s:.1f}"},
        )
        await asyncio.sleep(wait_s)

    def _end_if_hopeless(self, error: KubeError) -> None:
        if isinstance(error, ApiError) and error.status == HTTPStatus.NOT_FOUND and self.resource.optional:
            raise NotServed(f"The API server does not serve {self.resource.name}.") from error
        if not isinstance(error, ApiError) or error.status not in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            return
        if error.status == HTTPStatus.UNAUTHORIZED:
            raise AccessDenied(f"The API server {self._session.server} does not accept our credentials: {error}")
        raise AccessDenied(
            f"gangsched may not list and watch {self.resource.name} in all namespaces ({error}):"
            f" give its account a ClusterRole with the verbs list and watch on {self.resource.name}."
        ) from error

    async def _list(self) -> None:
        values: list[Value] = []
        params = {"limit": str(PAGE), **self._chosen()}
        while True:
            answer = await self._session.request("GET", self.resource.path, params=params, timeout_s=LIST_TIMEOUT_S)
            self.last_heard = time.monotonic()
            if answer.status == HTTPStatus.GONE:
                raise Expired(str(answer.error()))
            try:
                page = _PAGE.decode(answer.checked().body)
                items = page.items or []
                for start in range(0, len(items), _BATCH):
                    values += [self.resource.read(item)[1] for item in items[start : start + _BATCH]]
                    await asyncio.sleep(0)
            except _UNREADABLE as error:
                raise Garbled(f"A list of {self.resource.name} cannot be read: {error}") from error
            if not page.metadata.continue_:
                break
            params["continue"] = page.metadata.continue_
        self._post([self.resource.replaced(tuple(values))])
        self._version = page.metadata.resource_version or ""
        self.synced.set()

    def _chosen(self) -> dict[str, str]:
        return {"labelSelector": self.resource.selector} if self.resource.selector else {}

    async def _watch(self) -> None:
        opened, version = math.inf, self._version
        shortest, longest = self._timing.watch_s
        params = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(shortest + int(self._jitter() * (longest - shortest))),
            **self._chosen(),
        }
        splitter = LineSplitter()
        try:
            async with self._session.stream(self.resource.path, params, silent_s=self._timing.silent_s) as pieces:
                opened = time.monotonic()
                async for piece in pieces:
                    self.last_heard = time.monotonic()
                    await self._take(splitter.feed(piece))
        except ApiError as error:
            if error.status == HTTPStatus.GONE:
                raise Expired(str(error)) from error
            raise
        finally:
            fruitful = self._version != version or time.monotonic() - opened >= self._timing.short_s
            if fruitful:
                self._failures = 0
        if not fruitful:
            raise ApiUnreachable(f"A watch of {self.resource.name} ended as soon as it had begun.")

    async def _take(self, lines: list[bytes]) -> None:
        """Post what the lines say, as far as they can be read, and let others run in between."""
        for start in range(0, len(lines), _BATCH):
            events: list[Event] = []
            try:
                for line in lines[start : start + _BATCH]:
                    event = self._read(line)
                    if event is not None:
                        events.append(event)
            except _UNREADABLE as error:
                raise Garbled(f"A watch event of {self.resource.name} cannot be read: {error}") from error
            finally:
                if events:
                    self._observer.watch_events(self.resource.name, len(events))
                    self._post(events)
            await asyncio.sleep(0)

    def _read(self, line: bytes) -> Event | None:
        """The event that the line means to the core; None for a bookmark."""
        found = _EVENT.decode(line)
        match found.type:
            case "ADDED" | "MODIFIED":
                version, value = self.resource.read(found.object)
                event: Event | None = self.resource.seen(value)
            case "DELETED":
                meta = _VERSIONED.decode(found.object).metadata
                version, event = meta.resource_version, self.resource.gone(meta)
            case "BOOKMARK":
                version, event = _VERSIONED.decode(found.object).metadata.resource_version, None
            case "ERROR":
                raise _told(found.object)
            case other:
                raise Garbled(f"A watch of {self.resource.name} brought an event of the unknown type {other!r}.")
        self._version = version or self._version
        return event


def _told(raw: Raw) -> KubeError:
    """What an ERROR event says."""
    status = _STATUS.decode(raw)
    error = ApiError(status.code or 0, status.reason or "", status.message or "")
    return Expired(str(error)) if status.code == HTTPStatus.GONE else error
