"""In which order nodes are filled: each placement strategy is one small class.

A strategy is asked for one class of interchangeable members at a time. It sees how many of them each node could still
take and how full each node is, and says how many go where. It never decides whether something fits. A plug-in adds one
by the entry point `gangsched.strategies` (docs/strategies.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.strategy import Room, Strategy

GPU_SUFFIX = "/gpu"
"""How the names end that vendors' device plug-ins give to GPUs, such as nvidia.com/gpu."""
Keys = Sequence[npt.NDArray[np.float64] | IntArray]
"""What candidates are ordered by, the most important first; the smallest value comes first."""


def _first(keys: Keys, most: int) -> IntArray:
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


def _filled(room: Room, count: int, keys: Keys) -> list[tuple[int, int]]:
    """Node by node in the order of these keys, each as full as it gets."""
    nearest = _first(keys, count)
    order = nearest[np.lexsort([key[nearest] for key in reversed(keys)])]
    before = np.concatenate(([0], np.cumsum(room.caps[order])[:-1]))
    shares = np.minimum(np.maximum(count - before, 0), room.caps[order])
    used = np.flatnonzero(shares)
    return list(zip(room.rows[order][used].tolist(), shares[used].tolist(), strict=True))


class Pack:
    """Fills the fullest accepted node first, so that large gaps stay whole."""

    def distribute(self, room: Room, count: int) -> list[tuple[int, int]]:
        """Node by node, fullest first; among equally full ones the smallest room first, then by name."""
        return _filled(room, count, room.preferred(-room.fullness, room.caps, room.rank))


class BestFit:
    """Gives each member the node on which it leaves least of the scarcest requested resource, one after the other."""

    def distribute(self, room: Room, count: int) -> list[tuple[int, int]]:
        """Node by node, the one with least left first; among equal ones the fullest, then by name."""
        return _filled(room, count, room.preferred(room.scarce().left, -room.fullness, room.rank))


class MostUsed:
    """Goes where most of the scarcest requested resource is in use, as toy-scheduler does with GPUs.

    That is not the tightest fit: four of eight in use are more than three of four.
    """

    def distribute(self, room: Room, count: int) -> list[tuple[int, int]]:
        """Node by node, the one with most in use first; among equal ones the fullest, then by name."""
        return _filled(room, count, room.preferred(-room.scarce().used, -room.fullness, room.rank))


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
        keys = (room.own + shares, *room.preferred(room.fullness, room.rank))
        order = np.lexsort(keys[::-1])
        open_ = order[((shares < room.caps) & (room.own + shares < low))[order]]
        shares[open_[:left]] += 1
        used = order[shares[order] > 0]
        return list(zip(room.rows[used].tolist(), shares[used].tolist(), strict=True))

    def one_by_one(self, room: Room, count: int) -> list[tuple[int, int]]:
        """One for each node that has fewest members; which is the emptiest of the next ones shows only then."""
        return self.distribute(room, min(count, int(np.count_nonzero(room.own == room.own.min()))))


class MinimalFragmentation:
    """Uses few nodes and leaves the nearly empty ones alone: the rule of palantir's k8s-spark-scheduler.

    Where one node holds all, the smallest such does. Otherwise the largest are filled whole, as long as more members
    are left than one of them holds, and so on with the rest. A node with far more room than is wanted (half way from
    what is wanted to the largest room, or more) is touched only if the others are not enough. A single member goes to
    a node on which the gang is already, if one has room.
    """

    def distribute(self, room: Room, count: int) -> list[tuple[int, int]]:
        """Whole nodes first, the largest first; nodes of equal room by preference, fullest first, then by name."""
        keys = self._keys(room)
        if count == 1:
            return self.one_by_one(room, count)
        order = np.lexsort(keys[::-1])
        caps = room.caps[order]
        modest = caps[: np.searchsorted(caps, (count + caps[-1]) // 2)] if count < caps[-1] else caps
        shares = _whole(modest if modest.sum() >= count else caps, count)
        return [(int(room.rows[order[at]]), number) for at, number in shares]

    def one_by_one(self, room: Room, count: int) -> list[tuple[int, int]]:
        """Nodes on which the gang is already, then the smallest rooms: who comes alone joins the one before."""
        return _filled(room, count, (room.own == 0, *self._keys(room)))

    @staticmethod
    def _keys(room: Room) -> Keys:
        return (room.caps, *room.preferred(-room.fullness, room.rank))


def _whole(caps: IntArray, count: int) -> list[tuple[int, int]]:
    """(Position, members) by `MinimalFragmentation`; `caps` ascend and hold so many in all."""
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


_MEMBER_BY_MEMBER = (Pack, BestFit, MostUsed)
"""For these it makes no difference whether members come together or one after the other."""


def one_by_one(strategy: Strategy, room: Room, count: int) -> list[tuple[int, int]]:
    """Where members go that are asked for one after the other, as members above a minimum are: some or all of `count`.

    Of a strategy that is not known here only the first one's place is given: what follows depends on what it leaves.
    """
    if isinstance(strategy, MinimalFragmentation | Spread):
        return strategy.one_by_one(room, count)
    return strategy.distribute(room, count if type(strategy) in _MEMBER_BY_MEMBER else 1)


PACK: Strategy = Pack()
STRATEGIES: Mapping[str, Strategy] = {
    "Pack": PACK,
    "Spread": Spread(),
    "MinimalFragmentation": MinimalFragmentation(),
    "BestFit": BestFit(),
    "MostUsed": MostUsed(),
}
"""The strategies that are part of gangsched, by the name used in `placement.strategy`."""


def named(name: str, plug_ins: Mapping[str, Strategy]) -> Strategy:
    """The strategy of that name, one of gangsched's own or a plug-in's; Pack if neither has it."""
    return STRATEGIES.get(name) or plug_ins.get(name) or PACK
