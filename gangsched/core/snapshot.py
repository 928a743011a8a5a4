"""A private copy of what is free, on which a plan is tried and taken back.

`mark` and `undo` frame an attempt: everything done since the mark is undone exactly. The cluster itself is never
changed through a snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from gangsched.core import budget as units
from gangsched.core.anti_affinity import AntiAffinityIndex
from gangsched.core.budget import Budget
from gangsched.core.capacity import LIMIT, PODS, IntArray
from gangsched.core.cluster import Cluster, Forbidden
from gangsched.core.domains import Domain
from gangsched.core.feasibility import ACCEPTED
from gangsched.core.model import HostPort, Pod, Preference, Shape
from gangsched.core.ports import PortsInUse, self_conflicting
from gangsched.core.strategies import GPU_SUFFIX, Scarce

Key = TypeVar("Key", bound=Hashable)
Array = TypeVar("Array", IntArray, npt.NDArray[np.float64])
Mask = npt.NDArray[np.bool_]
MOST_HEEDED = 1 << 52
"""A nominated pod counts with no more of a resource: nobody looks whether its node has that much, and sums of absurd
amounts would overflow."""
MOST_KNOWN = 256
"""For so many classes, and shapes, it is kept what is known by row: with thousands of them it would take gigabytes."""
MOST = 1 << 31
"""No row is said to take more members than this, so that sums over all rows stay far from overflow."""


_NO_PORTS = PortsInUse()


class MemberClass(Struct, frozen=True, gc=False, cache_hash=True):
    """Members that no node can tell apart: one shape, closed out by the same existing pods.

    `avoided` names nodes that the gang leaves alone for now; `domain` is the only one that it goes to, if any. `prefer`
    are wishes of these members alone.
    """

    shape: Shape
    forbidden: Forbidden = frozenset()
    avoided: frozenset[str] = frozenset()
    domain: Domain | None = None
    prefer: tuple[Preference, ...] = ()


@dataclass(frozen=True, slots=True)
class _Vector:
    """A shape's requests as columns and amounts, the pod count last."""

    columns: npt.NDArray[np.intp]
    amounts: IntArray


@dataclass(frozen=True, slots=True)
class _Taken:
    """Members of one class that took their share of so many rows, so many of each."""

    member: MemberClass
    rows: IntArray
    counts: IntArray


@dataclass(frozen=True, slots=True)
class _Heeded:
    """A pod that somebody else has nominated to a node, and what it takes there."""

    pod: Pod
    taken: _Taken


@dataclass(frozen=True, slots=True)
class _Known(Generic[Array]):
    """A value for each row, true after so many changes."""

    values: Array
    changes: int


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
        self._ports: dict[int, PortsInUse] = {}
        self.priority: int | None = None
        self._heeded: dict[str, _Heeded] = {}
        self._heeded_terms = AntiAffinityIndex()
        self._forbidden: dict[tuple[Forbidden, Forbidden], Forbidden] = {}
        self._log: list[_Taken | IntArray] = []
        self._masks: dict[MemberClass, Mask] = {}
        self._vectors: dict[Shape, _Vector | None] = {}
        self._caps: dict[MemberClass, _Known[IntArray]] = {}
        self._fullness: dict[Shape, _Known[npt.NDArray[np.float64]]] = {}
        self._changed: list[IntArray] = []
        self._ports_closed: dict[tuple[HostPort, ...], Mask] = {}

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
            if isinstance(done, _Taken):
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

    def heed_nominated(self, priority: int) -> None:
        """Treat pods that others have nominated to nodes as if they were there, if their priority is at least this.

        As in kube-scheduler, which counts nominated pods of equal or higher priority when it filters. It looks only at
        those of the node in question, and not always at their required anti-affinity; here that closes its whole domain
        at once, as it will when they are bound. Not undone by `undo`: it holds until it is called again.
        """
        if priority == self.priority:
            return
        self.priority = priority
        wanted = {uid: pod for uid, pod in self._cluster.nominated.items() if pod.priority >= priority}
        for uid in self._heeded.keys() - wanted.keys():
            self._heed(self._heeded.pop(uid), 1)
        for uid in wanted.keys() - self._heeded.keys():
            pod = wanted[uid]
            row = self._cluster.capacity.rows.get(pod.nominated_node)
            if row is not None:
                one = np.array([row], dtype=np.int64)
                taken = _Taken(MemberClass(self._known_part(pod.shape)), one, np.ones(1, dtype=np.int64))
                self._heeded[uid] = _Heeded(pod, taken)
                self._heed(self._heeded[uid], -1)

    def _heed(self, heeded: _Heeded, sign: int) -> None:
        self._change(heeded.taken, sign, of_gang=False)
        labels = self._cluster.node_labels(heeded.pod.nominated_node)
        change = self._heeded_terms.add if sign < 0 else self._heeded_terms.remove
        for term in heeded.pod.anti_affinity:
            change(term, labels)

    def _known_part(self, shape: Shape) -> Shape:
        """The shape with what it requests of resources that some node has: nobody else could take of the others."""
        asked = tuple(
            (resource, min(amount, MOST_HEEDED))
            for resource, amount in shape.requests
            if self.column(resource) is not None
        )
        return shape if asked == shape.requests else replace(shape, requests=asked)

    def take(self, row: int, member: MemberClass, count: int) -> None:
        """Let so many members of the class take their share of a node that has room for them."""
        self.take_all(member, [(row, count)])

    def take_all(self, member: MemberClass, shares: Sequence[tuple[int, int]]) -> None:
        """Let members of the class take their share of nodes that have room for them: (row, how many), rows once each.

        Raises:
            ValueError: no node has ever had one of the resources.
        """
        rows, counts = np.array(shares, dtype=np.int64).reshape(-1, 2).T
        taken = _Taken(member, rows, counts)
        self._change(taken, -1)
        self._log.append(taken)

    def give_back(self, row: int, member: MemberClass) -> None:
        """Let a member of the class, which the cluster counts on the node, be there no more."""
        taken = _Taken(member, np.array([row], dtype=np.int64), np.array([-1], dtype=np.int64))
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
        return bool(self._cluster.anti_affinity) or bool(self._heeded_terms)

    def forbidden(self, pod: Pod) -> Forbidden:
        """The topology values closed to this pod by pods that exist, and by nominated ones that room is left for."""
        of_existing = self._cluster.forbidden(pod)
        of_heeded = self._heeded_terms.forbidden(pod, self._cluster.namespaces.get(pod.namespace, {}))
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
            return self._up_to_date(self._caps, member, self._caps_of)
        caps: IntArray = np.zeros(self.size, dtype=np.int64)
        rows = np.flatnonzero(self.inside(member.domain))
        caps[rows] = self._caps_of(member, rows)
        self.budget.charge(units.CLASS + len(rows))
        return caps

    def look(self, key: str, value: str) -> int:
        """What the domain looks like: equal while neither its nodes nor what is free there (ports too) changes."""
        rows = np.flatnonzero(self.inside((key, value)))
        both = (self._cluster.ports, self._ports)
        ports = tuple(taken.get(row, _NO_PORTS).look() for row in rows.tolist() for taken in both)
        return hash((rows.tobytes(), self._cluster.changes(rows), self.free[rows].tobytes(), ports))

    def fits(self, member: MemberClass, row: int) -> bool:
        """Whether the row could take one member of the class now."""
        vector = self._vector(member.shape)
        if vector is None or bool((self.free[row, vector.columns] < vector.amounts).any()):
            return False
        if not self._row_accepts(member, row):
            return False
        return not (member.shape.host_ports and self._closed_by_ports(member.shape.host_ports)[row])

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
        return self._up_to_date(self._fullness, shape, self._fullness_of)

    def scarce(self, member: MemberClass, rows: IntArray) -> Scarce:
        """Of the scarcest resource that the class requests (see `strategies.Scarce`), what these rows have."""
        vector = self._vector(member.shape)
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
        return self._cluster.inside(domain)[: self.size]

    def columns(self, shape: Shape) -> list[int]:
        """The columns of what the shape requests, of the pod count if it requests nothing that nodes have."""
        vector = self._vector(shape)
        columns = [0] if vector is None else vector.columns.tolist()
        return columns[:-1] or columns

    def amounts(self, shape: Shape) -> dict[int, int]:
        """What one pod of the shape takes, by column; empty where no node has ever had one of the resources."""
        vector = self._vector(shape)
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
        return np.flatnonzero(self._closed_by_ports(ports)).tolist() if ports else []

    # Inside

    def _up_to_date(self, known: dict[Key, _Known[Array]], key: Key, of: Callable[[Key, IntArray], Array]) -> Array:
        """What is known by row, with the rows found anew in which something was taken or given back since."""
        before = known.get(key)
        if before is None:
            values = of(key, np.arange(self.size))
            self.budget.charge(units.CLASS + self.size)
        elif before.changes == len(self._changed):
            return before.values
        else:
            rows = np.unique(np.concatenate(self._changed[before.changes :]))
            values = before.values.copy()
            values[rows] = of(key, rows)
            self.budget.charge(units.CLASS + len(rows))
        if before is None and len(known) >= MOST_KNOWN:
            del known[next(iter(known))]
        known[key] = _Known(values, len(self._changed))
        return values

    def _caps_of(self, member: MemberClass, rows: IntArray) -> IntArray:
        vector = self._vector(member.shape)
        caps: IntArray = np.zeros(len(rows), dtype=np.int64)
        if vector is None:
            return caps
        open_ = self.accepts(member)[rows]
        most: IntArray = (self.free[rows[open_][:, None], vector.columns] // vector.amounts).min(axis=1)
        ports = member.shape.host_ports
        caps[open_] = np.minimum(np.maximum(most, 0), 1 if self_conflicting(ports) else MOST)
        if ports:
            caps[self._closed_by_ports(ports)[rows]] = 0
        return caps

    def _fullness_of(self, shape: Shape, rows: IntArray) -> npt.NDArray[np.float64]:
        vector = self._vector(shape)
        if vector is None:
            return np.zeros(len(rows))
        columns = vector.columns[:-1] if len(vector.columns) > 1 else vector.columns
        given = self._cluster.capacity.allocatable[rows[:, None], columns].astype(np.float64)
        used = given - self.free[rows[:, None], columns]
        share: npt.NDArray[np.float64] = (used / np.maximum(given, 1.0)).max(axis=1)
        return share

    def _vector(self, shape: Shape) -> _Vector | None:
        if shape in self._vectors:
            return self._vectors[shape]
        wanted = [(self.column(resource), min(amount, LIMIT)) for resource, amount in (*shape.requests, (PODS, 1))]
        columns = [column for column, _ in wanted if column is not None]
        vector = None
        if len(columns) == len(wanted):
            amounts = np.array([amount for _, amount in wanted], dtype=np.int64)
            vector = _Vector(np.array(columns, dtype=np.intp), amounts)
        self._vectors[shape] = vector
        return vector

    def _closed_by_ports(self, ports: tuple[HostPort, ...]) -> Mask:
        """Where pods of the cluster or members placed on this snapshot take one of the ports."""
        known = self._ports_closed.get(ports)
        if known is None:
            known = np.zeros(self.size, dtype=np.bool_)
            if not self._emptied:
                taken, by_port = self._cluster.ports, self._cluster.port_rows
                rows = {row for port in ports for row in by_port.get((port.protocol, port.port), ())}
                known[[row for row in rows if taken[row].conflicts(ports)]] = True
            self._ports_closed[ports] = known
        closed = known.copy()
        closed[[row for row, mine in self._ports.items() if mine.conflicts(ports)]] = True
        return closed

    def _change(self, taken: _Taken, sign: int, *, of_gang: bool = True) -> None:
        shape = taken.member.shape
        vector = self._vector(shape)
        if vector is None:
            raise ValueError(f"no node has ever had all of {shape.requests}")
        self._changed.append(taken.rows)
        self.free[taken.rows[:, None], vector.columns] += sign * taken.counts[:, None] * vector.amounts
        if of_gang:
            self.own[taken.rows] -= sign * taken.counts
        if shape.host_ports:
            for row in taken.rows.tolist():
                mine = self._ports.setdefault(row, PortsInUse())
                (mine.add if sign < 0 else mine.remove)(shape.host_ports)
