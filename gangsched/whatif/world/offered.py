"""ResourceSlices, DeviceClasses and ResourceClaims of a simulated cluster, and the claims made from templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gangsched.core.objects.devices import DeviceKind, DeviceObject
from gangsched.core.objects.offered_devices import ObjectKey
from gangsched.kube.reading.device_values import DEVICES
from gangsched.kube.wire.device_objects import GROUP, GROUPS, VERSION
from gangsched.whatif.world.manifests import Manifest, mapping

_OF_GROUP = {"apiVersion": f"{GROUPS[0]}/v1beta1", "kind": "PodGroup"}
API_VERSION = f"{GROUP}/{VERSION}"
TEMPLATE = (API_VERSION, "ResourceClaimTemplate")
KINDS = {(API_VERSION, kind.value): kind for kind in DeviceKind}
CLUSTER_WIDE = tuple(gvk for gvk, kind in KINDS.items() if kind is not DeviceKind.CLAIM)


class Offered:
    """The objects by kind and key. `missing` are the templates that pods or PodGroups name and that are not known.

    `_shared` are the claims of PodGroups of Kubernetes, as their status names them, by namespace, PodGroup and what the
    specs of their pods say of them.
    """

    def __init__(self) -> None:
        self._shared: dict[tuple[Any, ...], Mapping[str, Any]] = {}
        self.objects: dict[DeviceKind, dict[ObjectKey, DeviceObject]] = {kind: {} for kind in DeviceKind}
        self._templates: dict[ObjectKey, Mapping[str, Any]] = {}
        self.missing: dict[ObjectKey, None] = {}

    def add(self, manifest: Manifest) -> None:
        """Add the object, or the template.

        Raises:
            msgspec.DecodeError: the object is unreadable.
        """
        kind = KINDS.get((manifest.api_version, manifest.kind))
        if kind is None:
            self._templates[manifest.namespace, manifest.name] = mapping(manifest.spec, "spec")
            return
        namespace = manifest.namespace if kind is DeviceKind.CLAIM else ""
        uid = f"{manifest.kind}/{namespace}/{manifest.name}"
        metadata = {"uid": uid, **manifest.metadata, "namespace": namespace}
        self._put(kind, {**manifest.body, "metadata": metadata})

    def share(self, group: Mapping[str, Any]) -> None:
        """Create the claims that kube-controller-manager would create for the PodGroup of Kubernetes, for its pods.

        Templates must have been added before, and pods be added after.
        """
        metadata, statuses = mapping(group.get("metadata")), self._claim_statuses(group, _OF_GROUP)
        by_name = {mapping(status).get("name"): mapping(status) for status in statuses}
        for pod_claim in map(mapping, mapping(group.get("spec")).get("resourceClaims") or ()):
            if pod_claim.get("name") in by_name:
                self._shared[metadata["namespace"], metadata["name"], *_claim_key(pod_claim)] = by_name[
                    pod_claim.get("name")
                ]

    def with_claims(self, pod: Mapping[str, Any]) -> Mapping[str, Any]:
        """The pod with the claims that kube-controller-manager would create for it from known templates."""
        statuses = self._claim_statuses(pod, {"apiVersion": "v1", "kind": "Pod"})
        status = {**mapping(pod.get("status")), "resourceClaimStatuses": statuses}
        return {**pod, "status": status} if statuses else pod

    def _claim_statuses(self, user: Mapping[str, Any], kind: Mapping[str, str]) -> list[Any]:
        """The `resourceClaimStatuses` of the pod or PodGroup, for which missing claims are created."""
        metadata, spec, status = (mapping(user.get(part)) for part in ("metadata", "spec", "status"))
        group = mapping(spec.get("schedulingGroup")).get("podGroupName")
        statuses = list(status.get("resourceClaimStatuses") or ())
        named = {mapping(entry).get("name") for entry in statuses}
        for pod_claim in map(mapping, spec.get("resourceClaims") or ()):
            name = pod_claim.get("name")
            key = (metadata["namespace"], str(pod_claim.get("resourceClaimTemplateName") or ""))
            if name in named or not key[1]:
                continue
            template = self._templates.get(key)
            if template is None:
                self.missing[key] = None
                continue
            shared = self._shared.get((metadata["namespace"], group, *_claim_key(pod_claim)))
            if shared is not None:
                statuses.append(shared)
                continue
            claim = f"{metadata['name']}-{name}"
            owner = {**kind, "name": metadata["name"], "uid": metadata["uid"], "controller": True}
            own = {"name": claim, "namespace": metadata["namespace"], "uid": f"ResourceClaim/{metadata['uid']}/{name}"}
            self._put(DeviceKind.CLAIM, {"metadata": {**own, "ownerReferences": [owner]}, "spec": template})
            statuses.append({"name": name, "resourceClaimName": claim})
        return statuses

    def _put(self, kind: DeviceKind, body: Mapping[str, Any]) -> None:
        device_object = DEVICES[kind].read(msgspec.Raw(msgspec.json.encode(body)))[1]
        self.objects[kind].setdefault(device_object.key, device_object)


def _claim_key(claim: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a pod's claim has in common with that of its PodGroup, if the PodGroup shares it."""
    return tuple(claim.get(key) for key in ("name", "resourceClaimName", "resourceClaimTemplateName"))
