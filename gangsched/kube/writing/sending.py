"""Sends a write once, within a time limit, and reads a pod after an ambiguous answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus

import msgspec

from gangsched.kube import wire
from gangsched.kube.client.errors import ApiError, KubeError, readable
from gangsched.kube.client.paths import pod_path
from gangsched.kube.client.session import JSON, ApiSession, Response
from gangsched.kube.reading.pod_values import decode_pod
from gangsched.kube.writing.write_results import Outcome, WriteResult, failed

_SENT_WITHIN_S = 1.0
_SERVER_TIMEOUT = "4s"
TIMEOUT_S = 6.0


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
    response = await session.request("GET", pod_path(namespace, name), timeout_s=TIMEOUT_S)
    if response.status == HTTPStatus.NOT_FOUND:
        return None
    with readable(f"Pod {namespace}/{name}"):
        return decode_pod(response.checked().body)


async def send(
    session: ApiSession,
    method: str,
    path: str,
    body: Mapping[str, object] | Sequence[Mapping[str, object]],
    *,
    content_type: str = JSON,
    manager: str = "",
) -> Response | KubeError:
    """Send one write, as `write` does. A failure is returned."""
    try:
        response = await write(session, method, path, body, content_type=content_type, manager=manager)
    except KubeError as error:
        return error
    return response if response.ok else response.error()


def conflicts(answer: Response | KubeError) -> bool:
    """Whether the condition of the write does not hold (409)."""
    return isinstance(answer, ApiError) and answer.status == HTTPStatus.CONFLICT


def deletion(uid: str, *, version: str = "") -> dict[str, object]:
    """The options that delete an object only if this is its UID and, if given, its resourceVersion."""
    conditions = {"uid": uid, **({"resourceVersion": version} if version else {})}
    return {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": conditions}


def answered(answer: Response | KubeError, *, conflict: Outcome | None = None) -> WriteResult:
    """The result of a write whose failure the error alone decides; `conflict` is what a 409 means, unless it passes."""
    if isinstance(answer, Response):
        return WriteResult(Outcome.WRITTEN)
    return WriteResult(conflict) if conflict is not None and conflicts(answer) else failed(answer)
