"""The writes that the machine asks for: one call each, and the answer sorted by what is to be done about it.

None of them raises for anything that the server or the network does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from gangsched.api.crd import PLURAL
from gangsched.api.status import status_to_object
from gangsched.api.times import format_time
from gangsched.core.effects import BindPod, EmitEvent, PatchPodCondition, PatchStatus
from gangsched.core.events import BindRefused, PodBound, Refused
from gangsched.kube.errors import ApiError, KubeError, printable
from gangsched.kube.recorder import event_object
from gangsched.kube.resources import API_VERSION, decode_pod
from gangsched.kube.session import JSON, MERGE_PATCH, STRATEGIC_MERGE_PATCH, ApiSession, Response
from gangsched.kube.wire import Versioned

# The server gives up a binding before we do, so that one without an answer does not take effect much later.
_BIND_SERVER_TIMEOUT = "4s"
_BIND_TIMEOUT_S = 6.0
_TIMEOUT_S = 10.0

_VERSIONED = msgspec.json.Decoder(Versioned)


class Outcome(StrEnum):
    """How the API server answered a status patch, pod condition or Event."""

    WRITTEN = "Written"
    """It stands."""
    STALE = "Stale"
    """It was conditional on a resourceVersion that is no longer current."""
    GONE = "Gone"
    """The object does not exist any more, or another one has its name."""
    UNAVAILABLE = "Unavailable"
    """Throttled, failed or not answered: the same write may succeed later."""
    REFUSED = "Refused"
    """The server will not accept it however often it is sent."""


class Answer(NamedTuple):
    """The outcome of a write; `retry_after_s` is what the server asked for, 0 without; `message` is for a log."""

    outcome: Outcome
    resource_version: str = ""
    retry_after_s: float = 0.0
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class ApiWrites:
    """All the writes through one session; `instance` is who the Events come from, `now` the time in epoch seconds."""

    session: ApiSession
    instance: str
    now: Callable[[], float] = time.time

    async def bind(self, effect: BindPod) -> PodBound | BindRefused:
        """See `bind`."""
        return await bind(self.session, effect)

    async def patch_status(self, effect: PatchStatus) -> Answer:
        """See `patch_status`."""
        return await patch_status(self.session, effect)

    async def patch_condition(self, effect: PatchPodCondition) -> Answer:
        """See `patch_condition`."""
        return await patch_condition(self.session, effect)

    async def emit(self, effect: EmitEvent) -> Answer:
        """See `emit_event`."""
        return await emit_event(self.session, effect, now=self.now(), reporting_instance=self.instance)


async def bind(session: ApiSession, effect: BindPod) -> PodBound | BindRefused:
    """Bind the pod with this UID to the node.

    Where the answer leaves open whether the pod is bound (409, a failure of the server, none at all) the pod is read:
    one that is bound as it was asked for is `PodBound`. `UNAVAILABLE` means that it was not bound when last seen, or
    could not be read; a binding without an answer may still take effect for some seconds.
    """
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": effect.name, "namespace": effect.namespace, "uid": effect.uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": effect.node},
    }
    params = {"timeout": _BIND_SERVER_TIMEOUT}
    path = f"{_pod_path(effect.namespace, effect.name)}/binding"
    try:
        answer = await session.request(
            "POST", path, params=params, body=msgspec.json.encode(body), timeout_s=_BIND_TIMEOUT_S
        )
    except KubeError as unanswered:
        return await _look_up(session, effect, said=str(unanswered))
    if answer.ok:
        return PodBound(uid=effect.uid, node=effect.node)
    error = answer.error()
    if error.status == HTTPStatus.CONFLICT or error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return await _look_up(session, effect, said=str(error), retry_after_s=error.retry_after_s)
    if error.status == HTTPStatus.NOT_FOUND:
        return _refused(effect, Refused.GONE, str(error))
    if _passing(error):
        return _refused(effect, Refused.UNAVAILABLE, str(error), retry_after_s=error.retry_after_s)
    return _refused(effect, Refused.FORBIDDEN, str(error))


async def _look_up(
    session: ApiSession, effect: BindPod, *, said: str, retry_after_s: float = 0.0
) -> PodBound | BindRefused:
    """What became of a binding whose answer does not tell."""
    unknown = _refused(effect, Refused.UNAVAILABLE, said, retry_after_s=retry_after_s)
    try:
        answer = await session.request("GET", _pod_path(effect.namespace, effect.name), timeout_s=_BIND_TIMEOUT_S)
        if answer.status == HTTPStatus.NOT_FOUND:
            return _refused(effect, Refused.GONE, "the pod no longer exists")
        pod = decode_pod(answer.checked().body)
    except (KubeError, msgspec.DecodeError):
        return unknown
    node = pod.spec.node_name if pod.spec is not None else None
    if pod.metadata.uid != effect.uid:
        return _refused(effect, Refused.GONE, "another pod has its name now")
    if node == effect.node:
        return PodBound(uid=effect.uid, node=effect.node)
    if node:
        return _refused(effect, Refused.CONFLICT, f"the pod is bound to node {printable(node)} already")
    if pod.metadata.deletion_timestamp is not None:
        return _refused(effect, Refused.GONE, "the pod is terminating")
    if pod.spec is not None and pod.spec.scheduling_gates:
        return _refused(effect, Refused.CONFLICT, "the pod has scheduling gates")
    return unknown


async def patch_status(session: ApiSession, effect: PatchStatus) -> Answer:
    """Write the PodGroup's whole status, on condition of the resourceVersion if the effect names one.

    `GONE` also if the PodGroup that took the write is another one of the same name: in a merge patch of a custom
    resource's status the server passes over a UID (tried on 1.36), so that only its answer shows this.
    """
    body = status_to_object(effect.status)
    if effect.resource_version:
        body["metadata"] = {"resourceVersion": effect.resource_version}
    path = f"/apis/{API_VERSION}/namespaces/{_quoted(effect.key.namespace)}/{PLURAL}/{_quoted(effect.key.name)}/status"
    sent = await _send(session, "PATCH", path, body, content_type=MERGE_PATCH)
    if isinstance(sent, Response):
        try:
            meta = _VERSIONED.decode(sent.body).metadata
        except msgspec.DecodeError as error:
            return Answer(Outcome.UNAVAILABLE, message=f"the answer cannot be read: {error}")
        if meta.uid != effect.uid:
            return Answer(Outcome.GONE, message="another PodGroup has its name now")
        return Answer(Outcome.WRITTEN, resource_version=meta.resource_version or "")
    if isinstance(sent, ApiError) and sent.status == HTTPStatus.CONFLICT and effect.resource_version:
        return Answer(Outcome.STALE, message=str(sent))
    return _failed(sent)


async def patch_condition(session: ApiSession, effect: PatchPodCondition) -> Answer:
    """Set `PodScheduled=False` with the effect's reason and message on the pod if it still has the effect's UID."""
    condition = {"type": "PodScheduled", "status": "False", "reason": effect.reason, "message": effect.message}
    if effect.since:
        condition["lastTransitionTime"] = format_time(effect.since, to_the_second=True)
    body = {"metadata": {"uid": effect.uid}, "status": {"conditions": [condition]}}
    path = f"{_pod_path(effect.namespace, effect.name)}/status"
    sent = await _send(session, "PATCH", path, body, content_type=STRATEGIC_MERGE_PATCH)
    if isinstance(sent, Response):
        return Answer(Outcome.WRITTEN)
    if isinstance(sent, ApiError) and sent.status == HTTPStatus.UNPROCESSABLE_ENTITY and "metadata.uid" in sent.message:
        return Answer(Outcome.GONE, message="another pod has its name now")
    return _failed(sent)


async def emit_event(session: ApiSession, effect: EmitEvent, *, now: float, reporting_instance: str) -> Answer:
    """Create the Event."""
    body = event_object(effect, now=now, reporting_instance=reporting_instance)
    path = f"/apis/events.k8s.io/v1/namespaces/{_quoted(effect.namespace)}/events"
    sent = await _send(session, "POST", path, body)
    return Answer(Outcome.WRITTEN) if isinstance(sent, Response) else _failed(sent)


async def _send(
    session: ApiSession, method: str, path: str, body: Mapping[str, object], *, content_type: str = JSON
) -> Response | KubeError:
    try:
        answer = await session.request(
            method, path, body=msgspec.json.encode(body), content_type=content_type, timeout_s=_TIMEOUT_S
        )
    except KubeError as error:
        return error
    return answer if answer.ok else answer.error()


def _failed(error: KubeError) -> Answer:
    if not isinstance(error, ApiError):
        return Answer(Outcome.UNAVAILABLE, message=str(error))
    if error.status == HTTPStatus.NOT_FOUND:
        return Answer(Outcome.GONE, message=str(error))
    if _passing(error) or error.status == HTTPStatus.CONFLICT:
        return Answer(Outcome.UNAVAILABLE, retry_after_s=error.retry_after_s, message=str(error))
    return Answer(Outcome.REFUSED, message=str(error))


def _passing(error: ApiError) -> bool:
    """Whether the same request may succeed later. Credentials that expired are renewed or end the process."""
    return (
        error.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
        or error.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    )


def _refused(effect: BindPod, why: Refused, message: str, *, retry_after_s: float = 0.0) -> BindRefused:
    return BindRefused(uid=effect.uid, node=effect.node, why=why, message=message, retry_after_s=retry_after_s)


def _pod_path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{_quoted(namespace)}/pods/{_quoted(name)}"


def _quoted(part: str) -> str:
    return quote(part, safe="")
