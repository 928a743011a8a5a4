"""Single objects: where they are, how they are written, and a pod read because an answer left open what it is now."""

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
_TIMEOUT_S = 6.0
_NEEDS_NO_QUOTING = re.compile(r"[A-Za-z0-9_.~-]*")
"""What `quote` would return as it is, after a look at each character in Python, twice for every binding."""


def quoted(part: str) -> str:
    """A namespace or name as it may stand in a path; it cannot lead out of its place."""
    return part if _NEEDS_NO_QUOTING.fullmatch(part) else quote(part, safe="")


def pod_path(namespace: str, name: str) -> str:
    """Where the pod is found."""
    return f"/api/v1/namespaces/{quoted(namespace)}/pods/{quoted(name)}"


async def write(
    session: ApiSession,
    method: str,
    path: str,
    body: Mapping[str, object] | Sequence[Mapping[str, object]],
    *,
    content_type: str = JSON,
) -> Response:
    """Send one write that takes effect soon or never: within 5 s of this call, unless the credentials are slow to come.

    It is sent within a second or not at all, and the server gives it up after another four, before we do. So a write
    that nobody got an answer to, or a former leader's, does not surprise anybody much later.

    Raises:
        ApiUnreachable: it was not answered; it may have taken effect.
    """
    return await session.request(
        method,
        path,
        params={"timeout": _SERVER_TIMEOUT},
        body=msgspec.json.encode(body),
        content_type=content_type,
        timeout_s=_TIMEOUT_S,
        connect_s=_SENT_WITHIN_S,
    )


async def read_pod(session: ApiSession, namespace: str, name: str) -> wire.Pod | None:
    """The pod that has this name now, None if none has.

    Raises:
        ApiError, ApiUnreachable, Garbled: it could not be read.
    """
    answer = await session.request("GET", pod_path(namespace, name), timeout_s=_TIMEOUT_S)
    if answer.status == HTTPStatus.NOT_FOUND:
        return None
    try:
        return decode_pod(answer.checked().body)
    except UNREADABLE as error:
        raise Garbled(f"Pod {namespace}/{name} cannot be read: {error}") from error
