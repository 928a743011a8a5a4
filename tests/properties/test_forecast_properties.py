"""What is played forward: nobody starts before there is room, and who holds rows starts as it was to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gangsched.core.planning.forecast import Ends, Forecast
from gangsched.core.planning.taking import Kind, Waiting

NODES, CPUS = 3, 4
POOLS = [np.array(mask) for mask in ((True, True, True), (True, False, False), (False, True, True))]


@st.composite
def lines(draw) -> tuple[Ends, np.ndarray, list[Waiting]]:
    """Nodes of four CPUs that are partly in use until some time, and groups that wait for some of them."""
    free = np.full((NODES, 1), CPUS)
    ends, rows, amounts = [], [], []
    for row in range(NODES):
        for size in draw(st.sampled_from([(), (4,), (2, 2), (1, 3), (1,)])):
            free[row, 0] -= size
            ends.append(draw(st.sampled_from([5.0, 10.0, 10.1, 40.0, 1e15])))
            rows.append(row)
            amounts.append([size])
    taken = np.array(amounts, dtype=np.int64).reshape(-1, 1)
    until = Ends(np.array(ends), np.array(rows, dtype=np.int64), taken, np.zeros(len(ends), dtype=np.bool_))
    waiting = []
    for at in range(draw(st.integers(1, 5))):
        pool, number, size = draw(st.integers(0, 2)), draw(st.integers(1, 3)), draw(st.integers(1, 4))
        kind = Kind(number, np.array([size]), POOLS[pool])
        lasts_s, holds = draw(st.sampled_from([3.0, 20.0, float("inf")])), draw(st.sampled_from([0.0, float("inf")]))
        waiting.append(Waiting(at, (pool, number, size), [kind], pool, lasts_s=lasts_s, holds_from=holds))
    return until, free, waiting


def starts(ends: Ends, free: np.ndarray, line: Sequence[Waiting]) -> dict[object, float]:
    played = Forecast(free, POOLS, ends, 0.0)
    for _ in played.play(line):
        pass
    return {name: start.at for name, start in played.starts.items()}


def left(ends: Ends, free: np.ndarray, line: Sequence[Waiting], found: dict[object, float], at: float) -> int:
    """The CPUs that are free on all nodes together, at a time."""
    ended = int(ends.amounts[ends.at <= at].sum())
    asked = {each.name: each for each in line}
    there = [asked[name] for name, start in found.items() if start <= at < start + asked[name].lasts_s]
    return int(free.sum()) + ended - sum(int(each.kinds[0].number * each.kinds[0].amounts[0]) for each in there)


@given(lines())
def test_nobody_starts_before_there_is_room(world):
    ends, free, line = world
    found = starts(ends, free, line)
    assert all(left(ends, free, line, found, at) >= 0 for at in found.values())
    for each in line:
        alone = starts(ends, free, [each])
        assert (each.name in found) <= (each.name in alone)
        # Ends that are close together count as one.
        assert found.get(each.name, 2e15) >= alone.get(each.name, 0.0) / 1.03


@given(lines())
def test_who_holds_rows_starts_when_it_was_to_start_whoever_overtakes(world):
    ends, free, line = world
    held = Waiting("held", "held", [Kind(3, np.array([2]), POOLS[0])], 0, holds_from=0.0)
    first = starts(ends, free, [held]).get("held", float("inf"))
    assert starts(ends, free, [held, *line]).get("held", float("inf")) <= first * 1.03
