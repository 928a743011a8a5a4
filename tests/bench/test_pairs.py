"""The conclusions from pairs of runs: the median's interval, and whether the checkout is as fast as the base."""

from __future__ import annotations

from itertools import accumulate
from math import comb

import pytest

from bench import pairs
from bench.compare import judged
from bench.pairs import LEAST_PAIRS, Verdict, interval, verdict
from bench.scenarios import Kind, Scenario


def test_the_interval_covers_the_median_in_95_of_100_cases_and_no_narrower_one_does():
    for count in range(6, 40):
        low = int(interval([float(value) for value in range(1, count + 1)])[0])
        below = list(accumulate(comb(count, heads) / 2**count for heads in range(count + 1)))
        assert 1 - 2 * below[low - 1] >= 0.95 > 1 - 2 * below[low]


def test_five_values_say_nothing_with_that_certainty():
    with pytest.raises(ValueError, match="at least 6"):
        interval([1.0] * 5)
    assert LEAST_PAIRS == 9


@pytest.mark.parametrize(
    ("speed", "cpu", "expected"),
    [
        pytest.param((0.99, 1.0, 1.01), 1.2, Verdict.AS_FAST, id="narrow and level: the processor is not asked"),
        pytest.param((0.96, 0.965, 0.97), 1.2, Verdict.AS_FAST, id="narrow, and just reaches it"),
        pytest.param((0.95, 0.96, 0.969), 1.0, Verdict.SLOWER, id="narrow and below"),
        pytest.param((0.5, 0.8, 0.969), 0.5, Verdict.SLOWER, id="wide and below: less processor time does not help"),
        pytest.param((0.9, 1.0, 1.1), 1.03, Verdict.AS_FAST, id="wide: the processor decides, within 3 %"),
        pytest.param((0.9, 1.0, 1.1), 1.031, Verdict.COSTLIER, id="wide, and it costs more"),
        pytest.param((0.97, 0.985, 1.0), 1.2, Verdict.AS_FAST, id="3 % are not wider than 3 %"),
        pytest.param((0.969, 0.985, 1.0), 1.2, Verdict.COSTLIER, id="a little more is"),
        pytest.param((1.0, 1.2, 1.4), 1.2, Verdict.COSTLIER, id="faster as far as can be told, at a higher cost"),
    ],
)
def test_the_interval_must_reach_97_percent_and_where_it_is_wide_the_processor_decides(speed, cpu, expected):
    assert verdict(speed, (cpu - 0.01, cpu, cpu + 0.01)) is expected


def test_figures_are_paired_run_by_run_and_a_shorter_time_is_a_higher_speed():
    base = [{"pods_per_s": 100.0 * run, "gang_ms_p50": 10.0} for run in range(1, 10)]
    here = [{"pods_per_s": 110.0 * run, "gang_ms_p50": 8.0} for run in range(1, 10)]
    found = pairs.ratios(here, base)
    assert found["pods_per_s"] == pytest.approx((1.1, 1.1, 1.1))
    assert found["gang_ms_p50"] == pytest.approx((0.8, 0.8, 0.8))
    assert pairs.inverse((0.5, 0.8, 1.25)) == pytest.approx((0.8, 1.25, 2.0))


def test_what_was_nothing_in_the_base_has_no_ratio():
    here, base = [{"a": 1.0, "b": 2.0}] * 9, [{"a": 2.0, "b": 0.0}] * 8 + [{"a": 2.0, "b": 1.0}]
    assert pairs.ratios(here, base) == {"a": (0.5, 0.5, 0.5)}


@pytest.mark.parametrize(
    ("kind", "here", "base", "speed", "cpu"),
    [
        (Kind.BACKLOG, {"pods_per_s": 900.0, "cpu_s": 2.0}, {"pods_per_s": 1000.0, "cpu_s": 1.0}, 0.9, 2.0),
        (
            Kind.STREAM,
            {"pods_per_s": 900.0, "gang_ms_p50": 50.0, "cpu_ms_per_pod": 0.5},
            {"pods_per_s": 500.0, "gang_ms_p50": 40.0, "cpu_ms_per_pod": 1.0},
            0.8,
            0.5,
        ),
    ],
    ids=["a backlog's rate", "a stream's latency"],
)
def test_what_speed_is_depends_on_who_sets_the_rate(kind, here, base, speed, cpu):
    scenario = Scenario(kind=kind, nodes=5, gangs=4, size=3)
    line, found = judged(scenario, [here] * 9, [base] * 9)
    assert line["speed"] == [speed] * 3
    assert line["cpu_per_pod"] == [cpu] * 3
    assert line["pairs"] == 9
    assert found is Verdict.SLOWER
    assert line["verdict"] == "slower than the base"
