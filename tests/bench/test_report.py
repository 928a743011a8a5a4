"""The bars of the benchmark, from given figures, and the longest call."""

from __future__ import annotations

import pytest

from bench import beside, calls, commands, core, podgroups
from bench.bars import BARS, Bar
from bench.scenarios import ALL, NODES_SWEPT, QUICK, SIZED, SIZES_SWEPT


@pytest.mark.parametrize(
    ("bar", "line", "met"),
    [
        pytest.param(Bar(what="", scenario="a", figure="x", least=0.7), {"x": [0.1, 0.7, 0.9]}, True, id="median"),
        pytest.param(
            Bar(what="", scenario="a", figure="x", least=0.7), {"x": [0.1, 0.69, 0.9]}, False, id="too little"
        ),
        pytest.param(Bar(what="", scenario="a", figure="x", most=10), {"x": [9, 10, 11]}, True, id="at most"),
        pytest.param(Bar(what="", scenario="a", figure="x", most=10), {"x": [9, 10.1, 11]}, False, id="too much"),
        pytest.param(
            Bar(what="", scenario="a", figure="x", most=10, scales=True),
            {"x": [9, 19, 20], "bare_pods_per_s": [600, 637.5, 700]},
            True,
            id="a slower machine may take longer",
        ),
        pytest.param(
            Bar(what="", scenario="a", figure="x", most=10, scales=True),
            {"x": [9, 11, 20], "bare_pods_per_s": [2000, 3000, 4000]},
            False,
            id="a faster one has no less time and no more",
        ),
    ],
)
def test_the_median_is_held_against_the_bar(bar, line, met):
    assert bar.met(line) is met


def test_every_bar_is_read_from_a_scenario_that_is_measured():
    titles = {scenario.title for scenario in (*ALL, *QUICK, *NODES_SWEPT, *SIZES_SWEPT, *SIZED)}
    titles |= {crowd.title for crowd in beside.ALL} | {podgroups.TITLE, commands.TITLE}
    titles |= {title for title, _ in core.benchmarks(quick=False)}
    assert {bar.scenario for bar in BARS} <= titles


@pytest.mark.slow
def test_the_longest_call_is_measured_of_what_it_says():
    """Each measurement raises unless its members are bound, or its gangs refused, as intended."""
    for found in (calls.members(40, 3), calls.parked(6, 2), calls.racks(8, 2)):
        assert 0 < found["longest_ms"] <= found["cpu_ms"]
        assert found["calls"] > 1
