"""In which order nodes are filled: each placement strategy is one small class.

A strategy is asked for one class of interchangeable members at a time. It sees how many of them each node could still
take and how full each node is, and says how many go where. It never decides whether something fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from gangsched.core.capacity import IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What a strategy sees, one element per candidate node.

    `rows` are the candidates' row numbers, `caps` how many members each could take (≥ 1), `fullness` the largest share
    of a requested resource that is in use (0..1), `own` how many members of this gang are there already, `rank` the
    node's place in the order of names.
    """

    rows: IntArray
    caps: IntArray
    fullness: npt.NDArray[np.float64]
    own: IntArray
    rank: IntArray


class Strategy(Protocol):
    """Says how many of `count` members go to which candidate. `count` never exceeds the sum of `room.caps`."""

    def distribute(self, room: Room, count: int) -> list[tuple[int, int]]:
        """(row, members) pairs that add up to `count`, none above the candidate's cap."""
        ...


def _first(keys: Sequence[npt.NDArray[np.float64] | IntArray], most: int) -> IntArray:
    """Positions of elements among which are the first so many in the order of these keys, not in order.

    Sorting thousands of nodes to fill a few takes longer than all the rest of a plan.
    """
    sure: list[IntArray] = []
    tied: IntArray = np.arange(len(keys[0]))
    for key in keys:
        if len(tied) <= most:
            break
        values = key[tied]
        limit = np.partition(values, most - 1)[most - 1]
        sure.append(tied[values < limit])
        tied = tied[values == limit]
        most -= len(sure[-1])
    return np.concatenate([*sure, tied])


class Pack:
    """Fills the fullest accepted node first, so that large gaps stay whole."""

    def distribute(self, room: Room, count: int) -> list[tuple[int, int]]:
        """Node by node, fullest first; among equally full ones the smallest room first, then by name."""
        nearest = _first((-room.fullness, room.caps, room.rank), count)
        order = nearest[np.lexsort((room.rank[nearest], room.caps[nearest], -room.fullness[nearest]))]
        before = np.concatenate(([0], np.cumsum(room.caps[order])[:-1]))
        shares = np.minimum(np.maximum(count - before, 0), room.caps[order])
        used = np.flatnonzero(shares)
        return list(zip(room.rows[order][used].tolist(), shares[used].tolist(), strict=True))


class Spread:
    """Gives each node one in turn, so that losing a node costs as few members as possible."""

    def distribute(self, room: Room, count: int) -> list[tuple[int, int]]:
        """Levels all candidates' numbers of own members; emptiest nodes first for the remainder, then by name."""
        low, high = int(room.own.min()), int((room.own + room.caps).max())
        while low < high:
            level = (low + high) // 2
            if int(np.minimum(np.maximum(level - room.own, 0), room.caps).sum()) >= count:
                high = level
            else:
                low = level + 1
        shares = np.minimum(np.maximum(low - 1 - room.own, 0), room.caps)
        left = count - int(shares.sum())
        order = np.lexsort((room.rank, room.fullness, room.own + shares))
        open_ = order[((shares < room.caps) & (room.own + shares < low))[order]]
        shares[open_[:left]] += 1
        used = order[shares[order] > 0]
        return list(zip(room.rows[used].tolist(), shares[used].tolist(), strict=True))


STRATEGIES: dict[str, Strategy] = {"Pack": Pack(), "Spread": Spread()}
"""The strategies that this version knows, by the name used in `placement.strategy`."""
