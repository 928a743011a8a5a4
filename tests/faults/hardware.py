"""The nodes of the random world: cordoned, broken, deleted, and back again."""

from __future__ import annotations

import contextlib
import http.client
from collections.abc import Callable
from random import Random

from testbed.api import Api, ApiError
from testbed.nodes import NOT_READY, node
from tests.faults.history import History
from tests.faults.objects import Json, allocatable_of, ended, excess, key_of, node_of, requests_of

CORES = 8
_BROKEN = {"key": "soak.gangsched.io/broken", "value": "yes", "effect": "NoExecute"}
_NOT_READY = {"key": NOT_READY, "effect": "NoSchedule"}


class Hardware:
    """The nodes, with 8 cores each. All but the last few methods are random actions; False: there was nothing to do."""

    def __init__(self, api: Api, history: History, random: Random, *, count: int) -> None:
        self.cores = CORES * count
        self._api = api
        self._history = history
        self._random = random
        self._names = [f"n{number}" for number in range(count)]

    def prepare(self) -> None:
        """Create all nodes."""
        for name in self._names:
            self._api.post("/api/v1/nodes", _manifest(name))

    def cordon(self) -> None:
        """Cordon a node."""
        self._patch(self._random.choice(self._names), {"unschedulable": True})

    def uncordon(self) -> bool:
        """Uncordon a node."""
        return self._on_one(_cordoned, {"unschedulable": None})

    def break_node(self) -> None:
        """Taint a node so that all its pods are evicted."""
        self._patch(self._random.choice(self._names), {"taints": [_BROKEN]})

    def mend_node(self) -> bool:
        """Remove such a taint from a node."""
        return self._on_one(_broken, {"taints": None})

    def flap_node(self) -> None:
        """Give a node the not-ready taint, which its controller removes again."""
        self._patch(self._random.choice(self._names), {"taints": [_NOT_READY]})

    def delete_node(self) -> bool:
        """Delete a node; its pods are deleted at once, as by a cloud controller, or left to be found."""
        there = sorted(self._there())
        if len(there) <= len(self._names) * 2 // 3:
            return False
        name = self._random.choice(there)
        self._api.delete(f"/api/v1/nodes/{name}")
        if self._random.random() < 0.7:
            for pod in self._pods_on(name):
                key = key_of(pod)
                with contextlib.suppress(ApiError, OSError, http.client.HTTPException):
                    self._api.delete(f"/api/v1/namespaces/{key.namespace}/pods/{key.name}", grace_s=0)
        return True

    def add_again(self) -> bool:
        """Recreate a deleted node."""
        gone = sorted(set(self._names) - self._there().keys())
        if gone:
            self._api.post("/api/v1/nodes", _manifest(self._random.choice(gone)))
        return bool(gone)

    def mend_all(self) -> None:
        """Make every node exist, healthy and schedulable; call again until there is nothing left to do."""
        there = self._there()
        for name in self._names:
            with contextlib.suppress(ApiError, OSError, http.client.HTTPException):
                if name not in there:
                    self._api.post("/api/v1/nodes", _manifest(name))
                elif _cordoned(there[name]) or _broken(there[name]):
                    self._patch(name, {"unschedulable": None, "taints": None})

    def taking(self, pod: Json) -> list[str]:
        """The nodes on which the pod fits now."""
        found = []
        for name, each in sorted(self._there().items()):
            taken = [requests_of(other) for other in self._pods_on(name) if not ended(other)]
            closed = _cordoned(each) or each["spec"].get("taints")
            if not closed and not excess([*taken, requests_of(pod)], allocatable_of(each)):
                found.append(name)
        return found

    def _there(self) -> dict[str, Json]:
        with self._history.lock:
            return dict(self._history.nodes)

    def _pods_on(self, name: str) -> list[Json]:
        with self._history.lock:
            return sorted((pod for pod in self._history.pods.values() if node_of(pod) == name), key=key_of)

    def _on_one(self, wanted: Callable[[Json], bool], spec: Json) -> bool:
        found = sorted(name for name, each in self._there().items() if wanted(each))
        if found:
            self._patch(self._random.choice(found), spec)
        return bool(found)

    def _patch(self, name: str, spec: Json) -> None:
        self._api.merge(f"/api/v1/nodes/{name}", {"spec": spec})


def _manifest(name: str) -> Json:
    """Some of the nodes take few pods, so that the pod limit can be the bottleneck."""
    return node(name, cpu=str(CORES), memory="16Gi", pods="6" if name.endswith("3") else "110")


def _cordoned(found: Json) -> bool:
    return bool(found["spec"].get("unschedulable"))


def _broken(found: Json) -> bool:
    return _BROKEN in found["spec"].get("taints", [])
