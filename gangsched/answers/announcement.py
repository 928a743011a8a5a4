"""Announces where a replica answers, as a condition of its own pod. Clients that read it can verify the certificate.

The kubelet keeps conditions of types that are not its own. The condition is gone with the pod. The operator may write
the status of pods anyway, because it reports there why they wait.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec
from msgspec import Struct

from gangsched.kube import wire
from gangsched.kube.client.errors import UNREADABLE, Garbled, KubeError
from gangsched.kube.client.paths import pod_path, quoted
from gangsched.kube.client.session import STRATEGIC_MERGE_PATCH, ApiSession

_log = logging.getLogger(__name__)

CONDITION = "gangsched.io/answers"
POD_NAME, POD_NAMESPACE = "POD_NAME", "POD_NAMESPACE"
"""The environment variables that name the operator's own pod."""
_FIRST_S, _MOST_S = 1.0, 60.0
_FORM = re.compile(r"port ([0-9]{1,5}), certificate sha256:([0-9a-f]{64})")


@dataclass(frozen=True)
class Announcement:
    """The port on 127.0.0.1 of the pod where the replica answers, and the fingerprint of its certificate."""

    port: int
    fingerprint: str

    def __str__(self) -> str:
        """The condition's message."""
        return f"port {self.port}, certificate sha256:{self.fingerprint}"


class _Status(Struct):
    conditions: list[wire.Condition] | None = None


class _Pod(Struct):
    metadata: wire.Meta
    status: _Status | None = None


class _Pods(Struct):
    items: list[_Pod] | None = None


def read(message: str) -> Announcement | None:
    """The announcement in the condition's message; None if there is none."""
    found = _FORM.fullmatch(message)
    return Announcement(int(found[1]), found[2]) if found is not None else None


async def announced(session: ApiSession, namespace: str) -> list[tuple[str, Announcement]]:
    """The pods of the namespace that announce answers, by name, those that are ready first.

    Raises:
        ApiError, ApiUnreachable, Garbled: the pods cannot be listed.
    """
    answer = await session.request("GET", f"/api/v1/namespaces/{quoted(namespace)}/pods")
    try:
        pods = msgspec.json.decode(answer.checked().body, type=_Pods).items or []
    except UNREADABLE as error:
        raise Garbled(f"A list of pods cannot be read: {error}") from error
    found: list[tuple[bool, str, Announcement]] = []
    for pod in pods:
        said = {each.type: each for each in (pod.status.conditions if pod.status is not None else None) or ()}
        where = read(said[CONDITION].message or "") if CONDITION in said else None
        if where is not None and pod.metadata.name:
            ready = "Ready" in said and said["Ready"].status == "True"
            found.append((not ready, pod.metadata.name, where))
    return [(name, where) for _, name, where in sorted(found, key=lambda each: each[:2])]


async def announce(session: ApiSession, announcement: Announcement, env: Mapping[str, str] = os.environ) -> None:
    """Write the announcement to our own pod, and retry until that succeeds. Outside a pod there is nothing to do."""
    namespace, name = env.get(POD_NAMESPACE, ""), env.get(POD_NAME, "")
    if not (namespace and name):
        _log.info("the answers are not announced, because this is not a pod: users need --via and --fingerprint")
        return
    condition = {
        "type": CONDITION,
        "status": "True",
        "reason": "Serving",
        "message": str(announcement),
        "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    body = msgspec.json.encode({"status": {"conditions": [condition]}})
    wait_s = _FIRST_S
    while True:
        path = f"{pod_path(namespace, name)}/status"
        try:
            answer = await session.request(
                "PATCH", path, body=body, content_type=STRATEGIC_MERGE_PATCH, essential=False
            )
            answer.checked()
        except KubeError as error:
            _log.warning("the answers cannot be announced", extra={"pod": f"{namespace}/{name}", "error": str(error)})
        else:
            return
        await asyncio.sleep(wait_s)
        wait_s = min(2 * wait_s, _MOST_S)
