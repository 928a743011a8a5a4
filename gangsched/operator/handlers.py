"""kopf's handlers: of our CustomResourceDefinition, and of finished PodGroups. None of them writes to an object."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from http import HTTPStatus

import kopf

from gangsched.api.custom_resource import lacking
from gangsched.api.podgroup_names import NAME, PATH
from gangsched.config.pod_groups import MOST_A_SECOND
from gangsched.core.objects.wording import first_named
from gangsched.kube.client.errors import KubeError
from gangsched.operator.finished import SELECTOR, finished_group
from gangsched.operator.kopf_settings import CRDS, PODGROUPS
from gangsched.operator.memo import Deletion, Memo

_log = logging.getLogger(__name__)

_LOOK_EVERY_S = 1.0
_NAMED = 5
_RETRY_S = 5.0


def make_registry(*, deletion: bool) -> kopf.OperatorRegistry:
    """The handlers, in a separate registry, so that a process can have several; they expect a `Memo`.

    PodGroups are watched only for their `deletion`.
    """
    registry = kopf.OperatorRegistry()
    kopf.on.login(id="session", registry=registry)(session)
    kopf.on.cleanup(id="end", registry=registry)(end)
    kopf.on.event(*CRDS, id="crd", registry=registry)(crd)
    if deletion:
        kopf.on.startup(id="selector", backoff=_RETRY_S, registry=registry)(select_finished)
        kopf.on.startup(id="deletion", registry=registry)(begin_deleting)
        kopf.on.event(*PODGROUPS, id="finished", registry=registry)(podgroup)
    return registry


async def session(memo: Memo, **_: object) -> kopf.AiohttpSession:
    """A new session with our credentials, which kopf closes. kopf asks again whenever the API server answers 401."""
    return kopf.AiohttpSession(server=memo.session.server, aiohttp_session=memo.session.client())


async def crd(event: kopf.RawEvent, memo: Memo, **_: object) -> None:
    """Report which fields the installed CustomResourceDefinition lacks."""
    missing = [] if event["type"] == "DELETED" else lacking(event["object"])
    memo.on_crd(missing)
    if missing and missing != memo.logged_lacking:
        _log.warning(
            "the installed CustomResourceDefinition is older than this operator: the API server drops the fields"
            " that it lacks; apply the one that `gangsched crd` prints",
            extra={"crd": NAME, "lacks": first_named(missing, _NAMED)},
        )
    memo.logged_lacking = missing


async def select_finished(memo: Memo, settings: kopf.OperatorSettings, **_: object) -> None:
    """Have the API server limit the watch of PodGroups to finished ones, unless it does not know the field.

    Raises:
        kopf.TemporaryError: it cannot say now; for example, PodGroups are not served yet.
    """
    path, query = PATH, {"fieldSelector": SELECTOR, "limit": "1"}
    try:
        response = await memo.session.request("GET", path, params=query, essential=False)
    except KubeError as error:
        raise kopf.TemporaryError(str(error), delay=_RETRY_S) from error
    if response.ok:
        settings.watching.field_selectors[PODGROUPS] = SELECTOR
    elif response.status != HTTPStatus.BAD_REQUEST:
        raise kopf.TemporaryError(str(response.error()), delay=_RETRY_S)


async def begin_deleting(memo: Memo, **_: object) -> None:
    """Begin to report PodGroups that have expired."""
    if memo.deletion is not None:
        memo.deleting = asyncio.create_task(_delete(memo, memo.deletion), name="deletion of finished PodGroups")


async def end(memo: Memo, **_: object) -> None:
    """Report no PodGroups any more, and tell that kopf is about to end."""
    memo.ending.set()
    if memo.deleting is not None:
        memo.deleting.cancel()
        with suppress(asyncio.CancelledError):
            await memo.deleting


async def podgroup(event: kopf.RawEvent, memo: Memo, **_: object) -> None:
    """Note when a finished PodGroup is due. One that is no longer finished arrives as deleted, if the server limits."""
    body = event["object"]
    default_ttl_s = memo.deletion.default_ttl_s if memo.deletion is not None else None
    group = finished_group(body, default_ttl_s=default_ttl_s, now=time.time())
    if event["type"] == "DELETED" or group is None:
        memo.expiries.forget(body["metadata"]["uid"])
    else:
        memo.expiries.note(group)


async def _delete(memo: Memo, deletion: Deletion) -> None:
    while True:
        await asyncio.sleep(_LOOK_EVERY_S)
        expired = memo.expiries.take(time.time(), MOST_A_SECOND) if deletion.leads() else []
        if expired:
            deletion.post(expired)
