"""Volumes, their claims and classes of a simulated cluster, and what the API server and controllers do with claims.

A claim without a class gets the default one, each ephemeral volume of a pod gets its claim, and a claim that names a
volume is bound to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from gangsched.core.objects.pod import Pod
from gangsched.core.objects.volumes import StorageClass, StorageKey, StorageKind, StorageObject, Volume, VolumeClaim
from gangsched.kube.reading.storage_values import CLASS
from gangsched.kube.reading.watched_resources import STORAGE
from gangsched.whatif.world.manifests import Manifest, mapping

CLAIM = ("v1", "PersistentVolumeClaim")
KINDS = {
    CLAIM: StorageKind.CLAIM,
    ("v1", "PersistentVolume"): StorageKind.VOLUME,
    ("storage.k8s.io/v1", "StorageClass"): StorageKind.CLASS,
    ("storage.k8s.io/v1", "CSINode"): StorageKind.NODE,
    ("storage.k8s.io/v1", "VolumeAttachment"): StorageKind.ATTACHMENT,
    ("storage.k8s.io/v1", "CSIDriver"): StorageKind.DRIVER,
    ("storage.k8s.io/v1", "CSIStorageCapacity"): StorageKind.CAPACITY,
}
CLUSTER_WIDE = tuple(gvk for gvk, kind in KINDS.items() if kind not in (StorageKind.CLAIM, StorageKind.CAPACITY))
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


class Stored:
    """The objects by kind and key. The default StorageClass is the last of these manifests with that annotation."""

    def __init__(self, manifests: Sequence[Manifest]) -> None:
        self.objects: dict[StorageKind, dict[StorageKey, StorageObject]] = {kind: {} for kind in StorageKind}
        classes = [
            manifest for manifest in manifests if KINDS.get((manifest.api_version, manifest.kind)) is StorageKind.CLASS
        ]
        defaults = [manifest for manifest in classes if manifest.annotations.get(DEFAULT_CLASS) == "true"]
        self._default = defaults[-1].name if defaults else ""
        self._classless: set[StorageKey] = set()

    def add(self, manifest: Manifest) -> None:
        """Add the object, unless it exists.

        Raises:
            msgspec.MsgspecError: the object is unreadable.
        """
        kind = KINDS[manifest.api_version, manifest.kind]
        if kind is StorageKind.CLAIM:
            self.add_claim(manifest.namespace, manifest.body)
        elif kind is StorageKind.CAPACITY:
            metadata = {**manifest.metadata, "namespace": manifest.namespace}
            self._put(kind, {**manifest.body, "metadata": metadata})
        else:
            status = {"status": {"phase": "Available"}} if kind is StorageKind.VOLUME else {}
            self._put(kind, {**status, **manifest.body})

    def add_claim(self, namespace: str, body: Mapping[str, Any]) -> None:
        """Add a claim as the API server admits it. Raises the same errors as `add`."""
        metadata, spec = mapping(body.get("metadata")), mapping(body.get("spec"))
        classless = spec.get("storageClassName") is None and CLASS not in mapping(metadata.get("annotations"))
        if classless and self._default:
            spec = {**spec, "storageClassName": self._default}
        elif classless and not metadata.get("uid"):
            self._classless.add((namespace, str(metadata.get("name"))))
        self._put(StorageKind.CLAIM, {**body, "metadata": {**metadata, "namespace": namespace}, "spec": spec})

    def add_claims_of(self, pod: Mapping[str, Any]) -> None:
        """Add the claims that kube-controller-manager creates for ephemeral volumes. Raises the errors of `add`."""
        metadata = mapping(pod.get("metadata"))
        owner = {"kind": "Pod", "name": metadata["name"], "uid": metadata["uid"], "controller": True}
        for volume in map(mapping, mapping(pod.get("spec")).get("volumes") or ()):
            template = mapping(volume, "ephemeral", "volumeClaimTemplate")
            if template:
                own = {"name": f"{metadata['name']}-{volume.get('name')}", "ownerReferences": [owner]}
                claim_metadata = {**mapping(template.get("metadata")), **own}
                self.add_claim(metadata["namespace"], {"metadata": claim_metadata, "spec": template.get("spec")})

    def bind(self) -> None:
        """Bind each claim that names a volume to it, if no other claim has it."""
        claims, volumes = self.objects[StorageKind.CLAIM], self.objects[StorageKind.VOLUME]
        for key, claim in claims.items():
            if not isinstance(claim, VolumeClaim) or claim.bound or not claim.volume:
                continue
            volume = volumes.get(("", claim.volume))
            if isinstance(volume, Volume) and volume.available and (volume.claimed_by or key)[:2] == key:
                claims[key] = replace(claim, bound=True)
                volumes[volume.key] = replace(volume, available=False)

    def doubts(self, pods: Iterable[Pod]) -> Iterator[str]:
        """A sentence for each StorageClass whose claims these pods use, and may be bound to volumes not known here."""
        told = set()
        keys = (
            (pod.namespace, name)
            for pod in pods
            if not pod.node
            for name in (*pod.volume_claims, *pod.own_volume_claims)
        )
        for key in dict.fromkeys(keys):
            claim = self.objects[StorageKind.CLAIM].get(key)
            if not isinstance(claim, VolumeClaim) or claim.bound or claim.volume or claim.storage_class in told:
                continue
            if why := self._why_elsewhere(claim):
                told.add(claim.storage_class)
                yield f"PersistentVolumeClaim {claim.namespace}/{claim.name} is not bound, and {why}"

    def _why_elsewhere(self, claim: VolumeClaim) -> str:
        """Why the claim may be bound to a volume that is not known here, and what to do, a clause; else empty."""
        name = claim.storage_class
        if not name:
            missing = "a default StorageClass" if claim.key in self._classless else ""
            return f"the files do not contain {missing}: add its manifest" if missing else ""
        storage_class = self.objects[StorageKind.CLASS].get(("", name))
        if not isinstance(storage_class, StorageClass):
            return f"the files do not contain StorageClass {name}: add its manifest"
        if storage_class.waits or not storage_class.provisions:
            return ""
        return (
            f"StorageClass {name} binds claims before their pods are scheduled, to new volumes whose places are not "
            "known here: add the bound claim and its PersistentVolume"
        )

    def _put(self, kind: StorageKind, body: Mapping[str, Any]) -> None:
        storage_object = STORAGE[kind].read(msgspec.Raw(msgspec.json.encode(body)))[1]
        self.objects[kind].setdefault(storage_object.key, storage_object)
