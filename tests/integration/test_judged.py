"""Random pods in random clusters: gangsched accepts exactly the nodes that kube-scheduler's filters accept."""

from __future__ import annotations

import functools

import pytest

from documentation.fidelity import FILTERS, filter_of, read
from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.claims import Viewer
from gangsched.core.constraints.constraint import Constraint
from gangsched.core.constraints.registry import CONSTRAINTS
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.filling import classify
from tests import effort
from tests.effort import tries
from tests.integration.judged import Json, World, agree, cluster_of, read_pod
from tests.integration.oracle_worlds import node, on, pod, shuns
from tests.integration.pairs import FILTER_OF, ROOT, WORLDS, Pair, bench, drawn, figures, pairs
from tests.judge import Judge, Said

UNAIMED = {"ImageLocality", "PodPreferences"}
"""Constraints without an aim, because they never refuse a node."""
AIMED = [each for each in CONSTRAINTS if each.__name__ not in UNAIMED]
pytestmark = [pytest.mark.explores, pytest.mark.timeout(600)]
_SHOWN = 5
_AT_LEAST = 100


@pytest.fixture(scope="module")
def found(judge: Judge) -> list[Pair]:
    return list(pairs(judge, range(effort.first_seed, effort.first_seed + tries(WORLDS))))


@pytest.mark.parametrize("aim", FILTER_OF)
def test_a_node_takes_a_random_pod_exactly_if_kube_schedulers_filters_say_so(found: list[Pair], aim: str) -> None:
    aimed = [each for each in found if each.aim == aim]
    assert aimed
    different = [each.difference for each in aimed if each.difference]
    assert not different, f"{len(different)} pairs are judged differently, such as\n" + "\n\n".join(different[:_SHOWN])


def test_each_constraint_is_judged_often_with_either_verdict(found: list[Pair]) -> None:
    counted = figures(found)
    assert counted
    for each in counted:
        assert each.pairs >= _AT_LEAST, each
        assert min(each.refusing, each.accepting) * 5 >= each.pairs, each


def test_the_figures_in_the_docs_are_those_of_this_code(found: list[Pair]) -> None:
    if effort.first_seed != 1 or tries(WORLDS) != WORLDS:
        pytest.skip("other seeds than those of the docs")
    assert figures(found) == read(ROOT), "docs/fidelity.jsonl is stale: run make docs"


def test_pods_are_aimed_at_every_filter_or_the_docs_say_why_not():
    aimed = set(FILTER_OF.values())
    assert {filter_of(each) for each in AIMED} <= aimed
    assert all(FILTERS[name] for name in FILTERS.keys() - aimed)


def test_the_docs_have_a_line_for_each_filter_of_the_default_profile(judge: Judge) -> None:
    assert list(judge.ask([], []).filters) == list(FILTERS)


@pytest.mark.parametrize("constraint", AIMED, ids=lambda each: each.__name__)
def test_a_constraint_that_accepts_everything_is_caught(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, constraint: type[Constraint]
) -> None:
    plan = type(Snapshot(Cluster()).plans[CONSTRAINTS.index(constraint)])
    for question in ("mask", "room"):
        if question in vars(plan):
            monkeypatch.setattr(plan, question, lambda *_: None)
    missed = {aim for aim, plugin in FILTER_OF.items() if plugin == filter_of(constraint)}
    assert missed, "no pods are aimed at it: add an aim"
    for seed in range(1, WORLDS + 1):
        missed -= disputed(judge, seed)
        if not missed:
            return
    pytest.fail(f"accepting everything goes unnoticed by pods aimed at {missed}")


@functools.cache
def said_of(judge: Judge, seed: int) -> list[tuple[list[str], Said]]:
    """The aims and the verdicts of kube-scheduler's filters in the worlds of the seed."""
    asking, found = bench(judge), []
    for world, wanted in drawn(seed):
        with asking.world(world):
            found.append(([aim for aim, _ in wanted], asking.said([probe for _, probe in wanted])))
    return found


def disputed(judge: Judge, seed: int) -> set[str]:
    """The aims of pods for which gangsched's room differs from the nodes that kube-scheduler's filters accept."""
    found = set()
    for aims, said in said_of(judge, seed):
        snapshot = Snapshot(cluster_of(said.objects))
        for aim, verdict in zip(aims, said.verdicts, strict=True):
            pod = read_pod(verdict.pod)
            snapshot.stand_for(Viewer(pod.priority))
            caps = snapshot.caps(classify(snapshot, [pod])[pod.uid])
            if {snapshot.name(row) for row in range(snapshot.size) if caps[row] > 0} != verdict.feasible:
                found.add(aim)
    return found


def test_a_negative_namespace_selector_means_what_the_api_documents(judge: Judge) -> None:
    """Before 1.37, kube-scheduler took it to match every namespace."""
    no_team: Json = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}
    asking = bench(judge)
    with asking.world(World([node("n1"), node("n2")], [on("n1", pod(namespace="red", labels={"app": "a"}))])):
        apart = shuns(labelSelector={"matchLabels": {"app": "a"}}, namespaceSelector=no_team)
        [verdicts] = asking.ask([pod(**apart)])
    agree([verdicts])
    assert verdicts.gangsched == {"n1", "n2"}
