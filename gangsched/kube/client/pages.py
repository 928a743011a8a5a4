"""Reads a list page by page, even if the list expires meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any

import msgspec
from msgspec import Struct

from gangsched.kube.client.errors import UNREADABLE, Garbled
from gangsched.kube.client.resource import LIST_TIMEOUT_S, PAGE
from gangsched.kube.client.session import ApiSession, Response

_PAGE = msgspec.json.Decoder(dict[str, Any])


class _Meta(Struct):
    following: str = msgspec.field(name="continue", default="")


class _Expired(Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


async def pages(session: ApiSession, path: str, name: str) -> AsyncIterator[dict[str, Any]]:
    """The pages of a list, decoded from JSON. `name` is the list's name in messages.

    If the list expires before all of it has been read, reading continues with the objects as they are then. The API
    server sends another token for this (https://kubernetes.io/docs/reference/using-api/api-concepts, resuming a list).

    Raises:
        ApiError, ApiUnreachable, Garbled: there was no complete answer.
    """
    params = {"limit": str(PAGE)}
    while True:
        answer = await session.request("GET", path, params=params, timeout_s=LIST_TIMEOUT_S)
        renewed = _renewed(answer)
        if renewed and renewed != params.get("continue"):
            params["continue"] = renewed
            continue
        try:
            page = _PAGE.decode(answer.checked().body)
        except UNREADABLE as error:
            raise Garbled(f"A list of {name} cannot be read: {error}") from error
        yield page
        if not (following := (page.get("metadata") or {}).get("continue")):
            return
        params["continue"] = following


def _renewed(answer: Response) -> str:
    """The token that continues an expired list; empty if the list has not expired."""
    if answer.status != HTTPStatus.GONE:
        return ""
    try:
        return msgspec.json.decode(answer.body, type=_Expired).metadata.following
    except UNREADABLE:
        return ""
