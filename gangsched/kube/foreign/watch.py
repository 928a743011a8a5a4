"""Watches the custom resources of other systems. They may be absent or unreadable, and may change while we watch.

The rules
    Discovery shows whether the API server serves a kind. While it does not, the core receives an empty list, and the
    kind is checked again when one of its versions is listed. While it does, a reflector watches the kind. If that
    version is served no longer but another one is, the list in that one replaces the earlier list.
    A missing right hides the kind: the core receives the reason, the log one line, and the request is retried. A kind
    that was readable before is hidden only after a minute, because a server that has just started has no roles yet.
    At startup a kind that is neither listed nor known to be absent is also hidden once everything else is ready, so
    that a failure for one kind delays no other group. Objects that are listed later count from then on. The event for
    the core says whether a right is missing or the kind is merely not listed yet, so that the content of its objects is
    unknown. At the start, a denial counts only if it arrives after the lists that are always needed, because a server
    that has just started denies everything.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Protocol

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
from gangsched.kube.client.discovery import Discovery
from gangsched.kube.client.errors import (
    UNREADABLE,
    AccessDenied,
    ApiError,
    ApiUnreachable,
    Garbled,
    KubeError,
    NotServed,
)
from gangsched.kube.client.reflector import Observer, Reflector
from gangsched.kube.client.resource import Resource
from gangsched.kube.client.session import ApiSession
from gangsched.kube.dialects.dialect_kind import Kind

_log = logging.getLogger(__name__)

RETRY_S, LONGEST_RETRY_S = 0.5, 30.0
"""The first and the longest back-off after a failure, a vanished kind or a missing right; it doubles in between."""
AFTER_S = 10.0
"""How long a kind waits for what it is read with. If that comes later, the kind is listed again."""
PATIENCE_S = 60.0
"""How long a kind that was readable may be denied before that counts as a missing right."""


class _Named(Struct, gc=False):
    name: str = ""


class _Resources(Struct, gc=False):
    resources: list[_Named] | None = None


_RESOURCES = msgspec.json.Decoder(_Resources)


class Hidden(Protocol):
    """Returns the event for an unreadable kind, given the reason and whether that is a missing right."""

    def __call__(self, why: str, /, *, denied: bool) -> Event: ...


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A kind of another system, and the events about it for the core.

    `resource` returns the resource to list and watch for a version. `absent` is the event for a kind that is not
    served, `hidden` returns the event for a kind that is unreadable. The chart grants the right to read the kind if its
    value `value` lists the `dialect`; if it does so on another condition, `remedy` says how to get the right from it.
    `without` is the consequence of a missing right, for the log.
    """

    dialect: str
    kind: CustomResource
    resource: Callable[[str], Resource[Any]]
    absent: Event
    hidden: Hidden
    without: str
    value: str = "dialects"
    remedy: str = ""


def groups(dialect: str, kind: Kind[Any]) -> Subject:
    """The PodGroups of the dialect."""

    def resource(version: str) -> Resource[ForeignGroup]:
        def read(raw: Raw) -> tuple[str | None, ForeignGroup]:
            return kind.read(dialect, raw, version)

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
        dialect=kind.within or dialect,
        kind=kind.resource,
        resource=resource,
        absent=ForeignGroupsReplaced(dialect=dialect, groups=()),
        hidden=partial(ForeignGroupsHidden, dialect),
        without="their pods wait",
    )


async def served_version(session: ApiSession, kind: CustomResource) -> str:
    """The version in which the API server serves the kind; empty if it serves no known version.

    Raises:
        AccessDenied: the account may not read the discovery.
        ApiError, ApiUnreachable, Garbled: there was no complete answer.
    """
    for version in kind.versions:
        response = await session.request("GET", f"/apis/{kind.group}/{version}", essential=False)
        if response.status == HTTPStatus.NOT_FOUND:
            continue
        if response.status == HTTPStatus.FORBIDDEN:
            raise AccessDenied(str(response.error()))
        try:
            resources = _RESOURCES.decode(response.checked().body)
        except UNREADABLE as error:
            raise Garbled(f"The resources of {kind.group}/{version} cannot be read: {error}") from error
        if kind.plural in {resource.name for resource in resources.resources or ()}:
            return version
    return ""


class ForeignWatch:
    """Keeps the core informed about one kind. `settled` is set once the kind is listed, absent or hidden.

    It is listed `after` what these reflectors list, within AFTER_S, because it is read with that.
    """

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
        after: Sequence[Reflector[Any]] = (),
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
        self._unserved = ""
        self._why: str | None = None
        self._denied_at: float | None = None
        self._is_denied = False
        self._failure = ""
        self._failures = 0
        self._hurried = asyncio.Event()
        self._after = after
        self._reflector: Reflector[Any] | None = None

    async def run(self) -> None:
        """Check in which version the kind is served, and watch it while it is."""
        with suppress(TimeoutError):
            async with asyncio.timeout(AFTER_S):
                for reflector in self._after:
                    await reflector.synced.wait()
        while True:
            version = ""
            try:
                version = await served_version(self._session, self._subject.kind)
                if version:
                    await self._watch(version)
                self._absent()
                self._failures = 0
                await self._discovery.until_listed(self._subject.kind.served_in)
                continue
            except NotServed:
                if version != self._unserved:
                    # An upgrade of the API server may have replaced the version by another one.
                    self._unserved = version
                    continue
                # A kind that is being installed may be in discovery shortly before it is served.
                self._absent()
            except AccessDenied as error:
                self._denied(error)
            except (ApiError, ApiUnreachable, Garbled) as error:
                self._failed(error)
            await self._retry()

    async def _retry(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(min(self._retry_s * 2.0**self._failures, LONGEST_RETRY_S)):
                await self._hurried.wait()
        self._failures = 0 if self._hurried.is_set() else min(self._failures + 1, 30)
        self._hurried.clear()

    def disregard_denials(self) -> None:
        """Disregard denials of requests that were sent before this call, and retry at once."""
        if self._is_denied or not self.settled.is_set():
            self.settled.clear()
            self._hurried.set()

    def hide_if_unsettled(self) -> None:
        """Let the core decide without this kind if it is not listed yet. Pods wait for it: restart the back-off."""
        if not self.settled.is_set():
            self._hurried.set()
            self._hide(
                f"gangsched has not been able to list {self.name} yet and keeps retrying: see its log for the API "
                "server's answers and fix the cause.",
                denied=False,
            )

    async def _watch(self, version: str) -> None:
        resource = self._subject.resource(version)
        self._reflector = Reflector(self._session, resource, self._take, observer=self._observer)
        try:
            await self._reflector.run()
        finally:
            self._reflector = None

    def renew(self, cause: str) -> bool:
        """List again, for this cause, if the kind is watched. False: it is being listed, or cannot be; ask again."""
        if self._reflector is None:
            return True
        if not self._reflector.is_current:
            return False
        self._reflector.renew(cause)
        return True

    def _take(self, events: Sequence[Event]) -> None:
        """Post the reflector's events. The first one is a list, so the state is complete from then on."""
        if self._why:
            _log.info("another system's objects are readable again", extra=self._named)
        self._why = self._denied_at = None
        self._is_denied = False
        self._failure = self._unserved = ""
        self._failures = 0
        self._post(events)
        self.settled.set()

    def _absent(self) -> None:
        self._denied_at = None
        self._is_denied = False
        self._failure = ""
        self._post_unwatched("", self._subject.absent)

    def _denied(self, error: AccessDenied) -> None:
        if self._hurried.is_set():
            return
        if self.settled.is_set() and self._why is None:
            now = time.monotonic()
            self._denied_at = self._denied_at or now
            if now - self._denied_at < self._patience_s:
                return
        subject = self._subject
        remedy = subject.remedy or f"name {subject.dialect} in the chart's value `{subject.value}`"
        why = (
            f"gangsched may not read {self.name}: {remedy}, or give its account the verbs list and watch on them in a "
            "ClusterRole."
        )
        if self._hide(why, denied=True):
            _log.warning(
                "missing right to read another system's objects",
                extra={**self._named, "so": self._subject.without, "error": str(error)},
            )

    def _hide(self, why: str, *, denied: bool) -> bool:
        self._is_denied = denied
        return self._post_unwatched(why, self._subject.hidden(why, denied=denied))

    def _post_unwatched(self, why: str, event: Event) -> bool:
        """Post that the kind is not watched, if that is new. An empty reason means that the kind is absent."""
        is_new = self._why != why
        if is_new:
            self._why = why
            self._post([event])
        self.settled.set()
        return is_new

    def _failed(self, error: KubeError) -> None:
        if self._failure != str(error):
            self._failure = str(error)
            _log.warning("looking for another system's objects failed", extra={**self._named, "error": self._failure})

    @property
    def _named(self) -> dict[str, str]:
        return {"dialect": self._subject.dialect, "resource": self.name}


async def settle(watches: Sequence[ForeignWatch], within_s: float) -> None:
    """Wait at most `within_s` until all kinds are settled; hide those that are not settled by then.

    Denials from before this call do not count, because the server may not have known the account's rights yet.
    """
    for watch in watches:
        watch.disregard_denials()
    try:
        async with asyncio.timeout(within_s):
            for watch in watches:
                await watch.settled.wait()
    except TimeoutError:
        for watch in watches:
            watch.hide_if_unsettled()
