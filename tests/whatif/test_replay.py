"""A replay binds whole gangs in contract order and never overcommits; its figures follow from its bindings."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangsched.config.settings import load
from gangsched.core.machine import Machine
from gangsched.core.objects.events import Event, PodSeen
from gangsched.core.objects.node import Node
from gangsched.core.planning.strategies import STRATEGIES
from gangsched.whatif.measures import SAMPLES, measure
from gangsched.whatif.trace_replay import START
from gangsched.whatif.trace_replay import replay as played_trace
from gangsched.whatif.traces.trace_values import GPU, Gang, Trace, TraceRole

POLICY = load(flags={}).policy()


def node(name: str, cpu: int, **more: int) -> Node:
    return Node(name, allocatable=tuple(sorted({"cpu": cpu * 1000, "pods": 110, **more}.items())))


def gang(name: str, at: float, members: int, *, run: float = 10, cpu: int = 1, priority: int = 0, **more: int) -> Gang:
    requests = tuple(sorted((name, size) for name, size in {"cpu": cpu * 1000, **more}.items() if size))
    return Gang(name=name, arrival_s=at, run_s=run, parts=(TraceRole(members, requests),), priority=priority)


def play(*gangs: Gang, nodes: list[Node], strategy: str = "Pack", preempt: bool = False):
    trace = Trace(sorted(gangs, key=lambda each: each.arrival_s))
    return played_trace(trace, nodes, POLICY, strategy=strategy, preempt=preempt)


def times(found) -> dict[str, tuple[float | None, float | None]]:
    return {each.gang.name: (each.bound_s, each.ended_s) for each in found.gangs}


def test_a_gang_waits_for_room_and_smaller_ones_behind_it_do_not():
    found = play(
        gang("first", 0, 3), gang("large", 1, 4), gang("small", 2, 1), gang("never", 3, 5), nodes=[node("n", 4)]
    )
    assert times(found) == {"first": (0, 10), "small": (2, 12), "large": (12, 22), "never": (None, None)}


def test_priority_goes_before_age():
    found = play(gang("a", 0, 1), gang("old", 1, 1), gang("high", 2, 1, priority=5), nodes=[node("n", 1)])
    assert times(found) == {"a": (0, 10), "high": (10, 20), "old": (20, 30)}


def test_room_that_ends_give_at_one_time_counts_together_for_who_arrives_then():
    found = play(gang("a", 0, 1), gang("b", 0, 1), gang("both", 10, 2), nodes=[node("n", 2)])
    assert times(found)["both"] == (10, 20)


def test_roles_are_bound_together():
    parts = (TraceRole(1, (("cpu", 4000),), "ps"), TraceRole(2, (("cpu", 1000),), "worker"))
    roles = Gang(name="roles", arrival_s=0, run_s=5, parts=parts)
    assert times(play(roles, nodes=[node("a", 4), node("b", 1)]))["roles"] == (None, None)
    found = play(roles, nodes=[node("a", 4), node("b", 2)])
    assert found.gangs[0].nodes == {"a": 1, "b": 2}


def test_gangs_of_one_name_are_different_gangs():
    found = play(gang("a", 0, 1), gang("a", 1, 1), nodes=[node("n", 2)])
    assert [each.bound_s for each in found.gangs] == [0, 1]


def test_a_limit_ends_a_run_and_is_that_of_the_pods():
    limited = replace(gang("limited", 0, 2, run=90), limit_s=60, expected_s=50)
    seen: list[Event] = []
    handle = Machine.handle

    def noted(self, events, now):
        seen.extend(events)
        return handle(self, events, now)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Machine, "handle", noted)
        found = play(limited, gang("next", 1, 2), nodes=[node("n", 2)])
    assert times(found) == {"limited": (0, 60), "next": (60, 70)}
    lifetimes = [(e.pod.lifetime.deadline_s, e.pod.lifetime.start) for e in seen if isinstance(e, PodSeen)]
    assert lifetimes[:2] == [(60, 0.0)] * 2
    assert set(lifetimes) == {(60, 0.0), (60, START), (None, 0.0), (None, START + 60)}


def test_strategies_differ_where_they_should():
    trace = [gang("a", 0, 2), gang("b", 1, 2)]
    nodes = [node("x", 4), node("y", 4)]
    assert [each.nodes for each in play(*trace, nodes=nodes).gangs] == [{"x": 2}, {"x": 2}]
    assert [each.nodes for each in play(*trace, nodes=nodes, strategy="Spread").gangs] == [{"x": 1, "y": 1}] * 2


def test_a_gang_that_is_preempted_runs_from_the_beginning_behind_the_one_that_it_left_for():
    trace = [gang("low", 0, 4, run=100), gang("high", 10, 4, run=50, priority=5)]
    assert times(play(*trace, nodes=[node("n", 4)])) == {"low": (0, 100), "high": (100, 150)}
    found = play(*trace, nodes=[node("n", 4)], preempt=True)
    low, high = found.gangs
    assert [high.bound_s, high.ended_s] == pytest.approx([40, 90], abs=0.2)
    assert [low.bound_s, low.ended_s] == pytest.approx([90, 190], abs=0.2)
    assert (low.preemptions, high.preemptions) == (1, 0)
    assert low.lost_s == pytest.approx(4 * 10, abs=1)
    measures = measure(found)
    assert measures.preemptions == 1
    assert measures.lost == pytest.approx(40 / (40 + 600), abs=0.01)


def test_equal_priorities_preempt_nobody():
    trace = [gang("first", 0, 4, run=100, priority=5), gang("second", 10, 4, run=50, priority=5)]
    found = play(*trace, nodes=[node("n", 4)], preempt=True)
    assert [each.preemptions for each in found.gangs] == [0, 0]


GANGS = st.lists(
    st.builds(
        gang,
        st.just("g"),
        st.integers(0, 50).map(float),
        st.integers(1, 6),
        run=st.integers(0, 40).map(float),
        cpu=st.integers(1, 5),
        priority=st.integers(0, 2),
    ),
    min_size=1,
    max_size=12,
)


@settings(deadline=None)
@given(GANGS, st.lists(st.integers(1, 8), min_size=1, max_size=4), st.sampled_from(list(STRATEGIES)), st.booleans())
def test_every_gang_that_fits_is_bound_whole_at_one_time_and_no_node_holds_more_than_it_has(
    gangs, sizes, strategy, preempt
):
    nodes = [node(f"n{number}", size) for number, size in enumerate(sizes)]
    found = play(*gangs, nodes=nodes, strategy=strategy, preempt=preempt)
    bound: dict[int, set[float]] = {}
    used: Counter[str] = Counter()
    for change in found.changes:
        asked = dict(found.gangs[change.gang].gang.parts[change.part].requests)["cpu"]
        used[change.node] += asked if change.taken else -asked
        assert 0 <= used[change.node] <= sizes[int(change.node[1:])] * 1000
        if change.taken:
            bound.setdefault(change.gang, set()).add(change.at_s)
    assert not any(used.values())
    for number, played in enumerate(found.gangs):
        if played.bound_s is not None:
            assert len(bound[number]) == 1 + played.preemptions
            assert max(bound[number]) == played.bound_s
            assert played.ended_s == played.bound_s + played.gang.run_s
            assert sum(played.nodes.values()) == played.gang.members
        else:
            assert number not in bound
        [part] = played.gang.parts
        room = sum(size * 1000 // dict(part.requests)["cpu"] for size in sizes)
        assert (played.bound_s is None) == (room < part.members), "what is never bound does not fit the empty nodes"


class TestMeasures:
    def test_waits_and_use_are_those_of_the_bindings(self):
        found = measure(play(gang("a", 0, 2, run=10), gang("b", 0, 2, run=30), nodes=[node("n", 2)]))
        assert found.wait_s == {"mean": 5, "p50": 0, "p95": 10, "p99": 10, "max": 10}
        assert (found.gangs, found.bound, found.makespan_s) == (2, 2, 40)
        assert found.used == {"cpu": pytest.approx(1)}
        assert [found.samples[0].waiting, found.samples[-1].waiting] == [1, 0]
        assert len(found.samples) == SAMPLES

    def test_waits_are_told_by_size_which_is_the_number_of_gpus_or_else_of_members(self):
        gangs = [
            gang("one", 0, 1, run=100, **{GPU: 1}),
            gang("eight", 0, 4, run=100, **{GPU: 2}),
            gang("nine", 10, 9, run=10),
            gang("thirty-two", 20, 4, run=10, **{GPU: 8}),
            gang("never", 20, 33, run=10),
        ]
        found = measure(play(*gangs, nodes=[node(f"n{number}", 4, **{GPU: 8}) for number in range(4)]))
        assert list(found.sizes) == ["1", "2-8", "9-31", "32+"]
        assert [size.gangs for size in found.sizes.values()] == [1, 1, 1, 2]
        assert [size.waiting for size in found.sizes.values()] == [0, 0, 0, 2]
        assert [size.wait_s["mean"] for size in found.sizes.values()] == [0, 0, 0, 80]

    def test_completion_and_slowdown_count_the_wait_and_short_runs_as_ten_seconds(self):
        gangs = [gang("a", 0, 1, run=40), gang("b", 20, 1, run=2), gang("c", 42, 1, run=1)]
        found = measure(play(*gangs, nodes=[node("n", 1)]))
        assert [found.completion_s[name] for name in ("p50", "max")] == [22, 40]
        assert found.completion_s["mean"] == pytest.approx((40 + 22 + 1) / 3)
        assert found.slowdown["mean"] == pytest.approx((1 + 22 / 10 + 1) / 3)

    def test_use_is_also_told_until_the_last_arrival(self):
        found = measure(play(gang("a", 0, 1, run=10), gang("b", 5, 2, run=10), nodes=[node("n", 2)]))
        assert found.used_arriving["cpu"] == pytest.approx(0.5)
        assert found.used["cpu"] == pytest.approx(30 / 40)

    def test_what_is_kept_free_for_a_gang_until_it_starts_is_reserved_and_idle(self):
        """From 1800 s on both CPUs are reserved; the first is free at 2000 s, for 1000 s of the 4000 s until `last`."""
        gangs = [gang("a", 0, 1, run=2000), gang("b", 0, 1, run=3000), gang("both", 0, 2), gang("last", 4000, 1)]
        gangs[:2] = [replace(each, limit_s=int(each.run_s)) for each in gangs[:2]]
        found = measure(play(*gangs, nodes=[node("n", 2)]))
        assert times(play(*gangs, nodes=[node("n", 2)]))["both"][0] == 3000
        assert found.idle["cpu"] == pytest.approx(1000 / (2 * 4000))

    def test_half_of_the_nodes_for_half_of_the_time_is_a_quarter(self):
        found = measure(play(gang("a", 0, 1, run=10), gang("b", 10, 1, run=10, cpu=0), nodes=[node("n", 2)]))
        assert found.used["cpu"] == pytest.approx(0.25)

    def test_free_cpu_beside_no_free_gpu_is_fragmented_for_those_who_need_both(self):
        """Half of the members need a GPU, which the first one has taken: for them the other 6 of 8 CPUs are useless."""
        nodes = [node("n", 8, **{"nvidia.com/gpu": 1})]
        both = gang("both", 0, 1, cpu=2, run=100, **{"nvidia.com/gpu": 1})
        found = measure(play(both, gang("cpu", 100, 1, cpu=2, run=0), nodes=nodes))
        assert found.samples[1].fragmented == {"cpu": pytest.approx(0.5 * 6 / 8), "nvidia.com/gpu": 0}

    def test_nothing_that_fits_is_no_division_by_nothing(self):
        found = measure(play(gang("a", 0, 1, cpu=9), nodes=[node("n", 1)]))
        assert (found.bound, found.makespan_s, found.never) == (0, 0, ["default/a"])
        assert found.wait_s["max"] == 0
