"""Chooses by sums which units leave, at the least lost work: rows are taken one after the other, the cheapest first.

What a row costs is the work lost with the units that must leave it for one more member, divided by the members gained.
A whole gang costs all of its work, or on each row the part of it that it gives there; which of the two finds the better
set depends on how much of the gangs' room the ask can use, so both are tried. After some rows the prices are computed
anew, because a gang that leaves gives its room on other rows for nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np

from gangsched.core.objects.arrays import Floats, IntArray, Mask
from gangsched.core.planning import budget as units
from gangsched.core.planning.counted import Counted
from gangsched.core.planning.removable import Evictions

_ROUNDS = 4
"""Prices are computed anew after a part of the missing members has room: one of this number."""
_SHORTLIST = 8
"""Only the cheapest rows with room for so many times the missing members stay in question, while they suffice."""
_PAIR = 6
"""Cost, in units of the budget, of pricing one pair of unit and row."""
_NOTHING = 1e-9
"""Stands for the worth of a unit that frees nothing that members lack."""


class Manner(Enum):
    """What a unit costs on a row."""

    ALL = "all of its work"
    SHARE = "as much of its work as it frees there of all that it frees"
    EVICTIONS = "the part of the allowed evictions that it takes"


class _Offers(NamedTuple):
    """For each of these rows the price of a member, how many members it gains, and the units that leave it for that."""

    rows: IntArray
    ratios: Floats
    gains: IntArray
    units: Iterator[IntArray]


class Choice:
    """The units that leave so that one domain has room for `factor` times the members by the sums.

    Only `eligible` units may leave, within the `allowed` evictions of disruption budgets; `refused`: these stood in the
    way of a unit. `chosen` are closed: what a gang takes along is among them.
    """

    def __init__(
        self,
        counted: Counted,
        eligible: Mask,
        allowed: Mapping[str, int],
        *,
        domain: int | None = None,
        factor: int = 1,
        manner: Manner = Manner.ALL,
    ) -> None:
        self.chosen: set[int] = set()
        self.refused = False
        self._counted = counted
        self._removable = removable = counted.removable
        self._evictions = Evictions(removable, allowed)
        self._factor = factor
        self._manner = manner
        self._inside = counted.open if domain is None else counted.domains == domain
        self._using = counted.users[:, 0] if counted.by_ports else None
        if self._using is not None:
            self._inside = self._inside.copy()
            self._inside[removable.rows[(self._using > 0) & ~eligible[removable.owners]]] = False
        self._rooms = [np.where(self._inside, room, 0) for room in counted.rooms]
        self._left = counted.free.copy()
        self._alive = eligible.copy()
        # By rank, so that what costs the same need not be sorted by it.
        considered = self._inside.take(removable.rows) & eligible.take(removable.owners)
        self._every = removable.by_rank.take(np.flatnonzero(considered.take(removable.by_rank)))
        self._places = removable.rows.take(self._every)
        self._pairs = self._every
        self._worth = counted.worth
        self._narrow = np.min_scalar_type(len(counted.free))
        self._prices = counted.costs.copy()
        if manner is Manner.EVICTIONS:
            self._prices += [sum(n / max(1, allowed.get(b, 0)) for b, n in unit.draws) for unit in removable.units]
        for other, takers in removable.takers.items():
            self._prices[takers] += counted.costs[other]

    def find(self) -> Generator[int, None, frozenset[int] | None]:
        """The units; None if the sums are too small whoever leaves. Yields what it takes of the budget."""
        yield units.CLASS + len(self._every)
        while short := self._short(missing := self._missing()):
            yield units.CLASS + _PAIR * len(self._pairs)
            if self._add(-(-short // _ROUNDS), missing):
                continue
            if len(self._pairs) == len(self._every):
                return None
            self._pairs = self._every
        return frozenset(self.chosen)

    def by_worth(self) -> list[int]:
        """The units that free anything, those first that free most for what they cost, as far as budgets allow."""
        owners = self._removable.owners[self._every]
        worth = np.bincount(owners, self._worth[self._every], minlength=len(self._prices))
        useful = np.flatnonzero(worth > 0)
        best = np.lexsort((self._removable.rank[useful], self._prices[useful] / worth[useful]))
        order: list[int] = useful[best].tolist()
        if not any(self._removable.units[at].draws for at in order):
            return order
        admitted: set[int] = set()
        for at in order:
            more = self._removable.closure((at,)) - admitted
            if self._evictions.admit(more):
                admitted |= more
        return [at for at in order if at in admitted]

    def _missing(self) -> list[int]:
        """How many members of each kind have no room."""
        rooms = zip(self._counted.kinds, self._rooms, strict=True)
        return [max(0, kind.number * self._factor - int(room.sum())) for kind, room in rooms]

    def _short(self, missing: Sequence[int]) -> int:
        """How many members more must have room."""
        placed = sum(kind.number for kind in self._counted.kinds) * self._factor - sum(missing)
        return max(0, self._counted.number * self._factor - placed)

    def cheapest_domains(self, most: int) -> list[int]:
        """The domains, at most so many, that can have room by the sums, those where it probably costs least first."""
        counted, domains = self._counted, self._counted.domains
        rooms, offers = counted.rooms_without(self._alive), self._offers([kind.number for kind in counted.kinds])
        gains = np.bincount(domains + 1, np.sum(self._rooms, axis=0), minlength=int(domains.max()) + 2)[1:]
        costs = np.zeros(len(gains))
        for row, ratio, gain in zip(offers.rows.tolist(), offers.ratios.tolist(), offers.gains.tolist(), strict=True):
            taken = min(gain, max(0.0, counted.number - gains[domains[row]]))
            costs[domains[row]] += ratio * taken
            gains[domains[row]] += taken
        # These are the cheapest members of each row; further ones are dearer than they are on average.
        costs *= np.maximum(1.0, counted.number / np.maximum(gains, 1.0))
        enough = np.flatnonzero(counted.placed(rooms) >= counted.number)
        cheapest: IntArray = enough[np.argsort(costs[enough], kind="stable")]
        chosen: list[int] = cheapest[:most].tolist()
        return chosen

    def _add(self, quota: int, missing: Sequence[int]) -> bool:
        """Let the units of the cheapest rows leave until so many members more have room; False if no row gains any."""
        offers = self._offers(missing)
        if not len(offers.rows):
            return False
        before, added = set(self.chosen), 0
        for victims, gain in zip(offers.units, offers.gains.tolist(), strict=False):
            if added >= quota:
                break
            if self._admit(victims.tolist()):
                added += gain
        touched = self._apply(self.chosen - before)
        enough = int(np.searchsorted(np.cumsum(offers.gains), _SHORTLIST * _ROUNDS * quota)) + 1
        considered: Mask = np.zeros_like(self._inside)
        considered[offers.rows[:enough]] = True
        considered[touched] = True
        self._pairs = self._every.take(np.flatnonzero(considered.take(self._places)))
        return True

    def _offers(self, missing: Sequence[int]) -> _Offers:
        """What each row asks for that gains some of the missing members of each kind, the cheapest first."""
        pairs = self._pairs.take(np.flatnonzero(self._alive.take(self._removable.owners.take(self._pairs))))
        rows, owners = self._removable.rows.take(pairs), self._removable.owners.take(pairs)
        worth = self._worth.take(pairs)
        prices = self._priced(owners, worth)
        # Narrow integers are sorted several times as fast.
        keys = (prices / (worth + _NOTHING), rows.astype(self._narrow))
        # By row, and on each row those first that give most for what they cost.
        order = np.lexsort(keys if self._using is None else (keys[0], -self._using[pairs], keys[1]))
        pairs, rows, owners, prices = pairs[order], rows[order], owners[order], prices[order]
        new: Mask = np.ones(len(rows), dtype=np.bool_)
        new[1:] = rows[1:] != rows[:-1]
        begin = np.maximum.accumulate(np.where(new, np.arange(len(rows)), 0))
        gains = self._gains(pairs, rows, begin, missing)
        if self._using is not None:
            # Who uses a host port of the members closes the row.
            gains[(np.diff(rows, append=-1) == 0) & (np.append(self._using[pairs], 0)[1:] > 0)] = 0
        elif self._counted.selective:
            # Whoever stays may be the one who closes the row.
            gains[np.diff(rows, append=-1) == 0] = 0
        gaining = np.flatnonzero(gains)
        ratios = _summed(prices, begin, gaining) / gains[gaining]
        ties = _summed(self._removable.rank.take(owners).astype(np.float64), begin, gaining)
        best = np.lexsort((rows[gaining], ties, ratios))
        # Of each row only the first counts, which is the one that is written last.
        offering, places, first_at = rows[gaining[best]], np.arange(len(best)), np.zeros(len(self._inside), np.int64)
        first_at[offering[::-1]] = places[::-1]
        best = best[first_at[offering] == places]
        order = gaining[best]
        taken = (owners[begin[at] : at + 1] for at in order.tolist())
        return _Offers(rows[order], ratios[best], gains[order], taken)

    def _priced(self, owners: IntArray, worth: Floats) -> Floats:
        """What each of some pairs costs, which have these owners and are worth so much."""
        prices: Floats = self._prices.take(owners)
        if self._manner is Manner.SHARE:
            prices *= worth
            prices /= np.bincount(owners, worth, minlength=len(self._prices)).take(owners) + _NOTHING
        return prices

    def _gains(self, pairs: IntArray, rows: IntArray, begin: IntArray, missing: Sequence[int]) -> IntArray:
        """How many members more the row takes once each of these pairs and those before it on the row have left."""
        amounts = self._counted.freed.take(pairs, axis=0)
        freed = np.cumsum(amounts, axis=0)
        freed -= (freed - amounts).take(begin, axis=0)
        freed += self._left.take(rows, axis=0)
        left = self._counted.within(rows, freed)
        gains: IntArray = np.zeros(len(rows), dtype=np.int64)
        for kind, room, short in zip(self._counted.kinds, self._rooms, missing, strict=True):
            gains += np.minimum(np.maximum(self._counted.room(kind, rows, left) - room.take(rows), 0), short)
        return gains

    def _admit(self, victims: Collection[int]) -> bool:
        """Let these units leave, if budgets allow all of them; else one that they do not allow stays for good."""
        new = self._removable.closure(victims) - self.chosen
        if self._evictions.admit(new):
            self.chosen |= new
            return True
        self.refused = True
        for at in victims:
            new = self._removable.closure((at,)) - self.chosen
            if not self._evictions.admit(new):
                self._alive[at] = False
                return False
            self.chosen |= new
        return False

    def _apply(self, new: Collection[int]) -> IntArray:
        """Count the room of units that have just been chosen. Returns the rows whose room may have changed."""
        self._alive[list(new)] = False
        for at in new:
            self._prices[self._removable.takers.get(at, [])] -= self._counted.costs[at]
        pairs = self._removable.pairs_in(new)
        rows = self._removable.rows.take(pairs)
        np.add.at(self._left, rows, self._counted.freed.take(pairs, axis=0))
        touched: IntArray = np.unique(rows)
        touched = touched[self._inside[touched]]
        if self._counted.selective:
            staying = self._every[self._alive[self._removable.owners[self._every]]]
            staying = staying if self._using is None else staying[self._using[staying] > 0]
            touched = np.setdiff1d(touched, self._removable.rows[staying])
        left = self._counted.within(touched, self._left.take(touched, axis=0))
        for kind, room in zip(self._counted.kinds, self._rooms, strict=True):
            room[touched] = np.maximum(room[touched], self._counted.room(kind, touched, left))
        return touched


def _summed(values: Floats, begin: IntArray, places: IntArray) -> Floats:
    """Sums of the values from the one at `begin` to the one at each of these places."""
    sums, begin = np.cumsum(values), begin[places]
    from_begin: Floats = sums[places] - (sums[begin] - values[begin])
    return from_begin
