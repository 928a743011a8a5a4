"""A private copy of what is free, on which a plan is tried and taken back.

`mark` and `undo` frame an attempt: everything taken since the mark is given back exactly. The cluster itself is never
changed through a snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gangsched.core.capacity import LIMIT, PODS, IntArray
from gangsched.core.cluster import ACCEPTED, Cluster, Forbidden
from gangsched.core.model import HostPort, Shape
from gangsched.core.ports import PortsInUse, self_conflicting


@dataclass(frozen=True, slots=True)
class MemberClass:
    """Members that no node can tell apart: one shape, closed out by the same existing pods."""

    shape: Shape
    forbidden: Forbidden = frozenset()


class Snapshot:
    """Free capacity of all nodes at one moment, with undo. `emptied` gives the same nodes without any pod."""

    def __init__(self, cluster: Cluster, *, emptied: bool = False) -> None:
        self._cluster = cluster
        self._emptied = emptied
        source = cluster.capacity.allocatable if emptied else cluster.capacity.free
        self.size = len(cluster.capacity.names)
        self.free: IntArray = source[: self.size].copy()
        self.own: IntArray = np.zeros(self.size, dtype=np.int64)
        self._ports: dict[int, PortsInUse] = {}
        self._log: list[tuple[int, MemberClass, int]] = []
        self._masks: dict[MemberClass, npt.NDArray[np.bool_]] = {}

    @property
    def cluster(self) -> Cluster:
        """The cluster that this is a copy of."""
        return self._cluster

    @property
    def heeds_pods(self) -> bool:
        """Whether pods that exist restrict newcomers: not on an emptied snapshot."""
        return not self._emptied

    def name(self, row: int) -> str:
        """The row's node name."""
        return self._cluster.capacity.names[row]

    def emptied(self) -> Snapshot:
        """The same nodes as if no pod were on them: what could ever fit."""
        return Snapshot(self._cluster, emptied=True)

    # Undo

    def mark(self) -> int:
        """The point to which `undo` returns."""
        return len(self._log)

    def undo(self, mark: int) -> None:
        """Give back everything taken since the mark."""
        while len(self._log) > mark:
            row, member, count = self._log.pop()
            self._change(row, member, count, 1)

    def take(self, row: int, member: MemberClass, count: int) -> None:
        """Let `count` members of the class take their share of the node."""
        self._change(row, member, count, -1)
        self._log.append((row, member, count))

    # Questions

    def caps(self, member: MemberClass) -> IntArray:
        """How many members of the class each row could take now; 0 where a constraint closes the row."""
        columns, amounts = self._vector(member.shape)
        if columns is None:
            return np.zeros(self.size, dtype=np.int64)
        caps: IntArray = np.maximum((self.free[:, columns] // amounts).min(axis=1), 0)
        caps[~self._mask(member)] = 0
        ports = member.shape.host_ports
        if ports:
            for row in self._rows_with_ports():
                if caps[row] and self._ports_taken(row, ports):
                    caps[row] = 0
            if self_conflicting(ports):
                np.minimum(caps, 1, out=caps)
        return caps

    def fits(self, member: MemberClass, row: int) -> bool:
        """Whether the row could take one member of the class now."""
        if row >= self.size or not self._mask(member)[row]:
            return False
        columns, amounts = self._vector(member.shape)
        if columns is None or bool((self.free[row, columns] < amounts).any()):
            return False
        return not (member.shape.host_ports and self._ports_taken(row, member.shape.host_ports))

    def fullness(self, shape: Shape, rows: IntArray) -> npt.NDArray[np.float64]:
        """The largest share in use of any resource that the shape requests (the pod count if it requests none)."""
        columns, _ = self._vector(shape)
        if columns is None:
            return np.zeros(len(rows))
        if len(columns) > 1:
            columns = columns[:-1]
        given = np.maximum(self._cluster.capacity.allocatable[rows[:, None], columns], 1)
        used = given - self.free[rows[:, None], columns]
        share: npt.NDArray[np.float64] = (used / given).max(axis=1)
        return share

    def closed_by_anti_affinity(self, member: MemberClass) -> list[int]:
        """Rows closed to the class by existing pods' required anti-affinity."""
        return [] if self._emptied or not member.forbidden else self._cluster.closed_rows(member.forbidden)

    def closed_by_ports(self, member: MemberClass) -> list[int]:
        """Rows on which a host port of the class is taken."""
        ports = member.shape.host_ports
        return [row for row in self._rows_with_ports() if self._ports_taken(row, ports)] if ports else []

    # Inside

    def _mask(self, member: MemberClass) -> npt.NDArray[np.bool_]:
        mask = self._masks.get(member)
        if mask is None:
            mask = self._cluster.verdicts(member.shape)[: self.size] == ACCEPTED
            for row in self.closed_by_anti_affinity(member):
                mask[row] = False
            self._masks[member] = mask
        return mask

    def _vector(self, shape: Shape) -> tuple[npt.NDArray[np.intp] | None, IntArray]:
        """Columns and amounts of the requests, the pod count last; None where no node has one of the resources."""
        columns = []
        amounts = []
        for resource, amount in (*shape.requests, (PODS, 1)):
            column = self._cluster.capacity.column(resource)
            if column is None:
                return None, np.zeros(0, dtype=np.int64)
            columns.append(column)
            amounts.append(min(amount, LIMIT))
        return np.array(columns, dtype=np.intp), np.array(amounts, dtype=np.int64)

    def _rows_with_ports(self) -> set[int]:
        rows = set(self._ports)
        if not self._emptied:
            rows |= self._cluster.ports.keys()
        return rows

    def _ports_taken(self, row: int, ports: tuple[HostPort, ...]) -> bool:
        there = None if self._emptied else self._cluster.ports.get(row)
        mine = self._ports.get(row)
        return (there is not None and there.conflicts(ports)) or (mine is not None and mine.conflicts(ports))

    def _change(self, row: int, member: MemberClass, count: int, sign: int) -> None:
        columns, amounts = self._vector(member.shape)
        self.free[row, columns] += sign * count * amounts
        self.own[row] -= sign * count
        if member.shape.host_ports:
            ports = self._ports.setdefault(row, PortsInUse())
            for _ in range(count):
                if sign < 0:
                    ports.add(member.shape.host_ports)
                else:
                    ports.remove(member.shape.host_ports)
