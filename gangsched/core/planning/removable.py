"""The units that may leave, and what they take, by row: made once for a state of the cluster, read by many searches."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.claims import Claim
from gangsched.core.constraints.node_ports import PortsInUse
from gangsched.core.objects.arrays import Floats, IntArray, Mask
from gangsched.core.objects.shape import PODS, HostPort
from gangsched.core.planning.unit_table import Unit, UnitTable

MOST = 1 << 48
"""Larger amounts are not told apart, so that sums over all rows cannot overflow; see `Counted.faithful`."""
LEAST_S = 60.0
"""A pod counts as having worked for at least so many seconds, so that many young ones are not given up lightly."""
_MOST_KNOWN = 8
"""For so many sets of resources the amounts that pairs take are kept."""

Key = tuple[float, int, int, int, float, tuple[str, ...]]
"""How bad it is that some units leave: lost work, whole gangs, pods, units that are no surplus, age (the negative start
of the oldest), names."""


class Removable:
    """Units in the order of their names, by which everything here numbers them, and their claims on known nodes.

    `along` are the units that each takes along, if any, `takers` those that take a unit along.

    `levels` are those at which a unit may leave with all that it takes `along`; `rank` orders units that are otherwise
    equally good to give up: surplus of a gang, a plain pod, a whole gang; then fewer pods, the youngest, the name.
    A pair is a unit on a row that it has claims on: `rows` and `owners` by pair, in the order of the units; `by_rank`
    are the pairs in the order of their units' ranks. The `best` are the units by rank, if that is known.
    """

    def __init__(self, table: UnitTable, best: IntArray | None = None) -> None:
        self._table = table
        self.units = table.units
        self._amounts: dict[tuple[str, ...], IntArray] = {}
        number, facts, rows = len(self.units), table.by_unit, table.by_claim.rows
        self._unit_of = np.repeat(np.arange(number), facts.claims)
        first: Mask = np.ones(len(rows), dtype=np.bool_)
        first[1:] = (rows[1:] != rows[:-1]) | (self._unit_of[1:] != self._unit_of[:-1])
        # The first claim of each pair.
        self._first = np.flatnonzero(first)
        self.rows, self.owners = rows[self._first], self._unit_of[self._first]
        self._starts = np.append(0, np.cumsum(np.bincount(self.owners, minlength=number)))
        self._tie()
        if best is None:
            kinds = np.where(facts.whole, 2, 1)
            kinds[[at for at in self.takers if not self.units[at].whole]] = 0
            best = np.lexsort((-facts.since, facts.pods, kinds))
        self._best: IntArray = best
        self.rank: IntArray = np.empty(number, dtype=np.int64)
        self.rank[best] = np.arange(number)
        sizes = np.diff(self._starts)[best]
        self.by_rank: IntArray = np.arange(len(self.rows)) + np.repeat(
            self._starts[best] - np.cumsum(sizes) + sizes, sizes
        )

    @classmethod
    def of(cls, cluster: Cluster, units: Iterable[Unit]) -> Removable:
        """These units, on the nodes of the cluster."""
        return cls(UnitTable(cluster, units))

    def changed(self, gone: Collection[str], new: Collection[Unit]) -> Removable:
        """The same without the units of these names, and with these units, on the same nodes."""
        table, keep = self._table.without(gone)
        if new or (self._table.by_unit.tied & ~keep).any():
            return Removable(table.joined(new))
        # In what a unit is to others nothing has changed.
        rest = Removable(table, (np.cumsum(keep) - 1)[self._best[keep[self._best]]])
        pairs = np.flatnonzero(keep[self.owners])
        rest._amounts = {asked: amounts.take(pairs, axis=0) for asked, amounts in self._amounts.items()}
        return rest

    def _tie(self) -> None:
        """Find the numbers of what units take along, and their levels with it."""
        self.levels: IntArray = self._table.by_unit.levels.copy()
        self.along: dict[int, tuple[int, ...]] = {}
        self.takers: dict[int, list[int]] = {}
        self._tied: list[int] = np.flatnonzero(self._table.by_unit.tied).tolist()
        takes_along = any(self.units[at].along for at in self._tied)
        numbers = {unit.name: at for at, unit in enumerate(self.units)} if takes_along else {}
        for at in self._tied:
            along = tuple(numbers[name] for name in self.units[at].along if name in numbers)
            if along:
                self.along[at] = along
                self.levels[at] = max(self.levels[at], *self._table.by_unit.levels[list(along)])
            for other in along:
                self.takers.setdefault(other, []).append(at)

    def has(self, unit: Unit) -> bool:
        """Whether the unit is here, as it is."""
        at = self._table.find(unit.name)
        return at is not None and self.units[at] == unit

    def facts(self) -> tuple[object, ...]:
        """What is known of units and pairs, as values that can be compared."""
        table, shapes = self._table, [*self._table.shapes]
        by_claim = zip(table.by_claim.rows, map(shapes.__getitem__, table.by_claim.shapes), strict=True)
        numbers = (*table.by_unit, *table.by_claim[2:], self.rows, self.owners, self.levels, self.rank)
        return [*by_claim], [column.tolist() for column in numbers], self.along, self.takers

    def amounts(self, resources: Sequence[str]) -> IntArray:
        """What each pair takes of these resources; read-only."""
        asked = tuple(resources)
        if asked in self._amounts:
            return self._amounts[asked]
        shapes = self._table.by_claim.shapes
        amounts: IntArray = np.zeros((len(self.rows), len(resources)), dtype=np.int64)
        for at, column in enumerate(self._by_shape(resources).T):
            amounts[:, at] = np.minimum(np.add.reduceat(column[shapes], self._first), 4 * MOST)
        if len(self._amounts) >= _MOST_KNOWN:
            del self._amounts[next(iter(self._amounts))]
        self._amounts[asked] = amounts
        return amounts

    def pairs_on(self, ports: tuple[HostPort, ...]) -> Mask:
        """The pairs that use one of these host ports."""
        taken = PortsInUse()
        taken.add(ports)
        using = np.array([taken.conflicts(shape.host_ports) for shape in self._table.shapes], dtype=np.bool_)
        pairs: Mask = np.logical_or.reduceat(using[self._table.by_claim.shapes], self._first)
        return pairs

    def costs(self, totals: Mapping[str, float], now: float) -> Floats:
        """The work lost with each unit, without those along: the largest share of these totals × seconds.

        Each pod counts as having worked for LEAST_S at least.
        """
        resources, table = list(totals), self._table.by_claim
        sizes = np.array([max(1.0, totals[name]) for name in resources])
        shares: Floats = (self._by_shape(resources) / sizes).max(axis=1, initial=0.0)
        lost = shares[table.shapes] * table.weights * np.maximum(LEAST_S, now - table.began)
        return np.bincount(self._unit_of, lost, minlength=len(self.units)).astype(np.float64)

    def closure(self, chosen: Collection[int]) -> set[int]:
        """These units with all that they take along."""
        return {*chosen, *(other for at in chosen for other in self.along.get(at, ()))}

    def eligible(self, allowed: Mapping[str, int], *, below: int | None, passed: Collection[str], now: float) -> Mask:
        """The units that may leave at all, as `core.planning.leaving.Search` says."""
        eligible: Mask = self._table.by_unit.protected <= now
        if below is not None:
            eligible &= self.levels < below
        for at in map(self._table.find, passed):
            if at is not None:
                eligible[[at, *self.takers.get(at, ())]] = False
        for at in self._tied:
            draws = [draw for one in (at, *self.along.get(at, ())) for draw in self.units[one].draws]
            if draws:
                drawn = _summed(draws)
                eligible[at] &= all(number <= allowed.get(name, 0) for name, number in drawn.items())
        return eligible

    def next_change(self, now: float) -> float:
        """When a unit is not protected any more that is now, in epoch seconds; infinity if none is."""
        protected = self._table.by_unit.protected
        return float(protected[protected > now].min(initial=np.inf))

    def up_to(self, eligible: Mask, level: int | None) -> Mask:
        """Those of the eligible units that are at most of this level; none for None."""
        return np.zeros_like(eligible) if level is None else eligible & (self.levels <= level)

    def claims(self, chosen: Collection[int]) -> list[Claim]:
        """The claims of these units."""
        return [claim for at in sorted(chosen) for claim in self.units[at].claims]

    def badness(self, chosen: Collection[int], costs: Floats) -> Key:
        """How bad it is that these leave."""
        units = [self.units[at] for at in sorted(chosen)]
        return (
            # Rounded, so that sets of equal cost are equal in whichever order their costs were summed.
            round(float(costs[sorted(chosen)].sum()), 9),
            sum(unit.whole for unit in units),
            sum(len(unit.claims) for unit in units),
            sum(at not in self.takers for at in chosen),
            -min((unit.since for unit in units), default=0.0),
            tuple(unit.name for unit in units),
        )

    def from_most_important(self, chosen: Collection[int], costs: Floats, *, by_work: bool = False) -> list[int]:
        """In the order of reprieve: higher level, whole gang, plain pod, surplus, more lost work, older, name.

        With `by_work`, first by lost work.
        """

        def order(at: int) -> tuple[float, int, int, float, float, int]:
            level, lost = int(self.levels[at]), round(float(costs[at]), 9)
            return -lost if by_work else 0.0, -level, -self._kind(at), -lost, self.units[at].since, at

        return sorted(chosen, key=order)

    def pairs_in(self, chosen: Collection[int]) -> IntArray:
        """The pairs of these units."""
        units = np.array(sorted(chosen), dtype=np.int64)
        first, end = self._starts[units], self._starts[units + 1]
        sizes = end - first
        pairs: IntArray = np.arange(sizes.sum()) + np.repeat(end - np.cumsum(sizes), sizes)
        return pairs

    def _by_shape(self, resources: Sequence[str]) -> IntArray:
        """What a pod of each shape takes of these resources."""
        amounts: IntArray = np.zeros((len(self._table.shapes), len(resources)), dtype=np.int64)
        for at, shape in enumerate(self._table.shapes):
            asked = {**dict(shape.requests), PODS: 1}
            # An absurd amount hides how much is missing, so it frees more than any clipped deficit.
            amounts[at] = [amount if (amount := asked.get(resource, 0)) < MOST else 2 * MOST for resource in resources]
        return amounts

    def _kind(self, at: int) -> int:
        return 2 if self.units[at].whole else int(at not in self.takers)


class Evictions:
    """The evictions that some units draw of disruption budgets, jointly, of those that are `allowed` by name."""

    def __init__(self, removable: Removable, allowed: Mapping[str, int]) -> None:
        self._units = removable.units
        self._left = dict(allowed)

    def admit(self, chosen: Collection[int]) -> bool:
        """Count these units as well, if the budgets allow that all of them leave; else nothing changes."""
        drawn = _summed(draw for at in chosen for draw in self._units[at].draws)
        if any(number > self._left.get(name, 0) for name, number in drawn.items()):
            return False
        for name, number in drawn.items():
            self._left[name] = self._left.get(name, 0) - number
        return True


def _summed(draws: Iterable[tuple[str, int]]) -> dict[str, int]:
    """The numbers added up by name."""
    sums: dict[str, int] = {}
    for name, number in draws:
        sums[name] = sums.get(name, 0) + number
    return sums
