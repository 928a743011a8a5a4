"""Who leaves by gangsched's choice is nearly the optimum, and less work is lost than by the ways of others."""

from __future__ import annotations

import pytest

from bench.quality.crowded import crowded

_INSTANCES = 25


@pytest.mark.slow
def test_the_lost_work_is_nearly_the_least_and_less_than_that_of_others():
    from bench.quality import evictors

    lines = {line["scenario"]: line for line in evictors.compared(range(1, _INSTANCES + 1))}
    own, kube, volcano = (lines[evictors.TITLE + name] for name in (evictors.OWN, evictors.KUBE, evictors.VOLCANO))
    assert own["lowest_level"] == 1.0
    assert own["mean_ratio"] <= 1.1
    assert own["worst_ratio"] <= 2.0
    assert own["lost"] < kube["lost"] < volcano["lost"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [15, 90])
def test_less_work_is_lost_by_sparing_first_those_with_which_most_is_lost(seed):
    """Members of two sizes, for which sums do not tell who can stay: with the most important first, thrice is lost."""
    from bench.quality.evictors import own
    from bench.quality.least_lost import least_lost

    instance = crowded(seed)
    assert instance.lost(own(instance)) <= 1.1 * instance.lost(least_lost(instance))
