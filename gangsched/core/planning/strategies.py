"""The built-in placement strategies, which determine the order in which nodes are filled.

A strategy distributes one class of interchangeable members at a time. It gets each node's fullness and the number of
members that the node can still take, and returns how many members go to each node. It never decides whether something
fits. A plug-in adds a strategy through the entry point `gangsched.strategies` (docs/strategies.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.strategy import BUILT_IN, Room, Strategy

GPU_SUFFIX = "/gpu"
"""The suffix of the names that vendors' device plug-ins give to GPUs, such as nvidia.com/gpu."""
Keys = Sequence[npt.NDArray[np.float64] | IntArray]
"""Sort keys of candidates, the most important first; the smallest value comes first."""


def _first(keys: Keys, most: int) -> IntArray:
    """Positions, unsorted, of a set of elements that includes the first `most` in the order of these keys.

    Sorting thousands of nodes to fill a few takes longer than the rest of a plan.
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


def _very_first(keys: Keys) -> int:
    """The position of the first element in the order of these keys, the lowest position among ties."""
    tied: IntArray | None = None
    for key in keys:
        values = key if tied is None else key[tied]
        least = np.flatnonzero(values == values.min())
        tied = least if tied is None else tied[least]
        if len(tied) == 1:
            break
    return int(tied[0]) if tied is not None else 0


def _filled(room: Room, count: int, keys: Keys) -> list[tuple[int, int]]:
    """Node by node in the order of these keys, each filled completely."""
    first = _very_first(keys)
    if room.caps[first] >= count:
        return [(int(room.rows[first]), count)]
    nearest = _first(keys, count)
    order = nearest[np.lexsort([key[nearest] for key in reversed(keys)])]
    before = np.concatenate(([0], np.cumsum(room.caps[order])[:-1]))
    shares = np.minimum(np.maximum(count - before, 0), room.caps[order])
    used = np.flatnonzero(shares)
    return list(zip(room.rows[order][used].tolist(), shares[used].tolist(), strict=True))


class NodeByNode(Struct, frozen=True):
    """Fills one node after another, ordered by `keys`. Placing members together or singly gives the same result."""

    keys: Callable[[Room], Keys]

    def distribute(self, room: Room, count: int) -> list[tuple[int, int]]:
        """Fill nodes one by one, each completely; ties are broken by name."""
        return _filled(room, count, self.keys(room))


def _packing(room: Room) -> Keys:
    spared = () if room.spared is None else (room.spared,)
    return room.preferred(*spared, -room.fullness, room.caps, room.rank)


PACK = NodeByNode(_packing)
"""Fills the fullest accepted node first, so that large gaps stay whole; among ties, the node with least room.

Nodes with GPUs come last for members that request none.
"""
BEST_FIT = NodeByNode(lambda room: room.preferred(room.scarce().left, -room.fullness, room.rank))
"""Places each member where it leaves least of the scarcest requested resource; among ties, on the fullest node."""
MOST_USED = NodeByNode(lambda room: room.preferred(-room.scarce().used, -room.fullness, room.rank))
"""Places members where most of the scarcest requested resource is in use, as toy-scheduler does with GPUs.

That is not the tightest fit: four of eight in use are more than three of four. Among ties the fullest node is first.
"""


class Spread:
    """Gives each node one member in turn, so that the loss of a node costs as few members as possible."""

    def distribute(self, room: Room, count: int) -> list[tuple[int, int]]:
        """Level the gang's members over all candidates; the remainder goes to the emptiest nodes, ties by name."""
        low, high = int(room.own.min()), int((room.own + room.caps).max())
        while low < high:
            level = (low + high) // 2
            if int(np.minimum(np.maximum(level - room.own, 0), room.caps).sum()) >= count:
                high = level
            else:
                low = level + 1
        shares = np.minimum(np.maximum(low - 1 - room.own, 0), room.caps)
        left = count - int(shares.sum())
        keys = (room.own + shares, *room.preferred(room.fullness, room.rank))
        order = np.lexsort(keys[::-1])
        open_ = order[((shares < room.caps) & (room.own + shares < low))[order]]
        shares[open_[:left]] += 1
        used = order[shares[order] > 0]
        return list(zip(room.rows[used].tolist(), shares[used].tolist(), strict=True))

    def one_by_one(self, room: Room, count: int) -> list[tuple[int, int]]:
        """One member for each node with the fewest members: which node is emptiest next depends on these."""
        return self.distribute(room, min(count, int(np.count_nonzero(room.own == room.own.min()))))


class MinimalFragmentation:
    """Uses few nodes and spares the nearly empty ones: the rule of palantir's k8s-spark-scheduler.

    If one node can hold all members, the smallest such node gets them. Otherwise the largest nodes are filled
    completely while more members are left than one of them holds, and the rest is distributed by the same rule. A node
    with far more room than needed (at least halfway from the number of members to the largest room) is used only if the
    others are not enough. A single member goes to a node that already has members of the gang, if one has room.
    """

    def distribute(self, room: Room, count: int) -> list[tuple[int, int]]:
        """Fill whole nodes, the largest first; nodes with equal room by preference, fullest first, then by name."""
        keys = self._keys(room)
        if count == 1:
            return self.one_by_one(room, count)
        order = np.lexsort(keys[::-1])
        caps = room.caps[order]
        modest = caps[: np.searchsorted(caps, (count + caps[-1]) // 2)] if count < caps[-1] else caps
        shares = _whole(modest if modest.sum() >= count else caps, count)
        return [(int(room.rows[order[at]]), number) for at, number in shares]

    def one_by_one(self, room: Room, count: int) -> list[tuple[int, int]]:
        """Fill nodes with members of the gang, then those with least room, so that single members stay together."""
        return _filled(room, count, (room.own == 0, *self._keys(room)))

    @staticmethod
    def _keys(room: Room) -> Keys:
        return (room.caps, *room.preferred(-room.fullness, room.rank))


def _whole(caps: IntArray, count: int) -> list[tuple[int, int]]:
    """(position, members) pairs by `MinimalFragmentation`; `caps` ascend, and their sum is at least `count`."""
    left: IntArray = np.arange(len(caps))
    shares: list[tuple[int, int]] = []
    while count:
        rooms = caps[left]
        holds = int(np.searchsorted(rooms, count))
        if holds < len(left):
            return [*shares, (int(left[holds]), count)]
        largest = int(rooms[-1])
        begin = int(np.searchsorted(rooms, largest))
        number = min(len(left) - begin, count // largest)
        shares += [(int(at), largest) for at in left[begin : begin + number]]
        left = np.delete(left, np.s_[begin : begin + number])
        count -= number * largest
    return shares


def one_by_one(strategy: Strategy, room: Room, count: int) -> list[tuple[int, int]]:
    """Places for some or all of `count` members that are placed one after another, like those above a minimum.

    For a plug-in strategy it returns the first member's node only, because the next places depend on what that leaves.
    """
    if isinstance(strategy, MinimalFragmentation | Spread):
        return strategy.one_by_one(room, count)
    return strategy.distribute(room, count if isinstance(strategy, NodeByNode) else 1)


STRATEGIES: Mapping[str, Strategy] = dict(
    zip(BUILT_IN, (PACK, Spread(), MinimalFragmentation(), BEST_FIT, MOST_USED), strict=True)
)
"""The built-in strategies by their name in `placement.strategy`."""


def named(name: str, plug_ins: Mapping[str, Strategy]) -> Strategy:
    """The built-in or plug-in strategy with that name; Pack if there is none."""
    return STRATEGIES.get(name) or plug_ins.get(name) or PACK
