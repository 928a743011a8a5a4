"""Simulates the external provisioner of a CSI driver: creates a volume for each claim that names a node.

A claim of a StorageClass of this driver whose annotation names a node gets a PersistentVolume in the zone of that node,
which kube-controller-manager binds to it.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any, Self

from testbed.api import Api, ApiError

DRIVER = "zonal.csi.example.com"
ZONE = "topology.kubernetes.io/zone"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
_CLAIMS, _VOLUMES = "/api/v1/persistentvolumeclaims", "/api/v1/persistentvolumes"
_EVERY_S = 0.1
Json = dict[str, Any]


class Provisioner:
    """A context manager; works inside it. While it is `paused` it does nothing."""

    def __init__(self, api: Api) -> None:
        self.paused = False
        self._api = api
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="provisioner", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _classes(self) -> list[str]:
        classes = self._api.get("/apis/storage.k8s.io/v1/storageclasses")["items"]
        return [each["metadata"]["name"] for each in classes if each["provisioner"] == DRIVER]

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
