"""ResourceSlices, DeviceClasses and ResourceClaims of a simulated cluster, and the claims made from templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gangsched.core.objects.devices import DeviceKind, DeviceObject
from gangsched.core.objects.offered_devices import ObjectKey
from gangsched.kube.device_wire import GROUP, VERSION
from gangsched.kube.devices import DEVICES
from gangsched.whatif.world.manifests import Manifest, mapping

API_VERSION = f"{GROUP}/{VERSION}"
TEMPLATE = (API_VERSION, "ResourceClaimTemplate")
KINDS = {(API_VERSION, kind.value): kind for kind in DeviceKind}
CLUSTER_WIDE = tuple(which for which, kind in KINDS.items() if kind is not DeviceKind.CLAIM)


class Offered:
    """The objects by kind and key."""

    def __init__(self) -> None:
        self.objects: dict[DeviceKind, dict[ObjectKey, DeviceObject]] = {kind: {} for kind in DeviceKind}
        self._templates: dict[ObjectKey, Mapping[str, Any]] = {}

    def add(self, manifest: Manifest) -> None:
        """Add the object, or the template.

        Raises:
            msgspec.DecodeError: the object is unreadable.
        """
        kind = KINDS.get((manifest.api_version, manifest.kind))
        if kind is None:
            self._templates[manifest.namespace, manifest.name] = mapping(mapping(manifest.body.get("spec")).get("spec"))
            return
        namespace = manifest.namespace if kind is DeviceKind.CLAIM else ""
        uid = f"{manifest.kind}/{namespace}/{manifest.name}"
        metadata = {"uid": uid, **manifest.metadata, "namespace": namespace}
        self._put(kind, {**manifest.body, "metadata": metadata})

    def with_claims(self, pod: Mapping[str, Any]) -> Mapping[str, Any]:
        """The pod with the claims that kube-controller-manager would create for it from known templates."""
        metadata, spec, status = (mapping(pod.get(part)) for part in ("metadata", "spec", "status"))
        made = list(status.get("resourceClaimStatuses") or ())
        named = {mapping(each).get("name") for each in made}
        for each in map(mapping, spec.get("resourceClaims") or ()):
            name = each.get("name")
            template = self._templates.get((metadata["namespace"], str(each.get("resourceClaimTemplateName"))))
            if template is None or name in named:
                continue
            claim = f"{metadata['name']}-{name}"
            owner = {"kind": "Pod", "name": metadata["name"], "uid": metadata["uid"], "controller": True}
            own = {"name": claim, "namespace": metadata["namespace"], "uid": f"ResourceClaim/{metadata['uid']}/{name}"}
            self._put(DeviceKind.CLAIM, {"metadata": {**own, "ownerReferences": [owner]}, "spec": template})
            made.append({"name": name, "resourceClaimName": claim})
        return {**pod, "status": {**status, "resourceClaimStatuses": made}} if made else pod

    def _put(self, kind: DeviceKind, body: Mapping[str, Any]) -> None:
        found = DEVICES[kind].read(msgspec.Raw(msgspec.json.encode(body)))[1]
        self.objects[kind].setdefault(found.key, found)
