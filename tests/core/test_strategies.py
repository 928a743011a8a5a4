from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangsched.core.cluster.cache import Cluster
from gangsched.core.objects.strategy import Room, Scarce
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.placement import Ask, Placement, place
from gangsched.core.planning.strategies import BEST_FIT, MOST_USED, PACK, STRATEGIES, MinimalFragmentation, Spread
from tests.builders import node, pod


def room(caps, *, fullness=None, own=None, rank=None, rows=None, preference=None, left=None, used=None, spared=None):
    """Rooms with one slot each by default; `left` and `used` are those of the scarcest resource."""
    size = len(caps)
    scarce = Scarce(np.array(left or [0] * size), np.array(used or [0] * size))
    return Room(
        preferences=() if preference is None else (np.array(preference),),
        scarce=lambda: scarce,
        rows=np.array(rows if rows is not None else range(size)),
        caps=np.array(caps),
        fullness=np.array(fullness or [0.0] * size),
        own=np.array(own or [0] * size),
        rank=np.array(rank if rank is not None else range(size)),
        spared=None if spared is None else np.array(spared),
    )


@pytest.mark.parametrize(
    ("given_", "count", "shares"),
    [
        pytest.param(room([4, 4], rows=[7, 3], fullness=[0.5, 0]), 4, {7: 4}, id="rows are named, not positions"),
        pytest.param(room([9, 9], own=[0, 5]), 1, {0: 1}, id="own members do not attract"),
        pytest.param(room([4, 4], fullness=[0.1, 0.5], spared=[0, 1]), 5, {0: 4, 1: 1}, id="spared nodes last"),
        pytest.param(room([4, 4], preference=[1, 0], spared=[0, 1]), 1, {1: 1}, id="unless they are preferred"),
    ],
)
def test_pack_fills_the_fullest_node_first(given_, count, shares):
    assert dict(PACK.distribute(given_, count)) == shares


@pytest.mark.parametrize(
    ("given_", "count", "shares"),
    [
        pytest.param(room([4, 4, 4]), 3, {0: 1, 1: 1, 2: 1}, id="one for each node"),
        pytest.param(room([4, 4, 4]), 7, {0: 3, 1: 2, 2: 2}, id="in turn"),
        pytest.param(room([4, 4, 4], fullness=[0.9, 0.1, 0.5]), 1, {1: 1}, id="the emptiest first"),
        pytest.param(room([4, 4, 4], fullness=[0.9, 0.1, 0.5]), 5, {1: 2, 2: 2, 0: 1}, id="also for the remainder"),
        pytest.param(room([4, 4], rank=[1, 0]), 1, {1: 1}, id="then by name"),
        pytest.param(room([1, 9, 1]), 6, {0: 1, 1: 4, 2: 1}, id="as far as each has room"),
        pytest.param(room([9, 9, 9], own=[2, 0, 0]), 3, {1: 2, 2: 1}, id="members there already count"),
        pytest.param(room([9, 9, 9], own=[1, 1, 0]), 3, {2: 1, 0: 1, 1: 1}, id="and are levelled"),
        pytest.param(room([2, 2], own=[50, 0]), 4, {0: 2, 1: 2}, id="but not against the room there is"),
        pytest.param(room([4, 4], rows=[7, 3]), 2, {7: 1, 3: 1}, id="rows are named, not positions"),
    ],
)
def test_spread_gives_each_node_one_in_turn(given_, count, shares):
    assert dict(Spread().distribute(given_, count)) == shares


@pytest.mark.parametrize(
    ("left", "used", "caps", "best", "most"),
    [
        # The cases of toy-scheduler: GPUs free and in use on nodes A (0) and B (1), for a pod of one GPU.
        pytest.param([4, 6], [4, 2], [4, 6], 0, 0, id="A has 4 of 8 in use, B 2 of 8"),
        pytest.param([4, 1], [4, 3], [4, 1], 1, 0, id="A has 4 of 8, B 3 of 4: the tightest fit is not the most used"),
        pytest.param([8, 8], [0, 0], [8, 8], 0, 0, id="nothing is in use: by name"),
    ],
)
def test_best_fit_leaves_least_and_most_used_goes_where_most_is_in_use(left, used, caps, best, most):
    given_ = room(caps, left=left, used=used)
    assert BEST_FIT.distribute(given_, 1) == [(best, 1)]
    assert MOST_USED.distribute(given_, 1) == [(most, 1)]


@pytest.mark.parametrize("strategy", [PACK, BEST_FIT, MOST_USED, MinimalFragmentation()])
def test_among_equal_nodes_the_fullest_is_filled_first_then_by_name(strategy):
    assert strategy.distribute(room([2, 2, 2], fullness=[0.1, 0.5, 0.5], rank=[0, 2, 1]), 2) == [(2, 2)]


@pytest.mark.parametrize(
    ("strategy", "shares"),
    [
        (PACK, [(2, 4), (1, 1)]),
        (BEST_FIT, [(2, 4), (1, 1)]),
        (MOST_USED, [(2, 4), (1, 1)]),
        (MinimalFragmentation(), [(2, 4), (1, 1)]),
        (Spread(), [(2, 2), (1, 2), (0, 1)]),
    ],
)
def test_preferred_nodes_come_before_all_that_a_strategy_likes_itself(strategy, shares):
    given_ = room([4, 4, 4], fullness=[0.9, 0.5, 0.0], left=[1, 2, 3], used=[3, 2, 1], preference=[2, 1, 0])
    assert sorted(strategy.distribute(given_, 5)) == sorted(shares)


def test_minimal_fragmentation_looks_at_room_before_preference():
    assert MinimalFragmentation().distribute(room([8, 1], preference=[0, 1]), 1) == [(1, 1)]


LETTERS = "abcdef"


@pytest.mark.parametrize(
    ("count", "shares"),
    [
        (6, {"d": 5, "a": 1}),
        (11, {"d": 5, "e": 5, "a": 1}),
        (15, {"d": 5, "e": 5, "c": 3, "a": 1, "b": 1}),
        (17, {"f": 17}),
        (19, {"f": 17, "c": 2}),
        (32, dict(zip(LETTERS, (1, 1, 3, 5, 5, 17), strict=True))),
    ],
)
def test_minimal_fragmentation_takes_whole_nodes_and_leaves_nearly_empty_ones_alone(count, shares):
    """The rooms of k8s-spark-scheduler's own example; the expected result is recomputed from its rule."""
    found = MinimalFragmentation().distribute(room([1, 1, 3, 5, 5, 17]), count)
    assert {LETTERS[row]: number for row, number in found} == shares


def test_minimal_fragmentation_halves_as_whole_numbers_do():
    """As in k8s-spark-scheduler: (7 + 8) / 2 is 7, and a node with room for 7 is not used."""
    assert sorted(MinimalFragmentation().distribute(room([7, 6, 1, 8]), 7)) == [(1, 6), (2, 1)]


def test_minimal_fragmentation_puts_a_further_member_beside_the_others():
    """k8s-spark-scheduler's case: an application on node 2, while node 1 is fuller and has less room."""
    assert MinimalFragmentation().distribute(room([2, 5, 6], fullness=[0.9, 0.1, 0.1], own=[0, 2, 1]), 1) == [(1, 1)]
    assert MinimalFragmentation().distribute(room([2, 5], own=[0, 0]), 1) == [(0, 1)]


def test_a_node_half_way_between_what_is_wanted_and_the_largest_room_is_one_to_leave_alone():
    assert sorted(MinimalFragmentation().distribute(room([1, 1, 4, 6]), 2)) == [(0, 1), (1, 1)]
    assert MinimalFragmentation().distribute(room([1, 1, 3, 6]), 2) == [(2, 2)]


def beside_a_driver(strategy, driver, executor, count, nodes):
    """Executors by node once a driver has taken its share of the first node that lets all of them fit.

    Sizes and nodes are (cpu, memory, gpu); the nodes are in the order in which the packers of k8s-spark-scheduler try
    them. None if they do not fit.
    """
    names = list(nodes)
    for name in names:
        free = {other: np.array(nodes[other]) for other in names}
        free[name] = free[name] - driver
        if (free[name] < 0).any():
            continue
        caps = [
            min((left // each for left, each in zip(free[other], executor, strict=True) if each), default=99)
            for other in names
        ]
        if sum(caps) < count:
            continue
        rows = [row for row, cap in enumerate(caps) if cap]
        order = [1.0 - row / 100 for row in rows] if strategy is PACK else None
        found = (
            strategy.distribute(room([caps[row] for row in rows], rows=rows, fullness=order, rank=rows), count)
            if count
            else []
        )
        return name, {names[row]: int(number) for row, number in found}
    return None


SPREAD, MINIMAL = Spread(), MinimalFragmentation()


@pytest.mark.parametrize(
    ("strategies", "driver", "executor", "count", "nodes", "expected"),
    [
        ([PACK, MINIMAL], (1, 3, 1), (2, 5, 1), 2, {"n1": (5, 10, 2), "n2": (4, 5, 1)}, ("n1", {"n1": 1, "n2": 1})),
        ([SPREAD], (1, 3, 1), (2, 5, 1), 2, {"n1": (5, 10, 3), "n2": (4, 5, 3)}, ("n1", {"n1": 1, "n2": 1})),
        ([PACK, MINIMAL], (2, 4, 1), (1, 1, 0), 1, {"n1": (2, 3, 1)}, None),
        ([SPREAD], (2, 4, 1), (1, 1, 1), 1, {"n1": (2, 3, 2)}, None),
        (
            [PACK, SPREAD, MINIMAL],
            (1, 2, 1),
            (1, 1, 1),
            40,
            {"n1": (13, 14, 13), "n2": (12, 12, 12), "n3": (16, 16, 16)},
            ("n1", {"n1": 12, "n2": 12, "n3": 16}),
        ),
        ([PACK, SPREAD, MINIMAL], (1, 1, 0), (1, 2, 1), 8, {"n1": (8, 20, 8)}, None),
        ([PACK, SPREAD, MINIMAL], (1, 1, 1), (1, 1, 1), 4, {"z1": (4, 4, 4), "z2": (128, 128, 0)}, None),
        ([PACK], (1, 3, 1), (2, 5, 1), 5, {"n1": (11, 28, 6), "n2": (10, 20, 6)}, ("n1", {"n1": 5})),
        ([MINIMAL], (1, 3, 0), (2, 5, 0), 5, {"n1": (5, 25, 6), "n2": (9, 24, 6)}, ("n1", {"n1": 1, "n2": 4})),
        ([MINIMAL], (1, 3, 0), (2, 5, 0), 0, {"n1": (5, 25, 6), "n2": (5, 25, 6)}, ("n1", {})),
        ([MINIMAL], (1, 3, 0), (2, 5, 0), 1, {"n1": (5, 25, 6), "n2": (5, 25, 6)}, ("n1", {"n1": 1})),
        (
            [MINIMAL],
            (1, 3, 0),
            (2, 5, 0),
            5,
            {"n1": (10, 25, 6), "n2": (5, 25, 6), "n3": (20, 25, 6)},
            ("n1", {"n3": 5}),
        ),
        (
            [MINIMAL],
            (1, 3, 0),
            (2, 5, 0),
            5,
            {"n1": (10, 25, 6), "n2": (5, 25, 6), "n3": (100, 100, 6)},
            ("n1", {"n1": 4, "n2": 1}),
        ),
        ([MINIMAL], (1, 3, 0), (2, 5, 0), 5, {"n1": (200, 500, 6), "n2": (100, 250, 6)}, ("n1", {"n2": 5})),
        (
            [MINIMAL],
            (1, 3, 0),
            (2, 5, 0),
            5,
            {"n1": (1, 3, 6), "n2": (8, 10, 6), "n3": (20, 25, 6), "n4": (20, 25, 6), "n5": (20, 25, 6)},
            ("n1", {"n3": 5}),
        ),
        (
            [MINIMAL],
            (1, 3, 0),
            (2, 5, 0),
            5,
            {"n1": (6, 30, 6), "n2": (3, 30, 6), "n3": (8, 30, 6)},
            ("n1", {"n2": 1, "n3": 4}),
        ),
        ([MINIMAL], (2, 3, 1), (1, 1, 0), 1, {"n1": (2, 3, 1)}, None),
    ],
)
def test_executors_go_where_the_packers_of_k8s_spark_scheduler_put_them(
    strategies, driver, executor, count, nodes, expected
):
    """Its tables for tightly-pack, distribute-evenly and minimal-fragmentation."""
    found = [beside_a_driver(strategy, driver, executor, count, nodes) for strategy in strategies]
    assert found == [expected] * len(strategies) != []


@given(st.lists(st.integers(1, 30), min_size=1, max_size=8), st.data())
def test_minimal_fragmentation_uses_no_more_nodes_than_needed_when_one_is_enough(caps, data):
    count = data.draw(st.integers(1, max(caps)))
    shares = MinimalFragmentation().distribute(room(caps), count)
    modest = [cap for cap in caps if cap < (count + max(caps)) // 2] if count < max(caps) else caps
    pool = modest if sum(modest) >= count else caps
    holding = [cap for cap in pool if cap >= count]
    if holding:
        assert [caps[row] for row, _ in shares] == [min(holding)]
    else:
        assert all(caps[row] <= max(pool) for row, _ in shares)


candidates = st.lists(
    st.tuples(st.integers(1, 9), st.sampled_from((0.0, 0.5, 1.0, 1.5)), st.integers(0, 5)), min_size=1, max_size=7
)


@given(candidates, st.data(), st.sampled_from(sorted(STRATEGIES)))
def test_every_strategy_hands_out_what_was_asked_and_never_more_than_there_is_room(given_, data, name):
    caps, fullness, own = zip(*given_, strict=True)
    count = data.draw(st.integers(1, sum(caps)))
    rows = data.draw(st.permutations(range(len(caps))))
    shares = STRATEGIES[name].distribute(room(caps, fullness=list(fullness), own=list(own), rows=rows), count)
    assert sum(number for _, number in shares) == count
    assert len({row for row, _ in shares}) == len(shares)
    by_row = dict(zip(rows, caps, strict=True))
    assert all(0 < number <= by_row[row] for row, number in shares)


@given(
    st.lists(st.tuples(st.integers(1, 3), st.sampled_from((0.0, 0.5)), st.none()), min_size=1, max_size=40), st.data()
)
def test_pack_fills_as_if_all_nodes_had_been_sorted(given_, data):
    caps, fullness, _ = zip(*given_, strict=True)
    rank = data.draw(st.permutations(range(len(caps))))
    count = data.draw(st.integers(1, sum(caps)))
    left, expected = count, []
    for row in sorted(range(len(caps)), key=lambda row: (-fullness[row], caps[row], rank[row])):
        if left:
            expected.append((row, min(left, caps[row])))
            left -= expected[-1][1]
    assert PACK.distribute(room(caps, fullness=list(fullness), rank=rank), count) == expected


@given(candidates, st.data())
def test_spread_never_gives_a_node_one_that_a_less_loaded_one_had_room_for(given_, data):
    caps, fullness, own = zip(*given_, strict=True)
    count = data.draw(st.integers(1, sum(caps)))
    shares = dict(Spread().distribute(room(caps, fullness=list(fullness), own=list(own)), count))
    after = [have + shares.get(row, 0) for row, have in enumerate(own)]
    for row, number in shares.items():
        assert number
        for other, load in enumerate(after):
            assert shares.get(other, 0) == caps[other] or load >= after[row] - 1


@pytest.mark.parametrize(
    ("gpus", "asked", "chosen"),
    [
        pytest.param((8, 0), 0, "n1", id="who requests none leaves nodes with GPUs alone"),
        pytest.param((8, 0), 1, "n0", id="who requests one does not"),
        pytest.param((8, 2), 0, "n0", id="where all nodes have GPUs the fullest is first"),
        pytest.param((0, 0), 0, "n0", id="as where none has"),
    ],
)
def test_members_without_gpus_are_packed_onto_nodes_with_gpus_last(gpus, asked, chosen):
    cluster = Cluster()
    for name, number in zip(("n0", "n1"), gpus, strict=True):
        cluster.set_node(node(name, cpu=8, gpu=number))
    cluster.set_pod(pod("there", group="", node="n0", cpu=4))
    found = place(Snapshot(cluster), Ask(members=[pod("a", cpu=1, gpu=asked)], need=1))
    assert isinstance(found, Placement)
    assert [name for _, name in found.assignments] == [chosen]
