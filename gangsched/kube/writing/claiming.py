"""The patches that give a ResourceClaim its devices and reserve it for a pod or a PodGroup, and those that undo this.

The claim first gets its finalizer and gangsched's mark, because the API server ignores them in a write of the status.
The status is then written on condition that nothing has changed. The patch that removes the last reservation also
removes the devices.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gangsched.core.objects.prebindings import UseDevices
from gangsched.core.objects.quantity import from_billionths
from gangsched.core.objects.shape import NodeTerm, Requirement
from gangsched.kube.client.paths import quoted
from gangsched.kube.reading.storage_values import MARK
from gangsched.kube.wire.device_objects import GROUP, GROUPS, VERSION

FINALIZER = "resource.kubernetes.io/delete-protection"
"""The finalizer that keeps a claim while it has devices. kube-controller-manager knows it too."""
OF_POD = {"resource": "pods"}
OF_GROUP = {"apiGroup": GROUPS[0], "resource": GROUPS[1]}
"""The kind of a reservation. Source: `BindTo` in k8s.io/dynamic-resource-allocation/resourceclaim at v0.37.2."""
Json = dict[str, Any]


def claims_path(what: UseDevices) -> str:
    """The path of the ResourceClaims in the claim's namespace."""
    return f"/apis/{GROUP}/{VERSION}/namespaces/{quoted(what.namespace)}/resourceclaims"


def path(what: UseDevices) -> str:
    """The claim's path."""
    return f"{claims_path(what)}/{quoted(what.claim)}"


def marking(found: Json, what: UseDevices) -> Json | None:
    """The patch that adds finalizer and mark to the claim, which comes before the status.

    Empty if the claim has both. None if another claim has its name or if it is being deleted.
    """
    if found["metadata"]["uid"] != what.uid or found["metadata"].get("deletionTimestamp"):
        return None
    finalizers = found["metadata"].get("finalizers") or []
    if _is_marked(found):
        return {}
    kept = [*finalizers, *([] if FINALIZER in finalizers else [FINALIZER])]
    return {"metadata": {"finalizers": kept, "annotations": {MARK: what.consumer.uid}}}


def using(found: Json, what: UseDevices) -> Json | None:
    """The patch of the status that gives the claim its devices, if it has none, and reserves it for the consumer.

    Empty if the claim is already reserved for it. None if another claim has its name, if its finalizer or mark was
    removed meanwhile, or if it has other devices.
    """
    if found["metadata"]["uid"] != what.uid or not _is_marked(found):
        return None
    status = found.get("status") or {}
    patch: Json = {}
    if status.get("allocation") is None:
        patch["allocation"] = _allocation(found, what)
    elif _devices(status["allocation"]) != list(what.allocation.has):
        return None
    reserved = status.get("reservedFor") or []
    if any(each["uid"] == what.consumer.uid for each in reserved):
        return {}
    kind = OF_GROUP if what.consumer.group else OF_POD
    patch["reservedFor"] = [*reserved, {**kind, "name": what.consumer.name, "uid": what.consumer.uid}]
    return {"status": patch}


def leaving(found: Json, what: UseDevices) -> Json | None:
    """The patch of the status that removes the consumer's reservation and, with the last reservation, the devices.

    Empty if it has no reservation, None if the claim is not ours.
    """
    if found["metadata"]["uid"] != what.uid or not _has_mark(found):
        return None
    reserved = (found.get("status") or {}).get("reservedFor") or []
    kept = [each for each in reserved if each["uid"] != what.consumer.uid]
    if len(kept) == len(reserved):
        return {}
    return {"status": {"reservedFor": kept}} if kept else {"status": {"reservedFor": None, "allocation": None}}


def unmarking(found: Json, what: UseDevices) -> Json | None:
    """The patch that removes finalizer and mark. Empty if the claim has devices, None if the claim is not ours."""
    if found["metadata"]["uid"] != what.uid or not _has_mark(found):
        return None
    if (found.get("status") or {}).get("allocation") is not None:
        return {}
    kept = [each for each in found["metadata"].get("finalizers") or [] if each != FINALIZER]
    return {"metadata": {"finalizers": kept or None, "annotations": {MARK: None}}}


def _is_marked(found: Json) -> bool:
    return _has_mark(found) and FINALIZER in (found["metadata"].get("finalizers") or [])


def _has_mark(found: Json) -> bool:
    return MARK in (found["metadata"].get("annotations") or {})


def _devices(allocation: Json) -> list[tuple[str, tuple[str, str, str], str]]:
    results = (allocation.get("devices") or {}).get("results") or []
    return [
        (each["request"], (each["driver"], each["pool"], each["device"]), each.get("shareID") or "") for each in results
    ]


def _allocation(found: Json, what: UseDevices) -> Json:
    tolerations = _tolerations(found)
    results = []
    for each in what.allocation.devices:
        driver, pool, device = each.device
        result: Json = {"request": each.request, "driver": driver, "pool": pool, "device": device}
        if each.admin:
            result["adminAccess"] = True
        if tolerations.get(each.request):
            result["tolerations"] = tolerations[each.request]
        if each.shared:
            result["shareID"] = each.share
        if each.consumed:
            result["consumedCapacity"] = {name: from_billionths(amount) for name, amount in each.consumed}
        if each.binding:
            result |= {"bindingConditions": list(each.binding), "bindingFailureConditions": list(each.failing)}
        results.append(result)
    config = [
        {"source": each.source, "requests": list(each.requests), **msgspec.json.decode(each.config)}
        for each in what.config
    ]
    allocation: Json = {"devices": {"results": results, **({"config": config} if config else {})}}
    if what.allocation.node_affinity is not None:
        allocation["nodeSelector"] = {"nodeSelectorTerms": list(map(_term, what.allocation.node_affinity))}
    return allocation


def _tolerations(found: Json) -> dict[str, Any]:
    """The tolerations by the request's name in results: `request` or `request/alternative`."""
    by_name = {}
    for request in found["spec"].get("devices", {}).get("requests") or []:
        by_name[request["name"]] = (request.get("exactly") or {}).get("tolerations")
        for each in request.get("firstAvailable") or []:
            by_name[f"{request['name']}/{each['name']}"] = each.get("tolerations")
    return by_name


def _term(term: NodeTerm) -> Json:
    found = {}
    if term.expressions:
        found["matchExpressions"] = list(map(_requirement, term.expressions))
    if term.fields:
        found["matchFields"] = list(map(_requirement, term.fields))
    return found


def _requirement(found: Requirement) -> Json:
    return {"key": found.key, "operator": found.operator, **({"values": list(found.values)} if found.values else {})}
