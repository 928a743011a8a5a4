"""Generated traces have the sizes, run times, loads and arrivals of their sources, and repeat with their seed."""

from __future__ import annotations

import statistics
from collections import Counter

import pytest

from gangsched.core.objects.node import Node
from gangsched.whatif.traces.arrival_cycle import DAY_S, Cycle
from gangsched.whatif.traces.generated import generate
from gangsched.whatif.traces.run_limits import with_limits
from gangsched.whatif.traces.trace_values import GPU, Gang, Trace, TraceError, TraceRole


def nodes(number: int, gpus: int = 8, cpus: int = 8) -> list[Node]:
    room = (("cpu", cpus * 1000), (GPU, gpus), ("pods", 110))
    return [Node(f"node-{each}", allocatable=room) for each in range(number)]


def sizes(trace: Trace) -> list[int]:
    return [gang.total(GPU) or gang.members for gang in trace.gangs]


def offered(trace: Trace, from_s: float, to_s: float) -> float:
    """The work that the gangs would do in this time if none waited."""
    work = 0.0
    for size, gang in zip(sizes(trace), trace.gangs, strict=True):
        work += size * max(min(gang.arrival_s + gang.run_s, to_s) - max(gang.arrival_s, from_s), 0.0)
    return work


@pytest.mark.slow
@pytest.mark.parametrize(("name", "days", "tolerance"), [("mixture", 4, 0.1), ("stream", 4, 0.02), ("lublin", 90, 0.1)])
def test_a_seed_repeats_a_trace_that_fills_the_nodes_as_asked_in_order_of_arrival(name, days, tolerance):
    text = f"generate:{name},load=1.1,days={days}"
    trace = generate(f"{text},seed=3", nodes(32))
    assert trace == generate(f"{text},seed=3", nodes(32))
    assert trace != generate(f"{text},seed=4", nodes(32))
    assert offered(trace, 0, days * DAY_S) / (32 * 8 * days * DAY_S) == pytest.approx(1.1, abs=tolerance)
    arrivals = [gang.arrival_s for gang in trace.gangs]
    assert arrivals == sorted(arrivals)
    assert 0 <= arrivals[0] <= arrivals[-1] <= days * DAY_S
    assert all(gang.run_s > 0 and gang.limit_s is None and gang.expected_s is None for gang in trace.gangs)
    assert len({gang.name for gang in trace.gangs}) == len(trace.gangs)


@pytest.mark.slow
def test_the_nodes_are_in_use_from_the_start_although_runs_last_for_days():
    trace = generate("generate:mixture,load=0.9,days=1", nodes(500))
    first, last = (offered(trace, at, at + 3600) / (500 * 8 * 3600) for at in (0, DAY_S - 3600))
    assert 0.5 < first < last < 1.2, "the first hour follows a weekend"


@pytest.mark.slow
def test_lublins_jobs_have_the_figures_of_the_model():
    """Traces of the authors' program for 256 processors have on average 22 processors and 4,862 s (lublin_256.swf)."""
    trace = generate("generate:lublin,load=0.5,days=180", nodes(32))
    found = sizes(trace)
    assert max(found) <= 256
    assert statistics.mean(found) == pytest.approx(22, rel=0.1)
    assert statistics.mean(gang.run_s for gang in trace.gangs) == pytest.approx(4862, rel=0.1)
    assert found.count(1) / len(found) == pytest.approx(0.244, abs=0.02)
    powers = sum(size & (size - 1) == 0 for size in found if size > 1) / len(found)
    assert powers == pytest.approx(0.576 + 0.03, abs=0.04), "0.576, and a few of the others by chance"
    hours = Counter(int(gang.arrival_s // 3600 % 24) for gang in trace.gangs)
    assert sum(hours[hour] for hour in range(11, 17)) > 5 * sum(hours[hour] for hour in range(6))


@pytest.mark.slow
def test_the_mixture_has_its_shares_grows_with_size_and_rests_at_night_and_at_weekends():
    trace = generate("generate:mixture,load=1,days=14", nodes(100))
    found = Counter(sizes(trace))
    shares = [found[size] / len(trace.gangs) for size in (1, 2, 4, 8, 16, 32, 64)]
    assert shares == pytest.approx([0.7, 0.08, 0.07, 0.08, 0.04, 0.02, 0.01], abs=0.01)
    small = [gang.run_s for gang in trace.gangs if gang.total(GPU) == 1]
    large = [gang.run_s for gang in trace.gangs if gang.total(GPU) >= 32]
    assert statistics.median(small) == pytest.approx(600, rel=0.05)
    assert statistics.median(large) > 2 * statistics.median(small)
    days = Counter(int(gang.arrival_s // 86400 % 7) for gang in trace.gangs)
    assert days[6] / days[2] == pytest.approx(0.6, abs=0.05)
    hours = Counter(int(gang.arrival_s // 3600 % 24) for gang in trace.gangs)
    assert hours[15] > 2 * hours[3]


def test_members_are_as_large_as_the_nodes_allow():
    eight = generate("generate:mixture,days=7", nodes(8, gpus=8)).gangs
    assert {gang.parts[0].requests for gang in eight if gang.total(GPU) == 64} == {((GPU, 8),)}
    six = generate("generate:mixture,days=7", nodes(12, gpus=6)).gangs
    assert {gang.parts for gang in six if gang.total(GPU) == 8} == {
        (TraceRole(1, ((GPU, 6),), "full"), TraceRole(1, ((GPU, 2),), "rest"))
    }
    assert max(sizes(generate("generate:mixture,days=7", nodes(2)))) == 16


def test_the_stream_has_a_large_gang_every_six_hours():
    trace = generate("generate:stream,load=1,days=2", nodes(16))
    large = [gang for gang in trace.gangs if gang.total(GPU) == 64]
    assert [gang.arrival_s / 3600 for gang in large] == [3, 9, 15, 21, 27, 33, 39, 45]
    assert max(gang.total(GPU) for gang in trace.gangs if gang not in large) == 8


@pytest.mark.parametrize(
    "text",
    [
        *("nosuch", "mixture,load=0", "mixture,load=nan", "mixture,days=367", "mixture,seed=1.5", "mixture,sed=1"),
        *("mixture,", "stream,load=0.01"),
    ],
)
def test_what_cannot_be_generated_is_told(text):
    with pytest.raises(TraceError) as refused:
        generate(f"generate:{text}", nodes(16))
    [problem] = refused.value.problems
    assert text.partition(",")[0] in problem


@pytest.mark.parametrize(("name", "gpus", "cpus"), [("mixture", 0, 8), ("stream", 0, 8), ("lublin", 8, 0)])
def test_nodes_without_what_the_trace_requests_are_told(name, gpus, cpus):
    with pytest.raises(TraceError):
        generate(f"generate:{name}", nodes(16, gpus=gpus, cpus=cpus))


def test_a_cycle_spreads_arrivals_by_its_weights_and_ends_within_a_bucket():
    cycle = Cycle([1.0, 3.0], bucket_s=10, span_s=25)
    assert [cycle.time_at(share) for share in (0, 1 / 4.5, 2.5 / 4.5, 4 / 4.5, 1)] == pytest.approx([0, 10, 15, 20, 25])


def limits(trace: Trace) -> list[int]:
    return [gang.limit_s for gang in trace.gangs if gang.limit_s is not None]


@pytest.fixture(scope="module")
def trace():
    return generate("generate:mixture,days=2,seed=5", nodes(100))


class TestLimits:
    def test_exact_limits_end_no_run_and_none_takes_them_away(self, trace):
        exact = with_limits(trace, "exact")
        assert all(0 <= limit - gang.run_s < 1 for limit, gang in zip(limits(exact), trace.gangs, strict=True))
        assert limits(with_limits(exact, "none")) == []
        run = Gang(name="a", arrival_s=0, run_s=0, parts=(TraceRole(1, ()),))
        assert limits(with_limits(Trace([run]), "exact")) == [1]

    def test_too_long_ones_are_up_to_five_times_the_run_time_and_mostly_round_values(self, trace):
        found = limits(with_limits(trace, "long"))
        pairs = [(limit, gang.run_s) for limit, gang in zip(found, trace.gangs, strict=True)]
        assert all(run <= limit <= 5 * max(run, 1) + 1 for limit, run in pairs)
        common = Counter(found).most_common(23)
        assert sum(number for _, number in common) / len(found) > 0.8
        assert all(value % 60 == 0 for value, _ in common)
        assert 2 < statistics.mean(limit / run for limit, run in pairs if run > 60) < 4
        assert found == limits(with_limits(trace, "long"))
        assert found != limits(with_limits(trace, "long", 2))
