"""Random pods in random clusters: gangsched and kube-scheduler's filters accept the same nodes, for every constraint."""

from __future__ import annotations

import pytest

from testbed.fidelity import read
from tests import effort
from tests.effort import tries
from tests.integration.oracle_worlds import AIMS
from tests.integration.pairs import ROOT, WORLDS, Pair, figures, pairs
from tests.judge import Judge

pytestmark = pytest.mark.explores
_SHOWN = 5
_AT_LEAST = 100


@pytest.fixture(scope="module")
def found(judge: Judge) -> list[Pair]:
    return list(pairs(judge, range(effort.first_seed, effort.first_seed + tries(WORLDS))))


@pytest.mark.parametrize("aim", AIMS)
def test_a_node_takes_a_random_pod_exactly_if_kube_schedulers_filters_say_so(found: list[Pair], aim: str) -> None:
    different = [each.difference for each in found if each.aim == aim and each.difference]
    assert not different, f"{len(different)} pairs are judged differently, such as\n" + "\n\n".join(different[:_SHOWN])


def test_each_constraint_is_judged_often_with_either_verdict(found: list[Pair]) -> None:
    for each in figures(found):
        assert each.pairs >= _AT_LEAST, each
        assert min(each.refusing, each.accepting) * 5 >= each.pairs, each


def test_the_figures_in_the_docs_are_those_of_this_code(found: list[Pair]) -> None:
    if effort.first_seed != 1 or tries(WORLDS) != WORLDS:
        pytest.skip("other seeds than those of the docs")
    told = "run python -m tests.integration.pairs and make docs"
    assert figures(found) == read(ROOT), told
