"""Simulates the external provisioner of a CSI driver: creates a volume for each claim that names a node.

A claim of a StorageClass of this driver whose annotation names a node gets a PersistentVolume in the zone of that node,
which kube-controller-manager binds to it. If the zone has no room, the annotation is removed, as the real provisioner
does when storage is exhausted. It can also report the free capacity, with a CSIStorageCapacity for each zone.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any, Self

from testbed.api import Api, ApiError

DRIVER = "zonal.csi.example.com"
ZONE = "topology.kubernetes.io/zone"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
_CLAIMS, _VOLUMES = "/api/v1/persistentvolumeclaims", "/api/v1/persistentvolumes"
_DRIVERS = "/apis/storage.k8s.io/v1/csidrivers"
_CAPACITIES = "/apis/storage.k8s.io/v1/namespaces/default/csistoragecapacities"
_EVERY_S = 0.1
Json = dict[str, Any]


class Provisioner:
    """A context manager; works inside it. `room` limits the volumes per zone; zones without an entry are unlimited.

    With `tells` it reports the free capacity of each class and zone, 1 GiB for each volume, and updates it after each
    new volume. While it is `paused` it does nothing. `given_up` lists the claims (namespace/name) without a volume, in
    order.
    """

    def __init__(self, api: Api, *, room: Mapping[str, int] | None = None, tells: bool = False) -> None:
        self.paused = False
        self.given_up: list[str] = []
        self._api = api
        self._room = room or {}
        self._tells = tells
        self._made: Counter[str] = Counter()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="provisioner", daemon=True)

    def __enter__(self) -> Self:
        if self._tells:
            self._api.post(_DRIVERS, {"metadata": {"name": DRIVER}, "spec": {"storageCapacity": True}})
            for storage in self._classes():
                for zone in self._room:
                    self._api.post(_CAPACITIES, self._capacity(storage, zone))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        if self._tells:
            self._api.delete(f"{_DRIVERS}/{DRIVER}")
            self._api.delete(_CAPACITIES)

    def _classes(self) -> list[str]:
        classes = self._api.get("/apis/storage.k8s.io/v1/storageclasses")["items"]
        return [each["metadata"]["name"] for each in classes if each["provisioner"] == DRIVER]

    def _capacity(self, storage: str, zone: str) -> Json:
        return {
            "metadata": {"name": f"{storage}-{zone}"},
            "storageClassName": storage,
            "nodeTopology": {"matchLabels": {ZONE: zone}},
            "capacity": f"{self._room[zone] - self._made[zone]}Gi",
        }

    def _work(self) -> None:
        while not self._ended.wait(_EVERY_S):
            # A failed request is retried in the next round.
            with contextlib.suppress(ApiError, OSError):
                self._look()

    def _look(self) -> None:
        if self.paused:
            return
        ours = self._classes()
        for claim in self._api.get(_CLAIMS)["items"] if ours else ():
            node = claim["metadata"].get("annotations", {}).get(SELECTED_NODE)
            if node and claim["spec"].get("storageClassName") in ours and not claim["spec"].get("volumeName"):
                self._provision(claim, node)

    def _provision(self, claim: Json, node: str) -> None:
        meta = claim["metadata"]
        labels = self._api.get(f"/api/v1/nodes/{node}")["metadata"].get("labels", {})
        zone = labels.get(ZONE, "")
        if self._made[zone] >= self._room.get(zone, self._made[zone] + 1):
            path = f"/api/v1/namespaces/{meta['namespace']}/persistentvolumeclaims/{meta['name']}"
            version = meta["resourceVersion"]
            self._api.merge(path, {"metadata": {"annotations": {SELECTED_NODE: None}, "resourceVersion": version}})
            self.given_up.append(f"{meta['namespace']}/{meta['name']}")
            return
        inside = {"key": ZONE, "operator": "In", "values": [zone]}
        volume = {
            "metadata": {"name": f"pvc-{meta['uid']}", "annotations": {"pv.kubernetes.io/provisioned-by": DRIVER}},
            "spec": {
                "capacity": claim["spec"]["resources"]["requests"],
                "accessModes": claim["spec"]["accessModes"],
                "storageClassName": claim["spec"]["storageClassName"],
                "persistentVolumeReclaimPolicy": "Retain",
                "csi": {"driver": DRIVER, "volumeHandle": meta["uid"]},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [inside]}]}} if zone else None,
                "claimRef": {
                    "kind": "PersistentVolumeClaim",
                    "apiVersion": "v1",
                    "namespace": meta["namespace"],
                    "name": meta["name"],
                    "uid": meta["uid"],
                },
            },
        }
        try:
            self._api.post(_VOLUMES, volume)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
        else:
            self._made[zone] += 1
            if self._tells and zone in self._room:
                for storage in self._classes():
                    self._api.merge(f"{_CAPACITIES}/{storage}-{zone}", self._capacity(storage, zone))
