"""Places that are reserved where nobody knows when others end: the nodes fill up for the holder, and nobody else."""

from __future__ import annotations

from typing import Any

import pytest

from gangsched.core.contention import plans, reserving
from gangsched.core.objects.shape import HostPort
from tests.builders import node
from tests.harness import Harness
from tests.preempting import is_whole
from tests.reserving import GRACE_S, cluster, finish, gang, places, runs, start, starve

UNKNOWN = float("inf")
PORT: dict[str, Any] = {"host_ports": [HostPort(80)]}


def singles(number: int) -> list[Any]:
    """So many groups of one."""
    return [each for at in range(number) for each in gang(f"s{at}", 1)]


@pytest.mark.parametrize("order", [range(8), reversed(range(8)), (0, 7, 1, 6, 2, 5, 3, 4)])
def test_whatever_comes_free_of_the_places_is_kept(order):
    """Regression: only the last to end left their room to the holder, and those who came later took all before that."""
    harness = cluster(*(runs(f"p{at}", 0) for at in range(8)), nodes=1, cpu=8)
    starve(harness, *gang("g", 1, pods_with={"cpu": 4}))
    assert start(harness, "g") == UNKNOWN
    harness.wait(5, *singles(8))
    for number, at in enumerate(order):
        assert is_whole(harness, "g", 1) is (number >= 4)
        assert len(harness.bound("default/s")) == max(0, number - 4)
        finish(harness, f"default/p{at}")
        harness.wait(15)


@pytest.mark.parametrize("large", [3, 4])
def test_what_is_free_is_kept_though_one_that_stays_leaves_enough(large):
    harness = cluster(runs("large", 0, cpu=large), *(runs(f"p{at}", 0) for at in range(5 - large)), nodes=1, cpu=5)
    starve(harness, *gang("g", 1, pods_with={"cpu": 2}))
    harness.wait(5, *singles(2))
    for at in range(5 - large):
        finish(harness, f"default/p{at}")
        harness.wait(15)
    assert harness.bound("default/s0") == []


def beside_ports() -> Harness:
    """A holder waits on two nodes of 2 CPUs for pods of higher priority with its port; low ones are beside them."""
    harness = cluster(nodes=2, cpu=2)
    harness.put_class("mid", 50)
    ports = (runs(f"web{at}", at, priority=100, **PORT) for at in range(2))
    harness.settle(*ports, *(runs(f"low{at}", at) for at in range(2)))
    starve(harness, *gang("g", 2, priority_class="mid", pods_with=PORT))
    assert start(harness, "g") == UNKNOWN
    return harness


def test_who_is_behind_the_holder_preempts_those_for_whom_it_need_not_wait():
    """Regression: nobody on its nodes could be preempted by those behind it."""
    harness = beside_ports()
    harness.wait(10, *gang("next", 1, priority_class="mid", created=harness.now))
    assert len(harness.evicted) == 1
    harness.end_terminating()
    harness.wait(10)
    assert is_whole(harness, "next", 1)
    assert start(harness, "g") == UNKNOWN
    finish(harness, "default/web0", "default/web1")
    harness.wait(10)
    assert is_whole(harness, "g", 2)


def test_what_comes_free_for_the_holder_is_not_for_who_is_behind_it():
    """Both low pods have ended: their room is the holder's, and the one that it needs of each node is all there is."""
    harness = beside_ports()
    finish(harness, "default/low0", "default/low1")
    harness.wait(30, *gang("next", 1, priority_class="mid", created=harness.now))
    assert harness.evicted == []
    assert harness.bound("default/next") == []
    finish(harness, "default/web0", "default/web1")
    harness.wait(10)
    assert is_whole(harness, "g", 2)


def test_nobody_behind_the_holder_preempts_those_whose_room_it_needs():
    """A high pod keeps it off one node, and it needs all of the other one."""
    harness = cluster(nodes=2, cpu=2)
    harness.put_class("mid", 50)
    harness.settle(runs("high", 0, priority=100, cpu=2), *(runs(f"low{at}", 1) for at in range(2)))
    starve(harness, *gang("g", 2, priority_class="mid", pods_with={"cpu": 2}))
    assert start(harness, "g") == UNKNOWN
    harness.wait(30, *gang("next", 1, priority_class="mid", created=harness.now))
    assert harness.evicted == []
    harness.wait(30, node("other", cpu=1))
    assert is_whole(harness, "next", 1)
    finish(harness, "default/high", "default/low0")
    harness.wait(10)
    assert sorted(harness.evicted) == ["default/low1"], "by now the holder preempts"
    harness.end_terminating()
    harness.wait(10)
    assert is_whole(harness, "g", 2)


def test_a_node_that_goes_moves_the_places():
    harness = cluster(*(runs(f"p{at}", at) for at in range(3)), nodes=3)
    starve(harness, *gang("g", 2))
    gone = places(harness, "g")[0]
    harness.delete_node(gone)
    harness.delete(f"default/p{gone[1:]}")
    harness.wait(10)
    assert start(harness, "g") == UNKNOWN
    assert gone not in places(harness, "g")


@pytest.mark.without("all", why="counts what is looked at, and a new leader looks at everything")
def test_only_the_reservations_are_looked_at_whose_nodes_something_has_touched(monkeypatch):
    """Regression: each was searched for again every ten seconds, and asked at each relief, wherever something came or
    went.
    """
    looked: list[str] = []
    for module, name, of in ((plans, "missing", lambda _, plan: plan.places[0][0].name), (reserving, "Earliest", None)):
        before = getattr(module, name)

        def counted(*given: Any, before: Any = before, of: Any = of) -> Any:
            looked.append(of(*given) if of else given[0].members[0].name)
            return before(*given)

        monkeypatch.setattr(module, name, counted)
    harness = cluster(nodes=0)
    for pool in "abc":
        harness.settle(node(f"n{pool}", cpu=2, labels={"pool": pool}), *(runs(f"p{pool}{at}", pool) for at in range(2)))
    for pool in "ab":
        starve(harness, *gang(pool, 1, pods_with={"cpu": 2, "node_selector": {"pool": pool}}))
        assert start(harness, pool) == UNKNOWN
    # What was reserved meanwhile is looked at once more.
    harness.wait(30, runs("one", "c", cpu=0))
    for where, asked in (("c", set()), ("a", {"a-0"})):
        looked.clear()
        for at in range(15):
            harness.settle(runs(f"more{at}", where, cpu=0))
            harness.wait(1)
            finish(harness, f"default/more{at}")
        assert {*looked} == asked


def test_a_start_that_somebody_declares_later_is_told_though_nothing_happens_on_the_nodes():
    """Regression: it took five minutes."""
    harness = cluster(node("n0", cpu=1, labels={"pool": "a"}), nodes=0)
    harness.settle(node("else", cpu=1), *gang("r", 1, pods_with={"node": "n0"}))
    starve(harness, *gang("g", 1, pods_with={"node_selector": {"pool": "a"}}))
    assert start(harness, "g") == UNKNOWN
    # What was reserved meanwhile is looked at once more.
    harness.wait(20, runs("one", "else", cpu=0))
    harness.change_spec("default/r", expected_s=600)
    for at in range(7):
        harness.wait(10, runs(f"more{at}", "else", cpu=0))
    assert start(harness, "g") == 600 + GRACE_S
