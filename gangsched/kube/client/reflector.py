"""Keeps the core informed about one kind of object: a list, then a watch that resumes after interruptions.

The rules
    A list is consistent (it requests no resourceVersion) and paginated, so it is never older than what was seen before
    a gap. It is posted as one event with all objects; the core detects deletions.
    A watch starts at the last version seen. After a regular end, including one by which the server cuts off a slow
    reader, the next watch starts at once. After any failure it starts at the same version after a full-jitter back-off,
    so that an outage causes no list. The reflector lists again only if the server no longer has the version (410) or
    does not serve the kind (404), or if its answers are unreadable twice in a row.
    No answer of the server ends a reflector, except for an optional kind that is not served or that the account may not
    read. Then the caller decides when to retry.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Generic, Protocol

import msgspec
from msgspec import Raw

from gangsched.core.objects.events import Event
from gangsched.kube import wire
from gangsched.kube.client.errors import (
    UNREADABLE,
    AccessDenied,
    ApiError,
    ApiUnreachable,
    Expired,
    Garbled,
    KubeError,
    NotServed,
    readable,
)
from gangsched.kube.client.line_splitter import LineSplitter
from gangsched.kube.client.pages import converted, pages
from gangsched.kube.client.resource import Resource, Value
from gangsched.kube.client.session import ApiSession

_log = logging.getLogger(__name__)

_BATCH = 200

_EVENT = msgspec.json.Decoder(wire.WatchEvent)
_VERSIONED = msgspec.json.Decoder(wire.Versioned)
_STATUS = msgspec.json.Decoder(wire.Status)


class Observer(Protocol):
    """Counts events and lists of reflectors."""

    def watch_events(self, resource: str, count: int) -> None:
        """Count watch events of this resource."""

    def relisted(self, resource: str, cause: str) -> None:
        """Count a new list of this resource: `Expired`, `ListExpired`, `NotServed`, `Garbled`,
        `Leading` or `Admission`.
        """


@dataclass(frozen=True, kw_only=True)
class Timing:
    """The waits and time limits of a reflector, in seconds.

    `backoff_s` doubles with each consecutive failure up to `backoff_max_s`; the wait is a random part of it. A stream
    that is silent for `silent_s` counts as dead, because the server sends a bookmark about every 60 s. Watches end
    after a random time within `watch_s`, so that connections spread over the API servers again. A watch that ends
    within `short_s` without any event counts as a failure.
    """

    backoff_s: float = 0.25
    backoff_max_s: float = 5.0
    silent_s: float = 70.0
    watch_s: tuple[int, int] = (240, 480)
    short_s: float = 1.0


_TIMING = Timing()


class Reflector(Generic[Value]):
    """Posts every change of one resource, in batches.

    `synced` is set once the first list has been posted. `last_heard` is the time of the last data from the server, on
    the clock of `time.monotonic`; minus infinity before that. `problem` says why the watch has been interrupted since
    `interrupted_at` on that clock; empty if it is not. `going` is set while the state is current: from a complete list,
    or from a watch that has resumed where the last one ended and lasted for a while, until the next interruption.
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
        self.going = asyncio.Event()
        self.last_heard = float("-inf")
        self.problem = ""
        self.interrupted_at = math.inf
        self._session = session
        self._post = post
        self._observer = observer
        self._timing = timing
        self._jitter = jitter
        self._version = ""
        self._failures = 0
        self._garbled_at: str | None = None
        self._awaited: list[asyncio.Future[None]] = []
        self._renewed_for = ""
        self._scope = asyncio.timeout(None)

    async def run(self) -> None:
        """List and watch until cancelled.

        Raises:
            AccessDenied: the resource is optional, and the account may not read it.
            NotServed: the resource is optional, and the API server does not know it.
        """
        while True:
            # `renew` ends the current list or watch, because it is older than the call.
            with suppress(TimeoutError):
                async with asyncio.timeout(None) as self._scope:
                    await self._list_and_watch()

    @property
    def is_current(self) -> bool:
        """Whether the last list is complete, the watch goes on, and no other list was asked for."""
        return self.going.is_set() and not self._awaited

    def renew(self, cause: str) -> asyncio.Future[None]:
        """List again, for this cause; the result is there once a list that started after this call has been posted."""
        loop = asyncio.get_running_loop()
        posted = loop.create_future()
        self._awaited.append(posted)
        self._renewed_for = cause
        if self._scope.when() is None:
            self._scope.reschedule(loop.time())
        return posted

    async def _list_and_watch(self) -> None:
        try:
            if self._awaited and self._version:
                self._restart_list(self._renewed_for)
            if not self._version:
                await self._list()
            await self._watch()
        except Expired as error:
            self._restart_list("Expired" if self._version else "ListExpired")
            await self._pause(error)
        except Garbled as error:
            if self._version and self._garbled_at == self._version:
                self._restart_list("Garbled")
            self._garbled_at = self._version
            await self._pause(error)
        except (ApiError, ApiUnreachable) as error:
            if isinstance(error, ApiError):
                self._check_refusal(error)
            await self._pause(error)

    def _check_refusal(self, error: ApiError) -> None:
        """End the reflector of an optional kind if a retry is useless; list a required kind that vanished again."""
        if error.status == HTTPStatus.NOT_FOUND:
            if self.resource.optional:
                raise NotServed(f"The API server does not serve {self.resource.name}.") from error
            if self._version:
                self._restart_list("NotServed")
        if error.status == HTTPStatus.FORBIDDEN and self.resource.optional:
            raise AccessDenied(f"gangsched may not list and watch {self.resource.name}: {error}") from error

    def _restart_list(self, cause: str) -> None:
        self._version = ""
        self._observer.relisted(self.resource.name, cause)

    async def _pause(self, error: KubeError) -> None:
        """Wait before the next attempt. The wait grows with the number of consecutive failures."""
        longest = min(self._timing.backoff_s * 2.0**self._failures, self._timing.backoff_max_s)
        asked_s = error.retry_after_s if isinstance(error, ApiError) else 0.0
        wait_s = max(asked_s, longest * self._jitter())
        self._failures = min(self._failures + 1, 30)
        if not self.problem:
            self.interrupted_at = time.monotonic()
            _log.warning("watch interrupted; retrying", extra={"resource": self.resource.name, "error": str(error)})
        self.problem = self._why(error)
        self.going.clear()
        await asyncio.sleep(wait_s)

    def _why(self, error: KubeError) -> str:
        if isinstance(error, ApiError) and error.status == HTTPStatus.NOT_FOUND and self.resource.if_missing:
            return f"The API server does not serve {self.resource.name}: {self.resource.if_missing}."
        return str(error)

    def _heard(self) -> None:
        """Record that data arrived from the server."""
        self.last_heard = time.monotonic()

    def _recovered(self) -> None:
        """Record that a list or watch delivers data, or has lasted for a while. A successful start is not enough."""
        if self.problem:
            self.problem = ""
            self.interrupted_at = math.inf
            _log.info("watch resumed", extra={"resource": self.resource.name})

    def _has_lasted(self) -> None:
        """Record that a watch has lasted: a server that no longer has the version accepts a watch before it ends it."""
        self._recovered()
        self.going.set()

    async def _list(self) -> None:
        values: list[Value] = []
        version = ""
        awaited = list(self._awaited)
        resource = self.resource
        async for page in pages(
            self._session, resource.path, resource.name, selector=resource.selector, essential=not resource.optional
        ):
            with readable(f"A list of {resource.name}"):
                values += await converted(page, resource)
            self._heard()
            self._recovered()
            version = page.metadata.resource_version or ""
        self._post([self.resource.replaced(tuple(values))])
        self._version = version
        self.synced.set()
        self.going.set()
        for posted in awaited:
            self._awaited.remove(posted)
            if not posted.done():
                posted.set_result(None)

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
        lasting = None
        try:
            async with self._session.stream(
                self.resource.path, params, silent_s=self._timing.silent_s, essential=not self.resource.optional
            ) as pieces:
                opened = time.monotonic()
                self._heard()
                lasting = asyncio.get_running_loop().call_later(self._timing.short_s, self._has_lasted)
                async for piece in pieces:
                    self._heard()
                    await self._take(splitter.feed(piece))
        except ApiError as error:
            if error.status == HTTPStatus.GONE:
                raise Expired(str(error)) from error
            raise
        finally:
            if lasting is not None:
                lasting.cancel()
            fruitful = self._version != version or time.monotonic() - opened >= self._timing.short_s
            if fruitful:
                self._failures = 0
        if not fruitful:
            raise ApiUnreachable(f"A watch of {self.resource.name} ended right after its start.")

    async def _take(self, lines: list[bytes]) -> None:
        """Post the events of the readable lines, and yield to other tasks in between."""
        for start in range(0, len(lines), _BATCH):
            events: list[Event] = []
            try:
                for line in lines[start : start + _BATCH]:
                    event = self._read(line)
                    if event is not None:
                        events.append(event)
            except UNREADABLE as error:
                raise Garbled(f"A watch event of {self.resource.name} cannot be read: {error}") from error
            finally:
                if events:
                    self._observer.watch_events(self.resource.name, len(events))
                    self._post(events)
            await asyncio.sleep(0)

    def _read(self, line: bytes) -> Event | None:
        """The core's event for this line; None for a bookmark."""
        watch_event = _EVENT.decode(line)
        match watch_event.type:
            case "ADDED" | "MODIFIED":
                version, value = self.resource.read(watch_event.object)
                event: Event | None = self.resource.seen(value)
            case "DELETED":
                meta = _VERSIONED.decode(watch_event.object).metadata
                version, event = meta.resource_version, self.resource.gone(meta)
            case "BOOKMARK":
                version, event = _VERSIONED.decode(watch_event.object).metadata.resource_version, None
            case "ERROR":
                raise _watch_error(watch_event.object)
            case other:
                raise Garbled(f"A watch of {self.resource.name} delivered an event of the unknown type {other!r}.")
        self._version = version or self._version
        self._recovered()
        return event


def _watch_error(raw: Raw) -> KubeError:
    """The error of an ERROR event."""
    status = _STATUS.decode(raw)
    error = ApiError(status.code or 0, status.reason or "", status.message or "")
    return Expired(str(error)) if status.code == HTTPStatus.GONE else error
