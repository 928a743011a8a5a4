"""Kubelet admission, which KWOK lacks: a pod that is bound to a node without room for it is rejected.

Pods are admitted in the order in which the watch shows them bound. A pod that does not fit beside the admitted pods
that have neither ended nor gone gets phase Failed with a reason such as OutOfcpu, as from a kubelet. KWOK may then
still set the pod to Running; it is rejected again.
"""

from __future__ import annotations

import http.client
import queue
import threading
import time
from collections import Counter

from testbed.api import Api, ApiError
from tests.faults.history import History
from tests.faults.objects import Json, allocatable_of, ended, excess, key_of, node_of, requests_of, uid_of

_NAMES = {"cpu": "OutOfcpu", "memory": "OutOfmemory", "pods": "OutOfpods"}
_RETRY_S = 0.2
_AGAIN_S = 0.5
_UNPROCESSABLE = frozenset({404, 409, 422})


def end_pod(api: Api, pod: Json, phase: str, *, reason: str = "", message: str = "") -> None:
    """Write a pod's end into its status, as its kubelet would; a later pod of the same name is left alone.

    Raises:
        ApiError: the API server refuses the write.
    """
    key = key_of(pod)
    body: Json = {"metadata": {"uid": uid_of(pod)}, "status": {"phase": phase}}
    if reason:
        body["status"] |= {"reason": reason, "message": message}
    api.merge(f"/api/v1/namespaces/{key.namespace}/pods/{key.name}/status", body)


class Kubelets(threading.Thread):
    """The kubelets of all nodes. `rejected` counts rejections by reason."""

    def __init__(self, api: Api) -> None:
        super().__init__(name="kubelets", daemon=True)
        self.rejected: Counter[str] = Counter()
        self._api = api
        self._bound: queue.SimpleQueue[Json | None] = queue.SimpleQueue()
        self._admitted: dict[str, dict[str, Json]] = {}
        self._rejected: dict[str, tuple[Json, str]] = {}
        self._history: History | None = None

    def serve(self, history: History) -> None:
        """Start; the history must pass bound pods to `take`."""
        self._history = history
        self.start()

    def take(self, pod: Json) -> None:
        """Queue a pod that was bound."""
        self._bound.put(pod)

    def stop(self) -> None:
        """Stop admitting pods."""
        self._bound.put(None)

    @property
    def idle(self) -> bool:
        """Whether every bound pod has been processed and no rejected pod runs."""
        return self._bound.empty() and not self._revived()

    def run(self) -> None:
        """Admit and reject until stopped."""
        while True:
            try:
                pod = self._bound.get(timeout=_AGAIN_S)
            except queue.Empty:
                for revived, lacking in self._revived():
                    self._reject(revived, lacking)
                continue
            if pod is None:
                return
            if lacking := self._admit(pod):
                self._rejected[uid_of(pod)] = (pod, lacking)
                self._reject(pod, lacking)

    def _revived(self) -> list[tuple[Json, str]]:
        assert self._history is not None
        with self._history.lock:
            known = self._history.pods
            return [each for uid, each in list(self._rejected.items()) if uid in known and not ended(known[uid])]

    def _admit(self, pod: Json) -> str:
        """The insufficient resource; empty if the pod fits and now counts."""
        assert self._history is not None
        admitted = self._admitted.setdefault(node_of(pod), {})
        with self._history.lock:
            known = self._history.pods
            for uid in [uid for uid in admitted if uid not in known or ended(known[uid])]:
                del admitted[uid]
            node = self._history.allocatables.get(node_of(pod))
        if node is None:
            return ""
        lacking = excess(map(requests_of, (*admitted.values(), pod)), allocatable_of(node)).partition(" ")[0]
        if not lacking:
            admitted[uid_of(pod)] = pod
        return lacking

    def _reject(self, pod: Json, lacking: str) -> None:
        reason = _NAMES.get(lacking, f"OutOf{lacking}")
        while True:
            try:
                end_pod(self._api, pod, "Failed", reason=reason, message=f"Node didn't have enough resource: {lacking}")
            except ApiError as error:
                if error.status in _UNPROCESSABLE:
                    return
            except (OSError, http.client.HTTPException):
                pass
            else:
                self.rejected[reason] += 1
                return
            time.sleep(_RETRY_S)
