"""Watches the custom resources of other systems, which may be served or not, be readable or not, and come and go.

The rules
    A kind is looked for in the API server's discovery. While it is not served there are no such objects, which is told
    to the core; it is looked for again when one of its versions is listed. While it is served a reflector watches it.
    Missing rights hide the kind: the core is told why, the log once, and it is tried again and again. What could be
    read before is hidden only after a minute: a server that has just been started knows no rights for a moment.
    A kind that is neither listed nor known to be absent when everybody else is ready is hidden as well, so that a
    server that fails for one kind keeps nobody waiting; what is listed later counts from then on.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import msgspec
from msgspec import Raw, Struct

from gangsched.config.dialects import CustomResource
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.events import (
    Event,
    ForeignGroupGone,
    ForeignGroupSeen,
    ForeignGroupsHidden,
    ForeignGroupsReplaced,
)
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.kube.dialects.kind import Kind
from gangsched.kube.discovery import Discovery
from gangsched.kube.errors import UNREADABLE, AccessDenied, ApiError, ApiUnreachable, Garbled, KubeError, NotServed
from gangsched.kube.reflector import Observer, Reflector
from gangsched.kube.resources import Resource
from gangsched.kube.session import ApiSession

_log = logging.getLogger(__name__)

RETRY_S, LONGEST_RETRY_S = 0.5, 30.0
"""After a failure, or once a kind has vanished or may not be read, it is looked for again after so long, doubling."""
PATIENCE_S = 60.0
"""For so long a kind that could be read may be denied before that is taken for a missing right."""


class _Named(Struct, gc=False):
    name: str = ""


class _Resources(Struct, gc=False):
    resources: list[_Named] | None = None


_RESOURCES = msgspec.json.Decoder(_Resources)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A kind of another system, and what the core is told of it.

    `resource` is how its objects are listed and watched in a version; `absent` says that it is not served, `hidden`,
    for a reason in a sentence, that it cannot be read. `dialect` is whose configuration grants the right to read it,
    and `without` says for the log what follows where it may not be read.
    """

    dialect: str
    kind: CustomResource
    resource: Callable[[str], Resource[Any]]
    absent: Event
    hidden: Callable[[str], Event]
    without: str


def groups(dialect: str, kind: Kind[Any]) -> Subject:
    """The PodGroups of the dialect."""

    def read(raw: Raw) -> tuple[str | None, ForeignGroup]:
        return kind.read(dialect, raw)

    def resource(version: str) -> Resource[ForeignGroup]:
        return Resource[ForeignGroup](
            name=kind.name,
            path=kind.resource.path(version),
            read=read,
            seen=lambda group: ForeignGroupSeen(group=group),
            gone=lambda meta: ForeignGroupGone(
                dialect=dialect, key=GroupKey(meta.namespace or "default", meta.name or "")
            ),
            replaced=lambda groups: ForeignGroupsReplaced(dialect=dialect, groups=groups),
            optional=True,
        )

    return Subject(
        dialect=dialect,
        kind=kind.resource,
        resource=resource,
        absent=ForeignGroupsReplaced(dialect=dialect, groups=()),
        hidden=lambda why: ForeignGroupsHidden(dialect=dialect, why=why),
        without="their pods wait",
    )


async def served_version(session: ApiSession, kind: CustomResource) -> str:
    """The version in which the API server serves the kind; empty if in none that we know.

    Raises:
        AccessDenied: we may not ask.
        ApiError, ApiUnreachable, Garbled: the answer did not come whole.
    """
    for version in kind.versions:
        answer = await session.request("GET", f"/apis/{kind.group}/{version}", essential=False)
        if answer.status == HTTPStatus.NOT_FOUND:
            continue
        if answer.status == HTTPStatus.FORBIDDEN:
            raise AccessDenied(str(answer.error()))
        try:
            found = _RESOURCES.decode(answer.checked().body)
        except UNREADABLE as error:
            raise Garbled(f"The resources of {kind.group}/{version} cannot be read: {error}") from error
        if kind.plural in {each.name for each in found.resources or ()}:
            return version
    return ""


class ForeignWatch:
    """Keeps the core informed of one kind, for ever. `settled` is set once it is known how the kind stands."""

    def __init__(
        self,
        session: ApiSession,
        subject: Subject,
        post: Callable[[Sequence[Event]], None],
        *,
        observer: Observer,
        discovery: Discovery,
        retry_s: float = RETRY_S,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.settled = asyncio.Event()
        self.name = subject.kind.name
        self._session = session
        self._subject = subject
        self._post = post
        self._observer = observer
        self._discovery = discovery
        self._retry_s = retry_s
        self._patience_s = patience_s
        self._why: str | None = None
        self._denied_at: float | None = None
        self._failure = ""
        self._failures = 0

    async def run(self) -> None:
        """Look for the kind and watch it while it is there."""
        while True:
            try:
                version = await served_version(self._session, self._subject.kind)
                if version:
                    await self._watch(version)
                self._absent()
                self._failures = 0
                await self._discovery.until_listed(self._subject.kind.served_in)
                continue
            except NotServed:
                # A kind that is being installed may be in discovery a moment before it is served.
                self._absent()
            except AccessDenied as error:
                self._denied(error)
            except (ApiError, ApiUnreachable, Garbled) as error:
                self._failed(error)
            await self._retry()

    async def _retry(self) -> None:
        await asyncio.sleep(min(self._retry_s * 2.0**self._failures, LONGEST_RETRY_S))
        self._failures = min(self._failures + 1, 30)

    def go_on_without(self) -> None:
        """Have the core decide without what is not listed yet; nothing happens if it is."""
        if not self.settled.is_set():
            self._hide(
                f"gangsched has not been able to list {self.name} so far and goes on trying: see in its log what the "
                "API server answers, and put that right."
            )

    async def _watch(self, version: str) -> None:
        resource = self._subject.resource(version)
        reflector = Reflector(self._session, resource, self._take, observer=self._observer)
        await reflector.run()

    def _take(self, events: Sequence[Event]) -> None:
        """Hand on what the reflector has found; it begins with a list, so that all is known from then on."""
        if self._why:
            _log.info("another system's objects can be read again", extra=self._named)
        self._why = self._denied_at = None
        self._failure = ""
        self._failures = 0
        self._post(events)
        self.settled.set()

    def _absent(self) -> None:
        self._denied_at = None
        self._failure = ""
        self._tell("", self._subject.absent)

    def _denied(self, error: AccessDenied) -> None:
        if self.settled.is_set() and self._why is None:
            now = time.monotonic()
            self._denied_at = self._denied_at or now
            if now - self._denied_at < self._patience_s:
                return
        why = (
            f"gangsched may not read {self.name}: name {self._subject.dialect} in the chart's value `dialects`, or "
            "give its account the verbs list and watch on them in a ClusterRole."
        )
        if self._hide(why):
            _log.warning(
                "another system's objects may not be read",
                extra={**self._named, "so": self._subject.without, "error": str(error)},
            )

    def _hide(self, why: str) -> bool:
        return self._tell(why, self._subject.hidden(why))

    def _tell(self, why: str, event: Event) -> bool:
        """Post that the kind is not watched, if that is news; without a reason it is not there."""
        news = self._why != why
        if news:
            self._why = why
            self._post([event])
        self.settled.set()
        return news

    def _failed(self, error: KubeError) -> None:
        if self._failure != str(error):
            self._failure = str(error)
            _log.warning("cannot look for another system's objects", extra={**self._named, "error": self._failure})

    @property
    def _named(self) -> dict[str, str]:
        return {"dialect": self._subject.dialect, "resource": self.name}


async def settle(watches: Sequence[ForeignWatch], within_s: float) -> None:
    """Wait until it is known of every kind how it stands, but not longer; those left are gone on without."""
    try:
        async with asyncio.timeout(within_s):
            for watch in watches:
                await watch.settled.wait()
    except TimeoutError:
        for watch in watches:
            watch.go_on_without()
