"""A running kube-scheduler on a real API server: for any pod, the exact nodes that it accepts.

It verifies the judge (`tests/judge.py`), which calls the filters without either. kube-scheduler runs its default
profile with an extender, to which it sends the nodes that have passed all its filters. The extender records and refuses
them all, so that nothing is ever bound and no probe disturbs another. kube-scheduler is restarted for each world, after
the world is complete, so that the results do not depend on timing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Self

from testbed import binaries
from testbed.control_plane import ControlPlane
from tests.integration.judged import Json, Standing, World

_PROBES = "fieldSelector=spec.schedulerName=default-scheduler"
_OF_HEIRS = "scheduler-of-heirs"
_WITHIN_S = 60
# kube-scheduler must not try to schedule a pod that is nominated to a node.
_KEPT_WAITING: Json = {"schedulingGates": [{"name": "example.com/kept-waiting"}]}


class Oracle:
    """Queries kube-scheduler about probes in one world after another, on a control plane without other controllers."""

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
            for number, pod in enumerate(world.pods):
                self._stand(pod, number)
            yield
        finally:
            self._clear()

    def _stand(self, pod: Standing, number: int) -> None:
        scheduler = _OF_HEIRS if pod.nominated else "somebody-else"
        manifest = pod.manifest | {"spec": pod.manifest["spec"] | (_KEPT_WAITING if pod.nominated else {})}
        made = self._create(manifest, f"standing-{number}", scheduler=scheduler)
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

    def _pods(self, query: str = "") -> list[Json]:
        return list(self.api.get(f"/api/v1/pods?{query}")["items"])

    def ask(self, probes: Sequence[Json]) -> list[frozenset[str]]:
        """The feasible nodes of each probe, in order; only the probes are changed."""
        with _Extender() as extender, self._scheduler(extender.configuration):
            if self._heirs:
                self._nominate()
            uids = [
                self._create(probe, f"probe-{number}", scheduler="default-scheduler")["metadata"]["uid"]
                for number, probe in enumerate(probes)
            ]
            self._told()
            for namespace in {probe["metadata"]["namespace"] for probe in probes}:
                self.api.delete(f"/api/v1/namespaces/{namespace}/pods?{_PROBES}", grace_s=0)
        return [extender.passed.get(uid, frozenset()) for uid in uids]

    def _nominate(self) -> None:
        """Make kube-scheduler see the nominations: for a gated pod it only learns them from an update.

        So they are written (again) once it has judged a pod, which shows that its watch has begun.
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
        """The probes by UID, once kube-scheduler has marked each as unschedulable."""
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

    @contextmanager
    def _scheduler(self, extender: Json) -> Iterator[None]:
        folder = binaries.find(["kube-scheduler"])
        assert folder is not None
        config = self._control_plane.folder / "oracle.json"
        content = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(self._control_plane.kubeconfig), "qps": 2000, "burst": 2000},
            "profiles": [{"schedulerName": "default-scheduler"}, {"schedulerName": _OF_HEIRS}],
            "extenders": [extender],
        }
        config.write_text(json.dumps(content))
        self._child = self._control_plane.spawn(
            "oracle", [folder / "kube-scheduler", f"--config={config}", "--secure-port=0"]
        )
        try:
            yield
        finally:
            self._child.stop(timeout_s=2)


def _path(pod: Json) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def _is_told(probe: Json) -> bool:
    assert "nodeName" not in probe["spec"], f"{probe['metadata']['name']} was bound past the extender"
    told = [each for each in probe["status"].get("conditions", ()) if each["type"] == "PodScheduled"]
    return bool(told) and told[0]["reason"] == "Unschedulable"


class _Extender:
    """A scheduler extender that refuses every node and records the nodes it was asked about, by the pod's UID."""

    def __init__(self) -> None:
        self.passed: dict[str, frozenset[str]] = {}

    def __enter__(self) -> Self:
        passed = self.passed

        class Filter(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle(self) -> None:
                with suppress(ConnectionError):  # kube-scheduler was stopped
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
                """Log nothing."""

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
