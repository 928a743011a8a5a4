"""Writes and undoes pre-bindings, which must hold before a member is bound. Both return a classified `WriteResult`.

Each reads the object first and writes on condition that it has not changed since, so that values of other writers are
never overwritten. Neither raises for a failure of the server or the network.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any

import msgspec

from gangsched.core.objects.devices import Making
from gangsched.core.objects.effects import Prebind, UndoPrebinding
from gangsched.core.objects.prebindings import ClaimVolume, Prebinding, SelectNode, UseDevices
from gangsched.core.objects.results import PrebindRefused
from gangsched.kube.client.errors import UNREADABLE, ApiError, Garbled, KubeError
from gangsched.kube.client.paths import pod_path, quoted
from gangsched.kube.client.session import JSON, MERGE_PATCH, ApiSession
from gangsched.kube.reading.storage_values import MARK, SELECTED_NODE
from gangsched.kube.writing import claiming, extended_claims
from gangsched.kube.writing.sending import TIMEOUT_S, deletion, write
from gangsched.kube.writing.write_results import Outcome, WriteResult

_MOST_READS = 8
_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
Json = dict[str, Any]
Change = Callable[[Json], Json | None]
"""Returns the merge patch for an object: empty if the object is already as it should be, None if it must not be changed
because it is not, or no longer, as expected."""


async def prebind(session: ApiSession, effect: Prebind) -> WriteResult:
    """Write the pre-binding. `STALE` if something else is written there, which the watch will show."""
    what = effect.what
    if isinstance(what, SelectNode):
        done = await _change(session, what, partial(_selecting, what=what, pod_uid=effect.uid))
    elif isinstance(what, ClaimVolume):
        done = await _change(session, what, partial(_claiming, what=what))
    elif isinstance(what, UseDevices):
        done = await _using(session, what)
    else:
        raise TypeError(f"{type(what).__name__} cannot be written")
    if done.done:
        return done
    said = done.message or f"{about(what)} is no longer as expected"
    return done._replace(event=PrebindRefused(effect.uid, what, said, done.retry_after_s), message=said)


async def undo_prebinding(session: ApiSession, effect: UndoPrebinding) -> WriteResult:
    """Undo the pre-binding. `STALE` if it has been completed or is not ours."""
    what = effect.what
    if isinstance(what, SelectNode):
        return await _change(session, what, partial(_unselecting, what=what))
    if isinstance(what, ClaimVolume):
        return await _change(session, what, partial(_unclaiming, what=what))
    if isinstance(what, UseDevices):
        if what.making is not None:
            return await _unmaking(session, what)
        done = await _change(session, what, partial(claiming.leaving, what=what), "/status")
        if done.done:
            done = await _change(session, what, partial(claiming.unmarking, what=what))
        return done
    raise TypeError(f"{type(what).__name__} cannot be undone")


def about(what: Prebinding) -> str:
    """The object, for the log."""
    kind, namespace, name = what.takes[0]
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


async def _using(session: ApiSession, what: UseDevices) -> WriteResult:
    """Give the claim its devices: mark it, then write its status.

    With `making`, create the claim first, and name it in its pod's status before its own status is written.
    """
    if what.making is not None:
        uid, done = await _making(session, what, what.making)
        if not done.done:
            return done
        what = msgspec.structs.replace(what, uid=uid)
    done = await _change(session, what, partial(claiming.marking, what=what))
    if done.done and what.making is not None:
        body = extended_claims.naming(what, what.making)
        done = await _send(session, "PATCH", _pod_status_path(what), body)
    if done.done:
        done = await _change(session, what, partial(claiming.using, what=what), "/status")
    return done


async def _making(session: ApiSession, what: UseDevices, making: Making) -> tuple[str, WriteResult]:
    """The UID of the pod's claim, which is created if it does not exist, and the result."""
    uid = ""

    def look(found: Json) -> Json | None:
        nonlocal uid
        uid = extended_claims.made(found, what)
        return {} if uid else None

    done = await _change(session, what, look)
    if done.result is Outcome.GONE:
        path, body = claiming.claims_path(what), extended_claims.claim(what, making)
        done = await _send(session, "POST", path, body)
        if done.done:
            done = await _change(session, what, look)
    return uid, done


async def _unmaking(session: ApiSession, what: UseDevices) -> WriteResult:
    """Remove the claim from its pod's status, delete it, and remove its devices and its finalizer."""
    unnamed = await _send(session, "PATCH", _pod_status_path(what), extended_claims.unnaming(what))
    if not unnamed.done and unnamed.result is not Outcome.GONE:
        return unnamed
    gone = await _send(session, "DELETE", _path(what), deletion(what.uid))
    if gone.done:
        await _change(session, what, partial(claiming.leaving, what=what), "/status")
        await _change(session, what, partial(claiming.unmarking, what=what))
    return gone


async def _send(session: ApiSession, method: str, path: str, body: Json) -> WriteResult:
    kind = MERGE_PATCH if method == "PATCH" else JSON
    try:
        (await write(session, method, path, body, content_type=kind)).checked()
    except KubeError as error:
        return _failed(error)
    return WriteResult(Outcome.WRITTEN)


async def _change(session: ApiSession, what: Prebinding, change: Change, subresource: str = "") -> WriteResult:
    """Read the object and patch it. Retry after a conflict, as between members that share a claim."""
    for _ in range(_MOST_READS):
        answer = await _change_once(session, what, change, subresource)
        if answer is not None:
            return answer
    return WriteResult(Outcome.UNAVAILABLE, message=f"other writers keep changing {about(what)}")


async def _change_once(session: ApiSession, what: Prebinding, change: Change, subresource: str) -> WriteResult | None:
    """One attempt of `_change`; None if another writer has changed the object in between."""
    path = _path(what)
    try:
        answer = await session.request("GET", path, timeout_s=TIMEOUT_S)
        if answer.status == HTTPStatus.NOT_FOUND:
            return WriteResult(Outcome.GONE)
        try:
            found = msgspec.json.decode(answer.checked().body, type=Json)
            patch = change(found)
        except (*UNREADABLE, KeyError, TypeError, AttributeError) as error:
            raise Garbled(f"{about(what)} cannot be read: {error}") from error
        if patch is None:
            return WriteResult(Outcome.STALE)
        if not patch:
            return WriteResult(Outcome.WRITTEN)
        meta = {"resourceVersion": found["metadata"]["resourceVersion"], "uid": found["metadata"]["uid"]}
        patch["metadata"] = {**patch.get("metadata", {}), **meta}
        answer = await write(session, "PATCH", path + subresource, patch, content_type=MERGE_PATCH)
        answer.checked()
    except KubeError as error:
        if isinstance(error, ApiError) and error.status == HTTPStatus.CONFLICT:
            return None
        return _failed(error)
    return WriteResult(Outcome.WRITTEN)


def _failed(error: KubeError) -> WriteResult:
    if not isinstance(error, ApiError):
        return WriteResult(Outcome.UNAVAILABLE, message=str(error))
    if error.status == HTTPStatus.NOT_FOUND:
        return WriteResult(Outcome.GONE)
    passing = error.passing or error.status == HTTPStatus.CONFLICT
    return WriteResult(Outcome.UNAVAILABLE if passing else Outcome.REFUSED, None, error.retry_after_s, str(error))


def _path(what: Prebinding) -> str:
    if isinstance(what, ClaimVolume):
        return f"/api/v1/persistentvolumes/{quoted(what.volume)}"
    if isinstance(what, SelectNode):
        return f"/api/v1/namespaces/{quoted(what.namespace)}/persistentvolumeclaims/{quoted(what.claim)}"
    if isinstance(what, UseDevices):
        return claiming.path(what)
    raise TypeError(f"{type(what).__name__} has no object")


def _pod_status_path(what: UseDevices) -> str:
    return f"{pod_path(what.namespace, what.consumer.name)}/status"


def _annotations(found: Json) -> Json:
    annotations: Json = found["metadata"].get("annotations") or {}
    return annotations


def _selecting(found: Json, *, what: SelectNode, pod_uid: str) -> Json | None:
    if found["metadata"]["uid"] != what.uid or found["spec"].get("volumeName"):
        return None
    if _annotations(found).get(SELECTED_NODE):
        return None
    return {"metadata": {"annotations": {SELECTED_NODE: what.node, MARK: pod_uid}}}


def _unselecting(found: Json, *, what: SelectNode) -> Json | None:
    annotations = _annotations(found)
    if found["metadata"]["uid"] != what.uid or found["spec"].get("volumeName") or MARK not in annotations:
        return None
    if annotations.get(SELECTED_NODE, "") != what.node:
        return None
    return {"metadata": {"annotations": {SELECTED_NODE: None, MARK: None}}}


def _claiming(found: Json, *, what: ClaimVolume) -> Json | None:
    reference = found["spec"].get("claimRef")
    ours = (what.namespace, what.claim)
    if (found.get("status") or {}).get("phase") != "Available":
        return None
    if reference and ((reference.get("namespace"), reference.get("name")) != ours or reference.get("uid")):
        return None
    claim = {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": what.namespace,
        "name": what.claim,
        "uid": what.uid,
    }
    return {"metadata": {"annotations": {_BY_CONTROLLER: "yes", MARK: what.uid}}, "spec": {"claimRef": claim}}


def _unclaiming(found: Json, *, what: ClaimVolume) -> Json | None:
    reference, annotations = found["spec"].get("claimRef") or {}, _annotations(found)
    claimed = tuple(reference.get(key) or "" for key in ("namespace", "name", "uid"))
    if MARK not in annotations or claimed != (what.namespace, what.claim, what.uid):
        return None
    if (found.get("status") or {}).get("phase") != "Available":
        return None
    return {"metadata": {"annotations": {_BY_CONTROLLER: None, MARK: None}}, "spec": {"claimRef": None}}
