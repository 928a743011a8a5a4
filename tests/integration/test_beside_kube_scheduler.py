"""The same native groups on equal nodes for kube-scheduler and for gangsched: both admit the same, or gangsched more.

Groups come one after another, each when the one before has been decided. While the nodes of both are equally full,
what kube-scheduler admits of a group gangsched must admit too; it may admit more, because kube-scheduler takes a gang's
pods in order and never moves one. Priorities are equal and no topology is asked for.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

import pytest

from testbed import crds, nodes
from testbed.api import Json
from testbed.control_plane import ControlPlane
from testbed.operator import Operator
from testbed.workloads import member
from tests.effort import in_turn
from tests.integration.foreign import WORDS
from tests.integration.waiting import until
from tests.natives import native

NATIVE = WORDS["native"]
SIDES = ("default-scheduler", "gangsched")
CHUNK = 10
RESTS_S = 4.0
pytestmark = pytest.mark.timeout(600)


@dataclass(frozen=True)
class Ask:
    """A group: the CPUs of its pods, and its minimum, 0 for the policy basic."""

    cpus: tuple[int, ...]
    minimum: int


@dataclass(frozen=True)
class World:
    """The CPUs of its nodes, and the groups in their order."""

    seed: int
    nodes: tuple[int, ...]
    asks: tuple[Ask, ...]

    @classmethod
    def drawn(cls, seed: int) -> World:
        dice = Random(seed)
        asks = []
        for _ in range(dice.randint(1, 4)):
            largest = dice.choice([1, 1, 2, 3])
            cpus = tuple(dice.randint(1, largest) for _ in range(dice.randint(1, 5)))
            asks.append(Ask(cpus, 0 if dice.random() < 0.2 else dice.randint(1, len(cpus))))
        return cls(seed, tuple(dice.randint(1, 4) for _ in range(dice.randint(2, 5))), tuple(asks))


@pytest.fixture(scope="module")
def both() -> Iterator[ControlPlane]:
    known = native()
    gates = known.feature_gates()
    with ControlPlane(
        scheduler=True, extra_apiserver_args=(*gates, *known.served), extra_scheduler_args=gates
    ) as running:
        crds.install(running)
        with Operator(running):
            yield running


@in_turn("first", range(0, 200, CHUNK), share=(0, 20))
def test_what_kube_scheduler_admits_gangsched_admits_too(
    both: ControlPlane, first: int, show: Callable[[str], None]
) -> None:
    chunk = Chunk(both, [World.drawn(seed) for seed in range(first, first + CHUNK)])
    chunk.build()
    compared: Counter[str] = Counter()
    worse = []
    comparable = list(chunk.worlds)
    for turn in range(4):
        comparable = [world for world in comparable if turn < len(world.asks) and chunk.equally_full(world)]
        chunk.ask(comparable, turn)
        for world in comparable:
            theirs, ours = (chunk.admitted(world, side, turn) for side in SIDES)
            compared["same" if theirs == ours else "more"] += 1
            if ours < theirs:
                worse.append(f"{world}: group {turn}: {theirs} pods of kube-scheduler's, {ours} of gangsched's")
    show(f"beside kube-scheduler: groups of which it and gangsched admitted the same or more: {dict(compared)}")
    assert not worse
    assert compared["same"] > CHUNK


class Chunk:
    """Worlds that share a control plane and a namespace; each has nodes of its own for each side."""

    def __init__(self, control_plane: ControlPlane, worlds: Sequence[World]) -> None:
        self.worlds = worlds
        self._api = control_plane.api
        self._control_plane = control_plane
        self._namespace = f"test-{secrets.token_hex(4)}"
        self._pods_path = f"/api/v1/namespaces/{self._namespace}/pods"
        self._seen: dict[str, Json] = {}

    def build(self) -> None:
        self._control_plane.delete_nodes()
        self._api.post("/api/v1/namespaces", {"metadata": {"name": self._namespace}})
        until(lambda: self._api.get(f"/api/v1/namespaces/{self._namespace}/serviceaccounts")["items"])
        for world in self.worlds:
            for side in SIDES:
                for number, cpu in enumerate(world.nodes):
                    labels = {"world": str(world.seed), "side": side}
                    name = f"n-{world.seed}-{side}-{number}"
                    self._control_plane.add_node(name, cpu=str(cpu), labels=labels, wait=False)
        for node in self._api.get("/api/v1/nodes")["items"]:
            nodes.wait_until_ready(self._api, node["metadata"]["name"])

    def ask(self, worlds: Sequence[World], turn: int) -> None:
        """Create this group of each world on both sides, and wait until all its pods are decided."""
        for world in worlds:
            ask = world.asks[turn]
            policy: Json = {"gang": {"minCount": ask.minimum}} if ask.minimum else {"basic": {}}
            for side in SIDES:
                name = f"g-{world.seed}-{side}-{turn}"
                body = {**NATIVE.body, "metadata": {"name": name}, "spec": {"schedulingPolicy": policy}}
                self._api.post(NATIVE.at(self._namespace), body)
                for number, cpu in enumerate(ask.cpus):
                    selector = {"world": str(world.seed), "side": side}
                    placed: Json = {"schedulingGroup": {"podGroupName": name}, "nodeSelector": selector}
                    pod = member(f"{name}-{number}", scheduler=side, requests={"cpu": str(cpu)}, **placed)
                    self._api.post(self._pods_path, pod)
        until(self._rests, within_s=120, what="every pod is bound or told why not, and stays so")

    def _rests(self) -> bool:
        """Whether all pods are decided and none is bound any more; both try groups again whose members came late."""
        before = self._look()
        time.sleep(RESTS_S)
        return before == self._look() is not None

    def _look(self) -> set[str] | None:
        """The pods that are bound; None while some are not decided."""
        self._seen = {pod["metadata"]["name"]: pod for pod in self._api.get(self._pods_path)["items"]}
        waiting = [pod for pod in self._seen.values() if "nodeName" not in pod["spec"]]
        if any(_reason(pod) in {"", "GangIncomplete", "PodGroupNotFound"} for pod in waiting):
            return None
        return {name for name, pod in self._seen.items() if "nodeName" in pod["spec"]}

    def admitted(self, world: World, side: str, turn: int) -> int:
        prefix = f"g-{world.seed}-{side}-{turn}-"
        return sum("nodeName" in pod["spec"] for name, pod in self._seen.items() if name.startswith(prefix))

    def equally_full(self, world: World) -> bool:
        """Whether as much is left on the nodes of both sides; which node has it does not matter."""
        left = []
        for side in SIDES:
            used: Counter[str] = Counter()
            for name, pod in self._seen.items():
                if name.startswith(f"g-{world.seed}-{side}-") and "nodeName" in pod["spec"]:
                    request = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
                    used[pod["spec"]["nodeName"]] += int(request)
            nodes = [(cpu, used[f"n-{world.seed}-{side}-{number}"]) for number, cpu in enumerate(world.nodes)]
            left.append(sorted((cpu, cpu - taken) for cpu, taken in nodes))
        return left[0] == left[1]


def _reason(pod: Json) -> str:
    """Why the pod waits; empty if it was not told yet."""
    conditions = pod.get("status", {}).get("conditions", [])
    return next((str(each.get("reason", "")) for each in conditions if each["type"] == "PodScheduled"), "")
