"""The sets of units that may be the ones to leave for an ask, the best first, as far as sums tell."""

from __future__ import annotations

from collections.abc import Generator, Mapping

import numpy as np

from gangsched.core.objects.arrays import Mask
from gangsched.core.planning.counted import Counted
from gangsched.core.planning.removable import Evictions, Key
from gangsched.core.planning.sparing import spared
from gangsched.core.planning.topology import COMPARED
from gangsched.core.planning.victims import Choice, Manner

_SMALL = 5_000
"""With no more rows, and pairs of unit and row, more ways of choosing are compared."""
_PRICED = 8
"""Cost, in units of the budget, of looking at each row and pair a few times."""

_Chosen = frozenset[int]


class VictimSets:
    """The sets for one ask. `refused`: disruption budgets stood in the way of a unit. `least` are those that were found
    of which nobody can be spared, by exact sums.

    `size` is what one set takes. If that `is_small`, more ways of choosing are compared.
    """

    def __init__(self, counted: Counted, allowed: Mapping[str, int]) -> None:
        self.refused = False
        self.least: set[_Chosen] = set()
        self.size = len(counted.freed) + len(counted.free)
        self.is_small = self.size <= _SMALL
        self._counted = counted
        self._allowed = allowed

    def cheapest(self, eligible: Mask, factor: int) -> Generator[int, None, list[_Chosen]]:
        """Sets of eligible units that make room for so many times the members, the best first; with exact sums without
        those that can be spared. Yields, as all here, what it takes of the budget.
        """
        counted, domains = self._counted, [0]
        if counted.domains.max(initial=0) > 0:
            domains = Choice(counted, eligible, self._allowed, manner=Manner.SHARE).cheapest_domains(COMPARED)
            yield _PRICED * self.size
        badness: dict[_Chosen, Key] = {}
        for domain in domains:
            for chosen in (yield from self._in(domain, eligible, factor)):
                for needed in (yield from self._spared(chosen)):
                    badness[needed] = counted.removable.badness(needed, counted.costs)
        if counted.faithful:
            self.least.update(badness)
        return sorted(badness, key=lambda chosen: badness[chosen])[:COMPARED]

    def _in(self, domain: int, eligible: Mask, factor: int) -> Generator[int, None, list[_Chosen]]:
        """Sets that make this domain roomy enough, one for each way of choosing that finds any."""
        counted, allowed, refused = self._counted, self._allowed, False
        ways = list[_Chosen | None]()
        for manner in Manner:
            if manner is not Manner.EVICTIONS or refused:
                choice = Choice(counted, eligible, allowed, domain=domain, factor=factor, manner=manner)
                ways.append((yield from choice.find()))
                refused |= choice.refused
        if self.is_small and counted.faithful and factor == 1:
            ways.append(_worthiest(counted, eligible, allowed, domain=domain))
            yield _PRICED * self.size
        self.refused |= refused
        return [chosen for chosen in ways if chosen is not None]

    def _spared(self, chosen: _Chosen) -> Generator[int, None, list[_Chosen]]:
        """Those of the chosen that must leave, where the sums are exact: by importance, and by lost work alone."""
        if not self._counted.faithful:
            return [chosen]
        least = yield from spared(self._counted, chosen)
        if not self.is_small:
            return [least]
        return [least, (yield from spared(self._counted, chosen, by_work=True))]

    def whole(self, eligible: Mask) -> _Chosen:
        """All of these units, or as many as budgets allow, the least important first."""
        removable, evictions = self._counted.removable, Evictions(self._counted.removable, self._allowed)
        every = removable.closure(np.flatnonzero(eligible).tolist())
        if evictions.admit(every):
            return frozenset(every)
        self.refused = True
        chosen: set[int] = set()
        for at in reversed(removable.from_most_important(every, self._counted.costs)):
            more = removable.closure((at,)) - chosen
            if evictions.admit(more):
                chosen |= more
        return frozenset(chosen)


def _worthiest(counted: Counted, eligible: Mask, allowed: Mapping[str, int], *, domain: int) -> frozenset[int] | None:
    """Another choice, for sums that are exact: units that free most for what they cost, wherever, until it suffices."""
    choice = Choice(counted, eligible, allowed, domain=domain, manner=Manner.SHARE)
    order = choice.by_worth()
    few, enough, every = -1, len(order), np.arange(len(eligible))

    def away(number: int) -> Mask:
        leaving: Mask = np.isin(every, list(counted.removable.closure(order[:number])))
        return leaving

    while enough - few > 1:
        middle = (few + enough) // 2
        if counted.has_room(away(middle), domain):
            enough = middle
        else:
            few = middle
    chosen = away(enough)
    if not counted.has_room(chosen, domain):
        return None
    return frozenset(np.flatnonzero(chosen).tolist())
