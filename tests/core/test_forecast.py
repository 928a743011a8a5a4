"""What a group that waits for long holds while the others are played forward, and who may use it until then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gangsched.core.planning.forecast import Ends, Forecast
from gangsched.core.planning.taking import Kind, Reserved, Waiting

NODES, CPUS = 3, 4
UNKNOWN = 1e15
Taken = tuple[float, int, int]
"""Until when, on which node, how many CPUs."""


def waiting(name: str, number: int, cpus: int, **fields: Any) -> Waiting:
    """A group of so many members with so many CPUs each."""
    kind = Kind(number, np.array([cpus]), np.ones(NODES, dtype=np.bool_))
    return Waiting(name, (number, cpus), [kind], 0, **fields)


def reserved(at: float, *cpus: int) -> Reserved:
    """So many CPUs on each node from then on."""
    return Reserved(at, np.array(cpus).reshape(-1, 1))


def starts(taken: Sequence[Taken], line: Sequence[Waiting]) -> dict[object, float]:
    """When each starts on nodes of four CPUs of which these are taken."""
    free = np.full((NODES, 1), CPUS)
    for _, node, cpus in taken:
        free[node, 0] -= cpus
    at = np.array([at for at, *_ in taken])
    rows = np.array([node for _, node, _ in taken])
    amounts = np.array([[cpus] for *_, cpus in taken])
    pools = [np.ones(NODES, dtype=np.bool_)]
    played = Forecast(free, pools, Ends(at, rows, amounts, np.zeros(len(taken), dtype=np.int64)), 0.0, UNKNOWN)
    for _ in played.play(line):
        pass
    return {name: start.at for name, start in played.starts.items()}


def test_what_is_reserved_for_a_group_is_what_others_may_not_take():
    """By amounts alone it would hold the first two nodes."""
    taken = [(100.0, 0, 4), (200.0, 1, 4), (200.0, 2, 4)]
    large = waiting("large", 2, 4, holds_from=0.0, reserved=reserved(200.0, 0, 4, 4))
    found = starts(taken, [large, waiting("small", 1, 1, lasts_s=500.0)])
    assert found == {"small": 100.0, "large": 200.0}


def test_what_is_left_beside_reserved_places_may_be_taken_by_those_who_stay_longer():
    taken = [(100.0, 0, 1), (200.0, 0, 3), (300.0, 1, 4), (300.0, 2, 4)]
    large = waiting("large", 1, 2, holds_from=0.0, reserved=reserved(200.0, 2, 0, 0))
    line = [large, *(waiting(f"small-{at}", 1, 1, lasts_s=5000.0) for at in range(3))]
    assert starts(taken, line) == {"small-0": 100.0, "large": 200.0, "small-1": 200.0, "small-2": 300.0}


def test_until_a_start_that_nobody_knows_nobody_uses_what_is_held():
    taken = [(100.0, 0, 4), (UNKNOWN, 1, 4), (200.0, 2, 2), (UNKNOWN, 2, 2)]
    large = waiting("large", 2, 4, holds_from=0.0, reserved=reserved(UNKNOWN, 4, 4, 0))
    assert starts(taken, [large, waiting("small", 1, 1, lasts_s=5.0)])["small"] == 200.0


def test_the_next_one_holds_places_only_once_all_were_tried():
    """When the holder starts, those behind the next one may start beside it."""
    taken = [(100.0, 0, 4), (100.0, 1, 4), (300.0, 2, 4)]
    holder = waiting("holder", 1, 4, lasts_s=200.0, holds_from=0.0, reserved=reserved(100.0, 4, 0, 0))
    following = waiting("following", 3, 4, holds_from=0.0)
    found = starts(taken, [holder, following, waiting("small", 1, 4, lasts_s=5000.0)])
    assert found == {"holder": 100.0, "small": 100.0, "following": 5100.0}


def test_who_was_overtaken_by_one_ahead_holds_other_places():
    taken = [(100.0, 0, 4), (200.0, 1, 4), (300.0, 2, 4)]
    ahead = waiting("ahead", 2, 4, lasts_s=1000.0)
    large = waiting("large", 2, 4, holds_from=0.0, reserved=reserved(200.0, 4, 4, 0))
    found = starts(taken, [ahead, large, waiting("small", 1, 4, lasts_s=350.0)])
    assert found == {"ahead": 200.0, "large": 1200.0, "small": 300.0}


def test_a_group_that_has_waited_for_too_long_does_not_start_and_is_in_nobodys_way():
    taken = [(100.0, 0, 4), (200.0, 1, 4), (200.0, 2, 4)]
    found = starts(taken, [waiting("large", 3, 4, until=150.0), waiting("small", 3, 4)])
    assert found == {"small": 200.0}
