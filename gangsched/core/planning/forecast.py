"""When waiting groups start if all that runs ends when it is said to: amounts alone, played forward in time.

At each moment at which something ends, what waits is tried in its order; who starts stays until its own end. Of all
constraints only those count that a node decides alone. The moments are drawn together where they are far away.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gangsched.core.objects.arrays import Floats, IntArray, Mask
from gangsched.core.planning import budget as units

_DRAWN_TOGETHER = 0.02
"""Ends that differ by no more than this fraction of how far away they are count as one."""
_AT_ONCE_S = 0.5
_GROWS = 4
_LOOKED_AT, _RELEASED, _PLACED = 40, 10, 3
"""Cost, in units of the budget, of each group that is looked at, of each end that is reached, and of each row that is
sorted to place a kind."""
_MOST_DOMAINS = 4
"""Of so many domains with enough room in sum, each is tried."""


class Kind(Struct, frozen=True):
    """So many members that request these amounts, by column, on rows that accept them; `alone`: one for each row."""

    number: int
    amounts: IntArray
    accepting: Mask
    alone: bool = False


class Waiting(Struct, frozen=True):
    """A group that waits, and stays for so many seconds once it has started (infinity if nothing tells).

    The `doubt` about that is as in `Ends`.
    Groups with equal `asked` start alike. `pool` numbers the rows that accept a member. With `domains` by row (-1:
    none) all members are in one. From `holds_from` on, in epoch seconds, it keeps those behind it off these rows.
    """

    name: Hashable
    asked: Hashable
    kinds: Sequence[Kind]
    pool: int
    domains: IntArray | None = None
    lasts_s: float = float("inf")
    doubt: int = 0
    holds_from: float = float("inf")


class Ends(NamedTuple):
    """What ends: `at` this time, on these rows, with these amounts by column.

    A larger `doubt` says that one relies on something that is less to be trusted; 0: on nothing but limits.
    """

    at: Floats
    rows: IntArray
    amounts: IntArray
    doubt: IntArray


Placed = Sequence[tuple[IntArray, IntArray]]
"""Rows, and the amounts that are taken on each."""


class Start(Struct, frozen=True):
    """When a group starts. `doubt` is the largest of the ends there, and `last` the latest one, by its index, or -1."""

    at: float
    doubt: int
    last: int


class _Held(NamedTuple):
    """From `start` on these rows are kept for a group of this name and pool."""

    name: Hashable
    pool: int
    start: float
    rows: Mask


class Forecast:
    """Played forward from `free` amounts by row and column; `pools` are the rows that `Waiting` numbers.

    A group that holds rows is overtaken by those who last no longer than until it starts there, or who find others.
    `starts` and `behind` are the results so far: a group without a start never gets one, and `behind` names the one by
    which it was kept off.
    """

    def __init__(self, free: IntArray, pools: Sequence[Mask], ends: Ends, now: float) -> None:
        self.starts: dict[Hashable, Start] = {}
        self.behind: dict[Hashable, Hashable] = {}
        self._free = free.copy()
        self._pools = pools
        self._ends = ends
        self._order = np.argsort(ends.at, kind="stable")
        self._at = ends.at[self._order]
        self._now = now
        self._doubt: IntArray = np.zeros(len(free), dtype=np.int64)
        self._none: Mask = np.zeros(len(free), dtype=np.bool_)
        self._last: IntArray = np.full(len(free), -1, dtype=np.int64)
        self._meet: dict[tuple[int, int], bool] = {}
        self._later: list[tuple[float, int, Placed, int]] = []
        self._number = count()
        self._left = 0
        self._held: dict[Hashable, _Held] = {}

    def play(self, line: Sequence[Waiting]) -> Generator[int, None, None]:
        """Find all starts; yields what each step costs, in units of the budget."""
        moment = self._now
        waiting = line
        while True:
            waiting = yield from self._try(waiting, moment)
            following = self._next() if waiting else None
            if following is None:
                return
            moment = following
            until = int(np.searchsorted(self._at, moment, side="right"))
            self._release(self._order[self._left : until])
            yield (until - self._left) * _RELEASED
            self._left = until
            while self._later and self._later[0][0] <= moment:
                _, _, placed, doubt = heappop(self._later)
                _give_back(self._free, placed)
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

    def _release(self, which: npt.NDArray[np.intp]) -> None:
        ends = self._ends
        rows = ends.rows[which]
        np.add.at(self._free, rows, ends.amounts[which])
        self._last[rows] = which
        np.maximum.at(self._doubt, rows, ends.doubt[which])

    def _try(self, line: Sequence[Waiting], moment: float) -> Generator[int, None, list[Waiting]]:
        """Start who can at this moment. Returns those who wait on."""
        left: list[Waiting] = []
        refused: set[Hashable] = set()
        holding: dict[int, _Held] = {}
        of_pool: dict[int, Sequence[_Held]] = {}
        yield _LOOKED_AT * len(line)
        for each in line:
            holders = of_pool.get(each.pool)
            if holders is None:
                holders = [held for pool, held in holding.items() if self._have_common(pool, each.pool)]
                of_pool[each.pool] = holders
            keeping = [held for held in holders if held.start < moment + each.lasts_s]
            asked = (each.asked, tuple(held.name for held in keeping))
            placed = None
            if asked not in refused:
                yield len(each.kinds) * (units.CLASS + len(self._free))
                placed = take(self._free, each, [held.rows for held in keeping])
            if placed is None:
                refused.add(asked)
                left.append(each)
                if keeping:
                    self.behind.setdefault(each.name, keeping[0].name)
                if not holders and moment >= each.holds_from:
                    holding[each.pool] = yield from self._hold(each, moment)
                    of_pool.clear()
                continue
            yield _PLACED * len(each.kinds) * len(self._free)
            rows = np.concatenate([rows for rows, _ in placed])
            doubt, last = int(self._doubt[rows].max(initial=0)), int(self._last[rows].max(initial=-1))
            self.starts[each.name] = Start(moment, doubt, last)
            end = moment + each.lasts_s
            if end < float("inf"):
                heappush(self._later, (end, next(self._number), placed, max(doubt, each.doubt)))
        return left

    def _hold(self, waiting: Waiting, moment: float) -> Generator[int, None, _Held]:
        """The rows that are kept for the group, and from when on, as it was found out when it began to hold them."""
        known = self._held.get(waiting.name)
        if known is not None:
            return known
        held = _Held(waiting.name, waiting.pool, float("inf"), self._none)
        number = len(self._at) - self._left
        # The smallest number of further ends after which it fits: in steps that grow, then by bisection.
        none, enough = -1, min(1, number)
        found = None
        while True:
            yield enough * _RELEASED + (len(waiting.kinds) + 1) * len(self._free)
            free = self._free.copy()
            at = self._release_ahead(free, enough, moment, last=enough == number)
            places = take(free, waiting)
            if places is not None:
                rows_of = self._none.copy()
                for rows, _ in places:
                    rows_of[rows] = True
                found, held = enough, _Held(waiting.name, waiting.pool, at, rows_of)
            else:
                none = enough
            if (found is None and none == number) or (found is not None and found - none <= 1):
                break
            enough = min(_GROWS * max(1, enough), number) if found is None else (none + found) // 2
        self._held[waiting.name] = held
        return held

    def _release_ahead(self, free: IntArray, number: int, moment: float, *, last: bool) -> float:
        """Release there the next so many ends, and who settled until then, or all if it is the last: when that is."""
        which = self._order[self._left : self._left + number]
        np.add.at(free, self._ends.rows[which], self._ends.amounts[which])
        at = float(self._at[self._left + number - 1]) if number else moment
        if last and self._later:
            at = max(at, *(end for end, *_ in self._later))
        for end, _, placed, _ in self._later:
            if end <= at:
                _give_back(free, placed)
        return at

    def _have_common(self, one: int, other: int) -> bool:
        pair = (one, other) if one <= other else (other, one)
        if pair not in self._meet:
            self._meet[pair] = one == other or bool((self._pools[one] & self._pools[other]).any())
        return self._meet[pair]


def take(free: IntArray, waiting: Waiting, closed: Sequence[Mask] = ()) -> Placed | None:
    """Take places for all members, but on no row that is closed; None, with nothing taken, without room."""
    shut = np.logical_or.reduce(closed) if closed else None
    for choice in _choices(free, waiting):
        inside = choice
        if shut is not None:
            inside = ~shut if choice is None else choice & ~shut
        found = _take_inside(free, waiting, inside)
        if found is not None:
            return found
    return None


def _choices(free: IntArray, waiting: Waiting) -> Iterator[Mask | None]:
    """The rows where to try: those of each domain that has enough room in sum, the least room first."""
    if waiting.domains is None:
        yield None
        return
    number = int(waiting.domains.max(initial=-1)) + 1
    inside = waiting.domains >= 0
    rooms = [np.bincount(waiting.domains[inside], room(free, kind)[inside], minlength=number) for kind in waiting.kinds]
    enough = np.logical_and.reduce([each >= kind.number for each, kind in zip(rooms, waiting.kinds, strict=True)])
    able = np.flatnonzero(enough)
    for domain in able[np.argsort(rooms[0][able], kind="stable")][:_MOST_DOMAINS].tolist():
        yield waiting.domains == domain


def _take_inside(free: IntArray, waiting: Waiting, inside: Mask | None) -> Placed | None:
    taken: list[tuple[IntArray, IntArray]] = []
    for kind in waiting.kinds:
        there = room(free, kind)
        if inside is not None:
            there = np.where(inside, there, 0)
        rows = np.flatnonzero(there)
        # Where the least is left, first: so large members find room later.
        rows = rows[np.argsort(there[rows], kind="stable")]
        sums = np.cumsum(there[rows])
        if not len(sums) or sums[-1] < kind.number:
            _give_back(free, taken)
            return None
        last = int(np.searchsorted(sums, kind.number))
        rows = rows[: last + 1]
        numbers = there[rows]
        numbers[-1] -= sums[last] - kind.number
        amounts = numbers[:, None] * kind.amounts
        free[rows] -= amounts
        taken.append((rows, amounts))
    return taken


def _give_back(free: IntArray, placed: Placed) -> None:
    for rows, amounts in placed:
        free[rows] += amounts


def room(free: IntArray, kind: Kind) -> IntArray:
    """How many members of the kind each row takes, at most all of them."""
    most: IntArray = np.where(kind.accepting, 1 if kind.alone else kind.number, 0)
    for column in np.flatnonzero(kind.amounts).tolist():
        np.minimum(most, np.maximum(free[:, column], 0) // kind.amounts[column], out=most)
    return most
