"""The writes that inform people, programs and autoscalers, and the creation of PodGroups: one function each.

Each returns a classified `WriteResult`. None raises for a failure of the server or the network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus

import msgspec

from gangsched.api.conversion import made_group
from gangsched.api.crd import PLURAL
from gangsched.api.status_conversion import status_to_object
from gangsched.api.times import format_time
from gangsched.core.objects.effects import DropDemand, EmitEvent, MakeGroup, PatchPodCondition, PatchStatus, PutDemand
from gangsched.core.objects.results import GroupNotMade, StatusRefused, StatusWritten
from gangsched.kube.demands import demand_to_object, demands_path
from gangsched.kube.errors import UNREADABLE, ApiError, KubeError
from gangsched.kube.objects import pod_path, quoted, write
from gangsched.kube.recorder import event_object, namespace_of, shortened
from gangsched.kube.resources import API_VERSION
from gangsched.kube.results import Outcome, WriteResult, failed
from gangsched.kube.session import JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, ApiSession, Response
from gangsched.kube.wire import Versioned

_VERSIONED = msgspec.json.Decoder(Versioned)
_MESSAGE_BYTES = 4096
"""Longest message of a condition. Our own sentences fit; quoted foreign text must not grow every member of a group."""
_TEST_FAILED = "the server rejected our request due to an error in our request"
"""An API server's message for a failed test in a JSON patch. A refused status is "invalid" or "forbidden" instead."""


async def make_group(session: ApiSession, effect: MakeGroup) -> WriteResult:
    """Create the PodGroup; `STALE` if one with its name exists.

    In both cases only the watch reports the PodGroup: an answer that arrives after its deletion would revive it.
    """
    key = effect.key
    body = made_group(key, effect.spec, effect.owner, scheduler=effect.scheduler)
    path = f"/apis/{API_VERSION}/namespaces/{quoted(key.namespace)}/{PLURAL}"
    sent = await send(session, "POST", path, body)
    if isinstance(sent, Response):
        return WriteResult(Outcome.WRITTEN)
    if isinstance(sent, ApiError) and sent.status == HTTPStatus.CONFLICT:
        return WriteResult(Outcome.STALE)
    said = f"the PodGroup {key.name}, which must record its reservation, was not created: {sent}"
    return WriteResult(Outcome.REFUSED, GroupNotMade(key, said), message=said)


async def patch_status(session: ApiSession, effect: PatchStatus) -> WriteResult:
    """Write the PodGroup's whole status if its UID matches, and its resourceVersion if the effect names one.

    A JSON patch tests the UID and writes in one step. In a merge patch of a custom resource's status the server ignores
    a UID (tried on 1.36). `GONE` also if another PodGroup has the name.
    """
    tests: list[Mapping[str, object]] = [{"op": "test", "path": "/metadata/uid", "value": effect.uid}]
    if effect.resource_version:
        # Not a test, because its failure would look like that of the UID's test.
        tests.append({"op": "replace", "path": "/metadata/resourceVersion", "value": effect.resource_version})
    patch = [*tests, {"op": "add", "path": "/status", "value": status_to_object(effect.status)["status"]}]
    path = f"/apis/{API_VERSION}/namespaces/{quoted(effect.key.namespace)}/{PLURAL}/{quoted(effect.key.name)}/status"
    sent = await send(session, "PATCH", path, patch, content_type=JSON_PATCH)
    refused = StatusRefused(effect.key, stale=False)
    if isinstance(sent, Response):
        try:
            version = _VERSIONED.decode(sent.body).metadata.resource_version
        except UNREADABLE as error:
            return WriteResult(Outcome.UNAVAILABLE, refused, message=f"the answer cannot be read: {error}")
        reserved = effect.status.reservation is not None
        return WriteResult(Outcome.WRITTEN, StatusWritten(effect.key, version or "", reserved=reserved))
    if isinstance(sent, ApiError) and sent.status == HTTPStatus.CONFLICT and effect.resource_version:
        return WriteResult(Outcome.STALE, StatusRefused(effect.key, stale=True))
    if isinstance(sent, ApiError) and sent.status == HTTPStatus.UNPROCESSABLE_ENTITY and sent.message == _TEST_FAILED:
        return WriteResult(Outcome.GONE, refused)
    return failed(sent, event=refused)


async def patch_condition(session: ApiSession, effect: PatchPodCondition) -> WriteResult:
    """Set `PodScheduled=False` with the effect's reason and message on the pod if its UID still matches."""
    message = shortened(effect.message, limit_bytes=_MESSAGE_BYTES)
    condition = {"type": "PodScheduled", "status": "False", "reason": effect.reason, "message": message}
    if effect.since:
        condition["lastTransitionTime"] = format_time(effect.since, to_the_second=True)
    body = {"metadata": {"uid": effect.uid}, "status": {"conditions": [condition]}}
    path = f"{pod_path(effect.namespace, effect.name)}/status"
    sent = await send(session, "PATCH", path, body, content_type=STRATEGIC_MERGE_PATCH)
    return WriteResult(Outcome.GONE) if has_another_uid(sent) else _answer(sent)


async def emit_event(
    session: ApiSession, effect: EmitEvent, *, now: Callable[[], float], reporting_instance: str
) -> WriteResult:
    """Create the Event."""
    body = event_object(effect, now=now(), reporting_instance=reporting_instance)
    path = f"/apis/events.k8s.io/v1/namespaces/{quoted(namespace_of(effect))}/events"
    sent = await send(session, "POST", path, body)
    return _answer(sent)


async def put_demand(session: ApiSession, effect: PutDemand) -> WriteResult:
    """Create the Demand object, or change the one with the effect's UID; `STALE` if its name is taken."""
    body = demand_to_object(effect.demand)
    path = demands_path(effect.key.namespace)
    if not effect.uid:
        sent = await send(session, "POST", path, body)
        if isinstance(sent, ApiError) and sent.status == HTTPStatus.CONFLICT:
            return WriteResult(Outcome.STALE)
        return _answer(sent)
    body["metadata"]["uid"] = effect.uid
    # In a merge patch a null removes a previous zone.
    body["spec"].setdefault("zone", None)
    sent = await send(session, "PATCH", f"{path}/{quoted(effect.key.name)}", body, content_type=MERGE_PATCH)
    return WriteResult(Outcome.GONE) if has_another_uid(sent) else _answer(sent)


async def drop_demand(session: ApiSession, effect: DropDemand) -> WriteResult:
    """Delete the Demand object if its UID still matches."""
    path = f"{demands_path(effect.key.namespace)}/{quoted(effect.key.name)}"
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": effect.uid}}
    sent = await send(session, "DELETE", path, options)
    if isinstance(sent, ApiError) and sent.status == HTTPStatus.CONFLICT:
        return WriteResult(Outcome.GONE)
    return _answer(sent)


async def send(
    session: ApiSession,
    method: str,
    path: str,
    body: Mapping[str, object] | Sequence[Mapping[str, object]],
    *,
    content_type: str = JSON,
    manager: str = "",
) -> Response | KubeError:
    """Send one write, as `objects.write` does. A failure is returned."""
    try:
        answer = await write(session, method, path, body, content_type=content_type, manager=manager)
    except KubeError as error:
        return error
    return answer if answer.ok else answer.error()


def _answer(sent: Response | KubeError) -> WriteResult:
    return WriteResult(Outcome.WRITTEN) if isinstance(sent, Response) else failed(sent)


def has_another_uid(sent: Response | KubeError) -> bool:
    """Whether another object has the name now."""
    if not isinstance(sent, ApiError) or sent.status != HTTPStatus.UNPROCESSABLE_ENTITY:
        return False
    return "metadata.uid" in sent.message
