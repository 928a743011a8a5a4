"""Writes the condition PodScheduled of pods that wait, and the node that others leave for them."""

from __future__ import annotations

from gangsched.api.times import format_time
from gangsched.core.objects.effects import PatchPodCondition
from gangsched.kube.client.paths import pod_path
from gangsched.kube.client.session import STRATEGIC_MERGE_PATCH, ApiSession
from gangsched.kube.writing.sending import answered, send
from gangsched.kube.writing.texts import shortened
from gangsched.kube.writing.write_results import WriteResult

_MESSAGE_BYTES = 4096
"""Longest message of a condition. Our own sentences fit; quoted foreign text must not grow every member of a group."""


async def patch_condition(session: ApiSession, effect: PatchPodCondition) -> WriteResult:
    """Set `PodScheduled=False` with the effect's reason and message on the pod if its UID still matches."""
    message = shortened(effect.message, limit_bytes=_MESSAGE_BYTES)
    condition = {"type": "PodScheduled", "status": "False", "reason": effect.reason, "message": message}
    if effect.since:
        condition["lastTransitionTime"] = format_time(effect.since, to_the_second=True)
    status: dict[str, object] = {"conditions": [condition]}
    if effect.nominated is not None:
        status["nominatedNodeName"] = effect.nominated or None
    body = {"metadata": {"uid": effect.uid}, "status": status}
    path = f"{pod_path(effect.namespace, effect.name)}/status"
    return answered(await send(session, "PATCH", path, body, content_type=STRATEGIC_MERGE_PATCH))
