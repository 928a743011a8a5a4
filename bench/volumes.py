"""The memory cost of volumes, in a separate process with the operator's modules, 5,000 nodes and ten volumes each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from msgspec import Raw

from bench.lab import Figures, rss_mb
from gangsched.core.machine import Machine
from gangsched.core.objects.events import StorageReplaced, Synced
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.volumes import StorageKind
from gangsched.kube.reading.watched_resources import NODES, PODS, STORAGE
from testbed.nodes import node
from testbed.workloads import member

NODES_COUNT, PER_NODE = 5000, 10
DRIVER = "disk.example.com"
ZONE = "topology.kubernetes.io/zone"
Json = dict[str, Any]


def memory() -> Figures:
    """Resident memory once everything is loaded, in a new process, so that nothing else is counted."""
    child = subprocess.run([sys.executable, "-m", "bench.volumes"], check=True, capture_output=True, text=True)
    figures: Figures = json.loads(child.stdout)
    return figures


def measure() -> Figures:
    """The same in this process."""
    # The operator's own modules count too.
    import gangsched.app  # noqa: F401, PLC0415

    machine = Machine(Policy())
    before = rss_mb(os.getpid())
    events = (
        NODES.replaced(tuple(NODES.read(line)[1] for line in _lines(_node(at) for at in range(NODES_COUNT)))),
        *(StorageReplaced(kind, _read(kind)) for kind in _MADE),
        PODS.replaced(tuple(PODS.read(line)[1] for line in _lines(_pod(at) for at in _volumes()))),
        Synced(),
    )
    for event in events:
        machine.handle([event], 1.0)
    return {"rss_mb": rss_mb(os.getpid()), "before_mb": before}


def _read(kind: StorageKind) -> tuple[Any, ...]:
    numbers = range(NODES_COUNT) if kind is StorageKind.NODE else _volumes()
    return tuple(STORAGE[kind].read(line)[1] for line in _lines(_MADE[kind](at) for at in numbers))


def _volumes() -> range:
    return range(NODES_COUNT * PER_NODE)


def _lines(manifests: Iterator[Json]) -> Iterator[Raw]:
    for each in manifests:
        yield Raw(json.dumps(each).encode())


def _meta(name: str, **fields: object) -> Json:
    return {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", **fields}


def _node(at: int) -> Json:
    return node(f"n{at}", labels={ZONE: f"z{at % 3}", "kubernetes.io/hostname": f"n{at}"})


def _pod(at: int) -> Json:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": f"data-{at}"}}]
    found = member(f"p{at}", f"g{at // 20}", nodeName=f"n{at % NODES_COUNT}", volumes=volumes)
    return {**found, "metadata": {**found["metadata"], **_meta(f"p{at}", namespace="default")}}


def _claim(at: int) -> Json:
    spec = {"volumeName": f"pv-{at}", "storageClassName": "zonal", "accessModes": ["ReadWriteOnce"]}
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    return {"metadata": _meta(f"data-{at}", namespace="default", annotations=bound), "spec": spec}


def _volume(at: int) -> Json:
    here = {"key": ZONE, "operator": "In", "values": [f"z{at % NODES_COUNT % 3}"]}
    spec = {
        "csi": {"driver": DRIVER, "volumeHandle": f"handle-{at}"},
        "capacity": {"storage": "100Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "zonal",
        "claimRef": {"namespace": "default", "name": f"data-{at}", "uid": f"uid-data-{at}"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
    }
    return {"metadata": _meta(f"pv-{at}"), "spec": spec, "status": {"phase": "Bound"}}


def _attachment(at: int) -> Json:
    source = {"persistentVolumeName": f"pv-{at}"}
    spec = {"attacher": DRIVER, "nodeName": f"n{at % NODES_COUNT}", "source": source}
    return {"metadata": _meta(f"attachment-{at}"), "spec": spec}


def _csi_node(at: int) -> Json:
    drivers = [{"name": DRIVER, "nodeID": f"n{at}", "allocatable": {"count": 25}}]
    return {"metadata": _meta(f"n{at}"), "spec": {"drivers": drivers}}


_MADE = {
    StorageKind.NODE: _csi_node,
    StorageKind.VOLUME: _volume,
    StorageKind.CLAIM: _claim,
    StorageKind.ATTACHMENT: _attachment,
}

if __name__ == "__main__":
    print(json.dumps(measure()))
