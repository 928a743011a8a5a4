"""Kubelet admission, which KWOK lacks: a pod that is bound to a node without room for it is rejected.

Pods are admitted in the order in which the watch shows them bound. A pod that does not fit beside the admitted pods
that have neither ended nor gone gets phase Failed with a reason such as OutOfcpu, as from a kubelet. A spoiled kubelet
rejects every pod, although it would fit by numbers. KWOK may have set such a pod to Running before; afterwards
`testbed.restraint` keeps it from that.
"""

from __future__ import annotations

import http.client
import queue
import threading
import time
from collections import Counter

from testbed.api import Api, ApiError
from tests.faults.history import History
from tests.faults.objects import (
    Json,
    allocatable_of,
    ended,
    excess,
    group_of,
    key_of,
    maker_of,
    node_of,
    ours,
    requests_of,
    uid_of,
)
from tests.faults.rejections import Rejections

_NAMES = {"cpu": "OutOfcpu", "memory": "OutOfmemory", "pods": "OutOfpods"}
_RETRY_S = 0.2
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
    """The kubelets of all nodes. `rejected` counts rejections by reason, `rejections` judges those of ours.

    `spoiled` kubelets, by node, reject every pod for that reason.
    """

    def __init__(self, api: Api) -> None:
        super().__init__(name="kubelets", daemon=True)
        self.rejected: Counter[str] = Counter()
        self.rejections = Rejections()
        self.spoiled: dict[str, str] = {}
        self._api = api
        self._bound: queue.SimpleQueue[Json | None] = queue.SimpleQueue()
        self._admitted: dict[str, dict[str, Json]] = {}
        self._rejecting = 0
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
        """Whether every bound pod has been processed."""
        return self._bound.empty() and not self._rejecting

    def run(self) -> None:
        """Admit and reject until stopped."""
        while (pod := self._bound.get()) is not None:
            self._rejecting += 1
            why = self.spoiled.get(node_of(pod), "")
            if why:
                self._reject(pod, why, "Resources cannot be allocated with Topology locality")
            elif lacking := self._admit(pod):
                why = _NAMES.get(lacking, f"OutOf{lacking}")
                self._reject(pod, why, f"Node didn't have enough resource: {lacking}")
            self._rejecting -= 1

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

    def _reject(self, pod: Json, reason: str, message: str) -> None:
        while True:
            try:
                end_pod(self._api, pod, "Failed", reason=reason, message=f"Pod was rejected: {message}")
            except ApiError as error:
                if error.status in _UNPROCESSABLE:
                    return
            except (OSError, http.client.HTTPException):
                pass
            else:
                self.rejected[reason] += 1
                self._judge(pod)
                return
            time.sleep(_RETRY_S)

    def _judge(self, pod: Json) -> None:
        assert self._history is not None
        if not ours(pod):
            return
        with self._history.lock:
            group = group_of(pod)
            changed = self._history.changed_specs.get(group, 0.0) if group is not None else 0.0
            there = self._history.pods.keys()
            self.rejections.note(maker_of(pod), node_of(pod), uid_of(pod), at=time.time(), there=there, changed=changed)
