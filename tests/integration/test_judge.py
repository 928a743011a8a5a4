"""The judge says of each pod what the running kube-scheduler says on a real API server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testbed.control_plane import ControlPlane
from tests.integration.judged import Bench, Surroundings
from tests.integration.oracle import Oracle
from tests.integration.oracle_worlds import NAMESPACES, PRIORITIES, RUNTIME_CLASSES, Dice, node, pod
from tests.judge import Judge, RefusedError


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with ControlPlane(controllers=False, kwok=False, not_ready_taint=False) as control_plane:
        for name, labels in NAMESPACES.items():
            control_plane.api.post("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        for runtime_class in RUNTIME_CLASSES:
            control_plane.api.post("/apis/node.k8s.io/v1/runtimeclasses", runtime_class)
        for name, value in PRIORITIES.items():
            made = {"metadata": {"name": name}, "value": value}
            control_plane.api.post("/apis/scheduling.k8s.io/v1/priorityclasses", made)
        yield Oracle(control_plane)


def test_the_judge_and_the_running_kube_scheduler_agree(oracle: Oracle, judge: Judge) -> None:
    bench = Bench(judge, Surroundings(NAMESPACES, RUNTIME_CLASSES, PRIORITIES))
    for seed in (101, 102):
        dice = Dice(seed)
        world, probes = dice.world(nodes=12, pods=24), [dice.probe() for _ in range(60)]
        with bench.world(world), oracle.world(world):
            judged = bench.ask(probes)
            assert [each.kube_scheduler for each in judged] == oracle.ask(probes)
        assert len({each.kube_scheduler for each in judged}) > 10


def test_what_the_api_server_would_not_take_is_not_judged(judge: Judge) -> None:
    named = node("n1") | {"apiVersion": "v1", "kind": "Node"}
    unnamed = pod() | {"apiVersion": "v1", "kind": "Pod"}
    with pytest.raises(RefusedError, match=r"metadata\.name: Required"):
        judge.ask([named], [unnamed])


def test_a_refusal_names_the_plugin(judge: Judge) -> None:
    bench = Bench(judge, Surroundings({"red": {}}))
    probe = bench.named([pod()])
    [verdict] = judge.ask([node("n1", cordoned=True) | {"apiVersion": "v1", "kind": "Node"}], probe).verdicts
    assert verdict.refused["n1"].plugin == "NodeUnschedulable"
    assert verdict.refused["n1"].reasons == ["node(s) were unschedulable"]
