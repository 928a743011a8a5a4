"""Members' preferences about other pods: to be beside them, to be away from them, and to be spread if possible."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import PodTerm, Requirement, Spread
from tests.builders import group, node, pod, pods
from tests.harness import Harness

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
STRATEGIES = ["Pack", "Spread", "MinimalFragmentation", "BestFit", "MostUsed"]


def term(app: str, key: str = ZONE) -> PodTerm:
    return PodTerm(key, (Requirement("app", "In", (app,)),), ("default",))


def nodes(zone: str, number: int = 2, *, cpu: int = 8, **labels: str) -> list[Node]:
    names = [f"{zone}-{at}" for at in range(number)]
    return [node(name, cpu=cpu, labels={HOST: name, ZONE: zone, **labels}) for name in names]


def old(name: str, on: str, app: str, **fields: Any) -> Pod:
    return pod(name, group="", node=on, labels={"app": app}, **fields)


def zones(harness: Harness, prefix: str = "default/a-") -> Counter[str]:
    return Counter(harness.pod(name).node.partition("-")[0] for name in harness.bound(prefix))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_gang_prefers_to_be_beside_the_pods_of_another_gang(strategy):
    harness = Harness.settled(*nodes("x"), *nodes("y"), *nodes("z"), group("server", min_member=2))
    harness.settle(*pods("server", 2, labels={"app": "server"}, node_selector={ZONE: "y"}))
    harness.settle(group("a", min_member=2, strategy=strategy), *pods("a", 2, near={10: term("server")}))
    assert zones(harness) == {"y": 2}


def test_pods_there_attract_and_repel_by_their_own_terms():
    harness = Harness.settled(*nodes("x"), *nodes("y"), *nodes("z"))
    harness.settle(old("shy", "x-0", "shy", near={-5: term("a")}), old("fond", "z-0", "fond", near={5: term("a")}))
    harness.settle(group("a", min_member=2), *pods("a", 2, labels={"app": "a"}))
    assert zones(harness) == {"z": 2}
    harness.delete("default/fond")
    harness.settle(group("b", min_member=2), *pods("b", 2, labels={"app": "a"}))
    assert "x" not in zones(harness, "default/b-")


def test_required_affinity_of_a_pod_attracts_those_that_it_asks_for():
    harness = Harness.settled(*nodes("x"), *nodes("y"), old("fond", "y-0", "fond", affinity=[term("a")]))
    harness.settle(old("busy", "x-0", "busy", cpu=4))
    harness.settle(group("a", min_member=1), pod("a-0", labels={"app": "a"}))
    assert zones(harness) == {"y": 1}


def test_each_member_sees_those_placed_before_it():
    """Packing would fill one node; members that prefer nodes without pods of their own kind use all four in turn."""
    harness = Harness.settled(*nodes("x"), *nodes("y"))
    members = pods("a", 4, labels={"app": "a"}, near={-1: term("a", HOST)})
    harness.settle(group("a", min_member=4), *members)
    assert Counter(harness.pod(name).node for name in harness.bound()) == dict.fromkeys(["x-0", "x-1", "y-0", "y-1"], 1)


@pytest.mark.parametrize("strategy", ["Pack", "BestFit", "MostUsed"])
def test_spread_if_possible_spreads_by_zone_inside_the_strategy(strategy):
    harness = Harness.settled(*nodes("x"), *nodes("y"), *nodes("z"), old("busy", "x-0", "busy"))
    spread = [Spread(term("a"), 1)]
    harness.add(group("a", min_member=6, strategy=strategy))
    harness.settle(*pods("a", 6, labels={"app": "a"}, spread_if_possible=spread))
    assert zones(harness) == {"x": 2, "y": 2, "z": 2}
    assert {harness.pod(name).node for name in harness.bound() if harness.pod(name).node[0] == "x"} == {"x-0"}
