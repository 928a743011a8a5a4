from __future__ import annotations

from collections import Counter

import pytest

from gangsched.core.planning import search
from gangsched.core.planning.backtracking import Backtracking
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.filling import classify
from gangsched.core.planning.search import Search, Slots, Steps, selections, size
from tests.builders import node, pod, shape
from tests.gadgets import GPUS, device_claim, gpus

A, B, C = (MemberClass(shape(cpu)) for cpu in ("3", "2", "1"))


def member(*args, **fields):
    return MemberClass(shape(*args, **fields))


def find(cluster, *wanted, steps=None):
    """Placements of (class, number) pairs, by class and node name; None if there are none."""
    snapshot = Snapshot(cluster)
    attempt = Search(snapshot, [each for each, _ in wanted], steps or Steps())
    found = attempt.find({(each, ""): number for each, number in wanted})
    if found is None:
        return None
    for each, row, number in found:
        assert snapshot.caps(each)[row] >= number
        snapshot.take(row, each, number)
    placed = Counter[MemberClass]()
    for each, _, number in found:
        placed[each] += number
    assert placed == {each: number for each, number in wanted if number}
    return sorted((snapshot.name(row), number) for _, row, number in found)


def test_a_packing_that_only_one_distribution_allows_is_found(cluster_of):
    cluster = cluster_of(node("n1", cpu=5), node("n2", cpu=5), node("n3", cpu=4))
    assert find(cluster, (A, 2), (B, 4)) == [("n1", 1), ("n1", 1), ("n2", 1), ("n2", 1), ("n3", 2)]


def test_members_that_depend_on_each_other_are_not_placed_again_where_the_rest_found_no_room(cluster_of):
    """7 members on 6 places: they fill them in 6!/(2!)^3 = 90 orders, which meet in 27 ways to fill them in part."""
    snapshot, steps = Snapshot(cluster_of(*(node(name, cpu=2) for name in ("n1", "n2", "n3")))), Steps()
    begun = steps.left
    assert Backtracking(snapshot, [C], steps).find({(C, ""): 7}) is None
    assert (steps.ended, begun - steps.left) == (False, 27 * 2)


def test_classes_of_which_none_is_wanted_take_no_part(cluster_of):
    cluster = cluster_of(node("n1", cpu=4), node("n2", cpu=4))
    assert find(cluster, (A, 0), (B, 4)) == [("n1", 2), ("n2", 2)]


def test_equal_nodes_are_told_apart_by_the_ports_taken_on_the_way(cluster_of):
    """The class placed first takes a port on one of two equal nodes; the next must go to the other node."""
    cluster = cluster_of(node("n1", cpu=4), node("n2", cpu=4))
    first, second = member("2", host_ports=[80, 81]), member("2", host_ports=[81])
    third = member("2", host_ports=[82])
    assert find(cluster, (first, 1), (second, 1), (third, 2)) == [("n1", 1), ("n1", 1), ("n2", 1), ("n2", 1)]
    assert find(cluster, (first, 2), (second, 1)) is None
    assert find(cluster, (first, 1), (second, 2)) is None


def test_a_class_closed_on_one_of_two_otherwise_equal_nodes_goes_to_the_other(cluster_of):
    cluster = cluster_of(node("n1", cpu=4), node("n2", cpu=4, labels={"zone": "a"}))
    assert find(cluster, (member("2"), 2), (member("2", node_selector={"zone": "a"}), 2)) is not None
    assert find(cluster, (member("1"), 5), (member("2", node_selector={"zone": "a"}), 2)) is None


def test_a_negative_rest_of_another_resource_does_not_matter(cluster_of):
    cluster = cluster_of(
        node("n1", cpu=4, memory="1Gi"), node("n2", cpu=4), pod("old", cpu=None, memory="2Gi", node="n1")
    )
    assert find(cluster, (member("4"), 1), (member("2", memory="1Gi"), 2)) == [("n1", 1), ("n2", 2)]
    assert find(cluster, (member("4"), 2), (member("2", memory="1Gi"), 1)) is None


def test_too_wide_a_problem_is_not_searched_and_says_so(cluster_of, monkeypatch):
    monkeypatch.setattr(search, "WIDEST", 3)
    cluster = cluster_of(node("n1", cpu=5), node("n2", cpu=5))
    steps = Steps()
    assert find(cluster, (A, 1), (B, 1), steps=steps) is None
    assert steps.ended


@pytest.mark.parametrize("left", [0, 5, 12, 15, 20])
def test_a_search_that_runs_out_of_steps_says_so(cluster_of, left):
    cluster = cluster_of(node("n1", cpu=5), node("n2", cpu=5))
    steps = Steps(left=left)
    assert find(cluster, (A, 2), (B, 2), steps=steps) is None
    assert steps.ended
    assert steps.left >= 0


def test_what_has_failed_once_costs_next_to_nothing_again(cluster_of):
    cluster = cluster_of(*(node(f"n{at}", cpu=5) for at in range(8)))
    steps = Steps()
    attempt = Search(Snapshot(cluster), [A, B], steps)
    wanted = {(A, ""): 8, (B, ""): 9}
    assert attempt.find(wanted) is None
    left = steps.left
    assert attempt.find(wanted) is None
    assert left - steps.left < 10


@pytest.mark.parametrize(
    ("nodes", "size_", "wanted", "most"),
    [
        pytest.param(5, 10, {7: 2, 6: 1, 5: 2, 4: 4}, 400, id="equal nodes are not tried in every order"),
        pytest.param(4, 11, {8: 1, 6: 5}, 30, id="a class to come without room enough ends it early"),
    ],
)
def test_that_nothing_fits_is_told_in_few_steps(cluster_of, nodes, size_, wanted, most):
    cluster = cluster_of(*(node(f"n{at}", cpu=size_) for at in range(nodes)))
    steps = Steps(left=most)
    assert find(cluster, *((member(cpu), number) for cpu, number in wanted.items()), steps=steps) is None
    assert not steps.ended


def test_many_equal_nodes_are_filled_where_everything_fits(cluster_of):
    nodes = [node(f"n{at:02}", cpu=8, memory="8Gi", pods=2) for at in range(20)]
    classes = [(member("5", memory="1Gi"), 20), (member("2", memory="6Gi"), 20)]
    assert find(cluster_of(*nodes), *classes) == [(each.name, 1) for each in nodes for _ in classes]


def test_size_is_the_largest_share_of_the_largest_node(cluster_of):
    snapshot = Snapshot(cluster_of(node("n1", cpu=8, memory="8Gi"), node("n2", cpu=4, memory="16Gi", gpu=4)))
    assert size(snapshot, member("2")) == 0.25
    assert size(snapshot, member("2", memory="8Gi")) == 0.5
    assert size(snapshot, member("1", gpu=4)) == 1.0
    assert size(snapshot, member(None)) == 0.0
    assert size(snapshot, member(requests={"x.io/unheard-of": 1})) == float("inf")
    assert size(Snapshot(cluster_of()), member("1")) == float("inf")


@pytest.mark.parametrize(
    ("kinds", "roles", "free", "number", "chosen"),
    [
        pytest.param({(A, ""): 2}, {}, 2, 2, [(2,)], id="all there are"),
        pytest.param({(A, ""): 2}, {}, 3, 3, [], id="more than there are"),
        pytest.param({(A, ""): 2, (B, ""): 2}, {}, 2, 2, [(2, 0), (1, 1), (0, 2)], id="every mixture"),
        pytest.param({(A, "w"): 3, (B, "ps"): 1}, {"ps": 1}, 2, 3, [(2, 1)], id="a role that must be there"),
        pytest.param({(A, "w"): 3, (B, "ps"): 1}, {"ps": 1}, 2, 2, [(2, 0), (1, 1)], id="or is still missing"),
        pytest.param({(A, "w"): 3, (B, "w"): 3}, {"w": 2}, 0, 2, [(2, 0), (1, 1), (0, 2)], id="a role of two classes"),
        pytest.param({(A, "w"): 3, (B, "x"): 1}, {"w": 1}, 0, 1, [(1, 0)], id="no slot for another role"),
        pytest.param(
            {(A, "w"): 2, (B, "x"): 1, (C, "ps"): 1},
            {"w": 1, "ps": 2},
            1,
            3,
            [(2, 0, 1), (1, 1, 1)],
            id="one beyond a role's need takes the slot of another",
        ),
        pytest.param({(A, ""): 1}, {}, 1, 0, [()], id="none at all"),
    ],
)
def test_selections_are_the_ways_to_fill_the_slots(kinds, roles, free, number, chosen):
    found = [
        tuple(one.get(kind, 0) for kind in kinds) if one else ()
        for one in selections([(kind, count, 0) for kind, count in kinds.items()], Slots(roles, free), number)
    ]
    assert found == chosen


@pytest.mark.parametrize(
    ("least", "chosen"),
    [
        pytest.param({(A, ""): 1}, [(2, 0), (1, 1)], id="one of the first"),
        pytest.param({(B, ""): 1}, [(1, 1), (0, 2)], id="one of the second"),
        pytest.param({(A, ""): 1, (B, ""): 1}, [(1, 1)], id="one of each"),
        pytest.param({(A, ""): 1, (B, ""): 2}, [], id="more than are to be chosen"),
    ],
)
def test_selections_have_at_least_as_many_of_each_kind_as_asked_for(least, chosen):
    kinds = [(kind, 2, least.get(kind, 0)) for kind in ((A, ""), (B, ""))]
    found = list(selections(kinds, Slots({}, 2), 2))
    assert [tuple(one.get(kind, 0) for kind, _, _ in kinds) for one in found] == chosen


def test_slots_add_up():
    assert Slots({"w": 2, "ps": 1}, 3).number == 6


def test_a_node_gets_no_more_members_than_it_has_devices_for(cluster_of):
    """Regression: where classes without devices are searched for besides, only amounts limited how many go there."""
    gangs = [pod(f"c-{at}", device_claims=[f"c-{at}"]) for at in range(2)]
    cluster = cluster_of(
        *(node("n1", cpu=3), node("n2", cpu=4), GPUS, gpus("n1", 1), gpus("n2", 2)),
        *(device_claim(f"c-{at}") for at in range(2)),
    )
    [using] = {*classify(Snapshot(cluster), gangs, frozenset()).values()}
    assert find(cluster, (using, 2), (C, 5)) is not None
    assert find(cluster, (using, 2), (member("4"), 1)) is None
