"""Binds one pod to its node and classifies the answer by the reaction that it needs."""

from __future__ import annotations

from http import HTTPStatus

from gangsched.core.objects.effects import BindPod
from gangsched.core.objects.results import BindRefused, PodBound, Refused
from gangsched.core.objects.wording import printable
from gangsched.kube.client.errors import KubeError
from gangsched.kube.client.paths import pod_path
from gangsched.kube.client.session import ApiSession
from gangsched.kube.writing.sending import read_pod, write
from gangsched.kube.writing.write_results import Outcome, WriteResult, refused


async def bind(session: ApiSession, effect: BindPod) -> WriteResult:
    """Bind the pod with this UID to the node. Never raises for a failure of the server or the network.

    If the answer does not say whether the pod is bound (409, a server error, or no answer), the pod is read. It is
    `PodBound` if it is bound to this node. `UNAVAILABLE` means that the pod was not bound when last read, or could not
    be read. An unanswered binding may still take effect for some seconds.
    """
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": effect.name, "namespace": effect.namespace, "uid": effect.uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": effect.node},
    }
    path = f"{pod_path(effect.namespace, effect.name)}/binding"
    try:
        response = await write(session, "POST", path, body)
    except KubeError as unanswered:
        return await _look_up(session, effect, message=str(unanswered))
    if response.ok:
        return _answer(PodBound(uid=effect.uid, node=effect.node))
    error = response.error()
    if error.status == HTTPStatus.CONFLICT or error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return await _look_up(session, effect, message=str(error), retry_after_s=error.retry_after_s)
    if error.status == HTTPStatus.NOT_FOUND:
        return _answer(_refused(effect, Refused.GONE, str(error)))
    if error.passing:
        return _answer(_refused(effect, Refused.UNAVAILABLE, str(error), retry_after_s=error.retry_after_s))
    ending = error.status == HTTPStatus.FORBIDDEN and "NamespaceTerminating" in error.causes
    return _answer(_refused(effect, Refused.DENIED if ending else Refused.FORBIDDEN, str(error)))


async def _look_up(session: ApiSession, effect: BindPod, *, message: str, retry_after_s: float = 0.0) -> WriteResult:
    """The outcome of a binding whose answer leaves it open."""
    try:
        result = await outcome(session, effect)
    except KubeError:
        result = None
    return _answer(result or _refused(effect, Refused.UNAVAILABLE, message, retry_after_s=retry_after_s))


def _answer(event: PodBound | BindRefused) -> WriteResult:
    return WriteResult(Outcome.BOUND, event) if isinstance(event, PodBound) else refused(event)


async def outcome(session: ApiSession, effect: BindPod) -> PodBound | BindRefused | None:
    """The outcome of a binding that was sent, according to the pod; None if the pod still waits.

    Raises:
        ApiError, ApiUnreachable, Garbled: the pod cannot be read.
    """
    pod = await read_pod(session, effect.namespace, effect.name)
    if pod is None:
        return _refused(effect, Refused.GONE, "the pod no longer exists")
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
    return None


def _refused(effect: BindPod, why: Refused, message: str, *, retry_after_s: float = 0.0) -> BindRefused:
    return BindRefused(uid=effect.uid, node=effect.node, why=why, message=message, retry_after_s=retry_after_s)
