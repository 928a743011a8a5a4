"""Which of some units that leave can stay after all, by the sums of `counted`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Generator, Sequence
from operator import lt

import numpy as np

from gangsched.core.objects.arrays import IntArray
from gangsched.core.planning import budget as units
from gangsched.core.planning.counted import Counted
from gangsched.core.planning.removable import Removable

_PAIR = 60
"""Cost, in units of the budget, of counting one row of a unit again."""
_ROUNDED = 1e-9
"""The relative error that sums may have."""
_AT_ONCE = 32
"""So many units are counted before the call may end."""


class Sums:
    """The counted room once some units have left, some of which stay after all: `away` are those that still leave.

    Plain integers instead of arrays, because a unit is on few rows. `limits` are what each row takes of each kind at
    most, beyond what the sums say. `cost` is what making it takes of the budget.
    """

    def __init__(self, counted: Counted, away: Collection[int], limits: Sequence[IntArray] | None = None) -> None:
        self.away = set(away)
        self._number = counted.number
        self._numbers = [kind.number for kind in counted.kinds]
        self._requests = [
            [(column, int(kind.requests[column])) for column in np.flatnonzero(kind.requests).tolist()]
            for kind in counted.kinds
        ]
        pairs = counted.removable.pairs_in(away)
        occupied, where = np.unique(counted.removable.rows.take(pairs), return_inverse=True)
        # Before it is cut off at what the nodes have.
        exact = counted.free.take(occupied, axis=0)
        np.add.at(exact, where, counted.freed.take(pairs, axis=0))
        rooms, most = [room.copy() for room in counted.bare], [kind.most for kind in counted.kinds]
        for kind, room in zip(counted.kinds, rooms, strict=True):
            room[occupied] = counted.room(kind, occupied, counted.within(occupied, exact))
        if limits is not None:
            most = [np.minimum(own, limit) for own, limit in zip(most, limits, strict=True)]
            rooms = [np.minimum(room, limit) for room, limit in zip(rooms, most, strict=True)]
        enough = np.flatnonzero(counted.placed(rooms) >= self._number).tolist()
        totals = [np.bincount(counted.domains + 1, room) for room in rooms]
        self._totals = {at: [int(total[at + 1]) for total in totals] for at in enough}
        domains = counted.domains.take(occupied)
        inside = np.flatnonzero(np.isin(domains, enough).take(where))
        pairs, where = pairs.take(inside), where.take(inside)
        owners = counted.removable.owners.take(pairs)
        self._sizes = Counter(owners.tolist())
        self.cost = units.CLASS + len(counted.free) + _PAIR * len(pairs)
        self._needed = set[int]()
        self._mixed = len(counted.kinds) > 1
        if self._mixed:
            self._sum_up(counted, occupied, exact, rooms)
        elif counted.kinds:
            left = exact.take(where, axis=0) - counted.freed.take(pairs, axis=0)
            self._needed = self._needed_alone(counted, pairs, left, rooms[0], most[0])
            asked = np.flatnonzero(~np.isin(owners, [*self._needed]))
            pairs, where = pairs.take(asked), where.take(asked)
        self._pairs: dict[int, list[tuple[int, list[int], list[int]]]] = {}
        facts = (counted.removable.owners, counted.removable.rows, counted.freed, counted.users)
        for at, row, freed, used in zip(*(fact.take(pairs, axis=0).tolist() for fact in facts), strict=True):
            self._pairs.setdefault(at, []).append((row, freed, used))
        places = np.unique(where)
        at_rows = occupied.take(places)
        rows: list[int] = at_rows.tolist()
        self._domain = dict(zip(rows, domains.take(places).tolist(), strict=True))
        offered = counted.most.take(at_rows, axis=0).tolist()
        self._left = dict(zip(rows, zip(exact.take(places, axis=0).tolist(), offered, strict=True), strict=True))
        shape = len(counted.kinds), len(rows)
        self._rooms = dict(zip(rows, np.reshape([room[at_rows] for room in rooms], shape).T.tolist(), strict=True))
        self._most = dict(zip(rows, np.reshape([limit[at_rows] for limit in most], shape).T.tolist(), strict=True))
        self._users = {row: [0] * len(counted.kinds) for row in rows}

    def _needed_alone(
        self, counted: Counted, pairs: IntArray, left: IntArray, room: IntArray, most: IntArray
    ) -> set[int]:
        """The units that cannot stay even if all others leave, where members are of one kind: so much is left on the
        rows of these pairs then. They are most, and nothing more is kept of them.
        """
        rows, owners = counted.removable.rows.take(pairs), counted.removable.owners.take(pairs)
        after = np.minimum(counted.room(counted.kinds[0], rows, counted.within(rows, left)), most.take(rows))
        after[counted.users.take(pairs, axis=0)[:, 0] > 0] = 0
        number, totals = len(self._totals), np.array([total for (total,) in self._totals.values()], dtype=np.int64)
        places = np.searchsorted([*self._totals], counted.domains.take(rows))
        keys, where = np.unique(owners * number + places, return_inverse=True)
        short = totals[keys % number] - np.bincount(where, room.take(rows) - after) < self._number
        # A domain without it loses nothing.
        return {at for at, lacking in Counter((keys[short] // number).tolist()).items() if lacking == number}

    def _sum_up(self, counted: Counted, occupied: IntArray, exact: IntArray, rooms: Sequence[IntArray]) -> None:
        """Sum up what members of several kinds can use in each domain; so much is left where units leave."""
        self._units = [max(1, int(np.gcd.reduce(column))) for column in np.array([k.requests for k in counted.kinds]).T]
        self._least = [amount * (1 - _ROUNDED) for amount in counted.least().tolist()]
        left = counted.free.copy()
        left[occupied] = exact
        usable = np.maximum(np.minimum(left, counted.most), 0) // self._units * self._units
        usable[np.sum(rooms, axis=0) == 0] = 0
        sums = [np.bincount(counted.domains + 1, column) for column in usable.T]
        self._amounts = {at: [int(total[at + 1]) for total in sums] for at in self._totals}
        self._usable = dict(zip(occupied.tolist(), usable[occupied].tolist(), strict=True))

    def _suffice(self) -> bool:
        """Whether a domain has room for the members that are needed."""
        return any(
            sum(map(min, self._numbers, totals)) >= self._number
            and not (self._mixed and any(map(lt, self._amounts[domain], self._least)))
            for domain, totals in self._totals.items()
        )

    def spare(self, at: int) -> bool:
        """Let the unit stay, if the rest suffices. Returns whether it does."""
        if at in self._needed:
            return False
        self._count(at, -1)
        if not self._suffice():
            self._count(at, 1)
            return False
        self.away.remove(at)
        return True

    def leave(self, at: int) -> None:
        """Let the unit leave again."""
        self.away.add(at)
        self._count(at, 1)

    def price(self, at: int) -> int:
        """What counting the unit again takes of the budget."""
        return _PAIR * (1 + self._sizes[at])

    def _count(self, at: int, sign: int) -> None:
        for row, freed, used in self._pairs.get(at, ()):
            before, most = self._left[row]
            after = [left + sign * more for left, more in zip(before, freed, strict=True)]
            self._left[row] = after, most
            users = self._users[row]
            totals, rooms = self._totals[self._domain[row]], self._rooms[row]
            for kind, requests in enumerate(self._requests):
                users[kind] -= sign * used[kind]
                room = 0 if users[kind] else self._room(requests, after, most, self._most[row][kind])
                totals[kind] += room - rooms[kind]
                rooms[kind] = room
            if self._mixed:
                self._count_amounts(row, after, most)

    def _count_amounts(self, row: int, left: list[int], most: list[int]) -> None:
        """Count what members can use there: nothing of a row that takes none, and no more than they can add up to."""
        columns = zip(left, most, self._units, strict=True)
        usable = [max(0, min(free, all_)) // unit * unit for free, all_, unit in columns]
        if not any(self._rooms[row]):
            usable = [0] * len(left)
        sums, before = self._amounts[self._domain[row]], self._usable[row]
        for at, amount in enumerate(usable):
            sums[at] += amount - before[at]
        self._usable[row] = usable

    def _room(self, requests: list[tuple[int, int]], left: list[int], most: list[int], limit: int) -> int:
        room = limit
        for column, amount in requests:
            room = min(room, min(left[column], most[column]) // amount)
        return max(0, room)


def spared(
    counted: Counted,
    chosen: Collection[int],
    *,
    by_work: bool = False,
    limits: Sequence[IntArray] | None = None,
) -> Generator[int, None, frozenset[int]]:
    """Those of the chosen that must leave by the sums, once every other has been spared, the most important first, or
    those first with which most work is lost (`by_work`). Yields what it takes of the budget.
    """
    sums, removable = Sums(counted, chosen, limits), counted.removable
    yield sums.cost
    order = removable.from_most_important(chosen, counted.costs, by_work=by_work)
    before = -1
    while len(sums.away) != before:
        # Once a gang stays, what it would have taken along may stay as well.
        before = len(sums.away)
        for first in range(0, len(order), _AT_ONCE):
            price = 0
            for at in order[first : first + _AT_ONCE]:
                if at in sums.away and sums.away.isdisjoint(removable.takers.get(at, ())):
                    price += sums.price(at)
                    sums.spare(at)
            yield price
        order = [at for at in order if at in sums.away and at in removable.takers]
    return frozenset(sums.away)


def first_spared(
    sums: Sums, left: Sequence[int], number: int, removable: Removable
) -> Generator[int, None, tuple[list[int], int]]:
    """Let the first of those left stay, at most so many, who can by the sums. Returns them, and how many were asked."""
    spared: list[int] = []
    for first in range(0, len(left), _AT_ONCE):
        price = 0
        for asked, at in enumerate(left[first : first + _AT_ONCE], first + 1):
            if not sums.away.isdisjoint(removable.takers.get(at, ())):
                continue
            price += sums.price(at)
            if sums.spare(at):
                spared.append(at)
            if len(spared) == number:
                yield price
                return spared, asked
        yield price
    return spared, len(left)
