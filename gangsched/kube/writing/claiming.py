"""The patches that give a ResourceClaim its devices and reserve it for a pod or a PodGroup, and those that undo this.

The claim first gets its finalizer and gangsched's mark, because the API server ignores them in a write of the status.
The status is then written on condition that nothing has changed. The patch that removes the last reservation also
removes the devices.

For a pod's extended resources the claim is made, and the pod's status names it for the kubelet. kube-scheduler creates
such a claim when it binds the pod. Here its name is derived from the pod, so that a retry after a lost answer does not
create a second one.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gangsched.core.objects.devices import Making
from gangsched.core.objects.prebindings import UseDevices
from gangsched.core.objects.quantity import from_billionths
from gangsched.core.objects.shape import NodeTerm, Requirement
from gangsched.kube.client.paths import quoted
from gangsched.kube.reading.storage_values import MARK
from gangsched.kube.wire.device_objects import EXTENDED, GROUP, GROUPS, VERSION

FINALIZER = "resource.kubernetes.io/delete-protection"
"""The finalizer that keeps a claim while it has devices. kube-controller-manager knows it too."""
OF_POD = {"resource": "pods"}
OF_GROUP = {"apiGroup": GROUPS[0], "resource": GROUPS[1]}
"""The kind of a reservation. Source: `BindTo` in k8s.io/dynamic-resource-allocation/resourceclaim at v0.37.2."""
Json = dict[str, Any]


def claims_path(use: UseDevices) -> str:
    """The path of the ResourceClaims in the claim's namespace."""
    return f"/apis/{GROUP}/{VERSION}/namespaces/{quoted(use.namespace)}/resourceclaims"


def path(use: UseDevices) -> str:
    """The claim's path."""
    return f"{claims_path(use)}/{quoted(use.claim)}"


def marking(claim: Json, use: UseDevices) -> Json | None:
    """The patch that adds finalizer and mark to the claim, which comes before the status.

    Empty if the claim has both. None if another claim has its name or if it is being deleted.
    """
    if claim["metadata"]["uid"] != use.uid or claim["metadata"].get("deletionTimestamp"):
        return None
    finalizers = claim["metadata"].get("finalizers") or []
    if _is_marked(claim):
        return {}
    with_ours = [*finalizers, *([] if FINALIZER in finalizers else [FINALIZER])]
    return {"metadata": {"finalizers": with_ours, "annotations": {MARK: use.consumer.uid}}}


def using(claim: Json, use: UseDevices) -> Json | None:
    """The patch of the status that gives the claim its devices, if it has none, and reserves it for the consumer.

    Empty if the claim is already reserved for it. None if another claim has its name, if its finalizer or mark was
    removed meanwhile, or if it has other devices.
    """
    if claim["metadata"]["uid"] != use.uid or not _is_marked(claim):
        return None
    status = claim.get("status") or {}
    patch: Json = {}
    if status.get("allocation") is None:
        patch["allocation"] = _allocation(claim, use)
    elif _devices(status["allocation"]) != list(use.allocation.has):
        return None
    reserved = status.get("reservedFor") or []
    if any(consumer["uid"] == use.consumer.uid for consumer in reserved):
        return {}
    kind = OF_GROUP if use.consumer.group else OF_POD
    patch["reservedFor"] = [*reserved, {**kind, "name": use.consumer.name, "uid": use.consumer.uid}]
    return {"status": patch}


def leaving(claim: Json, use: UseDevices) -> Json | None:
    """The patch of the status that removes the consumer's reservation and, with the last reservation, the devices.

    Empty if it has no reservation, None if the claim is not ours.
    """
    if claim["metadata"]["uid"] != use.uid or not _has_mark(claim):
        return None
    reserved = (claim.get("status") or {}).get("reservedFor") or []
    remaining = [consumer for consumer in reserved if consumer["uid"] != use.consumer.uid]
    if len(remaining) == len(reserved):
        return {}
    return (
        {"status": {"reservedFor": remaining}} if remaining else {"status": {"reservedFor": None, "allocation": None}}
    )


def unmarking(claim: Json, use: UseDevices) -> Json | None:
    """The patch that removes finalizer and mark. Empty if the claim has devices, None if the claim is not ours."""
    if claim["metadata"]["uid"] != use.uid or not _has_mark(claim):
        return None
    if (claim.get("status") or {}).get("allocation") is not None:
        return {}
    remaining = [finalizer for finalizer in claim["metadata"].get("finalizers") or [] if finalizer != FINALIZER]
    return {"metadata": {"finalizers": remaining or None, "annotations": {MARK: None}}}


def claim(use: UseDevices, making: Making) -> Json:
    """The claim, owned by its pod, with gangsched's mark."""
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": use.consumer.name,
        "uid": use.consumer.uid,
        "controller": True,
    }
    requests = [
        {
            "name": name,
            "exactly": {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": count},
        }
        for name, device_class, count in making.requests
    ]
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "ResourceClaim",
        "metadata": {
            "name": use.claim,
            "namespace": use.namespace,
            "annotations": {EXTENDED: "true", MARK: use.consumer.uid},
            "finalizers": [FINALIZER],
            "ownerReferences": [owner],
        },
        "spec": {"devices": {"requests": requests}},
    }


def created_uid(existing: Json, use: UseDevices) -> str:
    """The claim's UID if it was created for the pod and is not being deleted; empty otherwise."""
    meta = existing["metadata"]
    owners = [owner["uid"] for owner in meta.get("ownerReferences") or () if owner.get("controller")]
    ours = owners == [use.consumer.uid] and (meta.get("annotations") or {}).get(EXTENDED) == "true"
    return str(meta["uid"]) if ours and not meta.get("deletionTimestamp") else ""


def naming(use: UseDevices, making: Making) -> Json:
    """The patch of the pod's status that names the claim."""
    mappings = [
        {"containerName": container, "resourceName": resource, "requestName": request}
        for container, resource, request in making.mappings
    ]
    status = {"resourceClaimName": use.claim, "requestMappings": mappings}
    return {"metadata": {"uid": use.consumer.uid}, "status": {"extendedResourceClaimStatus": status}}


def unnaming(use: UseDevices) -> Json:
    """The patch that removes the claim from the pod's status.

    Since 1.37 the API server keeps the field instead; a name of a claim that is not there means nothing.
    """
    return {"metadata": {"uid": use.consumer.uid}, "status": {"extendedResourceClaimStatus": None}}


def _is_marked(claim: Json) -> bool:
    return _has_mark(claim) and FINALIZER in (claim["metadata"].get("finalizers") or [])


def _has_mark(claim: Json) -> bool:
    return MARK in (claim["metadata"].get("annotations") or {})


def _devices(allocation: Json) -> list[tuple[str, tuple[str, str, str], str]]:
    results = (allocation.get("devices") or {}).get("results") or []
    return [
        (result["request"], (result["driver"], result["pool"], result["device"]), result.get("shareID") or "")
        for result in results
    ]


def _allocation(claim: Json, use: UseDevices) -> Json:
    tolerations = _tolerations(claim)
    results = []
    for allocated in use.allocation.devices:
        driver, pool, device = allocated.device
        result: Json = {"request": allocated.request, "driver": driver, "pool": pool, "device": device}
        if allocated.admin:
            result["adminAccess"] = True
        if tolerations.get(allocated.request):
            result["tolerations"] = tolerations[allocated.request]
        if allocated.shared:
            result["shareID"] = allocated.share
        if allocated.consumed:
            result["consumedCapacity"] = {name: from_billionths(amount) for name, amount in allocated.consumed}
        if allocated.binding:
            result |= {
                "bindingConditions": list(allocated.binding),
                "bindingFailureConditions": list(allocated.failing),
            }
        results.append(result)
    config = [
        {"source": entry.source, "requests": list(entry.requests), **msgspec.json.decode(entry.config)}
        for entry in use.config
    ]
    allocation: Json = {"devices": {"results": results, **({"config": config} if config else {})}}
    if use.allocation.node_affinity is not None:
        allocation["nodeSelector"] = {"nodeSelectorTerms": list(map(_term, use.allocation.node_affinity))}
    return allocation


def _tolerations(claim: Json) -> dict[str, Any]:
    """The tolerations by the request's name in results: `request` or `request/alternative`."""
    by_name = {}
    for request in claim["spec"].get("devices", {}).get("requests") or []:
        by_name[request["name"]] = (request.get("exactly") or {}).get("tolerations")
        for alternative in request.get("firstAvailable") or []:
            by_name[f"{request['name']}/{alternative['name']}"] = alternative.get("tolerations")
    return by_name


def _term(term: NodeTerm) -> Json:
    fields = {}
    if term.expressions:
        fields["matchExpressions"] = list(map(_requirement, term.expressions))
    if term.fields:
        fields["matchFields"] = list(map(_requirement, term.fields))
    return fields


def _requirement(requirement: Requirement) -> Json:
    return {
        "key": requirement.key,
        "operator": requirement.operator,
        **({"values": list(requirement.values)} if requirement.values else {}),
    }
