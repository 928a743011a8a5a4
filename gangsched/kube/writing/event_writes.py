"""Creates objects of events.k8s.io/v1, within the limits of its validation."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from gangsched.api.podgroup_names import API_VERSION
from gangsched.api.times import format_time
from gangsched.core.objects.effects import EmitEvent
from gangsched.kube.client.paths import quoted
from gangsched.kube.client.session import ApiSession
from gangsched.kube.writing.sending import answered, send
from gangsched.kube.writing.texts import shortened
from gangsched.kube.writing.write_results import WriteResult

CONTROLLER = "gangsched.io/scheduler"
_NOTE_BYTES = 1024
_INSTANCE_LENGTH = 128
_NAME_LENGTH = 253


def event_object(effect: EmitEvent, *, now: float, reporting_instance: str) -> dict[str, Any]:
    """The Event about the object that the effect names, with a unique name.

    The Event of an object without a namespace is in the namespace `default`, as Kubernetes requires.
    """
    unique = f".{secrets.token_hex(8)}"
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {
            "name": effect.name[: _NAME_LENGTH - len(unique)].rstrip("-.") + unique,
            "namespace": namespace_of(effect),
        },
        "eventTime": format_time(now),
        "reportingController": CONTROLLER,
        "reportingInstance": reporting_instance[:_INSTANCE_LENGTH],
        "type": effect.type,
        "reason": effect.reason,
        "action": effect.action,
        "regarding": {
            "apiVersion": API_VERSION if effect.kind == "PodGroup" else "v1",
            "kind": effect.kind,
            **({"namespace": effect.namespace} if effect.namespace else {}),
            "name": effect.name,
            "uid": effect.uid,
        },
        "note": shortened(effect.note, limit_bytes=_NOTE_BYTES),
    }


def namespace_of(effect: EmitEvent) -> str:
    """The namespace of the Event itself."""
    return effect.namespace or "default"


async def emit_event(
    session: ApiSession, effect: EmitEvent, *, now: Callable[[], float], reporting_instance: str
) -> WriteResult:
    """Create the Event."""
    body = event_object(effect, now=now(), reporting_instance=reporting_instance)
    path = f"/apis/events.k8s.io/v1/namespaces/{quoted(namespace_of(effect))}/events"
    return answered(await send(session, "POST", path, body))
