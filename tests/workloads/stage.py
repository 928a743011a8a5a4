"""A namespace in which workload controllers create pods, with the operations that the plays need."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from testbed.api import ApiError
from testbed.control_plane import ControlPlane, ControlPlaneError
from testbed.stages import ends
from tests.integration.cluster import Cluster, end_terminating

Json = dict[str, Any]

_UNSEEN = "must be created before"


class Stage(Cluster):
    """A namespace; `path` is the collection of the workloads, such as ``apis/batch/v1/jobs``."""

    def __init__(self, control_plane: ControlPlane, namespace: str, path: str) -> None:
        super().__init__(control_plane, namespace)
        head, _, plural = path.rpartition("/")
        self._workloads = f"/{head}/namespaces/{namespace}/{plural}"
        self._node_of: dict[str, str] = {}

    def apply(self, manifest: str) -> None:
        """Apply like a user, retrying while a webhook refuses because it has not yet seen an object applied before."""

        def accepted() -> bool:
            try:
                self.control_plane.kubectl("apply", "--namespace", self.namespace, "--filename", "-", stdin=manifest)
            except ControlPlaneError as refusal:
                if _UNSEEN not in str(refusal):
                    raise
                return False
            return True

        self.until(accepted)

    def patch(self, name: str, body: Json | list[Json]) -> None:
        """Changes the workload by a merge patch or, where the body is a list, by a JSON patch."""
        if isinstance(body, dict):
            self.api.merge(f"{self._workloads}/{name}", body)
            return
        words = ("patch", "--namespace", self.namespace, self._resource(), name, "--type=json")
        self.control_plane.kubectl(*words, f"--patch={json.dumps(body)}")

    def remove(self, name: str, resource: str = "") -> None:
        """Deletes the workload, or another owner of pods, together with its pods."""
        kind = resource or self._resource()
        self.control_plane.kubectl(
            "delete", "--namespace", self.namespace, "--ignore-not-found", "--wait=false", kind, name
        )

    def _resource(self) -> str:
        _, group, *_, plural = self._workloads.strip("/").split("/")
        return f"{plural}.{group}"

    def live(self, name: str) -> list[Json]:
        """The pods of that workload that count: neither ended nor terminating, nor meant to end before the others."""
        return self._live(name)[0]

    def _live(self, *names: str) -> list[list[Json]]:
        """The live pods of each workload, from one list."""
        end_terminating(self.api, self.namespace)
        alive = [
            pod
            for pod in self.pods()
            if "deletionTimestamp" not in pod["metadata"]
            and pod["status"].get("phase") not in ("Succeeded", "Failed")
            and not ends(pod)
        ]
        return [[pod for pod in alive if f"{pod['metadata']['name']}-".startswith(f"{name}-")] for name in names]

    def counts(self, *names: str) -> list[tuple[int, int]]:
        """The number of live pods of each workload, and how many are bound."""
        return [(len(live), sum("nodeName" in pod["spec"] for pod in live)) for live in self._live(*names)]

    def end(self, pod: Json, how: str) -> None:
        """End the pod as its node would (`Failed`), or delete it (`deleted`).

        Waits until the pod runs, because KWOK would otherwise overwrite its phase.
        """
        name = pod["metadata"]["name"]
        if how == "deleted":
            self.delete_pod(name)
            return
        self.until(lambda: self.pod(name)["status"]["phase"] == "Running")
        ended = {"name": pod["spec"]["containers"][0]["name"], "state": {"terminated": {"exitCode": 1}}}
        ended |= {"ready": False, "restartCount": 0, "image": "none", "imageID": ""}
        status = {"phase": "Failed", "containerStatuses": [ended]}
        self.api.merge(f"/api/v1/namespaces/{self.namespace}/pods/{name}/status", {"status": status})

    @contextlib.contextmanager
    def more_room(self, cpu: str) -> Iterator[None]:
        """An additional node, removed with its pods afterwards."""
        name = f"more-{self.namespace}"
        self.add_node(name, cpu=cpu)
        yield
        self.api.delete(f"/api/v1/nodes/{name}")

    def clear(self) -> None:
        """Deletes everything that creates pods, and waits until no pod is left."""
        for each in self.api.get(self._workloads)["items"]:
            self.remove(each["metadata"]["name"])
        self.api.delete(f"/api/v1/namespaces/{self.namespace}")
        self.until(self._is_empty, within_s=60, what="the namespace has no pods")

    def _is_empty(self) -> bool:
        pods = f"/api/v1/namespaces/{self.namespace}/pods"
        self.api.delete(pods, grace_s=0)
        left = self.api.get(pods)["items"]
        for pod in left:
            if pod["metadata"].get("finalizers"):
                with contextlib.suppress(ApiError):
                    self.api.merge(f"{pods}/{pod['metadata']['name']}", {"metadata": {"finalizers": None}})
        return not left
