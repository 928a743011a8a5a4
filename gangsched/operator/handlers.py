"""kopf's settings and handlers. They read the installed CustomResourceDefinition and never write to it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from itertools import chain, repeat

import aiohttp
import kopf

from gangsched.api.crd import NAME, lacking

_log = logging.getLogger(__name__)

CRDS = ("apiextensions.k8s.io", "v1", "customresourcedefinitions")
_NAMED = 5


class _Backoffs:
    """The endless back-offs of kopf's requests, in seconds, so that an outage of the API server does not end kopf."""

    def __iter__(self) -> Iterator[float]:
        return chain((1.0, 1.0, 2.0, 3.0, 5.0, 8.0), repeat(13.0))


def make_settings() -> kopf.OperatorSettings:
    """Reduce kopf to watching one CustomResourceDefinition: standalone, without Events and without scanning.

    `worker_limit` stays unset because an idle worker keeps its slot.
    """
    settings = kopf.OperatorSettings()
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.posting.enabled = False
    settings.queueing.worker_limit = None
    settings.queueing.idle_timeout = 1.0
    settings.queueing.exit_timeout = 2.0
    settings.watching.field_selectors[CRDS] = f"metadata.name={NAME}"
    settings.watching.server_timeout = 300
    settings.watching.connect_timeout = 5
    settings.watching.inactivity_timeout = 70
    settings.networking.request_timeout = 15
    settings.networking.enforce_retry_after = True
    settings.networking.error_backoffs = _Backoffs()
    # With a time limit kopf kills the whole process this long after its own end (seen with 1.45).
    settings.process.ultimate_exiting_timeout = None
    return settings


def make_registry(
    *, server: str, make_client: Callable[[], aiohttp.ClientSession], on_crd: Callable[[list[str]], None]
) -> kopf.OperatorRegistry:
    """The handlers, in a separate registry, so that a process can have several.

    `make_client` returns a new session to `server`, which kopf closes. kopf calls it again whenever the API server has
    answered 401. `on_crd` receives the fields that the installed CustomResourceDefinition lacks, at each event.
    """
    registry = kopf.OperatorRegistry()
    logged: list[str] = []

    @kopf.on.event(*CRDS, id="crd", registry=registry)
    async def crd(event: kopf.RawEvent, **_: object) -> None:
        nonlocal logged
        missing = [] if event["type"] == "DELETED" else lacking(event["object"])
        on_crd(missing)
        if missing and missing != logged:
            more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
            _log.warning(
                "the installed CustomResourceDefinition is older than this operator: the API server drops the fields"
                " that it lacks; apply the one that `gangsched crd` prints",
                extra={"crd": NAME, "lacks": ", ".join(missing[:_NAMED]) + more},
            )
        logged = missing

    @kopf.on.login(id="session", registry=registry)
    async def session(**_: object) -> kopf.AiohttpSession:
        return kopf.AiohttpSession(server=server, aiohttp_session=make_client())

    return registry
