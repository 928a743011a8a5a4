"""Writes the condition of Kubernetes' own PodGroups that says whether the group was scheduled.

Like kube-scheduler it sends a strategic merge patch of the subresource `status`, which leaves other conditions alone.
The UID in the patch keeps another PodGroup of the name from getting the condition.

If the right to write is missing, each write would fail, and be repeated by the core, once for each group. So once that
is certain only one write in a while finds out whether it is still missing. A restarted API server, which does not know
its roles yet, denies a right for some seconds: after a write that succeeded, only denials for a minute are certain.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from gangsched.api.times import format_time
from gangsched.config.dialects import DIALECTS
from gangsched.core.objects.declaration import NATIVE
from gangsched.core.objects.effects import PutCondition
from gangsched.kube.client.errors import ApiError
from gangsched.kube.client.paths import quoted
from gangsched.kube.client.session import STRATEGIC_MERGE_PATCH, ApiSession, Response
from gangsched.kube.dialects.native_condition import condition_type
from gangsched.kube.writing.sending import send
from gangsched.kube.writing.write_results import Outcome, WriteResult, failed

DENIED_S = 300.0
"""Seconds in which nothing is sent once the right is certain to be missing."""
PATIENCE_S = 60.0
"""Seconds for which a right that there was may be denied before it counts as missing."""

_KIND = DIALECTS[NATIVE].resources[0]
DENIED = (
    f"gangsched may not patch {_KIND.plural}/status of {_KIND.group}: give its account that right in a ClusterRole, as "
    "the chart does, or set native.writeCondition to false. Groups are scheduled all the same."
)


class Right:
    """Whether the right to write is missing, by the answers to the writes."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._was_granted = False
        self._denied_since: float | None = None
        self._silent_until = float("-inf")

    @property
    def missing(self) -> bool:
        """Whether it was missing only a short while ago."""
        return self._monotonic() < self._silent_until

    def granted(self) -> None:
        """Note that a write was allowed."""
        self._was_granted, self._denied_since = True, None

    def denied(self) -> bool:
        """Note that a write was denied. Returns whether the right is certain to be missing."""
        now = self._monotonic()
        self._denied_since = now if self._denied_since is None else self._denied_since
        if not self._was_granted or now - self._denied_since >= PATIENCE_S:
            self._silent_until = now + DENIED_S
        return self.missing


async def put_condition(session: ApiSession, effect: PutCondition, *, right: Right) -> WriteResult:
    """Set the condition.

    `GONE` if the PodGroup no longer exists or another one has its name, `REFUSED` while the right is missing.
    """
    if right.missing:
        return WriteResult(Outcome.REFUSED, message=DENIED)
    state = effect.condition
    condition: dict[str, object] = {
        "type": condition_type(effect.version),
        "status": str(state.scheduled),
        "reason": state.reason,
        "message": state.message,
        "observedGeneration": state.generation,
    }
    if effect.since:
        condition["lastTransitionTime"] = format_time(effect.since, to_the_second=True)
    key = effect.key
    path = f"/apis/{_KIND.group}/{effect.version}/namespaces/{quoted(key.namespace)}/{_KIND.plural}/{quoted(key.name)}"
    body = {"metadata": {"uid": effect.uid}, "status": {"conditions": [condition]}}
    answer = await send(session, "PATCH", f"{path}/status", body, content_type=STRATEGIC_MERGE_PATCH)
    if isinstance(answer, Response):
        right.granted()
        return WriteResult(Outcome.WRITTEN)
    if isinstance(answer, ApiError) and answer.denied and right.denied():
        return WriteResult(Outcome.REFUSED, message=f"{DENIED} The API server says: {answer}")
    return failed(answer)
