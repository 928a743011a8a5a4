"""The conclusions from pairs of runs: the median's interval, and whether the checkout is as fast as the base."""

from __future__ import annotations

from itertools import accumulate
from math import comb

import pytest

from bench.pairs import Verdict, interval, verdict


def test_the_interval_covers_the_median_in_95_of_100_cases_and_no_narrower_one_does():
    for count in range(6, 40):
        low = int(interval([float(value) for value in range(1, count + 1)])[0])
        below = list(accumulate(comb(count, heads) / 2**count for heads in range(count + 1)))
        assert 1 - 2 * below[low - 1] >= 0.95 > 1 - 2 * below[low]


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
