"""NodeResourcesFit: a node takes pods whose requests, and number, fit into its allocatable but unrequested amounts.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/noderesources/fit.go. `inventory/capacity.py` keeps the exact
sums of the requests of placed pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gangsched.core.constraints.constraint import Alike, Constraint, Leavers, Member, Plan, Words, World
from gangsched.core.inventory.capacity import Capacity
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.quantity import MAX_AMOUNT, clip
from gangsched.core.objects.reasons import NodeReason
from gangsched.core.objects.requests import of_plugin
from gangsched.core.objects.shape import PODS, Shape

MOST_WITHHELD = 1 << 52
"""Upper limit for the amount of a resource that counts on a node for a pod or a group that is not there yet."""
_SAFE = 1 << 61
"""Sums of three amounts below this one need no clipping."""
_MOST_UNSUMMED = 10_000
"""So many departures are kept before they are summed up, which is done at once only where the sums are needed."""


class NodeResources(Constraint):
    """The filter NodeResourcesFit."""

    proves = True
    words = (
        Words(NodeReason.INSUFFICIENT, "with too little {resource}"),
        Words(
            NodeReason.TOO_MANY_PODS,
            "with as many pods as allowed",
            "fewer pods on nodes at their pod limit: {nodes} full",
        ),
    )

    def plan(self, *, emptied: bool) -> ResourcesPlan:
        """The free amounts on a snapshot."""
        return MostResources(self._world) if emptied else ResourcesPlan(self._world.stock)


class Vector(Struct, frozen=True):
    """A shape's requests as columns and amounts, the pod count last."""

    columns: npt.NDArray[np.intp]
    amounts: IntArray


class ResourcesPlan(Plan):
    """The `free` amounts by row and column; read-only. Resources `delegated` to devices are ignored.

    `_gone` are the exact amounts of pods that have left, by resource and row, without those `_unsummed`; `_left` are
    their sums, and `_clipped` what `free` lacks of them.
    """

    def __init__(self, stock: Capacity) -> None:
        self._stock = stock
        self.size = len(stock.names)
        self.delegated = stock.delegated()
        self.free: IntArray = self._source()[: self.size, : len(stock.columns)].copy()
        self._vectors: dict[Shape, Vector | None] = {}
        self._gone: dict[str, dict[int, int]] = {}
        self._unsummed: list[tuple[str, Alike, int]] = []
        self._left: Counter[str] = Counter()
        self._clipped: dict[tuple[int, int], int] = {}

    def _source(self) -> IntArray:
        return self._stock.free

    def room(self, member: Member, rows: IntArray) -> IntArray:
        """The number of members whose requests fit on each of the rows."""
        vector = self.vector(member.shape)
        if vector is None:
            return np.zeros(len(rows), dtype=np.int64)
        # One column at a time takes a sixth of the time of all at once.
        first, *others = zip(vector.columns.tolist(), vector.amounts.tolist(), strict=True)
        most: IntArray = self.free[rows, first[0]] // first[1]
        for column, amount in others:
            np.minimum(most, self.free[rows, column] // amount, out=most)
        return np.maximum(most, 0, out=most)

    def take(self, member: Member, rows: IntArray, counts: IntArray) -> None:
        """Subtract the members' requests from what is free, or add them where negative.

        Raises:
            ValueError: no node has ever had one of the resources.
        """
        vector = self.vector(member.shape)
        if vector is None:
            raise ValueError(f"no node has ever had all of {member.shape.requests}")
        self.free[rows[:, None], vector.columns] -= counts[:, None] * vector.amounts

    def refusals(self, member: Member, rows: IntArray) -> Iterator[tuple[str, str, Mask]]:
        """For each resource, the rows where too little is left."""
        for resource, amount in (*member.shape.requests, (PODS, 1)):
            if resource in self.delegated:
                continue
            column = self.column(resource)
            lacking: Mask = np.ones(len(rows), dtype=np.bool_)
            if column is not None:
                lacking = self.free[rows, column] < amount
            if resource == PODS:
                yield NodeReason.TOO_MANY_PODS, "", lacking
            else:
                yield NodeReason.INSUFFICIENT, resource, lacking

    def digest(self, rows: IntArray) -> Hashable:
        """A digest of the free amounts on these rows."""
        return self.free[rows].tobytes()

    def amounts(self, member: Member) -> Mapping[int, int]:
        """The amounts that one member takes, by column; empty if no node has ever had one of the resources."""
        vector = self.vector(member.shape)
        return {} if vector is None else dict(zip(vector.columns.tolist(), vector.amounts.tolist(), strict=True))

    def left(self, number: int, rows: IntArray) -> IntArray:
        """The free amount of this column on each row."""
        left: IntArray = self.free[rows, number]
        return left

    # Used by planning only

    def column(self, resource: str) -> int | None:
        """The resource's column in `free`; None if no node has any of it."""
        column = self._stock.column(resource)
        if column is not None and column >= self.free.shape[1]:
            # The column is requested for the first time, so nothing of it was taken here.
            first = self.free.shape[1]
            self.free = np.concatenate([self.free, self._source()[: self.size, first : column + 1]], axis=1)
            new = {name: at for name, at in self._stock.columns.items() if first <= at <= column}
            for name, gone in self._exactly_gone().items() if new else ():
                for row, amount in gone.items() if name in new else ():
                    self.free[row, new[name]] = clip(self._stock.free_of(row, name) + amount)
        return column

    def used(self, column: int, rows: IntArray) -> npt.NDArray[np.float64]:
        """The used share of this column on the rows. One column at a time takes a sixth of the time of all at once."""
        given: npt.NDArray[np.float64] = self._stock.allocatable[rows, column].astype(np.float64)
        share: npt.NDArray[np.float64] = (given - self.free[rows, column]) / np.maximum(given, 1.0)
        return share

    def vector(self, shape: Shape) -> Vector | None:
        """The shape's requests; None if no node has ever had one of the resources."""
        if shape in self._vectors:
            return self._vectors[shape]
        wanted = [(self.column(resource), min(amount, MAX_AMOUNT)) for resource, amount in self._asked(shape)]
        columns = [column for column, _ in wanted if column is not None]
        vector = None
        if len(columns) == len(wanted):
            amounts = np.array([amount for _, amount in wanted], dtype=np.int64)
            vector = Vector(np.array(columns, dtype=np.intp), amounts)
        self._vectors[shape] = vector
        return vector

    def settle(self, leavers: Leavers) -> None:
        """What the pods have requested is free in the cluster now."""
        for alike in leavers.alike:
            for resource, amount in (*alike.shape.requests, (PODS, 1)):
                self._note_gone(resource, alike, -amount)

    def recount(self, leavers: Leavers, sign: int) -> None:
        """Take again what the pods have requested (1), or free it (-1)."""
        for alike in leavers.alike:
            for resource, amount in (*alike.shape.requests, (PODS, 1)):
                self._count(resource, alike, -sign * amount)

    def _count(self, resource: str, alike: Alike, freed: int) -> None:
        """Free so much on the row of each of the pods."""
        rows, column = alike.rows, self._stock.columns.get(resource)
        if column is None or column >= self.free.shape[1]:
            self._note_gone(resource, alike, freed)
            return
        known = np.concatenate([self._stock.free[rows, column], self.free[rows, column]])
        # No row can have had more freed than all together.
        largest = max(self._left[resource], abs(freed) * len(alike.pods), int(np.abs(known).max(initial=0)))
        if largest < _SAFE and not self._clipped:
            np.add.at(self.free[:, column], rows, freed)
            self._note_gone(resource, alike, freed)
            return
        gone = self._exactly_gone().get(resource, {})
        for row, number in Counter(rows.tolist()).items():
            # The capacity clips absurd sums, so a difference of exact sums is added, and what is clipped here kept.
            free, at, was = self._stock.free_of(row, resource), (row, column), gone.get(row, 0)
            more = clip(free + was + number * freed) - clip(free + was)
            exact = int(self.free[at]) + self._clipped.pop(at, 0) + more
            self.free[at] = clip(exact)
            if exact != self.free[at]:
                self._clipped[at] = exact - int(self.free[at])
        self._note_gone(resource, alike, freed)

    def _note_gone(self, resource: str, alike: Alike, freed: int) -> None:
        self._left[resource] += freed * len(alike.pods)
        self._unsummed.append((resource, alike, freed))
        if len(self._unsummed) > _MOST_UNSUMMED:
            self._exactly_gone()

    def _exactly_gone(self) -> dict[str, dict[int, int]]:
        """The sums of all that have left, which are seldom needed."""
        for resource, alike, freed in self._unsummed:
            gone = self._gone.setdefault(resource, {})
            for row in alike.rows.tolist():
                gone[row] = gone.get(row, 0) + freed
        self._unsummed.clear()
        return self._gone

    def withhold(self, rows: IntArray, resources: Sequence[str], amounts: IntArray, sign: int) -> None:
        """Take these amounts, by row and resource (1), or free them again (-1), whether or not they are there.

        A row may occur for several groups, and no amount is above MOST_WITHHELD.
        """
        for resource, asked in zip(resources, amounts.T, strict=True):
            column = None if resource in self.delegated else self.column(resource)
            if column is not None:
                np.subtract.at(self.free[:, column], rows, sign * asked)

    def _asked(self, shape: Shape) -> list[tuple[str, int]]:
        """The amounts that count for the shape, the pod count last."""
        return [pair for pair in (*shape.requests, (PODS, 1)) if pair[0] not in self.delegated]


class MostResources(ResourcesPlan):
    """The most that nodes may ever have: all that they offer, without limit where a device plug-in is yet to offer it.

    A node that is not settled, or whose plug-in or devices are unwell, may offer any amount of a resource of device
    plug-ins; a node that has reported nothing yet, any amount of everything. A resource that a DeviceClass provides has
    no limit: kube-scheduler decides for each node whether a plug-in or devices serve the pod (kubernetes#130653).
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._every = np.arange(len(world.stock.names))
        self._unsettled = world.nodes.unsettled(self._every)
        silent: Mask = (world.stock.allocatable[: len(self._every)] == 0).all(axis=1)
        self._unknown = world.nodes.there(self._every) & silent
        super().__init__(world.stock)
        self.delegated |= world.devices.provided.keys()

    def mask(self, member: Member, rows: IntArray) -> Mask | None:
        """Where a resource that no node offers today may still come."""
        unknown = [resource for resource, _ in super()._asked(member.shape) if self.column(resource) is None]
        if not unknown:
            return None
        mask: Mask = np.ones(len(rows), dtype=np.bool_)
        for resource in unknown:
            mask &= self._awaits(resource)[rows]
        return mask

    def _source(self) -> IntArray:
        most = self._stock.allocatable.copy()
        if self._unsettled.any() or self._world.nodes.awaiting:
            for resource, column in self._stock.columns.items():
                most[np.flatnonzero(self._awaits(resource)), column] = MAX_AMOUNT
        return most

    def _awaits(self, resource: str) -> Mask:
        """The rows that may offer any amount of the resource."""
        if not of_plugin(resource):
            return self._unknown
        awaiting = [row for row, awaited in self._world.nodes.awaiting.items() if resource in awaited]
        return self._unsettled | np.isin(self._every, awaiting)

    def _asked(self, shape: Shape) -> list[tuple[str, int]]:
        return [pair for pair in super()._asked(shape) if self.column(pair[0]) is not None]
