"""The ResourceClaim for a pod's extended resources, and the pod's status through which the kubelet finds the claim.

kube-scheduler creates such a claim when it binds the pod. Here the claim's name is derived from the pod, so that a
retry after a lost answer does not create a second one.
"""

from __future__ import annotations

from typing import Any

from gangsched.core.objects.devices import Making
from gangsched.core.objects.prebindings import UseDevices
from gangsched.kube.reading.storage_values import MARK
from gangsched.kube.wire.device_objects import EXTENDED, GROUP, VERSION
from gangsched.kube.writing.claiming import FINALIZER

Json = dict[str, Any]


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
