"""Writes and undoes pre-bindings, which must hold before a member is bound. Both return a classified `WriteResult`.

Each reads the object first and writes on condition that it has not changed since, so that values of other writers are
never overwritten. Neither raises for a failure of the server or the network.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from gangsched.core.objects.devices import Making
from gangsched.core.objects.effects import Prebind, UndoPrebinding
from gangsched.core.objects.prebindings import ClaimVolume, Prebinding, SelectNode, UseDevices
from gangsched.core.objects.results import PrebindRefused
from gangsched.kube.client.errors import UNREADABLE, KubeError
from gangsched.kube.client.paths import pod_path, quoted
from gangsched.kube.client.session import JSON, MERGE_PATCH, ApiSession
from gangsched.kube.reading.storage_values import MARK, SELECTED_NODE
from gangsched.kube.writing import claiming
from gangsched.kube.writing.sending import TIMEOUT_S, answered, conflicts, deletion, send
from gangsched.kube.writing.write_results import Outcome, WriteResult, failed

_MOST_READS = 8
_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
Json = dict[str, Any]
Change = Callable[[Json], Json | None]
"""Returns the merge patch for an object: empty if the object is already as it should be, None if it must not be changed
because it is not, or no longer, as expected."""


async def prebind(session: ApiSession, effect: Prebind) -> WriteResult:
    """Write the pre-binding. `STALE` if something else is written there, which the watch will show."""
    prebinding = effect.prebinding
    if isinstance(prebinding, SelectNode):
        write = await _change(session, prebinding, partial(_selecting, prebinding=prebinding, pod_uid=effect.uid))
    elif isinstance(prebinding, ClaimVolume):
        write = await _change(session, prebinding, partial(_claiming, prebinding=prebinding))
    elif isinstance(prebinding, UseDevices):
        write = await _using(session, prebinding)
    else:
        raise TypeError(f"{type(prebinding).__name__} cannot be written")
    if write.done:
        return write
    message = write.message or f"{about(prebinding)} is no longer as expected"
    return write._replace(event=PrebindRefused(effect.uid, prebinding, message, write.retry_after_s), message=message)


async def undo_prebinding(session: ApiSession, effect: UndoPrebinding) -> WriteResult:
    """Undo the pre-binding. `STALE` if it has been completed or is not ours."""
    prebinding = effect.prebinding
    if isinstance(prebinding, SelectNode):
        return await _change(session, prebinding, partial(_unselecting, prebinding=prebinding))
    if isinstance(prebinding, ClaimVolume):
        return await _change(session, prebinding, partial(_unclaiming, prebinding=prebinding))
    if isinstance(prebinding, UseDevices):
        if prebinding.making is not None:
            return await _unmaking(session, prebinding)
        write = await _change(session, prebinding, partial(claiming.leaving, use=prebinding), "/status")
        if write.done:
            write = await _change(session, prebinding, partial(claiming.unmarking, use=prebinding))
        return write
    raise TypeError(f"{type(prebinding).__name__} cannot be undone")


def about(prebinding: Prebinding) -> str:
    """The object, for the log."""
    kind, namespace, name = prebinding.takes[0]
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


async def _using(session: ApiSession, use: UseDevices) -> WriteResult:
    """Give the claim its devices: mark it, then write its status.

    With `making`, create the claim first, and name it in its pod's status before its own status is written.
    """
    if use.making is not None:
        uid, write = await _making(session, use, use.making)
        if not write.done:
            return write
        use = msgspec.structs.replace(use, uid=uid)
    write = await _change(session, use, partial(claiming.marking, use=use))
    if write.done and use.making is not None:
        body = claiming.naming(use, use.making)
        write = await _send(session, "PATCH", _pod_status_path(use), body)
    if write.done:
        write = await _change(session, use, partial(claiming.using, use=use), "/status")
    return write


async def _making(session: ApiSession, use: UseDevices, making: Making) -> tuple[str, WriteResult]:
    """The UID of the pod's claim, which is created if it does not exist, and the result."""
    uid = ""

    def look(claim: Json) -> Json | None:
        nonlocal uid
        uid = claiming.created_uid(claim, use)
        return {} if uid else None

    write = await _change(session, use, look)
    if write.result is Outcome.GONE:
        path, body = claiming.claims_path(use), claiming.claim(use, making)
        write = await _send(session, "POST", path, body)
        if write.done:
            write = await _change(session, use, look)
    return uid, write


async def _unmaking(session: ApiSession, use: UseDevices) -> WriteResult:
    """Remove the claim from its pod's status, delete it, and remove its devices and its finalizer."""
    unnamed = await _send(session, "PATCH", _pod_status_path(use), claiming.unnaming(use))
    if not unnamed.done and unnamed.result is not Outcome.GONE:
        return unnamed
    gone = await _send(session, "DELETE", _path(use), deletion(use.uid))
    if gone.done:
        await _change(session, use, partial(claiming.leaving, use=use), "/status")
        await _change(session, use, partial(claiming.unmarking, use=use))
    return gone


async def _send(session: ApiSession, method: str, path: str, body: Json) -> WriteResult:
    kind = MERGE_PATCH if method == "PATCH" else JSON
    return answered(await send(session, method, path, body, content_type=kind))


async def _change(session: ApiSession, prebinding: Prebinding, change: Change, subresource: str = "") -> WriteResult:
    """Read the object and patch it. Retry after a conflict, as between members that share a claim."""
    for _ in range(_MOST_READS):
        write = await _change_once(session, prebinding, change, subresource)
        if write is not None:
            return write
    return WriteResult(Outcome.UNAVAILABLE, message=f"other writers keep changing {about(prebinding)}")


async def _change_once(
    session: ApiSession, prebinding: Prebinding, change: Change, subresource: str
) -> WriteResult | None:
    """One attempt of `_change`; None if another writer has changed the object in between."""
    path = _path(prebinding)
    try:
        body = (await session.request("GET", path, timeout_s=TIMEOUT_S)).checked().body
        current = msgspec.json.decode(body, type=Json)
        patch = change(current)
    except KubeError as error:
        return failed(error)
    except (*UNREADABLE, KeyError, TypeError, AttributeError) as error:
        return WriteResult(Outcome.UNAVAILABLE, message=f"{about(prebinding)} cannot be read: {error}")
    if patch is None:
        return WriteResult(Outcome.STALE)
    if not patch:
        return WriteResult(Outcome.WRITTEN)
    meta = {"resourceVersion": current["metadata"]["resourceVersion"], "uid": current["metadata"]["uid"]}
    patch["metadata"] = {**patch.get("metadata", {}), **meta}
    answer = await send(session, "PATCH", path + subresource, patch, content_type=MERGE_PATCH)
    return None if conflicts(answer) else answered(answer)


def _path(prebinding: Prebinding) -> str:
    if isinstance(prebinding, ClaimVolume):
        return f"/api/v1/persistentvolumes/{quoted(prebinding.volume)}"
    if isinstance(prebinding, SelectNode):
        return f"/api/v1/namespaces/{quoted(prebinding.namespace)}/persistentvolumeclaims/{quoted(prebinding.claim)}"
    if isinstance(prebinding, UseDevices):
        return claiming.path(prebinding)
    raise TypeError(f"{type(prebinding).__name__} has no object")


def _pod_status_path(use: UseDevices) -> str:
    return f"{pod_path(use.namespace, use.consumer.name)}/status"


def _annotations(document: Json) -> Json:
    annotations: Json = document["metadata"].get("annotations") or {}
    return annotations


def _selecting(claim: Json, *, prebinding: SelectNode, pod_uid: str) -> Json | None:
    if claim["metadata"]["uid"] != prebinding.uid or claim["spec"].get("volumeName"):
        return None
    if _annotations(claim).get(SELECTED_NODE):
        return None
    return {"metadata": {"annotations": {SELECTED_NODE: prebinding.node, MARK: pod_uid}}}


def _unselecting(claim: Json, *, prebinding: SelectNode) -> Json | None:
    annotations = _annotations(claim)
    if claim["metadata"]["uid"] != prebinding.uid or claim["spec"].get("volumeName") or MARK not in annotations:
        return None
    if annotations.get(SELECTED_NODE, "") != prebinding.node:
        return None
    return {"metadata": {"annotations": {SELECTED_NODE: None, MARK: None}}}


def _claiming(volume: Json, *, prebinding: ClaimVolume) -> Json | None:
    reference = volume["spec"].get("claimRef")
    ours = (prebinding.namespace, prebinding.claim)
    if (volume.get("status") or {}).get("phase") != "Available":
        return None
    if reference and ((reference.get("namespace"), reference.get("name")) != ours or reference.get("uid")):
        return None
    claim = {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": prebinding.namespace,
        "name": prebinding.claim,
        "uid": prebinding.uid,
    }
    return {"metadata": {"annotations": {_BY_CONTROLLER: "yes", MARK: prebinding.uid}}, "spec": {"claimRef": claim}}


def _unclaiming(volume: Json, *, prebinding: ClaimVolume) -> Json | None:
    reference, annotations = volume["spec"].get("claimRef") or {}, _annotations(volume)
    claimed = tuple(reference.get(key) or "" for key in ("namespace", "name", "uid"))
    if MARK not in annotations or claimed != (prebinding.namespace, prebinding.claim, prebinding.uid):
        return None
    if (volume.get("status") or {}).get("phase") != "Available":
        return None
    return {"metadata": {"annotations": {_BY_CONTROLLER: None, MARK: None}}, "spec": {"claimRef": None}}
