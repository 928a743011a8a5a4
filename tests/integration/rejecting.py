"""Kubelets that reject pods at once."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator

from testbed.api import Api, ApiError
from tests.integration.cluster import Cluster, Json

Verdict = Callable[[Json], Json | None]
"""The status of a failed pod; None for one that KWOK may run."""
_AGAIN_S = 0.1


def rejection(reason: str, message: str) -> Json:
    """What the kubelet writes about a pod that it does not admit (`rejectPod` in pkg/kubelet/kubelet.go)."""
    return {"phase": "Failed", "reason": reason, "message": f"Pod was rejected: {message}"}


class Rejecting:
    """What the kubelets have done. `failed` are the times of failures by the pods' label `app`."""

    def __init__(self, api: Api, pods: str, verdict: Verdict) -> None:
        self.failed: defaultdict[str, list[float]] = defaultdict(list)
        self.verdict = verdict
        self._api = api
        self._pods = pods
        self._done: set[str] = set()

    def look(self) -> None:
        """Let newly bound pods fail."""
        for pod in self._api.get(self._pods)["items"]:
            uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
            if uid in self._done or not pod["spec"].get("nodeName"):
                continue
            self._done.add(uid)
            if (status := self.verdict(pod)) is not None:
                self.failed[pod["metadata"]["labels"].get("app", "")].append(time.monotonic())
                with contextlib.suppress(ApiError):
                    self._api.merge(f"{self._pods}/{name}/status", {"metadata": {"uid": uid}, "status": status})

    def most(self, app: str, window_s: float = 300.0) -> int:
        """The largest number of the app's pods that failed within so many seconds."""
        times = self.failed[app]
        return max((sum(since <= at < since + window_s for at in times) for since in times), default=0)


@contextlib.contextmanager
def rejecting(cluster: Cluster, verdict: Verdict) -> Iterator[Rejecting]:
    """Such kubelets for the pods of the test's namespace."""
    api, over = cluster.control_plane.new_api(), threading.Event()
    found = Rejecting(api, f"/api/v1/namespaces/{cluster.namespace}/pods", verdict)

    def work() -> None:
        while not over.wait(_AGAIN_S):
            found.look()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join(10)
        api.close()
