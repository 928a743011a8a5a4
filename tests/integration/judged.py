"""Compares the judge and gangsched on the same worlds: for any pod, the exact nodes that each of them accepts.

The judge is kube-scheduler's own code (`tests/judge.py`). Both sides see the objects as the API server stores them;
this module adds what the API server's admission plugins would add to a pod.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import msgspec

from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.claims import Viewer
from gangsched.core.declarations.unready_claims import NOT_SUPPORTED
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.volumes import StorageKind
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.filling import classify
from gangsched.kube.reading.device_values import DEVICES
from gangsched.kube.reading.watched_resources import NAMESPACES, NODES, PODS, STORAGE
from tests.judge import Judge, Refusal, Said
from tests.verdicts import verdicts

Json = dict[str, Any]

_LEFT_AT = "2026-01-01T00:00:00Z"
_EVICTED_AFTER_S = 300


@dataclass(frozen=True)
class Standing:
    """A pod that exists before the probes: bound by its own `nodeName`, with its status, perhaps terminating.

    A pod that is `nominated` to a node is unbound.
    """

    manifest: Json
    status: Json = field(default_factory=dict)
    terminating: bool = False
    nominated: str = ""


@dataclass(frozen=True)
class World:
    """Nodes, pods, `storage` (claims, volumes, storage classes and CSINodes, each with its kind) and `others`.

    A claim marked as `leaving` is being deleted. The `others` have an apiVersion and a kind.
    """

    nodes: Sequence[Json]
    pods: Sequence[Standing] = ()
    storage: Sequence[Json] = ()
    others: Sequence[Json] = ()


@dataclass(frozen=True)
class Verdicts:
    """Both results for one probe: the accepted nodes, and in `refused` and `why` the reasons for each refused node."""

    manifest: Json
    kube_scheduler: frozenset[str]
    gangsched: frozenset[str]
    why: Mapping[str, str]
    refused: Mapping[str, Refusal] = field(default_factory=dict)
    unsupported: tuple[str, ...] = ()

    @property
    def difference(self) -> str:
        """Pod, nodes, both results and the manifest if they differ; empty if they agree."""
        disputed = [
            *(
                f"{node}: gangsched accepts it, kube-scheduler refuses ({self.refused.get(node)})"
                for node in self.gangsched - self.kube_scheduler
            ),
            *(
                f"{node}: kube-scheduler accepts it, gangsched refuses ({self.why[node]})"
                for node in self.kube_scheduler - self.gangsched
            ),
        ]
        if not disputed:
            return ""
        meta, spec = self.manifest["metadata"], self.manifest["spec"]
        shown = {"namespace": meta["namespace"], "labels": meta.get("labels"), "spec": spec}
        return "\n".join([meta["name"], *sorted(disputed), json.dumps(shown)])


@dataclass(frozen=True)
class Surroundings:
    """Objects that worlds and pods refer to by name: namespaces with their labels, runtime classes and priorities."""

    namespaces: Mapping[str, Mapping[str, str]]
    runtime_classes: Sequence[Json] = ()
    priorities: Mapping[str, int] = field(default_factory=dict)

    def admitted(self, manifest: Json, **meta: Any) -> Json:
        """The pod after the admission plugins Priority, RuntimeClass and DefaultTolerationSeconds."""
        made = deepcopy(manifest) | {"apiVersion": "v1", "kind": "Pod"}
        made["metadata"] |= meta
        spec = made["spec"]
        spec["priority"] = self.priorities.get(spec.get("priorityClassName", ""), 0)
        for found in self.runtime_classes:
            if found["metadata"]["name"] == spec.get("runtimeClassName"):
                if "overhead" in found:
                    spec["overhead"] = found["overhead"]["podFixed"]
                wanted = found.get("scheduling", {})
                spec["nodeSelector"] = spec.get("nodeSelector", {}) | wanted.get("nodeSelector", {})
                spec["tolerations"] = [*spec.get("tolerations", ()), *wanted.get("tolerations", ())]
        spec["tolerations"] = [*spec.get("tolerations", ())]
        for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
            if not any(_tolerates(each, key) for each in spec["tolerations"]):
                added = {"key": key, "operator": "Exists", "effect": "NoExecute"}
                spec["tolerations"].append(added | {"tolerationSeconds": _EVICTED_AFTER_S})
        return made

    def objects(self, world: World) -> list[Json]:
        """Everything of the world as manifests with a kind."""
        names = [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
            for name, labels in self.namespaces.items()
        ]
        nodes = [each | {"apiVersion": "v1", "kind": "Node"} for each in world.nodes]
        return [
            *names,
            *nodes,
            *map(_provided, world.storage),
            *world.others,
            *map(self._stored, world.pods, range(len(world.pods))),
        ]

    def _stored(self, pod: Standing, number: int) -> Json:
        left = {"deletionTimestamp": _LEFT_AT, "deletionGracePeriodSeconds": 30} if pod.terminating else {}
        made = self.admitted(pod.manifest, name=f"standing-{number}", **left)
        status = pod.status | ({"nominatedNodeName": pod.nominated} if pod.nominated else {})
        return made | ({"status": status} if status else {})


def _provided(found: Json) -> Json:
    group = STORAGE[StorageKind(found["kind"])].path.rpartition("/")[0]
    made = {key: value for key, value in found.items() if key != "leaving"}
    left = {"deletionTimestamp": _LEFT_AT} if "leaving" in found else {}
    version = {"apiVersion": group.removeprefix("/apis/").removeprefix("/api/")}
    return made | version | {"metadata": {"uid": found["metadata"]["name"]} | found["metadata"] | left}


def _tolerates(toleration: Json, key: str) -> bool:
    """Whether the toleration replaces the default one."""
    return bool(toleration.get("key", key) == key and toleration.get("effect", "NoExecute") == "NoExecute")


class Bench:
    """Queries both sides about probes in one world after another."""

    def __init__(self, judge: Judge, surroundings: Surroundings) -> None:
        self._judge = judge
        self._surroundings = surroundings
        self._objects: list[Json] = []

    @contextmanager
    def world(self, world: World) -> Iterator[None]:
        """The world exists inside the context."""
        self._objects = self._surroundings.objects(world)
        yield
        self._objects = []

    def cluster(self) -> Cluster:
        """The world in gangsched's representation."""
        return cluster_of(self._judge.ask(self._objects, []).objects)

    def named(self, probes: Sequence[Json]) -> list[Json]:
        """The probes in the form that the judge expects."""
        return [
            self._surroundings.admitted(probe, name=f"probe-{number}", uid=f"probe-{number}")
            for number, probe in enumerate(probes)
        ]

    def said(self, probes: Sequence[Json]) -> Said:
        """The judge's result for each probe."""
        return self._judge.ask(self._objects, self.named(probes))

    def ask(self, probes: Sequence[Json]) -> list[Verdicts]:
        """Both results for each probe, in order."""
        said = self.said(probes)
        cluster = cluster_of(said.objects)
        asked = [read_pod(verdict.pod) for verdict in said.verdicts]
        for pod in asked:
            cluster.set_pod(pod)
        snapshot = Snapshot(cluster)
        judged = []
        for pod, verdict in zip(asked, said.verdicts, strict=True):
            snapshot.stand_for(Viewer(pod.priority))
            why = refusals(snapshot, pod)
            accepted = frozenset(snapshot.cluster.nodes.keys() - why.keys())
            unsupported = [*pod.shape.unsupported]
            unready = cluster.volumes.unready(pod)
            if unready is not None and unready.trouble in NOT_SUPPORTED:
                unsupported.append(f"{unready.claim}: {unready.trouble}")
            judged.append(Verdicts(verdict.pod, verdict.feasible, accepted, why, verdict.refused, tuple(unsupported)))
        return judged


def cluster_of(objects: Sequence[Json]) -> Cluster:
    """The objects in gangsched's representation."""
    cluster = Cluster()
    for found in (each for each in objects if each["kind"] == "Namespace"):
        namespace = NAMESPACES.read(_raw(found))[1]
        cluster.set_namespace(namespace.name, namespace.labels)
    for found in (each for each in objects if each["kind"] == "Node"):
        cluster.set_node(NODES.read(_raw(found))[1])
    for kind, resource in STORAGE.items():
        for found in (each for each in objects if each["kind"] == kind.value):
            stored = resource.read(_raw(found))[1]
            cluster.set_storage(kind, stored.key, stored)
    for device_kind, listed in DEVICES.items():
        for found in (each for each in objects if each["kind"] == device_kind.value):
            offered = listed.read(_raw(found))[1]
            cluster.set_devices(device_kind, offered.key, offered)
    for found in (each for each in objects if each["kind"] == "Pod"):
        pod = read_pod(found)
        cluster.set_pod(pod)
        cluster.nominate(pod)
    assert not cluster.validate()
    return cluster


def read_pod(manifest: Json) -> Pod:
    """The pod as decoded by gangsched."""
    return PODS.read(_raw(manifest))[1]


def refusals(snapshot: Snapshot, pod: Pod) -> dict[str, str]:
    """The nodes on which gangsched would not place the pod, with the reasons."""
    member = classify(snapshot, [pod])[pod.uid]
    caps = snapshot.caps(member)
    why = verdicts(snapshot, member)
    for row in range(snapshot.size):
        name = snapshot.name(row)
        assert snapshot.fits(member, row) == (caps[row] > 0), f"caps and fits of {name} contradict"
        assert (caps[row] > 0) == (name not in why), f"what is said of {name} contradicts its room"
    return why


def agree(judged: Sequence[Verdicts], *, shown: int = 5) -> None:
    """Assert that gangsched supports every probe and agrees with the judge on it."""
    assert not [each.unsupported for each in judged if each.unsupported]
    different = [each.difference for each in judged if each.difference]
    examples = "\n\n".join(different[:shown])
    assert not different, f"{len(different)} of {len(judged)} probes are judged differently, such as\n{examples}"


def _raw(found: Json) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(found))
