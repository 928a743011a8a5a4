"""The fallbacks that find a quorum when the first attempt fails."""

from __future__ import annotations

import pytest

from gangsched.core.planning import search
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.placement import Ask, Placement, place
from gangsched.core.planning.refusal import Refusal
from gangsched.core.planning.strategies import STRATEGIES
from tests.builders import node, pod


def run(cluster, members, *, need=None, strategy="Pack", **needs):
    need = len(members) if need is None else need
    ask = Ask(members=members, need=need, role_needs=needs, strategy=STRATEGIES[strategy])
    return place(Snapshot(cluster), ask)


def names(found):
    assert isinstance(found, Placement)
    return [member.name for member, _ in found.assignments]


@pytest.fixture
def no_search(monkeypatch):
    monkeypatch.setattr(search, "WIDEST", 0)


def members(*cpus, **fields):
    return [pod(f"m{at}", cpu=cpu, **fields) for at, cpu in enumerate(cpus)]


@pytest.mark.usefixtures("no_search")
def test_of_members_that_fit_somewhere_but_not_together_the_later_are_passed_over(cluster_of):
    cluster = cluster_of(node("n1", cpu=4))
    assert names(run(cluster, members(3, 3, 1), need=2)) == ["m0", "m2"]


@pytest.mark.usefixtures("no_search")
def test_a_member_that_its_role_cannot_do_without_is_not_passed_over(cluster_of):
    """Not all three 2-cpu members fit; the last is the only `ps`, so another one is left out."""
    cluster = cluster_of(node("n1", cpu=4), node("n2", cpu=1))
    gang = [
        pod("w0", cpu=2, role="w"),
        pod("w1", cpu=2, role="w"),
        pod("ps", cpu=2, role="ps"),
        pod("w2", cpu=1, role="w"),
    ]
    assert names(run(cluster, gang, need=3, ps=1)) == ["w0", "ps", "w2"]


@pytest.mark.usefixtures("no_search")
def test_the_smallest_are_tried_when_the_first_do_not_fit(cluster_of):
    cluster = cluster_of(node("n1", cpu=4))
    assert names(run(cluster, members(3, 3, 1, 1, 1, 1), need=4)) == ["m2", "m3", "m4", "m5"]


@pytest.mark.usefixtures("no_search")
def test_what_fits_only_when_the_smallest_go_first_is_found_so(cluster_of):
    """The two members of 2 must share one node, so that the member of 3 gets the other."""
    cluster = cluster_of(node("n1", cpu=4, labels={"zone": "a"}), node("n2", cpu=4, labels={"zone": "a", "disk": "b"}))
    gang = [pod("big", cpu=3, node_selector={"zone": "a"}), *members(2, 2)]
    assert set(names(run(cluster, gang))) == {"big", "m0", "m1"}


@pytest.mark.parametrize("strategy", ["Pack", "Spread"])
def test_members_of_different_sizes_that_can_fit_do_fit(cluster_of, strategy):
    cluster = cluster_of(node("n1", cpu=5), node("n2", cpu=5))
    found = run(cluster, members(2, 2, 3, 3), strategy=strategy)
    assert names(found) == ["m0", "m1", "m2", "m3"]
    by_node: dict[str, list[int]] = {}
    for member, where in found.assignments:
        by_node.setdefault(where, []).append(dict(member.shape.requests)["cpu"])
    assert {where: sorted(cpus) for where, cpus in by_node.items()} == {"n1": [2000, 3000], "n2": [2000, 3000]}


@pytest.mark.usefixtures("no_search")
def test_a_gang_that_fits_only_when_packed_is_packed_rather_than_refused(cluster_of):
    cluster = cluster_of(node("n1", cpu=8), node("n2", cpu=4))
    gang = members(2, 2, 5, 3)
    assert len(names(run(cluster, gang, strategy="Spread"))) == 4


@pytest.mark.usefixtures("no_search")
def test_what_fits_only_with_the_smallest_packed_first_is_found_so(cluster_of):
    cluster = cluster_of(node("n1", cpu=6, memory=5), node("n2", cpu=5, memory=4))
    gang = [pod("a", cpu=4, memory=4), pod("b", cpu=1, memory=3), pod("c", cpu=4, memory=2)]
    found = run(cluster, gang)
    assert {member.name: where for member, where in found.assignments} == {"a": "n2", "b": "n1", "c": "n1"}


def test_what_every_greedy_order_misses_is_found_by_the_search(cluster_of, monkeypatch):
    """Two nodes of ten, which only one distribution fills exactly: 5+3+2 and 4+3+3."""
    cluster = cluster_of(node("n1", cpu=10), node("n2", cpu=10))
    gang = members(4, 5, 3, 3, 3, 2)
    assert len(names(run(cluster, gang))) == 6
    assert "huge" not in names(run(cluster, [pod("huge", cpu=9), *gang], need=6))
    monkeypatch.setattr(search, "WIDEST", 0)
    refused = run(cluster, gang)
    assert isinstance(refused, Refusal)
    assert not refused.never


def test_which_of_the_members_go_where_follows_their_order(cluster_of):
    cluster = cluster_of(node("n1", cpu=2), node("n2", cpu=8))
    found = run(cluster, members(1, 1, 1, 1))
    assert [(member.name, where) for member, where in found.assignments] == [
        ("m0", "n1"),
        ("m1", "n1"),
        ("m2", "n2"),
        ("m3", "n2"),
    ]


@pytest.mark.usefixtures("no_search")
@pytest.mark.parametrize(
    "gang",
    [
        pytest.param([pod("a"), pod("b", gpu=1)], id="a class has no room"),
        pytest.param([pod("a"), *members(5, 5, 5)], id="a class has too little room"),
        pytest.param([pod("a"), *members(5, 4, 2)], id="all together ask for too much"),
    ],
)
def test_what_plainly_lacks_is_known_for_certain_without_a_search(cluster_of, gang):
    assert run(cluster_of(node("n1", cpu=5), node("n2", cpu=6)), gang).never


def test_as_many_as_possible_fit_where_a_greedy_order_places_fewer(cluster_of, monkeypatch):
    cluster = cluster_of(node("n1", cpu=10), node("n2", cpu=10))
    gang = members(4, 5, 3, 3, 3, 2, 9)
    assert run(cluster, gang).fits == 6
    monkeypatch.setattr(search, "WIDEST", 0)
    assert run(cluster, gang).fits == 5


def test_nobody_is_passed_over_where_every_role_needs_all_of_its_members(cluster_of):
    cluster = cluster_of(node("n1", cpu=3), node("n2", cpu=1))
    gang = [pod("ps", cpu=2, role="ps"), pod("w", cpu=2, memory=1, role="w"), pod("spare", cpu=9)]
    refused = run(cluster, gang, need=2, ps=1, w=1)
    assert (refused.fits, refused.never) == (1, True)


def test_a_role_that_nobody_names_is_refused_like_one_without_room(cluster_of):
    gang = members(1, 1, 1)
    refused = run(cluster_of(node("n1")), gang, need=2, ps=1)
    assert (refused.wanted, refused.fits) == (2, 1)
    assert refused.failing.shape == gang[0].shape


def test_never_is_said_only_where_everything_was_tried(cluster_of, monkeypatch):
    cluster = cluster_of(node("n1", cpu=5), node("n2", cpu=5))
    gang = members(3, 3, 4)
    assert run(cluster, gang).never
    monkeypatch.setattr(search, "MOST_KINDS", 1)
    assert not run(cluster, gang).never


def test_a_gang_of_nobody_needs_nothing(cluster_of):
    assert run(cluster_of(node("n1")), []) == Placement(())
    assert run(cluster_of(), members(1), need=0) == Placement(())
