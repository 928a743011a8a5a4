"""Units that may leave, and facts of them as arrays. A changed table is made without looking at the other units."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from copy import copy
from itertools import compress
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.claims import Claim
from gangsched.core.objects.arrays import Floats, IntArray, Mask
from gangsched.core.objects.shape import Shape

_NAME = attrgetter("name")


class Unit(Struct, frozen=True, gc=False):
    """Pods that leave together.

    The `name` is unique and stable. Units of a lower `level` are given up first. Each of the claims has worked since
    it `began` (infinity if that is unknown), and its work counts as often as `weights` says (empty: once). The unit has
    run `since` then, and does not leave before `protected`. A `whole` gang has the claims of its members that are no
    units of their own; it takes those `along`, by name. `draws` is how many evictions the unit takes of each disruption
    budget, by the budget's name. Times are in epoch seconds.
    """

    name: str
    level: int
    claims: tuple[Claim, ...]
    began: tuple[float, ...]
    since: float
    weights: tuple[int, ...] = ()
    whole: bool = False
    along: tuple[str, ...] = ()
    draws: tuple[tuple[str, int], ...] = ()
    protected: float = 0.0


class ByUnit(NamedTuple):
    """Facts of each unit; it has so many `claims` on known nodes. `tied`: it takes others along, or draws."""

    levels: IntArray
    pods: IntArray
    claims: IntArray
    since: Floats
    protected: Floats
    whole: Mask
    tied: Mask


class ByClaim(NamedTuple):
    """Facts of each claim on a known node, unit by unit and there row by row."""

    rows: IntArray
    shapes: IntArray
    began: Floats
    weights: IntArray


class UnitTable:
    """Units in the order of their names, and their facts. Shapes are numbered by `shapes`, those of former units too.

    Rows are those of the cluster when the table was made.
    """

    def __init__(self, cluster: Cluster, units: Iterable[Unit]) -> None:
        self._cluster = cluster
        self.shapes: dict[Shape, int] = {}
        self.units = sorted(units, key=_NAME)
        self.by_unit, self.by_claim = self._facts(self.units)

    def find(self, name: str) -> int | None:
        """The number of the unit of this name; None if there is none."""
        at = bisect_left(self.units, name, key=_NAME)
        return at if at < len(self.units) and self.units[at].name == name else None

    def without(self, gone: Collection[str]) -> tuple[UnitTable, Mask]:
        """The same without the units of these names, and which units it still has."""
        keep: Mask = np.ones(len(self.units), dtype=np.bool_)
        keep[[at for name in gone if (at := self.find(name)) is not None]] = False
        if keep.all():
            return self, keep
        # Taken by number, which is several times as fast as by a mask.
        units, claims = np.flatnonzero(keep), np.flatnonzero(np.repeat(keep, self.by_unit.claims))
        table = copy(self)
        table.units = [*compress(self.units, keep)]
        table.by_unit = ByUnit._make(column.take(units) for column in self.by_unit)
        table.by_claim = ByClaim._make(column.take(claims) for column in self.by_claim)
        return table, keep

    def joined(self, new: Collection[Unit]) -> UnitTable:
        """The same with these units as well."""
        added = sorted(new, key=_NAME)
        if len(added) > 2 * len(self.units) or len(self.shapes) > 2 * len(self.by_claim.shapes):
            return UnitTable(self._cluster, [*self.units, *added])
        table, (by_unit, by_claim) = copy(self), self._facts(added)
        table.units = sorted([*self.units, *added], key=_NAME)
        places = np.array([bisect_left(self.units, unit.name, key=_NAME) for unit in added], dtype=np.int64)
        starts = np.append(0, np.cumsum(self.by_unit.claims))[np.repeat(places, by_unit.claims)]
        pairs = zip(self.by_unit, by_unit, strict=True)
        table.by_unit = ByUnit._make(np.insert(old, places, more) for old, more in pairs)
        others = zip(self.by_claim, by_claim, strict=True)
        table.by_claim = ByClaim._make(np.insert(old, starts, more) for old, more in others)
        return table

    def _facts(self, units: Sequence[Unit]) -> tuple[ByUnit, ByClaim]:
        """The facts of these units alone."""
        known, claims = self._cluster.capacity.rows, [claim for unit in units for claim in unit.claims]
        sizes = np.array([len(unit.claims) for unit in units], dtype=np.int64)
        rows = np.array([known.get(claim.node, -1) if claim.counts else -1 for claim in claims], dtype=np.int64)
        shapes = [self.shapes.setdefault(claim.pod.shape, len(self.shapes)) for claim in claims]
        began = [at for unit in units for at in unit.began]
        weights = [weight for unit in units for weight in unit.weights or (1,) * len(unit.claims)]
        unit_of = np.repeat(np.arange(len(units)), sizes)
        order = np.lexsort((rows, unit_of))
        order = order[rows[order] >= 0]
        by_unit = ByUnit(
            levels=np.array([unit.level for unit in units], dtype=np.int64),
            pods=sizes,
            claims=np.bincount(unit_of[order], minlength=len(units)),
            since=np.array([unit.since for unit in units], dtype=np.float64),
            protected=np.array([unit.protected for unit in units], dtype=np.float64),
            whole=np.array([unit.whole for unit in units], dtype=np.bool_),
            tied=np.array([bool(unit.along or unit.draws) for unit in units], dtype=np.bool_),
        )
        by_claim = ByClaim(
            rows=rows[order],
            shapes=np.array(shapes, dtype=np.int64)[order],
            began=np.array(began, dtype=np.float64)[order],
            weights=np.array(weights, dtype=np.int64)[order],
        )
        return by_unit, by_claim
