"""kopf's handlers: they see our CustomResourceDefinition as it is installed, and write nothing to it."""

from __future__ import annotations

import logging
from collections.abc import Callable

import aiohttp
import kopf

from gangsched.api.crd import NAME, lacking

_log = logging.getLogger(__name__)

CRDS = ("apiextensions.k8s.io", "v1", "customresourcedefinitions")
_NAMED = 5


def make_registry(
    *, server: str, make_client: Callable[[], aiohttp.ClientSession], on_crd: Callable[[list[str]], None]
) -> kopf.OperatorRegistry:
    """The handlers, in a registry of their own so that a process can hold several.

    `make_client` gives kopf a session of its own to `server`, which kopf closes; it is called again whenever the API
    server has answered 401. `on_crd` is told which fields the installed CustomResourceDefinition lacks, each time it
    is seen.
    """
    registry = kopf.OperatorRegistry()
    told: list[str] = []

    @kopf.on.event(*CRDS, id="crd", registry=registry)
    async def crd(event: kopf.RawEvent, **_: object) -> None:
        nonlocal told
        missing = [] if event["type"] == "DELETED" else lacking(event["object"])
        on_crd(missing)
        if missing and missing != told:
            more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
            _log.warning(
                "the installed CustomResourceDefinition is older than this operator: the API server drops the fields"
                " that it lacks; apply the one that `gangsched crd` prints",
                extra={"crd": NAME, "lacks": ", ".join(missing[:_NAMED]) + more},
            )
        told = missing

    @kopf.on.login(id="session", registry=registry)
    async def session(**_: object) -> kopf.AiohttpSession:
        return kopf.AiohttpSession(server=server, aiohttp_session=make_client())

    return registry
