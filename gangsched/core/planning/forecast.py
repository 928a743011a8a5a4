"""When waiting groups start if all that runs ends when it is said to: amounts alone, played forward in time.

At each moment at which something ends, what waits is tried in its order; who starts stays until its own end. Of all
constraints only those count that a node decides alone. The moments are drawn together where they are far away.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from gangsched.core.objects.arrays import Floats, IntArray, Mask
from gangsched.core.planning import budget as units
from gangsched.core.planning.taking import Placed, Waiting, give_back, take, take_away

_DRAWN_TOGETHER = 0.02
"""Ends that differ by no more than this fraction of how far away they are count as one."""
_AT_ONCE_S = 0.5
_GROWS = 4
_ANYTHING = 1 << 62
_LOOKED_AT, _RELEASED = 40, 3
"""Cost, in units of the budget, of each group that is looked at, and of each end that is reached."""
_ROWS = 4
"""A unit pays for so many rows that are read to place a kind, or counted once it has its places."""


class Ends(NamedTuple):
    """What ends: `at` this time, on these rows, with these amounts by column.

    A larger `doubt` says that one relies on something that is less to be trusted; 0: on nothing but limits.
    """

    at: Floats
    rows: IntArray
    amounts: IntArray
    doubt: IntArray


class Start(Struct, frozen=True):
    """When a group starts. `doubt` is the largest of the ends there, and `last` the latest one, by its index, or -1."""

    at: float
    doubt: int
    last: int


class _Held(NamedTuple):
    """From `start` on a group of this name and pool has places.

    `spare`, by row and column, is what is left beside them then: all that others may take who stay for longer.
    """

    name: Hashable
    pool: int
    start: float
    spare: IntArray


class Forecast:
    """Played forward from `free` amounts by row and column; `pools` are the rows that `Waiting` numbers.

    Ends that are `unknown` or later, as a time, are so far away that nobody may use what is held until then.

    A group that holds places is overtaken by those who last no longer than until it starts there, or who find others.
    `starts` and `behind` are the results so far: a group without a start never gets one, and `behind` names the one by
    which it was kept off. Those that are `given_up` have waited for too long.
    """

    def __init__(
        self, free: IntArray, pools: Sequence[Mask], ends: Ends, now: float, unknown: float = float("inf")
    ) -> None:
        self.starts: dict[Hashable, Start] = {}
        self.behind: dict[Hashable, Hashable] = {}
        self.given_up: set[Hashable] = set()
        self._free = free.copy()
        self._pools = pools
        self._ends = ends
        self._order = np.argsort(ends.at, kind="stable")
        self._at = ends.at[self._order]
        self._now = now
        self._unknown = unknown
        self._doubt: IntArray = np.zeros(len(free), dtype=np.int64)
        self._last: IntArray = np.full(len(free), -1, dtype=np.int64)
        self._meet: dict[tuple[int, int], bool] = {}
        self._later: list[tuple[float, int, Placed, int]] = []
        self._number = count()
        self._left = 0
        self._held: dict[Hashable, _Held] = {}
        self._never: set[Hashable] = set()

    def play(self, line: Sequence[Waiting]) -> Generator[int, None, None]:
        """Find all starts; yields what each step costs, in units of the budget."""
        moment = self._now
        waiting = line
        yield from self._reserve(waiting, moment, moment)
        while True:
            waiting = yield from self._try(waiting, moment)
            following = self._next() if waiting else None
            if following is None:
                return
            yield from self._reserve(waiting, moment, following)
            moment = following
            left = self._left
            self._release(int(np.searchsorted(self._at, moment, side="right")))
            yield (self._left - left) * _RELEASED
            while self._later and self._later[0][0] <= moment:
                _, _, placed, doubt = heappop(self._later)
                give_back(self._free, placed)
                for rows, _ in placed:
                    self._doubt[rows] = np.maximum(self._doubt[rows], doubt)

    def _next(self) -> float | None:
        """The next moment at which something ends; None if nothing does."""
        left = self._left
        first = min(
            float(self._at[left]) if left < len(self._at) else float("inf"),
            self._later[0][0] if self._later else float("inf"),
        )
        if first == float("inf"):
            return None
        until = min(first + _DRAWN_TOGETHER * (first - self._now), 2 * first)
        last = int(np.searchsorted(self._at, until, side="right")) - 1
        settled = (end for end, *_ in self._later if end <= max(until, first + _AT_ONCE_S))
        # The last of those that end by then.
        return max(first, float(self._at[last]) if last >= left else first, *settled)

    def _release(self, until: int) -> None:
        ends, which = self._ends, self._order[self._left : until]
        rows = ends.rows[which]
        np.add.at(self._free, rows, ends.amounts[which])
        # In the order of time, so that the largest is the latest.
        self._last[rows] = np.arange(self._left, until)
        np.maximum.at(self._doubt, rows, ends.doubt[which])
        self._left = until

    def _try(self, line: Sequence[Waiting], moment: float) -> Generator[int, None, list[Waiting]]:
        """Start who can at this moment. Returns those who wait on."""
        left: list[Waiting] = []
        refused: set[Hashable] = set()
        holding: dict[int, _Held] = {}
        of_pool: dict[int, Sequence[_Held]] = {}
        yield _LOOKED_AT * len(line)
        for group in line:
            if group.until < moment:
                self.given_up.add(group.name)
                continue
            holders = of_pool.get(group.pool)
            if holders is None:
                holders = [held for pool, held in holding.items() if self._have_common(pool, group.pool)]
                of_pool[group.pool] = holders
            end = moment + group.lasts_s
            keeping = [held for held in holders if self._keeps_off(held, end)]
            asked = (group.asked, tuple(held.name for held in keeping))
            placed = None
            if asked not in refused:
                yield self._price(group)
                placed = take(self._free, group, [held.spare for held in keeping])
            if placed is None:
                refused.add(asked)
                left.append(group)
                if keeping:
                    self.behind.setdefault(group.name, keeping[0].name)
                if group.name in self._held:
                    holding[group.pool] = self._held[group.name]
                    of_pool.clear()
                continue
            yield self._price(group)
            rows = np.concatenate([rows for rows, _ in placed])
            doubt, last = int(self._doubt[rows].max(initial=0)), int(self._last[rows].max(initial=-1))
            self.starts[group.name] = Start(moment, doubt, int(self._order[last]) if last >= 0 else -1)
            for held in self._held.values():
                if self._keeps_off(held, end):
                    take_away(held.spare, placed)
            if end < float("inf"):
                heappush(self._later, (end, next(self._number), placed, max(doubt, group.doubt)))
        return left

    def _reserve(self, waiting: Sequence[Waiting], moment: float, until: float) -> Generator[int, None, None]:
        """Find out who holds what, after all were tried at this moment, until the following one."""
        held: dict[Hashable, _Held] = {}
        settled: set[int] = set()
        yield len(waiting)
        for group in waiting:
            if group.pool in settled or group.holds_from > until or group.name in self._never:
                continue
            if not any(self._have_common(other.pool, group.pool) for other in held.values()):
                known = self._held.get(group.name)
                if known is None or known.start <= moment:
                    # If others came before it, it is found out anew.
                    known = yield from self._first_places(group, moment)
                if known is None:
                    self._never.add(group.name)
                    continue
                held[group.name] = known
            settled.add(group.pool)
        self._held = held

    def _first_places(self, waiting: Waiting, moment: float) -> Generator[int, None, _Held | None]:
        """What is reserved for it, or else its places when it fits first if nobody else starts before; None without."""
        if waiting.reserved is not None and waiting.reserved.start > moment:
            yield len(self._at) * _RELEASED
            start, amounts = waiting.reserved
            spare = self._free_at(start) - amounts
            spare[~amounts.any(axis=1)] = _ANYTHING
            return _Held(waiting.name, waiting.pool, start, spare)
        moments = np.unique([*self._at[self._left :], *(end for end, *_ in self._later)])
        held: _Held | None = None
        # In steps that grow, then by bisection.
        none, first, tried = -1, len(moments), 0
        while none + 1 < first:
            yield tried * _RELEASED + self._price(waiting)
            free = self._free_at(float(moments[tried]))
            places = take(free, waiting)
            if places is None:
                none = tried
            else:
                first = tried
                spare = np.full_like(free, _ANYTHING)
                for rows, _ in places:
                    spare[rows] = free[rows]
                held = _Held(waiting.name, waiting.pool, float(moments[tried]), spare)
            tried = (none + first) // 2 if first < len(moments) else min(_GROWS * (none + 1), len(moments) - 1)
        return held

    def _price(self, group: Waiting) -> int:
        """What it costs to look for the group's places, or to count it there, in units of the budget."""
        return len(group.kinds) * (units.CLASS + len(self._free) // _ROWS)

    def _free_at(self, at: float) -> IntArray:
        """What is free at this later time if nobody else starts before."""
        free = self._free.copy()
        which = self._order[self._left : int(np.searchsorted(self._at, at, side="right"))]
        np.add.at(free, self._ends.rows[which], self._ends.amounts[which])
        for end, _, placed, _ in self._later:
            if end <= at:
                give_back(free, placed)
        return free

    def _keeps_off(self, held: _Held, end: float) -> bool:
        """Whether one that stays until then has to leave the places free."""
        return held.start < end or held.start >= self._unknown

    def _have_common(self, one: int, other: int) -> bool:
        pair = (one, other) if one <= other else (other, one)
        if pair not in self._meet:
            self._meet[pair] = one == other or bool((self._pools[one] & self._pools[other]).any())
        return self._meet[pair]
