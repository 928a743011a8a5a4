"""Writes the phase in the status of Volcano's PodGroups, unless another writer owns it.

Controllers that were made for Volcano create no pods before its scheduler has written the phase Inqueue.

Ownership
    A write is a server-side apply of this one field, with a field manager of our own and without force. The API server
    refuses it if another writer has set the phase, no matter when, so a stale read of ours does no harm. The object's
    managedFields show the owner beforehand.

Where it is written
    To the subresource status if there is one. The CRD of Volcano 1.10 and before has none, so the same field is then
    applied to the object itself. The patch contains the object's UID, so that it never creates an object.

Nothing is written while Volcano's scheduler runs, because it writes phases itself. It counts as running while its Lease
is held.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus

from gangsched.config.dialects import DIALECTS
from gangsched.core.objects.effects import PutPhase
from gangsched.kube.client.errors import ApiError, KubeError
from gangsched.kube.client.lease import Lease, LeaseClient
from gangsched.kube.client.paths import quoted
from gangsched.kube.client.session import APPLY_PATCH, ApiSession, Response
from gangsched.kube.dialects.volcano import MANAGER
from gangsched.kube.writing.sending import TIMEOUT_S, answered, send
from gangsched.kube.writing.write_results import Outcome, WriteResult, failed

SKEW_S = 60.0
"""Seconds after the Lease's expiry during which its holder still counts as running: its clock may be slower than
ours."""
LOOK_S = 2.0
"""Seconds for which a read of the Lease is used again. The ownership of the field is checked at each write."""

[_KIND] = DIALECTS["volcano"].resources
[_VERSION] = _KIND.versions


class Rival:
    """Volcano's scheduler, as its Lease shows it. `now` returns the time in epoch seconds."""

    def __init__(
        self, lease: LeaseClient, now: Callable[[], float], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._lease = lease
        self._now = now
        self._monotonic = monotonic
        self._looked_at = float("-inf")
        self._refusal = ""

    async def why_not(self) -> str:
        """Why no phase may be written, in a sentence for a person; empty if the Lease is free.

        Raises:
            KubeError: the Lease could not be read; it may be held.
        """
        began = self._monotonic()
        if began - self._looked_at >= LOOK_S:
            self._refusal = self._sentence(await self._lease.get(timeout_s=TIMEOUT_S))
            self._looked_at = began
        return self._refusal

    def _sentence(self, lease: Lease | None) -> str:
        if lease is None or not lease.spec.holder_identity or self._has_expired(lease):
            return ""
        return (
            f"Volcano's scheduler leads (its Lease {self._lease} is held by {lease.spec.holder_identity}) and writes "
            "the phases of its PodGroups itself: empty volcano.writePhase, or stop that scheduler."
        )

    def _has_expired(self, lease: Lease) -> bool:
        renewed, duration_s = lease.spec.renew_time, lease.spec.lease_duration_seconds
        try:
            renewed_at = datetime.fromisoformat(renewed or "").timestamp()
        except ValueError:
            return False
        return self._now() > renewed_at + (duration_s or 0) + SKEW_S


async def put_phase(session: ApiSession, effect: PutPhase, *, rival: Rival) -> WriteResult:
    """Write the phase.

    `STALE` if another writer owns it, `GONE` if the PodGroup no longer exists, `REFUSED` while the rival is active.
    """
    try:
        why_not = await rival.why_not()
    except KubeError as error:
        return failed(error)
    if why_not:
        return WriteResult(Outcome.REFUSED, message=why_not)
    key = effect.key
    path = f"/apis/{_KIND.group}/{_VERSION}/namespaces/{quoted(key.namespace)}/{_KIND.plural}/{quoted(key.name)}"
    answer = await _apply(session, f"{path}/status", effect)
    if isinstance(answer, ApiError) and answer.status == HTTPStatus.NOT_FOUND:
        answer = await _apply(session, path, effect)
    return answered(answer, conflict=Outcome.STALE)


async def _apply(session: ApiSession, path: str, effect: PutPhase) -> Response | KubeError:
    """Apply the phase to the object of this path."""
    body = {
        "apiVersion": f"{_KIND.group}/{_VERSION}",
        "kind": "PodGroup",
        "metadata": {"name": effect.key.name, "namespace": effect.key.namespace, "uid": effect.uid},
        "status": {"phase": effect.phase.value},
    }
    return await send(session, "PATCH", path, body, content_type=APPLY_PATCH, manager=MANAGER)
