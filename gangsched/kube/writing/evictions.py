"""Evicts one pod through the Eviction API and classifies the answer by the reaction that it needs."""

from __future__ import annotations

from http import HTTPStatus

import msgspec
from msgspec import Struct

from gangsched.core.objects.effects import EvictPod
from gangsched.core.objects.results import EvictionRefused, PodEvicted, Spared
from gangsched.core.objects.wording import printable
from gangsched.kube.client.errors import UNREADABLE, ApiError, KubeError
from gangsched.kube.client.paths import pod_path
from gangsched.kube.client.session import ApiSession, Response
from gangsched.kube.writing.sending import read_pod, write
from gangsched.kube.writing.write_results import Outcome, WriteResult, refused

_BUDGET_CAUSE = "DisruptionBudget"
# The server reports this only in the message of a permanent 500.
_SEVERAL_BUDGETS = "more than one PodDisruptionBudget"


class _Cause(Struct, gc=False):
    reason: str | None = None
    message: str | None = None


class _Details(Struct, gc=False):
    causes: list[_Cause] | None = None


class _EvictionStatus(Struct, gc=False):
    details: _Details | None = None


_STATUS = msgspec.json.Decoder(_EvictionStatus)


async def evict(session: ApiSession, effect: EvictPod) -> WriteResult:
    """Evict the pod with this UID. Never raises for a failure of the server or the network.

    If the answer leaves the outcome open, the pod is read: a failure may have happened after the deletion, and the
    server checks PodDisruptionBudgets before it compares UIDs (seen on 1.36). The result is `PodEvicted` if the pod is
    gone or terminating, or if another pod has its name.
    """
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": effect.name, "namespace": effect.namespace},
        "deleteOptions": {"preconditions": {"uid": effect.uid}},
    }
    path = f"{pod_path(effect.namespace, effect.name)}/eviction"
    try:
        response = await write(session, "POST", path, body)
    except KubeError as unanswered:
        return await _unless_gone(session, effect, _refused(effect, Spared.UNAVAILABLE, str(unanswered)))
    if response.ok or response.status == HTTPStatus.NOT_FOUND:
        return _evicted(effect)
    error = response.error()
    refusal = _sorted(effect, response, error)
    server_failed = error.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    if server_failed or error.status == HTTPStatus.CONFLICT or refusal.why is Spared.BUDGET:
        return await _unless_gone(session, effect, refusal)
    return refused(refusal)


def _sorted(effect: EvictPod, response: Response, error: ApiError) -> EvictionRefused:
    if error.status == HTTPStatus.TOO_MANY_REQUESTS:
        # Throttling has the same status; only the causes distinguish a budget from it.
        budgets = _budgets(response.body)
        if budgets:
            return _refused(effect, Spared.BUDGET, budgets, retry_after_s=error.retry_after_s)
    lasting = error.status == HTTPStatus.INTERNAL_SERVER_ERROR and _SEVERAL_BUDGETS in error.message
    # Without the right it is better to complete the group; the eviction is retried nevertheless.
    lasting = lasting or error.denied
    if not lasting and (error.passing or error.status == HTTPStatus.CONFLICT):
        return _refused(effect, Spared.UNAVAILABLE, str(error), retry_after_s=error.retry_after_s)
    return _refused(effect, Spared.FORBIDDEN, str(error))


def _budgets(body: bytes) -> str:
    """The server's message about the PodDisruptionBudgets that forbid the eviction; empty if none does."""
    try:
        details = _STATUS.decode(body).details
    except UNREADABLE:
        return ""
    causes = (details.causes if details is not None else None) or ()
    messages = [
        cause.message or "a PodDisruptionBudget forbids it" for cause in causes if cause.reason == _BUDGET_CAUSE
    ]
    return printable("; ".join(messages))


async def _unless_gone(session: ApiSession, effect: EvictPod, refusal: EvictionRefused) -> WriteResult:
    try:
        pod = await read_pod(session, effect.namespace, effect.name)
    except KubeError:
        return refused(refusal)
    if pod is None or pod.metadata.uid != effect.uid or pod.metadata.deletion_timestamp is not None:
        return _evicted(effect)
    return refused(refusal)


def _evicted(effect: EvictPod) -> WriteResult:
    return WriteResult(Outcome.EVICTED, PodEvicted(uid=effect.uid))


def _refused(effect: EvictPod, why: Spared, message: str, *, retry_after_s: float = 0.0) -> EvictionRefused:
    return EvictionRefused(uid=effect.uid, why=why, message=message, retry_after_s=retry_after_s)
