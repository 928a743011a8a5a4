"""The units that may leave, and what they take, by row: made once for a state of the cluster, read by many searches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.claims import Claim
from gangsched.core.constraints.node_ports import PortsInUse
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.shape import PODS, HostPort, Shape

MOST = 1 << 48
"""Larger amounts are not told apart, so that sums over all rows cannot overflow; see `Counted.faithful`."""
_MOST_KNOWN = 8
"""For so many sets of resources the amounts that pairs take are kept."""

Floats = npt.NDArray[np.float64]
Key = tuple[float, int, int, int, float, tuple[str, ...]]
"""How bad it is that some units leave: lost work, whole gangs, pods, units that are no surplus, age (the negative start
of the oldest), names."""


class Unit(Struct, frozen=True, gc=False):
    """Pods that leave together.

    The `name` is unique and stable. Units of a lower `level` are given up first. `lost_s` are, for each of the claims,
    the seconds of work that are lost with it; the unit has run `since` then (epoch seconds). A `whole` gang has the
    claims of its members that are no units of their own; it takes those `along`, by name. `draws` is how many evictions
    the unit takes of each disruption budget, by the budget's name.
    """

    name: str
    level: int
    claims: tuple[Claim, ...]
    lost_s: tuple[float, ...]
    since: float
    whole: bool = False
    along: tuple[str, ...] = ()
    draws: tuple[tuple[str, int], ...] = ()


class Removable:
    """Units in the order of their names, by which everything here numbers them, and their claims on known nodes.

    `along` are the units that each takes along, `takers` those that take a unit along; `bound` are the units that take
    others along or draw on disruption budgets.

    `levels` are those at which a unit may leave with all that it takes `along`; `rank` orders units that are otherwise
    equally good to give up: surplus of a gang, a plain pod, a whole gang; then fewer pods, the youngest, the name.
    A pair is a unit on a row that it has claims on: `rows` and `owners` by pair.
    """

    def __init__(self, cluster: Cluster, units: Collection[Unit]) -> None:
        self.units = sorted(units, key=lambda unit: unit.name)
        numbers = {unit.name: at for at, unit in enumerate(self.units)}
        self.along = [tuple(numbers[name] for name in unit.along if name in numbers) for unit in self.units]
        self.takers: dict[int, list[int]] = {}
        for at, along in enumerate(self.along):
            for other in along:
                self.takers.setdefault(other, []).append(at)
        self.bound = [at for at, unit in enumerate(self.units) if unit.along or unit.draws]
        self.levels: IntArray = np.array([unit.level for unit in self.units], dtype=np.int64)
        for at, along in enumerate(self.along):
            self.levels[at] = max(self.levels[at], *self.levels[list(along)]) if along else self.levels[at]
        kinds = np.array([self._kind(at) for at in range(len(self.units))], dtype=np.int64)
        sizes = np.array([len(unit.claims) for unit in self.units], dtype=np.int64)
        since = np.array([unit.since for unit in self.units], dtype=np.float64)
        self.rank: IntArray = np.empty(len(kinds), dtype=np.int64)
        self.rank[np.lexsort((-since, sizes, kinds))] = np.arange(len(kinds))
        self._amounts: dict[tuple[str, ...], IntArray] = {}
        self._index(cluster)

    def amounts(self, resources: Sequence[str]) -> IntArray:
        """What each pair takes of these resources; read-only."""
        asked = tuple(resources)
        if asked in self._amounts:
            return self._amounts[asked]
        by_shape = self._by_shape(resources)[self._shape_of]
        found: IntArray = np.zeros((len(self.rows), len(resources)), dtype=np.int64)
        for at, column in enumerate(by_shape.T):
            found[:, at] = np.minimum(np.bincount(self._pair_of, column, minlength=len(self.rows)), 4.0 * MOST)
        if len(self._amounts) >= _MOST_KNOWN:
            del self._amounts[next(iter(self._amounts))]
        self._amounts[asked] = found
        return found

    def pairs_on(self, ports: tuple[HostPort, ...]) -> Mask:
        """The pairs that use one of these host ports."""
        taken = PortsInUse()
        taken.add(ports)
        using = np.array([taken.conflicts(shape.host_ports) for shape in self._shapes], dtype=np.bool_)
        found: Mask = np.bincount(self._pair_of, using[self._shape_of], minlength=len(self.rows)) > 0
        return found

    def costs(self, totals: Mapping[str, float]) -> Floats:
        """The work lost with each unit, without those along: the largest share of these totals × seconds."""
        resources = list(totals)
        sizes = np.array([max(1.0, totals[name]) for name in resources])
        shares: Floats = (self._by_shape(resources) / sizes).max(axis=1, initial=0.0)
        lost = shares[self._shape_of] * self._lost_s
        return np.bincount(self._unit_of, lost, minlength=len(self.units)).astype(np.float64)

    def closure(self, chosen: Collection[int]) -> set[int]:
        """These units with all that they take along."""
        return {*chosen, *(other for at in chosen for other in self.along[at])}

    def eligible(self, allowed: Mapping[str, int], *, below: int | None, passed: Collection[str]) -> Mask:
        """The units that may leave at all, as `core.planning.leaving.Search` says."""
        eligible: Mask = np.ones(len(self.units), dtype=np.bool_)
        if below is not None:
            eligible &= self.levels < below
        for at, unit in enumerate(self.units) if passed else ():
            eligible[at] &= not any(name in passed for name in (unit.name, *unit.along))
        for at in self.bound:
            if not Evictions(self, allowed).admit(self.closure((at,))):
                eligible[at] = False
        return eligible

    def up_to(self, eligible: Mask, level: int | None) -> Mask:
        """Those of the eligible units that are at most of this level; none for None."""
        return np.zeros_like(eligible) if level is None else eligible & (self.levels <= level)

    def claims(self, chosen: Collection[int]) -> list[Claim]:
        """The claims of these units."""
        return [claim for at in sorted(chosen) for claim in self.units[at].claims]

    def badness(self, chosen: Collection[int], costs: Floats) -> Key:
        """How bad it is that these leave."""
        several = [self.units[at] for at in sorted(chosen)]
        return (
            # Rounded, so that sets of equal cost are equal in whichever order their costs were summed.
            round(float(costs[sorted(chosen)].sum()), 9),
            sum(unit.whole for unit in several),
            sum(len(unit.claims) for unit in several),
            sum(at not in self.takers for at in chosen),
            -min((unit.since for unit in several), default=0.0),
            tuple(unit.name for unit in several),
        )

    def from_most_important(self, chosen: Collection[int], costs: Floats) -> list[int]:
        """In the order of reprieve: higher level, whole gang, plain pod, surplus, more lost work, older, name."""

        def order(at: int) -> tuple[int, int, float, float, int]:
            level, lost = int(self.levels[at]), round(float(costs[at]), 9)
            return -level, -self._kind(at), -lost, self.units[at].since, at

        return sorted(chosen, key=order)

    def _index(self, cluster: Cluster) -> None:
        known = cluster.capacity.rows
        shapes: dict[Shape, int] = {}
        claims = [claim for unit in self.units for claim in unit.claims]
        row_of = np.array([known.get(each.node, -1) for each in claims], dtype=np.int64)
        row_of[[at for at, claim in enumerate(claims) if not claim.counts]] = -1
        there = np.flatnonzero(row_of >= 0)
        shape_of = np.array([shapes.setdefault(each.pod.shape, len(shapes)) for each in claims], dtype=np.int64)
        sizes = [len(unit.claims) for unit in self.units]
        lost_s = np.array([seconds for unit in self.units for seconds in unit.lost_s])
        self._shapes = tuple(shapes)
        self._unit_of = np.repeat(np.arange(len(sizes)), sizes)[there]
        row_of, self._shape_of, self._lost_s = row_of[there], shape_of[there], lost_s[there]
        pairs, self._pair_of = np.unique(row_of * max(1, len(self.units)) + self._unit_of, return_inverse=True)
        self.rows, self.owners = np.divmod(pairs, max(1, len(self.units)))
        first = np.argsort(self.owners, kind="stable")
        starts = np.searchsorted(self.owners[first], np.arange(len(self.units) + 1))
        self._pairs, self._starts = first, starts

    def pairs_of(self, at: int) -> IntArray:
        """The pairs of a unit."""
        found: IntArray = self._pairs[self._starts[at] : self._starts[at + 1]]
        return found

    def pairs_in(self, chosen: Collection[int]) -> IntArray:
        """The pairs of these units."""
        if not chosen:
            return np.zeros(0, dtype=np.int64)
        return np.concatenate([self.pairs_of(at) for at in sorted(chosen)])

    def _by_shape(self, resources: Sequence[str]) -> IntArray:
        """What a pod of each shape takes of these resources."""
        found: IntArray = np.zeros((len(self._shapes), len(resources)), dtype=np.int64)
        for at, shape in enumerate(self._shapes):
            asked = {**dict(shape.requests), PODS: 1}
            # An absurd amount hides how much is missing, so it frees more than any clipped deficit.
            found[at] = [amount if (amount := asked.get(resource, 0)) < MOST else 2 * MOST for resource in resources]
        return found

    def _kind(self, at: int) -> int:
        return 2 if self.units[at].whole else int(at not in self.takers)


class Evictions:
    """The evictions that some units draw of disruption budgets, jointly, of those that are `allowed` by name."""

    def __init__(self, removable: Removable, allowed: Mapping[str, int]) -> None:
        self._units = removable.units
        self._left = dict(allowed)

    def admit(self, several: Collection[int]) -> bool:
        """Count these units as well, if the budgets allow that all of them leave; else nothing changes."""
        drawn = Counter[str]()
        for at in several:
            for name, number in self._units[at].draws:
                drawn[name] += number
        if any(number > self._left.get(name, 0) for name, number in drawn.items()):
            return False
        for name, number in drawn.items():
            self._left[name] = self._left.get(name, 0) - number
        return True
