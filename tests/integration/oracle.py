"""The real kube-scheduler as the judge of gangsched's filters: for any pod, the exact nodes that each of them accepts.

kube-scheduler runs its default profile with an extender, which it tells the nodes that have passed all its filters.
The extender notes them and refuses them all, so that nothing is ever bound and no probe disturbs another. It is started
anew for each world, after the world is complete, so that what it has seen is no question of time.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self

import msgspec

from gangsched.core.cluster.cache import Cluster
from gangsched.core.declarations.volume_claims import NOT_SUPPORTED
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.volumes import StorageKind
from gangsched.core.planning.placement import classify
from gangsched.core.planning.snapshot import Snapshot
from gangsched.kube.resources import NAMESPACES, NODES, PODS, STORAGE
from testbed import binaries
from testbed.control_plane import ControlPlane
from tests.verdicts import verdicts

Json = dict[str, Any]

_PROBES = "fieldSelector=spec.schedulerName=default-scheduler"
_OF_HEIRS = "scheduler-of-heirs"
_WITHIN_S = 60
_SCORED = re.compile(
    r'"Plugin scored node for pod" pod="(?P<pod>[^"]*)" plugin="(?P<plugin>[^"]*)" node="(?P<node>[^"]*)" '
    r"score=(?P<score>[0-9]+)"
)


@dataclass(frozen=True)
class Standing:
    """A pod that is there before the probes come: bound by its own `nodeName`, then given its status, then deleted.

    One that is `nominated` to a node is kept from being tried there by a scheduling gate.
    """

    manifest: Json
    status: Json = field(default_factory=dict)
    terminating: bool = False
    nominated: str = ""


@dataclass(frozen=True)
class World:
    """Nodes, pods, and `storage`: claims, volumes, storage classes and CSINodes, each with its kind.

    A claim marked as `leaving` is deleted and kept from ending.
    """

    nodes: Sequence[Json]
    pods: Sequence[Standing] = ()
    storage: Sequence[Json] = ()


@dataclass(frozen=True)
class Verdicts:
    """What both say of one probe, as the API server has it; `why` is gangsched's reason for each node it refuses."""

    manifest: Json
    kube_scheduler: frozenset[str]
    gangsched: frozenset[str]
    why: Mapping[str, str]
    unsupported: tuple[str, ...] = ()

    @property
    def difference(self) -> str:
        """Pod, nodes, both verdicts and the manifest where they differ; empty where they agree."""
        disputed = [
            *(f"{node}: gangsched accepts it, kube-scheduler refuses" for node in self.gangsched - self.kube_scheduler),
            *(
                f"{node}: kube-scheduler accepts it, gangsched refuses ({self.why[node]})"
                for node in self.kube_scheduler - self.gangsched
            ),
        ]
        if not disputed:
            return ""
        meta, spec = self.manifest["metadata"], self.manifest["spec"]
        told = next(each["message"] for each in self.manifest["status"]["conditions"] if each["type"] == "PodScheduled")
        shown = {"namespace": meta["namespace"], "labels": meta.get("labels"), "spec": spec}
        return "\n".join([meta["name"], *sorted(disputed), f"kube-scheduler says: {told}", json.dumps(shown)])


class Oracle:
    """Asks both about probes in one world after another, on a control plane of its own without any other controller."""

    def __init__(self, control_plane: ControlPlane) -> None:
        self._control_plane = control_plane
        self.api = control_plane.api
        self._heirs: dict[str, str] = {}

    @contextmanager
    def world(self, world: World) -> Iterator[None]:
        """The world exists inside the context."""
        try:
            for node in world.nodes:
                self.api.post("/api/v1/nodes", node)
            for found in world.storage:
                self._provide(found)
            for number, pod in enumerate(world.pods):
                self._stand(pod, number)
            yield
        finally:
            self._clear()

    def _provide(self, found: Json) -> None:
        resource = STORAGE[StorageKind(found["kind"])]
        path = resource.path
        if "namespace" in found["metadata"]:
            path = path.replace("/v1/", f"/v1/namespaces/{found['metadata']['namespace']}/")
        self.api.post(path, {key: value for key, value in found.items() if key != "leaving"})
        path = f"{path}/{found['metadata']['name']}"
        if "status" in found:
            self.api.merge(f"{path}/status", {"status": found["status"]})
        if "leaving" in found:
            self.api.delete(path)

    def _stand(self, pod: Standing, number: int) -> None:
        scheduler = _OF_HEIRS if pod.nominated else "somebody-else"
        made = self._create(pod.manifest, f"standing-{number}", scheduler=scheduler)
        if pod.nominated:
            self._heirs[_path(made)] = pod.nominated
        if pod.status:
            self.api.merge(f"{_path(made)}/status", {"status": pod.status})
        if pod.terminating:
            self.api.delete(_path(made))

    def _create(self, manifest: Json, name: str, *, scheduler: str) -> Json:
        made = manifest | {
            "metadata": manifest["metadata"] | {"name": name},
            "spec": manifest["spec"] | {"schedulerName": scheduler},
        }
        return self.api.post(_path(made).rpartition("/")[0], made)

    def _clear(self) -> None:
        self._heirs.clear()
        for node in self.api.get("/api/v1/nodes")["items"]:
            self.api.delete(f"/api/v1/nodes/{node['metadata']['name']}")
        for pod in self._pods():
            if pod["metadata"].get("finalizers"):
                self.api.merge(_path(pod), {"metadata": {"finalizers": None}})
        for pod in self._pods():
            self.api.delete(_path(pod), grace_s=0)
        assert not self._pods()
        for resource in STORAGE.values():
            for found in self.api.get(resource.path)["items"]:
                meta = found["metadata"]
                path = resource.path
                if "namespace" in meta:
                    path = path.replace("/v1/", f"/v1/namespaces/{meta['namespace']}/")
                if meta.get("finalizers"):
                    self.api.merge(f"{path}/{meta['name']}", {"metadata": {"finalizers": None}})
                if not meta.get("deletionTimestamp"):
                    self.api.delete(f"{path}/{meta['name']}")
            assert not self.api.get(resource.path)["items"]

    def _pods(self, query: str = "") -> list[Json]:
        return list(self.api.get(f"/api/v1/pods?{query}")["items"])

    def cluster(self) -> Cluster:
        """The world as gangsched knows it."""
        cluster = Cluster()
        for found in self._read("/api/v1/namespaces", NAMESPACES.read):
            cluster.set_namespace(*found)
        for found in self._read("/api/v1/nodes", NODES.read):
            cluster.set_node(found)
        for kind, resource in STORAGE.items():
            for found in self._read(resource.path, resource.read):
                cluster.set_storage(kind, found.key, found)
        for found in self._read("/api/v1/pods", PODS.read):
            cluster.set_pod(found)
            cluster.nominate(found)
        assert not cluster.validate()
        return cluster

    def _read(self, path: str, read: Callable[[Any], tuple[Any, Any]]) -> list[Any]:
        return [read(_raw(item))[1] for item in self.api.get(path)["items"]]

    def ask(self, probes: Sequence[Json]) -> list[Verdicts]:
        """Both verdicts on each probe, in their order; nothing but the probes is different afterwards."""
        with _Extender() as extender, self._scheduler(extenders=[extender.configuration]):
            if self._heirs:
                self._nominate()
            uids = [
                self._create(probe, f"probe-{number}", scheduler="default-scheduler")["metadata"]["uid"]
                for number, probe in enumerate(probes)
            ]
            told = self._told()
            for namespace in {probe["metadata"]["namespace"] for probe in probes}:
                self.api.delete(f"/api/v1/namespaces/{namespace}/pods?{_PROBES}", grace_s=0)
        cluster = self.cluster()
        asked = {uid: PODS.read(_raw(told[uid]))[1] for uid in uids}
        for pod in asked.values():
            cluster.set_pod(pod)
        snapshot = Snapshot(cluster)
        judged = []
        for uid, pod in asked.items():
            snapshot.heed_nominated(pod.priority)
            why = refusals(snapshot, pod)
            accepted = frozenset(snapshot.cluster.nodes.keys() - why.keys())
            passed = extender.passed.get(uid, frozenset())
            refused = [*pod.shape.unsupported]
            unready = cluster.volumes.unready(pod)
            if unready is not None and unready.trouble in NOT_SUPPORTED:
                refused.append(f"{unready.claim}: {unready.trouble}")
            judged.append(Verdicts(told[uid], passed, accepted, why, tuple(refused)))
        return judged

    def _nominate(self) -> None:
        """Let kube-scheduler know of the nominations: of a pod with a gate it learns them from a change alone.

        So it must have begun to watch, as it has once it has judged a pod, before they are made (again).
        """
        namespace = next(iter(self._heirs)).split("/")[4]
        first = self._create(
            {"metadata": {"namespace": namespace}, "spec": {"containers": [{"name": "c", "image": "x"}]}},
            "first",
            scheduler="default-scheduler",
        )
        self._told()
        self.api.delete(_path(first), grace_s=0)
        for path, node in self._heirs.items():
            for nominated in (None, node):
                self.api.merge(f"{path}/status", {"status": {"nominatedNodeName": nominated}})

    def _told(self) -> dict[str, Json]:
        """The probes by UID once kube-scheduler has told each that it fits nowhere."""
        deadline = time.monotonic() + _WITHIN_S
        while True:
            probes = self._pods(_PROBES)
            waiting = [probe["metadata"]["name"] for probe in probes if not _is_told(probe)]
            if not waiting:
                return {probe["metadata"]["uid"]: probe for probe in probes}
            assert time.monotonic() < deadline, (
                f"kube-scheduler has said nothing of {len(waiting)} probes, such as {waiting[0]}, within {_WITHIN_S} s;"
                f" its log ends with:\n{self._child.log_tail()}"
            )
            time.sleep(0.2)

    def scores(self, probes: Sequence[Json]) -> list[tuple[Pod, Mapping[str, Mapping[str, int]]]]:
        """Each probe, and kube-scheduler's weighted scores of the nodes that take it, by plug-in.

        Nodes are not scored where only one takes the pod. The probes are bound, and deleted afterwards.
        """
        with self._scheduler("-v=10"):
            # The log of an earlier one is continued.
            before = self._child.log.stat().st_size
            made = [
                self._create(probe, f"probe-{number}", scheduler="default-scheduler")
                for number, probe in enumerate(probes)
            ]
            deadline = time.monotonic() + _WITHIN_S
            while any("nodeName" not in each["spec"] for each in self._pods(_PROBES)):
                assert time.monotonic() < deadline, "kube-scheduler has not bound all probes"
                time.sleep(0.2)
            log = self._child.log.read_bytes()[before:].decode()
            for each in made:
                self.api.delete(_path(each), grace_s=0)
        found: dict[str, dict[str, dict[str, int]]] = {}
        for line in _SCORED.finditer(log):
            found.setdefault(line["pod"], {}).setdefault(line["plugin"], {})[line["node"]] = int(line["score"])
        names = [f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in made]
        return [(PODS.read(_raw(each))[1], found.get(name, {})) for each, name in zip(made, names, strict=True)]

    @contextmanager
    def _scheduler(self, *flags: str, extenders: Sequence[Json] = ()) -> Iterator[None]:
        folder = binaries.find(["kube-scheduler"])
        assert folder is not None
        config = self._control_plane.folder / "oracle.json"
        content = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(self._control_plane.kubeconfig), "qps": 2000, "burst": 2000},
            "profiles": [{"schedulerName": "default-scheduler"}, {"schedulerName": _OF_HEIRS}],
            "extenders": list(extenders),
        }
        config.write_text(json.dumps(content))
        self._child = self._control_plane.spawn(
            "oracle", [folder / "kube-scheduler", f"--config={config}", "--secure-port=0", *flags]
        )
        try:
            yield
        finally:
            self._child.stop(timeout_s=2)


def refusals(snapshot: Snapshot, pod: Pod) -> dict[str, str]:
    """The nodes on which gangsched would not place the pod, and why not."""
    member = classify(snapshot, [pod])[pod.uid]
    caps = snapshot.caps(member)
    why = verdicts(snapshot, member)
    for row in range(snapshot.size):
        name = snapshot.name(row)
        assert snapshot.fits(member, row) == (caps[row] > 0), f"caps and fits of {name} contradict"
        assert (caps[row] > 0) == (name not in why), f"what is said of {name} contradicts its room"
    return why


def _raw(found: Json) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(found))


def _path(pod: Json) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def _is_told(probe: Json) -> bool:
    assert "nodeName" not in probe["spec"], f"{probe['metadata']['name']} was bound past the extender"
    told = [each for each in probe["status"].get("conditions", ()) if each["type"] == "PodScheduled"]
    return bool(told) and told[0]["reason"] == "Unschedulable"


class _Extender:
    """A scheduler extender that refuses every node and remembers, by the pod's UID, what it was asked about."""

    def __init__(self) -> None:
        self.passed: dict[str, frozenset[str]] = {}

    def __enter__(self) -> Self:
        passed = self.passed

        class Filter(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle(self) -> None:
                with suppress(ConnectionError):  # kube-scheduler was ended
                    super().handle()

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                passed[asked["Pod"]["metadata"]["uid"]] = frozenset(asked["NodeNames"])
                refused = dict.fromkeys(asked["NodeNames"], "noted by the oracle")
                answer = json.dumps({"NodeNames": [], "FailedAndUnresolvableNodes": refused}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Nothing is logged."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Filter)
        self.configuration: Json = {
            "urlPrefix": f"http://127.0.0.1:{self._server.server_port}",
            "filterVerb": "filter",
            "nodeCacheCapable": True,
            "httpTimeout": "30s",
        }
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
