"""The writes that the machine asks for: one call each, and the answer sorted by what is to be done about it.

None of them raises for anything that the server or the network does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import NamedTuple

import msgspec

from gangsched.api.conversion import group_from_object, made_group
from gangsched.api.crd import PLURAL
from gangsched.api.status import status_to_object
from gangsched.api.times import format_time
from gangsched.core.objects.effects import (
    BindPod,
    DropDemand,
    EmitEvent,
    EvictPod,
    LookUpOwner,
    MakeGroup,
    PatchPodCondition,
    PatchStatus,
    PutDemand,
)
from gangsched.core.objects.events import GroupSeen
from gangsched.core.objects.results import BindRefused, EvictionRefused, GroupNotMade, OwnerSeen, PodBound, PodEvicted
from gangsched.kube.binding import bind
from gangsched.kube.demands import demand_to_object, demands_path
from gangsched.kube.errors import UNREADABLE, ApiError, KubeError
from gangsched.kube.evictions import evict
from gangsched.kube.objects import pod_path, quoted, write
from gangsched.kube.owners import Unanswered, look_up_owner
from gangsched.kube.recorder import event_object, namespace_of, shortened
from gangsched.kube.resources import API_VERSION
from gangsched.kube.session import JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, ApiSession, Response
from gangsched.kube.wire import Versioned

_VERSIONED = msgspec.json.Decoder(Versioned)
_OBJECT = msgspec.json.Decoder(dict[str, object])
_MESSAGE_BYTES = 4096
"""Room for any sentence of ours; one that quotes somebody else's text must not burden every member of a group."""
_TEST_FAILED = "the server rejected our request due to an error in our request"
"""How an API server words that a test in a JSON patch failed; a status that it refuses is "invalid" or "forbidden"."""


class Outcome(StrEnum):
    """How the API server answered a status patch, pod condition, Event or Demand object."""

    WRITTEN = "Written"
    """It stands."""
    STALE = "Stale"
    """It was conditional on what is no longer so: a resourceVersion, or that the name is free."""
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

    async def evict(self, effect: EvictPod) -> PodEvicted | EvictionRefused:
        """See `evict`."""
        return await evict(self.session, effect)

    async def look_up_owner(self, effect: LookUpOwner) -> OwnerSeen | Unanswered:
        """See `look_up_owner`."""
        return await look_up_owner(self.session, effect)

    async def make_group(self, effect: MakeGroup) -> GroupSeen | GroupNotMade | None:
        """See `make_group`."""
        return await make_group(self.session, effect)

    async def patch_status(self, effect: PatchStatus) -> Answer:
        """See `patch_status`."""
        return await patch_status(self.session, effect)

    async def patch_condition(self, effect: PatchPodCondition) -> Answer:
        """See `patch_condition`."""
        return await patch_condition(self.session, effect)

    async def emit(self, effect: EmitEvent) -> Answer:
        """See `emit_event`."""
        return await emit_event(self.session, effect, now=self.now(), reporting_instance=self.instance)

    async def put_demand(self, effect: PutDemand) -> Answer:
        """See `put_demand`."""
        return await put_demand(self.session, effect)

    async def drop_demand(self, effect: DropDemand) -> Answer:
        """See `drop_demand`."""
        return await drop_demand(self.session, effect)


async def make_group(session: ApiSession, effect: MakeGroup) -> GroupSeen | GroupNotMade | None:
    """Create the PodGroup; None if one of its name is there already, which a watch will show."""
    key = effect.key
    body = made_group(key, effect.spec, owner=effect.owner, owner_uid=effect.owner_uid)
    path = f"/apis/{API_VERSION}/namespaces/{quoted(key.namespace)}/{PLURAL}"
    sent = await _send(session, "POST", path, body)
    if isinstance(sent, ApiError) and sent.status == HTTPStatus.CONFLICT:
        return None
    if not isinstance(sent, Response):
        return GroupNotMade(key, f"the PodGroup {key.name}, in which its places must stand, was not created: {sent}")
    try:
        return GroupSeen(group_from_object(_OBJECT.decode(sent.body)))
    except UNREADABLE:
        return None


async def patch_status(session: ApiSession, effect: PatchStatus) -> Answer:
    """Write the PodGroup's whole status, on condition of its UID, and of the resourceVersion if the effect names one.

    It is a JSON patch, because the server passes over a UID in a merge patch of a custom resource's status (tried on
    1.36): its test of the UID and its writing are one. `GONE` also if another PodGroup has the name.
    """
    tests: list[Mapping[str, object]] = [{"op": "test", "path": "/metadata/uid", "value": effect.uid}]
    if effect.resource_version:
        # Not a test, whose failure looks like that of the UID's.
        tests.append({"op": "replace", "path": "/metadata/resourceVersion", "value": effect.resource_version})
    patch = [*tests, {"op": "add", "path": "/status", "value": status_to_object(effect.status)["status"]}]
    path = f"/apis/{API_VERSION}/namespaces/{quoted(effect.key.namespace)}/{PLURAL}/{quoted(effect.key.name)}/status"
    sent = await _send(session, "PATCH", path, patch, content_type=JSON_PATCH)
    if isinstance(sent, Response):
        try:
            version = _VERSIONED.decode(sent.body).metadata.resource_version
        except UNREADABLE as error:
            return Answer(Outcome.UNAVAILABLE, message=f"the answer cannot be read: {error}")
        return Answer(Outcome.WRITTEN, resource_version=version or "")
    if isinstance(sent, ApiError) and sent.status == HTTPStatus.CONFLICT and effect.resource_version:
        return Answer(Outcome.STALE, message=str(sent))
    if isinstance(sent, ApiError) and sent.status == HTTPStatus.UNPROCESSABLE_ENTITY and sent.message == _TEST_FAILED:
        return Answer(Outcome.GONE, message="another PodGroup has its name now")
    return _failed(sent)


async def patch_condition(session: ApiSession, effect: PatchPodCondition) -> Answer:
    """Set `PodScheduled=False` with the effect's reason and message on the pod if it still has the effect's UID."""
    message = shortened(effect.message, limit_bytes=_MESSAGE_BYTES)
    condition = {"type": "PodScheduled", "status": "False", "reason": effect.reason, "message": message}
    if effect.since:
        condition["lastTransitionTime"] = format_time(effect.since, to_the_second=True)
    body = {"metadata": {"uid": effect.uid}, "status": {"conditions": [condition]}}
    path = f"{pod_path(effect.namespace, effect.name)}/status"
    sent = await _send(session, "PATCH", path, body, content_type=STRATEGIC_MERGE_PATCH)
    if isinstance(sent, Response):
        return Answer(Outcome.WRITTEN)
    if isinstance(sent, ApiError) and sent.status == HTTPStatus.UNPROCESSABLE_ENTITY and "metadata.uid" in sent.message:
        return Answer(Outcome.GONE, message="another pod has its name now")
    return _failed(sent)


async def emit_event(session: ApiSession, effect: EmitEvent, *, now: float, reporting_instance: str) -> Answer:
    """Create the Event."""
    body = event_object(effect, now=now, reporting_instance=reporting_instance)
    path = f"/apis/events.k8s.io/v1/namespaces/{quoted(namespace_of(effect))}/events"
    sent = await _send(session, "POST", path, body)
    return Answer(Outcome.WRITTEN) if isinstance(sent, Response) else _failed(sent)


async def put_demand(session: ApiSession, effect: PutDemand) -> Answer:
    """Create the Demand object, or change the one that has the effect's UID; `STALE` if its name is taken already."""
    body = demand_to_object(effect.demand)
    path = demands_path(effect.key.namespace)
    if not effect.uid:
        sent = await _send(session, "POST", path, body)
        if isinstance(sent, ApiError) and sent.status == HTTPStatus.CONFLICT:
            return Answer(Outcome.STALE, message=str(sent))
        return Answer(Outcome.WRITTEN) if isinstance(sent, Response) else _failed(sent)
    body["metadata"]["uid"] = effect.uid
    # In a merge patch a null takes away a zone that was said before.
    body["spec"].setdefault("zone", None)
    sent = await _send(session, "PATCH", f"{path}/{quoted(effect.key.name)}", body, content_type=MERGE_PATCH)
    if isinstance(sent, Response):
        return Answer(Outcome.WRITTEN)
    if isinstance(sent, ApiError) and sent.status == HTTPStatus.UNPROCESSABLE_ENTITY and "metadata.uid" in sent.message:
        return Answer(Outcome.GONE, message="another Demand has its name now")
    return _failed(sent)


async def drop_demand(session: ApiSession, effect: DropDemand) -> Answer:
    """Delete the Demand object if it still has the effect's UID."""
    path = f"{demands_path(effect.key.namespace)}/{quoted(effect.key.name)}"
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": effect.uid}}
    sent = await _send(session, "DELETE", path, options)
    if isinstance(sent, Response):
        return Answer(Outcome.WRITTEN)
    if isinstance(sent, ApiError) and sent.status == HTTPStatus.CONFLICT:
        return Answer(Outcome.GONE, message="another Demand has its name now")
    return _failed(sent)


async def _send(
    session: ApiSession,
    method: str,
    path: str,
    body: Mapping[str, object] | Sequence[Mapping[str, object]],
    *,
    content_type: str = JSON,
) -> Response | KubeError:
    try:
        answer = await write(session, method, path, body, content_type=content_type)
    except KubeError as error:
        return error
    return answer if answer.ok else answer.error()


def _failed(error: KubeError) -> Answer:
    if not isinstance(error, ApiError):
        return Answer(Outcome.UNAVAILABLE, message=str(error))
    if error.status == HTTPStatus.NOT_FOUND:
        return Answer(Outcome.GONE, message=str(error))
    if error.passing or error.status == HTTPStatus.CONFLICT:
        return Answer(Outcome.UNAVAILABLE, retry_after_s=error.retry_after_s, message=str(error))
    return Answer(Outcome.REFUSED, message=str(error))
