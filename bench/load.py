"""The load of the benchmark: hollow nodes, gangs of pods, and a client that binds without planning."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from bench import devices
from bench.scenarios import Scenario
from gangsched.core.objects.effects import BindPod, Prebind
from gangsched.kube.client.errors import ApiUnreachable
from gangsched.kube.client.session import MERGE_PATCH, ApiSession
from gangsched.kube.writing.binding import bind
from gangsched.kube.writing.prebinding_writes import prebind
from gangsched.kube.writing.write_results import WriteResult
from testbed.nodes import node
from testbed.workloads import Json, member, pod_group

T = TypeVar("T")

IN_FLIGHT = 32
"""Limit of requests in flight, the same as gangsched's default."""
CREATED_AT_A_TIME = 8
"""Concurrent creations. 8 keep two cores busy: with 16 the rates of creation and binding stay the same, but requests
queue up in the API server, and every binding waits in that queue (a gang of 20 took 33 ms instead of 23 from first to
last)."""
PODS = "/api/v1/namespaces/default/pods"
GROUPS = "/apis/gangsched.io/v1alpha1/namespaces/default/podgroups"
_POOLS = 5
_TIMEOUT = 504
_TRIES = 10
_ZONES = 10
_HOST = "kubernetes.io/hostname"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

Made = tuple[str, str]
"""A pod's name and UID."""


class Load:
    """Creates and deletes objects through one session and binds pods through `binder`, with bounded concurrency."""

    def __init__(self, session: ApiSession, scenario: Scenario, *, binder: ApiSession) -> None:
        self.session = session
        self._binder = binder
        self._scenario = scenario
        self._claims: dict[str, str] = {}

    async def add_nodes(self) -> None:
        """Create the scenario's hollow nodes; for mixed gangs each is in a zone, and half of them have a pool taint."""
        nodes = range(self._scenario.nodes)
        await in_flight(self.post("/api/v1/nodes", self._node(number)) for number in nodes)
        if self._scenario.devices:
            await self.post(devices.CLASSES, devices.device_class())
            await in_flight(self.post(devices.SLICES, devices.pool(f"n{number}")) for number in nodes)

    async def add_groups(self) -> None:
        """Create the PodGroups; none for single pods."""
        scenario = self._scenario
        if not scenario.plain:
            await in_flight(
                self.post(GROUPS, pod_group(name, min_member=scenario.size, maxScheduleTime=scenario.time_out))
                for name in scenario.names
            )

    async def add_pods(self) -> list[Made]:
        """Create the members, gang after gang, each after its claim."""
        if self._scenario.devices:
            names = [manifest["metadata"]["name"] for manifest in self._members()]
            claims = await in_flight(self.post(devices.CLAIMS, devices.claim(name)) for name in names)
            self._claims = {claim["metadata"]["name"]: claim["metadata"]["uid"] for claim in claims}
        made = await in_flight((self.post(PODS, manifest) for manifest in self._members()), most=CREATED_AT_A_TIME)
        return [(pod["metadata"]["name"], pod["metadata"]["uid"]) for pod in made]

    async def add_bound_pods(self) -> None:
        """Create the pods that are bound from the start, spread evenly over the nodes."""
        nodes = self._scenario.nodes
        await in_flight(
            self.post(PODS, member(f"b{number}", f"old-{number // 20}", nodeName=f"n{number % nodes}"))
            for number in range(self._scenario.running)
        )

    async def change_pods(self, per_s: int, *, over_s: float) -> None:
        """Write to `per_s` of the bound pods per second, as kubelets do, for `over_s` seconds."""
        running, began = self._scenario.running, time.monotonic()
        for number in range(int(per_s * over_s)):
            await asyncio.sleep(max(0.0, began + number / per_s - time.monotonic()))
            body = json.dumps({"metadata": {"annotations": {"changed": str(number)}}}).encode()
            path = f"{PODS}/b{number * 7919 % running}"
            answer = await self.session.request("PATCH", path, body=body, content_type=MERGE_PATCH)
            answer.checked()

    async def bind_bare(self, pods: Sequence[Made]) -> None:
        """Bind these pods without planning.

        Raises:
            RuntimeError: the server refused one.
        """
        answers = await in_flight(self._bind(number, name, uid) for number, (name, uid) in enumerate(pods))
        refused = [answer for answer in answers if not answer.done]
        if refused:
            raise RuntimeError(f"{len(refused)} bare bindings were refused; the first: {refused[0]}")

    async def _bind(self, number: int, name: str, uid: str) -> WriteResult:
        """Bind one pod, after the writes to its claim."""
        nodes = self._scenario.nodes
        if self._scenario.devices:
            what = devices.taken(name, uid, self._claims[name], number=number, nodes=nodes)
            answer = await prebind(self._binder, Prebind(uid, what))
            if not answer.done:
                return answer
        return await bind(self._binder, BindPod(uid, "default", name, f"n{number % nodes}"))

    async def clear(self) -> None:
        """Delete every pod and PodGroup, and every claim with the finalizer that kept it until its pod was gone."""
        body = json.dumps({"gracePeriodSeconds": 0}).encode()
        for path in (PODS, GROUPS):
            for _ in range(_TRIES):
                # The server aborts a collection's deletion after a minute, with part of it done.
                with suppress(ApiUnreachable):
                    answer = await self.session.request("DELETE", path, body=body, timeout_s=300)
                    if answer.status != _TIMEOUT:
                        answer.checked()
                        break
            else:
                raise RuntimeError(f"{path} could not be cleared in {_TRIES} tries")
        await in_flight(self._delete_claim(name) for name in self._claims)
        self._claims = {}

    async def _delete_claim(self, name: str) -> None:
        path, body = f"{devices.CLAIMS}/{name}", json.dumps({"metadata": {"finalizers": None}}).encode()
        (await self.session.request("PATCH", path, body=body, content_type=MERGE_PATCH)).checked()
        (await self.session.request("DELETE", path)).checked()

    async def get_all(self, path: str) -> list[Json]:
        """Every object under a path."""
        answer = await self.session.request("GET", path, timeout_s=60)
        items: list[Json] = msgspec.json.decode(answer.checked().body)["items"]
        return items

    async def post(self, path: str, body: Json) -> Json:
        """Create one object."""
        answer = await self.session.request("POST", path, body=json.dumps(body).encode(), timeout_s=60)
        made: Json = msgspec.json.decode(answer.checked().body)
        return made

    def _node(self, number: int) -> Json:
        pool = {"key": "pool", "value": f"p{number % _POOLS}", "effect": "NoSchedule"}
        mixed = self._scenario.mixed
        return node(
            f"n{number}",
            cpu=str(self._scenario.node_cpus),
            memory="256Gi",
            ready=True,
            labels={_HOST: f"n{number}"} | ({"zone": f"z{number % _ZONES}"} if mixed else {}),
            taints=[pool] if mixed and number % 2 else [],
        )

    def _members(self) -> Iterable[Json]:
        for gang, name in enumerate(self._scenario.names):
            for number in range(self._scenario.size):
                yield self._member(gang, name, number)

    def _member(self, gang: int, name: str, number: int) -> Json:
        scenario = self._scenario
        if not scenario.mixed:
            group = "" if scenario.plain else name
            pod = f"{name}-{number}"
            apart: Json = {"affinity": {"podAntiAffinity": {_REQUIRED: [_of_app(name)]}}} if scenario.apart else {}
            used = devices.use(pod) if scenario.devices else {}
            return member(pod, group, requests={"cpu": str(scenario.pod_cpus)}, labels={"app": name}, **apart, **used)
        pool = {"key": "pool", "operator": "Equal", "value": f"p{gang % _POOLS}", "effect": "NoSchedule"}
        return member(
            f"{name}-{number}",
            name,
            requests={"cpu": f"{500 + gang}m"},
            nodeSelector={"zone": f"z{gang % _ZONES}"},
            tolerations=[pool],
        )


def _of_app(name: str) -> Json:
    return {"labelSelector": {"matchLabels": {"app": name}}, "topologyKey": _HOST}


async def in_flight(work: Iterable[Coroutine[Any, Any, T]], *, most: int = IN_FLIGHT) -> list[T]:
    """Run the work with at most `most` items in flight; returns the results in order. The iterable is read lazily."""
    results: dict[int, T] = {}
    pending = enumerate(work)

    async def worker() -> None:
        for number, each in pending:
            results[number] = await each

    async with asyncio.TaskGroup() as workers:
        for _ in range(most):
            workers.create_task(worker())
    return [results[number] for number in range(len(results))]
