"""Single objects: their paths, writes, and the read of a pod after an ambiguous answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from urllib.parse import quote

import msgspec

from gangsched.kube import wire
from gangsched.kube.errors import UNREADABLE, Garbled
from gangsched.kube.resources import decode_pod
from gangsched.kube.session import JSON, ApiSession, Response

_SENT_WITHIN_S = 1.0
_SERVER_TIMEOUT = "4s"
TIMEOUT_S = 6.0
_NEEDS_NO_QUOTING = re.compile(r"[A-Za-z0-9_.~-]*")
"""Texts that need no quoting. `quote` would check each of their characters in Python, twice for every binding."""


def quoted(part: str) -> str:
    """A namespace or name quoted as one segment of a path."""
    return part if _NEEDS_NO_QUOTING.fullmatch(part) else quote(part, safe="")


def pod_path(namespace: str, name: str) -> str:
    """The path of the pod."""
    return f"/api/v1/namespaces/{quoted(namespace)}/pods/{quoted(name)}"


async def write(
    session: ApiSession,
    method: str,
    path: str,
    body: Mapping[str, object] | Sequence[Mapping[str, object]],
    *,
    content_type: str = JSON,
    manager: str = "",
) -> Response:
    """Send one write that takes effect within 5 s of this call or never, unless renewing the credentials takes longer.

    `manager` is the field manager of a server-side apply.

    The write is sent within one second or not at all, and the server cancels it after four more seconds, before our own
    time limit. An unanswered write, or one of a former leader, therefore cannot take effect much later.

    Raises:
        ApiUnreachable: there was no answer; the write may have taken effect.
    """
    return await session.request(
        method,
        path,
        params={"timeout": _SERVER_TIMEOUT} | ({"fieldManager": manager} if manager else {}),
        body=msgspec.json.encode(body),
        content_type=content_type,
        timeout_s=TIMEOUT_S,
        connect_s=_SENT_WITHIN_S,
    )


async def read_pod(session: ApiSession, namespace: str, name: str) -> wire.Pod | None:
    """The pod that has this name now; None if there is none.

    Raises:
        ApiError, ApiUnreachable, Garbled: it could not be read.
    """
    answer = await session.request("GET", pod_path(namespace, name), timeout_s=TIMEOUT_S)
    if answer.status == HTTPStatus.NOT_FOUND:
        return None
    try:
        return decode_pod(answer.checked().body)
    except UNREADABLE as error:
        raise Garbled(f"Pod {namespace}/{name} cannot be read: {error}") from error
