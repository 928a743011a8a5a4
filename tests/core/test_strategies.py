from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangsched.core.strategies import STRATEGIES, Pack, Room, Spread


def room(caps, *, fullness=None, own=None, rank=None, rows=None):
    size = len(caps)
    return Room(
        rows=np.array(rows if rows is not None else range(size)),
        caps=np.array(caps),
        fullness=np.array(fullness or [0.0] * size),
        own=np.array(own or [0] * size),
        rank=np.array(rank if rank is not None else range(size)),
    )


@pytest.mark.parametrize(
    ("given_", "count", "shares"),
    [
        pytest.param(room([4, 4], fullness=[0.1, 0.5]), 3, {1: 3}, id="the fullest first"),
        pytest.param(room([4, 4], fullness=[0.1, 0.5]), 6, {1: 4, 0: 2}, id="then the next"),
        pytest.param(room([4, 2], fullness=[0.5, 0.5]), 3, {1: 2, 0: 1}, id="of equally full ones the smallest room"),
        pytest.param(room([4, 4, 4], rank=[2, 0, 1]), 5, {1: 4, 2: 1}, id="then by name"),
        pytest.param(room([4, 4], rows=[7, 3], fullness=[0.5, 0]), 4, {7: 4}, id="rows are named, not positions"),
        pytest.param(room([1, 1, 1]), 3, {0: 1, 1: 1, 2: 1}, id="all of the room"),
        pytest.param(room([9, 9], own=[0, 5]), 1, {0: 1}, id="own members do not attract"),
    ],
)
def test_pack_fills_the_fullest_node_first(given_, count, shares):
    assert dict(Pack().distribute(given_, count)) == shares


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
    assert Pack().distribute(room(caps, fullness=list(fullness), rank=rank), count) == expected


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


@given(candidates, st.data())
def test_pack_leaves_room_only_on_the_last_node_that_it_uses(given_, data):
    caps, fullness, _ = zip(*given_, strict=True)
    count = data.draw(st.integers(1, sum(caps)))
    shares = Pack().distribute(room(caps, fullness=list(fullness)), count)
    assert all(number == caps[row] for row, number in shares[:-1])
    used = {row for row, _ in shares}
    assert all(fullness[row] >= fullness[other] for row in used for other in range(len(caps)) if other not in used)
