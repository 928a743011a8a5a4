"""A private copy of what is free, on which a plan is tried and taken back.

`mark` and `undo` frame an attempt: everything done since the mark is undone exactly. The cluster itself is never
changed through a snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from gangsched.core.cluster.cache import Cluster, Forbidden
from gangsched.core.cluster.domains import Domain
from gangsched.core.constraints.feasibility import ACCEPTED
from gangsched.core.constraints.ports import self_conflicting
from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import Shape
from gangsched.core.objects.strategy import Scarce
from gangsched.core.planning import budget as units
from gangsched.core.planning.budget import Budget
from gangsched.core.planning.classes import MOST, MemberClass, Taken
from gangsched.core.planning.kept import Kept
from gangsched.core.planning.nominated import Nominated
from gangsched.core.planning.ports_taken import PortsTaken
from gangsched.core.planning.strategies import GPU_SUFFIX
from gangsched.core.planning.vectors import Vectors

Mask = npt.NDArray[np.bool_]


class Snapshot:
    """Free capacity of all nodes at one moment, with undo. `emptied` gives the same nodes without any pod.

    It is good for as long as no node and no nomination changes; pods that are assumed on the cluster must have been
    taken here first. `free` and `own` (members of the gang in hand, by row) and `priority` (that for which nominated
    pods are heeded, None while none are) are to be read only. All looks are charged to `budget`.
    """

    def __init__(self, cluster: Cluster, *, emptied: bool = False, budget: Budget | None = None) -> None:
        self.budget = Budget() if budget is None else budget
        self._cluster = cluster
        self._emptied = emptied
        self.size = len(cluster.capacity.names)
        self.free: IntArray = self._source()[: self.size, : len(cluster.capacity.columns)].copy()
        self.own: IntArray = np.zeros(self.size, dtype=np.int64)
        self._ports = PortsTaken(cluster, emptied=emptied)
        self._nominated = Nominated(cluster, partial(self._change, of_gang=False), self.column)
        self._forbidden: dict[tuple[Forbidden, Forbidden], Forbidden] = {}
        self._log: list[Taken | IntArray] = []
        self._masks: dict[MemberClass, Mask] = {}
        self._vectors = Vectors(self.column)
        self._changed: list[IntArray] = []
        self._caps: Kept[MemberClass, IntArray] = Kept(self.size, self._changed, self.budget)
        self._fullness: Kept[Shape, npt.NDArray[np.float64]] = Kept(self.size, self._changed, self.budget)

    def _source(self) -> IntArray:
        capacity = self._cluster.capacity
        return capacity.allocatable if self._emptied else capacity.free

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
        return Snapshot(self._cluster, emptied=True, budget=self.budget)

    # Undo

    def mark(self) -> int:
        """The point to which `undo` returns."""
        return len(self._log)

    def undo(self, mark: int) -> None:
        """Undo everything since the mark."""
        while len(self._log) > mark:
            done = self._log.pop()
            if isinstance(done, Taken):
                self._change(done, 1)
            else:
                self.own = done

    def begin(self, own: Mapping[str, int]) -> None:
        """Turn to another gang, of which so many members stand on these nodes already."""
        self._log.append(self.own)
        self.own = np.zeros(self.size, dtype=np.int64)
        rows = self._cluster.capacity.rows
        for node, count in own.items():
            if node in rows:
                self.own[rows[node]] = count

    @property
    def priority(self) -> int | None:
        """The priority for which nominated pods are heeded; None while none are."""
        return self._nominated.priority

    def heed_nominated(self, priority: int) -> None:
        """Leave room for pods that others have nominated, if their priority is at least this; see `nominated`."""
        self._nominated.heed(priority)

    def take(self, row: int, member: MemberClass, count: int) -> None:
        """Let so many members of the class take their share of a node that has room for them."""
        self.take_all(member, [(row, count)])

    def take_all(self, member: MemberClass, shares: Sequence[tuple[int, int]]) -> None:
        """Let members of the class take their share of nodes that have room for them: (row, how many), rows once each.

        Raises:
            ValueError: no node has ever had one of the resources.
        """
        rows, counts = np.array(shares, dtype=np.int64).reshape(-1, 2).T
        taken = Taken(member, rows, counts)
        self._change(taken, -1)
        self._log.append(taken)

    def give_back(self, row: int, member: MemberClass) -> None:
        """Let a member of the class, which the cluster counts on the node, be there no more."""
        taken = Taken(member, np.array([row], dtype=np.int64), np.array([-1], dtype=np.int64))
        self._change(taken, -1)
        self._log.append(taken)

    # Questions

    def column(self, resource: str) -> int | None:
        """The resource's column in `free`; None where no node has any of it."""
        column = self._cluster.capacity.column(resource)
        if column is not None and column >= self.free.shape[1]:
            # Nobody has asked for it before, so nothing of it was taken here.
            new = self._source()[: self.size, self.free.shape[1] : column + 1]
            self.free = np.concatenate([self.free, new], axis=1)
        return column

    @property
    def selective(self) -> bool:
        """Whether a pod that exists, or that room is left for, may close nodes to some newcomers and not to others."""
        return bool(self._cluster.anti_affinity) or bool(self._nominated.terms)

    def forbidden(self, pod: Pod) -> Forbidden:
        """The topology values closed to this pod by pods that exist, and by nominated ones that room is left for."""
        of_existing = self._cluster.forbidden(pod)
        of_heeded = self._nominated.terms.forbidden(pod, self._cluster.namespaces.get(pod.namespace, {}))
        if not of_heeded:
            return of_existing
        # One object for all pods alike: the sets may be large, and classes are compared by them.
        known = self._forbidden.get((of_existing, of_heeded))
        if known is None:
            known = self._forbidden[of_existing, of_heeded] = of_existing | of_heeded
        return known

    def accepts(self, member: MemberClass) -> Mask:
        """The rows that would take the class if they had room: neither the node nor a pod's anti-affinity objects."""
        mask = self._masks.get(member)
        if mask is None:
            if member.domain is not None:
                # Not kept: there may be a domain for every node.
                return self.accepts(replace(member, domain=None)) & self.inside(member.domain)
            mask = self._cluster.verdicts(member.shape)[: self.size] == ACCEPTED
            mask[self.closed_by_anti_affinity(member)] = False
            mask[self.avoided(member)] = False
            self._masks[member] = mask
            self.budget.charge(units.CLASS + self.size)
        return mask

    def caps(self, member: MemberClass) -> IntArray:
        """How many members of the class each row could take now, to be read only; 0 where a constraint closes it."""
        if member.domain is None:
            return self._caps.get(member, self._caps_of)
        caps: IntArray = np.zeros(self.size, dtype=np.int64)
        rows = np.flatnonzero(self.inside(member.domain))
        caps[rows] = self._caps_of(member, rows)
        self.budget.charge(units.CLASS + len(rows))
        return caps

    def look(self, key: str, value: str) -> int:
        """What the domain looks like: equal while neither its nodes nor what is free there (ports too) changes."""
        rows = np.flatnonzero(self.inside((key, value)))
        ports = tuple(self._ports.look(row) for row in rows.tolist())
        return hash((rows.tobytes(), self._cluster.changes(rows), self.free[rows].tobytes(), ports))

    def fits(self, member: MemberClass, row: int) -> bool:
        """Whether the row could take one member of the class now."""
        vector = self._vectors.of(member.shape)
        if vector is None or bool((self.free[row, vector.columns] < vector.amounts).any()):
            return False
        if not self._row_accepts(member, row):
            return False
        return not (member.shape.host_ports and self._ports.closed(member.shape.host_ports)[row])

    def _row_accepts(self, member: MemberClass, row: int) -> bool:
        """One row of `accepts`, without judging the others."""
        mask = self._masks.get(member)
        if mask is not None:
            return bool(mask[row])
        closed = member.forbidden and not self._emptied and self._cluster.closes(member.forbidden, row)
        closed = closed or (member.domain is not None and not self.inside(member.domain)[row])
        return not closed and self.name(row) not in member.avoided and self._cluster.accepts(member.shape, row)

    def fullness(self, shape: Shape) -> npt.NDArray[np.float64]:
        """Each row's largest share in use of a resource that the shape requests (the pod count if it requests none)."""
        return self._fullness.get(shape, self._fullness_of)

    def scarce(self, member: MemberClass, rows: IntArray) -> Scarce:
        """Of the scarcest resource that the class requests (see `strategies.Scarce`), what these rows have."""
        vector = self._vectors.of(member.shape)
        if vector is None:
            return Scarce(np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64))
        columns, amounts = vector.columns, vector.amounts
        if len(columns) > 1:
            columns, amounts = columns[:-1], amounts[:-1]
        gpus = [at for at, (resource, _) in enumerate(member.shape.requests) if resource.endswith(GPU_SUFFIX)]
        if gpus:
            column = columns[gpus[0]]
        else:
            # As floats, for a sum of absurd amounts must not overflow.
            free = np.maximum(self.free[self.accepts(member)][:, columns], 0).astype(np.float64)
            column = columns[np.argmin(free.sum(axis=0) / amounts)]
        left = self.free[rows, column]
        return Scarce(left, self._cluster.capacity.allocatable[rows, column] - left)

    def inside(self, domain: Domain) -> Mask:
        """The rows of this domain."""
        return self._cluster.labels.inside(domain)[: self.size]

    def columns(self, shape: Shape) -> list[int]:
        """The columns of what the shape requests, of the pod count if it requests nothing that nodes have."""
        vector = self._vectors.of(shape)
        columns = [0] if vector is None else vector.columns.tolist()
        return columns[:-1] or columns

    def amounts(self, shape: Shape) -> dict[int, int]:
        """What one pod of the shape takes, by column; empty where no node has ever had one of the resources."""
        vector = self._vectors.of(shape)
        return {} if vector is None else dict(zip(vector.columns.tolist(), vector.amounts.tolist(), strict=True))

    def closed_by_anti_affinity(self, member: MemberClass) -> list[int]:
        """Rows closed to the class by existing pods' required anti-affinity."""
        return [] if self._emptied or not member.forbidden else self._cluster.closed_rows(member.forbidden)

    def avoided(self, member: MemberClass) -> list[int]:
        """Rows that the class leaves alone for now."""
        rows = self._cluster.capacity.rows
        return [rows[node] for node in member.avoided if node in rows]

    def closed_by_ports(self, member: MemberClass) -> list[int]:
        """Rows on which a host port of the class is taken."""
        ports = member.shape.host_ports
        return np.flatnonzero(self._ports.closed(ports)).tolist() if ports else []

    # Inside

    def _caps_of(self, member: MemberClass, rows: IntArray) -> IntArray:
        vector = self._vectors.of(member.shape)
        caps: IntArray = np.zeros(len(rows), dtype=np.int64)
        if vector is None:
            return caps
        open_ = self.accepts(member)[rows]
        most: IntArray = (self.free[rows[open_][:, None], vector.columns] // vector.amounts).min(axis=1)
        ports = member.shape.host_ports
        caps[open_] = np.minimum(np.maximum(most, 0), 1 if self_conflicting(ports) else MOST)
        if ports:
            caps[self._ports.closed(ports)[rows]] = 0
        return caps

    def _fullness_of(self, shape: Shape, rows: IntArray) -> npt.NDArray[np.float64]:
        vector = self._vectors.of(shape)
        if vector is None:
            return np.zeros(len(rows))
        columns = vector.columns[:-1] if len(vector.columns) > 1 else vector.columns
        given = self._cluster.capacity.allocatable[rows[:, None], columns].astype(np.float64)
        used = given - self.free[rows[:, None], columns]
        share: npt.NDArray[np.float64] = (used / np.maximum(given, 1.0)).max(axis=1)
        return share

    def _change(self, taken: Taken, sign: int, *, of_gang: bool = True) -> None:
        shape = taken.member.shape
        vector = self._vectors.of(shape)
        if vector is None:
            raise ValueError(f"no node has ever had all of {shape.requests}")
        self._changed.append(taken.rows)
        self.free[taken.rows[:, None], vector.columns] += sign * taken.counts[:, None] * vector.amounts
        if of_gang:
            self.own[taken.rows] -= sign * taken.counts
        if shape.host_ports:
            self._ports.change(taken, sign)
