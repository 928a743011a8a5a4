"""kopf's handlers: each turns what kopf saw into a call, and writes nothing to the object (no finalizer, no patch)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import aiohttp
import kopf

from gangsched.api.conversion import group_from_object
from gangsched.api.crd import GROUP, PLURAL, VERSION
from gangsched.core.model import Group


class Feed(Protocol):
    """Takes what kopf saw of PodGroups."""

    def seen(self, group: Group) -> None:
        """A PodGroup exists in this form."""
        ...

    def gone(self, group: Group) -> None:
        """A PodGroup exists no longer; this was its last form."""
        ...


def make_registry(
    feed: Feed, *, server: str, make_client: Callable[[], aiohttp.ClientSession]
) -> kopf.OperatorRegistry:
    """The handlers, in a registry of their own so that a process can hold several.

    `make_client` gives kopf a session of its own to `server`, which kopf closes; it is called again whenever the API
    server has answered 401.
    """
    registry = kopf.OperatorRegistry()

    @kopf.on.event(GROUP, VERSION, PLURAL, id="podgroup", registry=registry)
    async def podgroup(event: kopf.RawEvent, **_: object) -> None:
        group = group_from_object(event["object"])
        if event["type"] == "DELETED":
            feed.gone(group)
        else:
            feed.seen(group)

    @kopf.on.login(id="session", registry=registry)
    async def session(**_: object) -> kopf.AiohttpSession:
        return kopf.AiohttpSession(server=server, aiohttp_session=make_client())

    return registry


def report_gaps(client: aiohttp.ClientSession, on_gap: Callable[[], None]) -> None:
    """Call `on_gap` each time kopf begins to watch PodGroups after having listed them.

    kopf lists at its start and whenever its watch has lost its place (410). It tells its handlers neither that such a
    list is complete nor what is missing from it, so its own requests are observed: a list taken after this moment is at
    least as new as kopf's, and what changes later arrives through the watch.
    """
    listed = False

    async def on_request_start(
        _session: aiohttp.ClientSession, _context: object, params: aiohttp.TraceRequestStartParams
    ) -> None:
        nonlocal listed
        if params.method != "GET" or not params.url.path.endswith(f"/{GROUP}/{VERSION}/{PLURAL}"):
            return
        if "watch" not in params.url.query:
            listed = True
        elif listed:
            listed = False
            on_gap()

    trace = aiohttp.TraceConfig()
    trace.on_request_start.append(on_request_start)
    trace.freeze()
    client.trace_configs.append(trace)
