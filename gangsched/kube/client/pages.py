"""Reads a list page by page; the next one is asked for while the current one is used."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import suppress
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from gangsched.kube import wire
from gangsched.kube.client.errors import UNREADABLE, Expired, readable
from gangsched.kube.client.resource import LIST_TIMEOUT_S, PAGE, Resource, Value
from gangsched.kube.client.session import ApiSession, Response

LARGE_PAGE = 5_000
"""Objects a page for commands: over a slow connection each page takes at least a round trip."""
_ATTEMPTS = 3
"""Maximum number of attempts at a list whose pages expire before all are read.

More attempts would not help: the server keeps too little history.
"""
_BATCH = 25
"""So many objects are converted at a time."""
_PAGE = msgspec.json.Decoder(wire.Page)
_OBJECT = msgspec.json.Decoder(dict[str, Any])
Result = TypeVar("Result")


class _ExpiredMeta(Struct):
    following: str = msgspec.field(name="continue", default="")


class _ExpiredStatus(Struct):
    metadata: _ExpiredMeta = msgspec.field(default_factory=_ExpiredMeta)


async def pages(
    session: ApiSession,
    path: str,
    name: str,
    *,
    selector: str = "",
    fields: str = "",
    size: int = PAGE,
    essential: bool = True,
    resumes: bool = False,
) -> AsyncGenerator[wire.Page, None]:
    """The pages, of this `size`, of a list of the objects that the label `selector` and that of `fields` select.

    `name` is the list's name in messages. While a page is used, the next one is on its way.

    If the list expires before all of it has been read, it ends, because its pages would be of different moments. If it
    `resumes`, reading continues with the objects as they are then: the API server sends another token for this
    (https://kubernetes.io/docs/reference/using-api/api-concepts, resuming a list).

    Raises:
        Expired: the list has expired.
        ApiError, ApiUnreachable, Garbled: there was no complete answer.
    """
    params = {"limit": str(size)}
    if selector:
        params["labelSelector"] = selector
    if fields:
        params["fieldSelector"] = fields

    async def read() -> wire.Page:
        while True:
            response = await session.request("GET", path, params=params, timeout_s=LIST_TIMEOUT_S, essential=essential)
            if response.status != HTTPStatus.GONE:
                break
            renewed = _renewed(response) if resumes else ""
            if renewed in ("", params.get("continue")):
                raise Expired(str(response.error()))
            params["continue"] = renewed
        with readable(f"A list of {name}"):
            return _PAGE.decode(response.checked().body)

    following: asyncio.Task[wire.Page] | None = None
    try:
        page = await read()
        while page.metadata.continue_:
            params["continue"] = page.metadata.continue_
            following = asyncio.create_task(read())
            yield page
            page = await following
        yield page
    finally:
        if following is not None and not following.cancel() and not following.cancelled():
            # Whoever stopped early does not want to know how it ended.
            following.exception()


async def all_pages(
    session: ApiSession, path: str, name: str, *, selector: str = "", fields: str = ""
) -> list[wire.Page]:
    """All pages of one consistent list, as in `pages`: after an expired page (410) the list starts again.

    Raises:
        Expired, ApiError, ApiUnreachable, Garbled: as `pages`.
    """

    async def once() -> list[wire.Page]:
        return [page async for page in pages(session, path, name, selector=selector, fields=fields, size=LARGE_PAGE)]

    return await unexpired(once)


async def unexpired(read: Callable[[], Awaitable[Result]]) -> Result:
    """What `read` returns; it is called again if its list expires.

    Raises:
        Expired: it has expired at each attempt.
    """
    for _ in range(_ATTEMPTS - 1):
        with suppress(Expired):
            return await read()
    return await read()


async def converted(page: wire.Page, resource: Resource[Value]) -> list[Value]:
    """The page's objects as values of the resource. Others run, and answers arrive, between some of them."""
    values: list[Value] = []
    items = page.items or ()
    for start in range(0, len(items), _BATCH):
        values += [resource.read(item)[1] for item in items[start : start + _BATCH]]
        await asyncio.sleep(0)
    return values


def objects(page: wire.Page, name: str) -> Iterator[dict[str, Any]]:
    """The page's objects whole, with apiVersion and kind, which a list states once for all.

    Raises:
        Garbled: one of them cannot be read.
    """
    head = {"apiVersion": page.api_version, "kind": (page.kind or "").removesuffix("List")}
    with readable(f"A list of {name}"):
        for item in page.items or ():
            yield {**head, **_OBJECT.decode(item)}


def _renewed(response: Response) -> str:
    """The token that continues an expired list; empty if there is none."""
    try:
        return msgspec.json.decode(response.body, type=_ExpiredStatus).metadata.following
    except UNREADABLE:
        return ""
