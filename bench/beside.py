"""Delays next to a crowd, on the real API server: those of a healthy gang, and of requests for /livez.

The crowd is created at a steady rate that does not saturate the API server, because the benchmark measures gangsched,
which shares two cores with it. A gang's own delay runs from the moment this client's watch sees its last member to the
request of its last binding. The API server's time to deliver a pod to a watch and to answer a binding is reported
separately.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from bench.lab import Figures, Lab, lab
from bench.load import GROUPS, PODS
from bench.scenarios import Kind, Scenario
from gangsched.core.objects.events import Event, PodSeen, PodsReplaced
from gangsched.kube.client.reflector import Reflector
from gangsched.kube.reading import watched_resources
from testbed.operator import Operator
from testbed.workloads import Json, member, pod_group

PER_S = 250.0
"""Rate at which the crowd's objects are created, per second."""
SIZE = 5
SAMPLE_S = 0.1
_BOUND_WITHIN_S = 300.0
_NAMESPACE = "healthy"


class Crowd(StrEnum):
    """The kinds of crowd next to the healthy gang."""

    PARKED = "parked gangs"
    EMPTY = "PodGroups without pods"
    URGENT = "high-priority one-pod gangs"
    MEMBERS = "members of minimum 1"


@dataclass(frozen=True, kw_only=True)
class Beside:
    """A scenario: `number` objects of a crowd on `nodes` nodes."""

    crowd: Crowd
    number: int
    nodes: int = 500

    @property
    def title(self) -> str:
        """The scenario in a few words."""
        return f"beside {self.number:,} {self.crowd}"

    @property
    def to_bind(self) -> int:
        """The number of the crowd's pods that fit."""
        return self.number if self.crowd in (Crowd.URGENT, Crowd.MEMBERS) else 0

    def objects(self) -> Iterator[tuple[str, Json]]:
        """The crowd's objects: for each the path to create it at, and its manifest."""
        if self.crowd is Crowd.MEMBERS:
            yield GROUPS, pod_group("crowd", min_member=1)
            for at in range(self.number):
                yield PODS, member(f"crowd-{at}", "crowd")
            return
        spec = {"priority": 1000} if self.crowd is Crowd.URGENT else {}
        for at in range(self.number):
            yield GROUPS, pod_group(f"crowd-{at}", min_member=1, **spec)
            if self.crowd is not Crowd.EMPTY:
                cpus = "64" if self.crowd is Crowd.PARKED else "1"
                yield PODS, member(f"crowd-{at}-0", f"crowd-{at}", requests={"cpu": cpus})


ALL = (
    Beside(crowd=Crowd.PARKED, number=1000),
    Beside(crowd=Crowd.EMPTY, number=10_000),
    Beside(crowd=Crowd.URGENT, number=5000),
    Beside(crowd=Crowd.MEMBERS, number=25_000, nodes=5000),
)


async def run(beside: Beside) -> Figures:
    """Measure once, on a control plane of its own."""
    async with lab(Scenario(kind=Kind.BESIDE, nodes=beside.nodes, gangs=0, size=0)) as made:
        await made.load.post("/api/v1/namespaces", {"metadata": {"name": _NAMESPACE}})
        async with made.operator(ready=True) as operator:
            made.timeline.begin()
            seen = _Seen()
            path = PODS.replace("/default/", f"/{_NAMESPACE}/")
            watch = Reflector(made.load.session, replace(watched_resources.PODS, path=path), seen.post, observer=seen)
            watching = asyncio.create_task(watch.run())
            await watch.synced.wait()
            with _Sampler(operator) as sampler:
                crowd = asyncio.create_task(_create(made, beside))
                gangs = 0
                while gangs == 0 or not crowd.done() or _bound(made) < beside.to_bind:
                    await _healthy(made, f"healthy-{gangs}")
                    gangs += 1
                    await asyncio.sleep(0.5)
                await crowd
            watching.cancel()
            return _figures(made, seen, gangs) | {
                "livez_s": max(sampler.took),
                "crowd_bound": float(_bound(made)),
            }


async def _create(made: Lab, beside: Beside) -> None:
    began = time.monotonic()
    pending = enumerate(beside.objects())

    async def worker() -> None:
        for number, (path, body) in pending:
            await asyncio.sleep(max(0.0, began + number / PER_S - time.monotonic()))
            await made.load.post(path, body)

    # The first object is created alone: with Crowd.MEMBERS it is the group that the members name.
    await made.load.post(*next(pending)[1])
    await asyncio.gather(*(worker() for _ in range(4)))


async def _healthy(made: Lab, name: str) -> None:
    """Create a gang of five, wait for its binding, and delete it."""
    group, pods = (path.replace("/default/", f"/{_NAMESPACE}/") for path in (GROUPS, PODS))
    await made.load.post(group, pod_group(name, min_member=SIZE))
    names = _names(name)
    await asyncio.gather(*(made.load.post(pods, member(each, name)) for each in names))
    await made.until(lambda: all(each in made.timeline.bound for each in names), within_s=_BOUND_WITHIN_S)


def _names(gang: str) -> list[str]:
    return [f"{gang}-{at}" for at in range(SIZE)]


def _bound(made: Lab) -> int:
    made.timeline.read()
    return sum(name.startswith("crowd") for name in made.timeline.bound)


def _figures(made: Lab, seen: _Seen, gangs: int) -> Figures:
    """The longest time of each kind of wait."""
    timeline = made.timeline
    own, whole, server = [], [], []
    for gang in range(gangs):
        names = _names(f"healthy-{gang}")
        created = max(timeline.created[name] for name in names)
        asked = max(timeline.bound[name][0] for name in names)
        answered = max(timeline.bound[name][1] for name in names)
        shown = max(seen.at[name] for name in names)
        own.append(asked - shown)
        whole.append(answered - created)
        server.append(max(0.0, shown - created) + answered - asked)
    return {"healthy_s": max(own), "with_server_s": max(whole), "server_s": max(server), "healthy_gangs": float(gangs)}


class _Seen:
    """The time at which the watch first saw each pod, in epoch seconds, by name."""

    def __init__(self) -> None:
        self.at: dict[str, float] = {}

    def post(self, events: Iterable[Event]) -> None:
        """Record the pods of a reflector's events."""
        for event in events:
            pods = event.pods if isinstance(event, PodsReplaced) else [event.pod] if isinstance(event, PodSeen) else []
            for pod in pods:
                self.at.setdefault(pod.name, time.time())

    def watch_events(self, resource: str, count: int) -> None:
        """Does nothing: the benchmark keeps no such metric."""

    def relisted(self, resource: str, cause: str) -> None:
        """Does nothing: the benchmark keeps no such metric."""


class _Sampler:
    """Requests /livez ten times a second in a separate thread and records how long each response took."""

    def __init__(self, operator: Operator) -> None:
        self.took: list[float] = []
        self._operator = operator
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._ended.is_set():
            began = time.monotonic()
            self._operator.get("/livez")
            self.took.append(time.monotonic() - began)
            self._ended.wait(max(0.0, SAMPLE_S - self.took[-1]))
