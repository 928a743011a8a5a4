"""The load of the benchmark: hollow nodes, gangs of pods, and a client that binds without planning."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from gangsched.core.effects import BindPod
from gangsched.core.events import Event, PodSeen, PodsReplaced
from gangsched.kube.binding import bind
from gangsched.kube.reflector import Reflector
from gangsched.kube.resources import PODS
from gangsched.kube.session import ApiSession
from testbed.nodes import node
from testbed.workloads import member, pod_group

T = TypeVar("T")

_IN_FLIGHT = 32
_PODS = "/api/v1/namespaces/default/pods"
_GROUPS = "/apis/gangsched.io/v1alpha1/namespaces/default/podgroups"


@dataclass(slots=True)
class Seen:
    """When pods were seen bound, in monotonic seconds."""

    first: float = 0.0
    last: float = 0.0
    bound: set[str] = field(default_factory=set)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def post(self, events: Iterable[Event]) -> None:
        """Take what a reflector of pods posts."""
        for event in events:
            pods = event.pods if isinstance(event, PodsReplaced) else [event.pod] if isinstance(event, PodSeen) else []
            for pod in pods:
                if pod.node and pod.uid not in self.bound:
                    self.bound.add(pod.uid)
                    self.last = time.monotonic()
                    self.first = self.first or self.last
        self.changed.set()

    async def wait_for(self, count: int, *, within_s: float = 300) -> None:
        """Wait until so many pods are bound.

        Raises:
            TimeoutError: they were not within that time.
        """
        async with asyncio.timeout(within_s):
            while len(self.bound) < count:
                self.changed.clear()
                await self.changed.wait()


class Load:
    """Creates and binds through one session, 32 requests in flight."""

    def __init__(self, session: ApiSession) -> None:
        self._session = session
        self._pods: list[tuple[str, str]] = []

    async def add_nodes(self, count: int) -> None:
        """Hollow nodes of 32 CPUs."""
        await _all(
            self._post("/api/v1/nodes", node(f"n{number}", cpu="32", memory="256Gi", ready=True))
            for number in range(count)
        )

    async def add_gangs(self, gangs: int, size: int) -> None:
        """So many groups of so many pods of 1 CPU; groups that exist stay."""
        await _all(self._post(_GROUPS, pod_group(f"g{gang}", min_member=size), again=True) for gang in range(gangs))
        pods = await _all(
            self._post(_PODS, member(f"g{gang}-{number}", f"g{gang}"))
            for gang in range(gangs)
            for number in range(size)
        )
        self._pods = [(pod["metadata"]["name"], pod["metadata"]["uid"]) for pod in pods]

    async def delete_pods(self) -> None:
        """Delete every pod."""
        body = json.dumps({"gracePeriodSeconds": 0}).encode()
        for name, _ in self._pods:
            await self._session.request("DELETE", f"{_PODS}/{name}", body=body, timeout_s=30)

    async def bind_bare(self, nodes: int) -> float:
        """Bind all pods without a plan; pods per second from the first binding sent to the last answer."""
        began = time.monotonic()
        await _all(
            bind(self._session, BindPod(uid, "default", name, f"n{number % nodes}"))
            for number, (name, uid) in enumerate(self._pods)
        )
        return len(self._pods) / (time.monotonic() - began)

    @asynccontextmanager
    async def watch_bindings(self) -> AsyncIterator[Seen]:
        """Watch pods as gangsched does and note when they are bound."""
        seen = Seen()
        reflector = Reflector(self._session, PODS, seen.post, observer=_Unobserved())
        task = asyncio.create_task(reflector.run())
        try:
            await reflector.synced.wait()
            yield seen
        finally:
            task.cancel()

    async def _post(self, path: str, body: dict[str, Any], *, again: bool = False) -> dict[str, Any]:
        answer = await self._session.request("POST", path, body=json.dumps(body).encode(), timeout_s=30)
        if again and answer.status == 409:  # noqa: PLR2004 - it exists already
            return {}
        made: dict[str, Any] = msgspec.json.decode(answer.checked().body)
        return made


class _Unobserved:
    def watch_events(self, resource: str, count: int) -> None:
        """Nobody counts."""

    def relisted(self, resource: str, cause: str) -> None:
        """Nobody counts."""


async def _all(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    slots = asyncio.Semaphore(_IN_FLIGHT)

    async def run(each: Coroutine[Any, Any, T]) -> T:
        async with slots:
            return await each

    return list(await asyncio.gather(*(run(each) for each in work)))
