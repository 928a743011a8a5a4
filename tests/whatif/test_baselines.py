"""Baselines start whom their rule lets start, on nodes that have the room, and the oracle delays no first gang."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangsched.core.objects.node import Node, Taint
from gangsched.whatif.baseline_cluster import Cluster
from gangsched.whatif.baselines import BASELINES, Easy, play
from gangsched.whatif.traces.trace_values import Gang, Trace, TraceRole
from tests.whatif.test_replay import GANGS, gang


def node(name: str, cpu: int, **more) -> Node:
    return Node(name, allocatable=(("cpu", cpu * 1000), ("pods", 110)), **more)


def bound(name: str, *gangs: Gang, nodes: list[Node]) -> dict[str, float | None]:
    trace = Trace(sorted(gangs, key=lambda each: each.arrival_s))
    return {each.gang.name: each.bound_s for each in play(trace, nodes, name).gangs}


STORY = (
    gang("first", 0, 3, run=10),
    gang("large", 1, 4, run=10),
    gang("short", 2, 1, run=8),
    gang("long", 3, 1, run=50),
)


def test_fifo_blocks_all_behind_the_first():
    assert bound("fifo", *STORY, nodes=[node("n", 4)]) == {"first": 0, "large": 10, "short": 20, "long": 20}


def test_first_fit_lets_all_pass_who_fit():
    story = [gang("first", 0, 3, run=10), gang("large", 1, 4, run=10), gang("long", 3, 1, run=50)]
    assert bound("first-fit", *story, nodes=[node("n", 4)]) == {"first": 0, "large": 53, "long": 3}


def test_easy_lets_those_pass_who_end_in_time():
    assert bound("easy", *STORY, nodes=[node("n", 4)]) == {"first": 0, "large": 10, "short": 2, "long": 20}


def test_a_reservation_is_made_anew_for_a_gang_that_one_of_higher_priority_has_overtaken():
    """At 5, `high` takes room that `large` would have had at 10, so that `late` may not rely on the former start."""
    story = [
        gang("first", 0, 2, run=10),
        gang("large", 1, 4, run=10),
        gang("high", 5, 2, run=20, priority=1),
        gang("late", 12, 2, run=10),
        gang("later", 13, 2, run=30),
    ]
    found = bound("easy", *story, nodes=[node("n", 4)])
    assert found == {"first": 0, "high": 5, "late": 12, "large": 25, "later": 35}


def test_easy_lets_those_pass_who_leave_the_room_on_the_nodes_of_the_first():
    story = [
        gang("first", 0, 1, cpu=3, run=10),
        gang("large", 1, 1, cpu=4, run=10),
        gang("beside", 3, 1, run=50),
        gang("behind", 4, 1, run=50),
    ]
    found = bound("easy", *story, nodes=[node("a", 4), node("b", 1)])
    assert found == {"first": 0, "large": 10, "beside": 3, "behind": 20}


def test_what_is_spare_beside_a_reservation_is_given_once():
    story = [
        gang("first", 0, 4, run=10),
        gang("large", 1, 5, run=10),
        gang("spare", 3, 1, run=50),
        gang("more", 4, 1, run=50),
    ]
    assert bound("easy", *story, nodes=[node("n", 6)]) == {"first": 0, "large": 10, "spare": 3, "more": 20}


def test_all_that_ends_at_the_reserved_time_counts():
    """At 10 both nodes are free: `large` takes one of them and a CPU of the other, where `long` has room beside it."""
    story = [
        gang("a", 0, 1, cpu=4, run=10),
        gang("b", 0, 1, cpu=3, run=10),
        gang("large", 1, 5, run=10),
        gang("long", 3, 1, run=50),
    ]
    found = bound("easy", *story, nodes=[node("x", 4), node("y", 4)])
    assert found == {"a": 0, "b": 0, "large": 10, "long": 3}


def test_a_short_gang_may_pass_where_a_long_one_of_the_same_size_may_not():
    story = [
        gang("first", 0, 3, run=10),
        gang("large", 1, 4, run=10),
        gang("long", 3, 1, run=50),
        gang("short", 3, 1, run=5),
    ]
    assert bound("easy", *story, nodes=[node("n", 4)]) == {"first": 0, "large": 10, "short": 3, "long": 20}


def test_quota_counts_and_members_wait_for_nodes_with_what_they_have():
    """Two free CPUs on two nodes suffice by number for a member that needs both; whoever comes later is kept off."""
    story = [
        gang("a", 0, 1, cpu=1, run=20),
        gang("b", 0, 1, cpu=2, run=30),
        gang("wide", 1, 1, cpu=2, run=5),
        gang("small", 2, 1, cpu=1, run=5),
    ]
    nodes = [node("x", 2), node("y", 3)]
    assert bound("quota", *story, nodes=nodes) == {"a": 0, "b": 0, "wide": 20, "small": 20}
    assert bound("first-fit", *story, nodes=nodes) == {"a": 0, "b": 0, "wide": 20, "small": 2}


def test_a_partly_bound_gang_holds_its_nodes():
    story = [
        gang("a", 0, 1, cpu=1, run=20),
        gang("b", 0, 1, cpu=1, run=30),
        gang("pair", 1, 2, cpu=2, run=5),
    ]
    found = play(Trace(story), [node("x", 3), node("y", 3)], "quota")
    assert [change.at_s for change in found.changes if change.gang == 2 and change.taken] == [1, 20]
    assert found.gangs[2].bound_s == 20


def test_priority_goes_before_age_and_a_limit_ends_a_run():
    story = [gang("a", 0, 1), gang("old", 1, 1), gang("high", 2, 1, priority=5)]
    for name in BASELINES:
        assert bound(name, *story, nodes=[node("n", 1)]) == {"a": 0, "high": 10, "old": 20}
    limited = Gang(name="l", arrival_s=0, run_s=90, limit_s=60, parts=(TraceRole(1, ()),))
    for name in BASELINES:
        assert play(Trace([limited]), [node("n", 1)], name).gangs[0].ended_s == 60


def test_who_never_fits_blocks_nobody_and_closed_nodes_offer_nothing():
    nodes = [
        node("a", 4, unschedulable=True),
        node("b", 4, taints=(Taint("k", "NoSchedule"),)),
        node("c", 2, taints=(Taint("k", "PreferNoSchedule"),)),
    ]
    for name in BASELINES:
        assert bound(name, gang("never", 0, 3), gang("fits", 0, 2), nodes=nodes) == {"never": None, "fits": 0}


def test_progress_is_told():
    told: list[tuple[int, float]] = []
    play(Trace([gang("a", 0, 1), gang("b", 5, 1)]), [node("n", 2)], "easy", lambda ended, at: told.append((ended, at)))
    assert told == [(0, 0), (0, 5), (1, 10), (2, 15)]


SIZES = st.lists(st.integers(1, 8), min_size=1, max_size=4)


@settings(deadline=None)
@given(GANGS, SIZES, st.sampled_from(sorted(BASELINES)))
def test_no_node_holds_more_than_it_has_and_all_who_fit_run_whole(gangs, sizes, name):
    trace = Trace(sorted(gangs, key=lambda each: each.arrival_s))
    found = play(trace, [node(f"n{number}", size) for number, size in enumerate(sizes)], name)
    used: Counter[str] = Counter()
    at = 0.0
    for change in found.changes:
        asked = dict(found.gangs[change.gang].gang.parts[change.part].requests)["cpu"]
        used[change.node] += asked if change.taken else -asked
        assert 0 <= used[change.node] <= sizes[int(change.node[1:])] * 1000
        assert at <= change.at_s
        at = change.at_s
    for played in found.gangs:
        [part] = played.gang.parts
        fits = sum(size * 1000 // dict(part.requests)["cpu"] for size in sizes) >= part.members
        if name != "quota":  # members of several admitted gangs may wait for each other for ever
            assert fits == (played.bound_s is not None)
        if played.bound_s is not None:
            assert fits
            assert played.gang.arrival_s <= played.bound_s
            assert played.ended_s == played.bound_s + played.gang.duration_s
            assert sum(played.nodes.values()) == played.gang.members


def in_roles(one: Gang) -> tuple[TraceRole, ...]:
    """A first member that needs less, and the others."""
    [part] = one.parts
    rest = (TraceRole(part.members - 1, part.requests, "rest"),) if part.members > 1 else ()
    return (TraceRole(1, (("cpu", 1000),), "first"), *rest)


class Watched(Easy):
    """Notes when each gang was promised to start at the latest."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.promised: dict[int, float] = {}

    def decide(self, arrived, freed):
        before = self._head
        super().decide(arrived, freed)
        if self._head is not None and self._head != before:
            self.promised[self._head] = min(self._start_s, self.promised.get(self._head, self._start_s))


@settings(deadline=None)
@given(GANGS, SIZES, st.booleans())
def test_the_oracle_starts_each_first_gang_when_promised_if_no_higher_priority_comes(gangs, sizes, roles):
    level = [replace(each, priority=0, parts=in_roles(each) if roles else each.parts) for each in gangs]
    trace = Trace(sorted(level, key=lambda each: each.arrival_s))
    cluster = Cluster(trace, [node(f"n{at}", size) for at, size in enumerate(sizes)])
    rule = Watched(cluster)
    cluster.play(rule, None)
    for number, promised_s in rule.promised.items():
        bound_s = cluster.of(number).bound_s
        assert bound_s is not None
        assert bound_s <= promised_s


@pytest.mark.parametrize("name", sorted(BASELINES))
def test_gangs_with_roles_are_bound_together(name):
    parts = (TraceRole(1, (("cpu", 4000),), "ps"), TraceRole(2, (("cpu", 1000),), "worker"))
    roles = Gang(name="roles", arrival_s=0, run_s=5, parts=parts)
    assert play(Trace([roles]), [node("a", 4), node("b", 1)], name).gangs[0].bound_s is None
    assert play(Trace([roles]), [node("a", 4), node("b", 2)], name).gangs[0].nodes == {"a": 1, "b": 2}
