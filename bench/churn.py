"""`python -m bench.churn [MINUTES]`: the operator's memory while gangs come and go, as one JSON line.

Gangs are created at a steady rate, each with a new name. Most are bound, run on KWOK's nodes and are deleted, half of
them after their pods have succeeded. Some never become complete, some never fit, and some are plain pods. Nodes of new
kinds come and go, and the API server restarts from time to time. The operator's resident memory is read from /proc
every 10 s. The result is the ratio of the memory at the end to that of the fifth minute (in a run shorter than 15
minutes: at a third of the run). Progress goes to standard error.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import uvloop

from bench.lab import rss_mb
from gangsched.core.objects.events import Event, PodSeen, PodsReplaced
from gangsched.kube.client.errors import KubeError
from gangsched.kube.client.reflector import Reflector
from gangsched.kube.client.session import MERGE_PATCH, ApiSession, connect
from gangsched.kube.reading.watched_resources import PODS
from testbed import crds
from testbed.control_plane import ControlPlane
from testbed.nodes import node
from testbed.operator import Operator
from testbed.workloads import member, pod_group

MINUTES = 30.0
GANGS_PER_S = 4.0
SIZE = 5
NODES = 20
LIFE_S = 10.0
WAITS_S = 20.0
SAMPLE_S = 10.0
RESTART_EVERY_S = 420.0
SETTLED_S = 300.0
_PODS = "/api/v1/namespaces/default/pods"
_GROUPS = "/apis/gangsched.io/v1alpha1/namespaces/default/podgroups"
_NODES = "/api/v1/nodes"
_NOT_FOUND, _CONFLICT, _SERVER_ERROR = 404, 409, 500


@dataclass(slots=True)
class Bound:
    """Counts pods when their binding is first seen, and wakes the tasks that wait for it."""

    count: int = 0
    _awaited: dict[str, asyncio.Event] = field(default_factory=dict)

    def await_pod(self, name: str) -> asyncio.Event:
        """An event that is set once the pod of this name has a node."""
        return self._awaited.setdefault(name, asyncio.Event())

    def post(self, events: Iterable[Event]) -> None:
        """Record the bound pods of a reflector's events."""
        for event in events:
            pods = event.pods if isinstance(event, PodsReplaced) else [event.pod] if isinstance(event, PodSeen) else []
            for pod in pods:
                awaited = self._awaited.pop(pod.name, None) if pod.node else None
                if awaited is not None:
                    awaited.set()
                    self.count += 1

    def watch_events(self, resource: str, count: int) -> None:
        """Does nothing: the benchmark keeps no such metric."""

    def relisted(self, resource: str, cause: str) -> None:
        """Does nothing: the benchmark keeps no such metric."""


class Churn:
    """Gangs that come and go, each in its own task."""

    def __init__(self, session: ApiSession, bound: Bound) -> None:
        self.kinds: Counter[str] = Counter()
        self._session = session
        self._bound = bound

    async def run(self, until: float) -> None:
        """Create gangs at the steady rate until this `time.monotonic` time, then let the last ones end."""
        began, number = time.monotonic(), 0
        async with asyncio.TaskGroup() as gangs:
            while time.monotonic() < until:
                gangs.create_task(self._gang(number))
                number += 1
                await asyncio.sleep(max(0.0, began + number / GANGS_PER_S - time.monotonic()))

    async def _gang(self, number: int) -> None:
        kind = "fits" if number % 5 else ("large", "incomplete", "plain", "own node", "undeclared")[number // 5 % 5]
        self.kinds[kind] += 1
        name = f"g{number}"
        declared = kind not in ("plain", "undeclared")
        requests = {"cpu": "1000"} if kind == "large" else {"cpu": "100m", "memory": f"{1 + number}Ki"}
        count = 2 if kind == "incomplete" else SIZE
        pods = [f"{name}-{index}" for index in range(count)]
        waits = kind in ("large", "incomplete", "undeclared")
        seen = [] if waits else [self._bound.await_pod(pod) for pod in pods]
        if kind == "own node":
            own = node(f"own-{name}", extra={f"own-{name}.example/dev": "1"}, ready=True)
            await self._call("POST", _NODES, own)
        if declared:
            await self._call("POST", _GROUPS, pod_group(name, min_member=SIZE, maxScheduleTime="5s"))
        for pod in pods:
            await self._call("POST", _PODS, member(pod, "" if kind == "plain" else name, requests=requests))
        if waits:
            await asyncio.sleep(WAITS_S)
        else:
            async with asyncio.timeout(120):
                for each in seen:
                    await each.wait()
            await asyncio.sleep(LIFE_S)
        if number % 2:
            for pod in pods:
                await self._call("PATCH", f"{_PODS}/{pod}/status", {"status": {"phase": "Succeeded"}})
        for pod in pods:
            await self._call("DELETE", f"{_PODS}/{pod}", {"gracePeriodSeconds": 0})
        if declared:
            await self._call("DELETE", f"{_GROUPS}/{name}", {})
        if kind == "own node":
            await self._call("DELETE", f"{_NODES}/own-{name}", {})

    async def _call(self, method: str, path: str, body: dict[str, Any]) -> None:
        """Send the request and retry until the API server accepts it, across restarts too."""
        content_type = MERGE_PATCH if method == "PATCH" else "application/json"
        while True:
            try:
                answer = await self._session.request(
                    method, path, body=json.dumps(body).encode(), content_type=content_type, timeout_s=30
                )
            except KubeError:
                await asyncio.sleep(0.5)
                continue
            if answer.ok or answer.status in (_NOT_FOUND, _CONFLICT):
                return
            if answer.status < _SERVER_ERROR:
                raise answer.error()
            await asyncio.sleep(0.5)


def main(arguments: Sequence[str]) -> None:
    """Run the churn and print its line."""
    minutes = float(arguments[0]) if arguments else MINUTES
    with ControlPlane(controllers=False, kwok=True, not_ready_taint=False) as control_plane:
        crds.install(control_plane)
        for number in range(NODES):
            control_plane.api.post(_NODES, node(f"n{number}", cpu="32", memory="256Gi", pods="1000", ready=True))
        with Operator(control_plane, leader_elect=True) as operator:
            print(json.dumps(uvloop.run(_churn(control_plane, operator, 60 * minutes))))


async def _churn(control_plane: ControlPlane, operator: Operator, seconds: float) -> dict[str, object]:
    session = await connect(kubeconfig=str(control_plane.kubeconfig))
    bound = Bound()
    watching = asyncio.create_task(Reflector(session, PODS, bound.post, observer=bound).run())
    began = time.monotonic()
    churn = Churn(session, bound)
    restarting = asyncio.create_task(_restart(control_plane))
    samples: list[tuple[float, float]] = []
    running = asyncio.create_task(churn.run(began + seconds))
    try:
        while not running.done():
            samples.append((time.monotonic() - began, rss_mb(operator.child.pid)))
            print(f"{samples[-1][0]:6.0f} s  {samples[-1][1]:6.1f} MB  {bound.count} bound", file=sys.stderr)
            await asyncio.wait({running}, timeout=SAMPLE_S)
        await running
    finally:
        restarting.cancel()
        watching.cancel()
        await session.close()
    settled_s = SETTLED_S if seconds >= 3 * SETTLED_S else seconds / 3
    early = _around(samples, settled_s)
    late = _around(samples, seconds)
    return {
        "scenario": f"churn {seconds / 60:g} minutes",
        "settled_after_s": round(settled_s),
        "rss_settled_mb": round(early, 1),
        "rss_end_mb": round(late, 1),
        "rss_max_mb": round(max(rss for _, rss in samples), 1),
        "ratio": round(late / early, 3),
        "pods_bound": bound.count,
        "gangs": dict(churn.kinds),
    }


def _around(samples: Sequence[tuple[float, float]], at_s: float) -> float:
    """The median of the samples nearest to this time: a single sample may fall on a short peak."""
    nearest = sorted(samples, key=lambda sample: abs(sample[0] - at_s))[:5]
    return median(rss for _, rss in nearest)


async def _restart(control_plane: ControlPlane) -> None:
    """Restart the API server from time to time, so that everything is listed again."""
    while True:
        await asyncio.sleep(RESTART_EVERY_S)
        await asyncio.to_thread(control_plane.restart_apiserver)


if __name__ == "__main__":
    main(sys.argv[1:])
