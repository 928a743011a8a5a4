"""What nodes have and what waiting groups ask of them, as arrays, at one moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np

from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.claims import Claim
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import PODS, Amounts, Shape
from gangsched.core.planning import budget as units
from gangsched.core.planning.ask import Ask
from gangsched.core.planning.budget import Budget
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.expansion import HOSTNAME
from gangsched.core.planning.freed_sums import claimed
from gangsched.core.planning.removable import MOST
from gangsched.core.planning.taking import Kind, Reserved, Waiting, take


class Field:
    """The amounts of the nodes at one moment, and the kinds of members and their `pools` of rows, as they are met.

    `ports` are those of nodes that the claims use whose places were asked for.
    """

    def __init__(self, cluster: Cluster) -> None:
        capacity = cluster.capacity
        size, self._columns = len(capacity.names), dict(capacity.columns)
        self._delegated = capacity.delegated()
        self.free: IntArray = np.clip(capacity.free[:size, : len(self._columns)], -MOST, MOST)
        self.pools: list[Mask] = []
        self._most: IntArray = np.clip(capacity.allocatable[:size, : len(self._columns)], 0, MOST)
        self._rows = dict(capacity.rows)
        self._cluster = cluster
        self._nodes = cluster.node_changes
        self._pools: dict[bytes, int] = {}
        self._accepting: dict[Shape, Mask] = {}
        self._amounts: dict[Amounts, IntArray] = {}
        self._could: dict[Hashable, bool] = {}
        self.ports: set[int] = set()

    def is_delegated(self, shape: Shape) -> bool:
        """Whether the shape requests a resource that devices stand for on some node."""
        return not self._delegated.isdisjoint(dict(shape.requests))

    def is_good(self) -> bool:
        """Whether the nodes are still those of that moment."""
        return self._cluster.node_changes == self._nodes

    def places(self, claims: Sequence[Claim]) -> tuple[IntArray, IntArray]:
        """The row of each claim, which is on a known node, and what it takes there."""
        self.ports.update(port.port for claim in claims for port in claim.pod.shape.host_ports)
        return claimed(claims, self._rows, list(self._columns))

    def waiting(self, name: Hashable, ask: Ask, chosen: Sequence[Pod], holds_from: float) -> Waiting:
        """The group, which asks so, with these members."""
        closed = sorted({row for node in ask.pause.nodes if (row := self._rows.get(node)) is not None})
        kinds = []
        for shape, number in Counter(pod.shape for pod in chosen).items():
            accepting = self._accepts(shape)
            if closed:
                accepting = accepting.copy()
                accepting[closed] = False
            alone = bool(shape.host_ports) or any(term.topology_key == HOSTNAME for term in shape.anti_affinity)
            kinds.append(Kind(number, self._vector(shape.requests), accepting, alone))
        kinds.sort(key=lambda kind: tuple(kind.amounts.tolist()), reverse=True)
        pools = [self._pool(kind.accepting) for kind in kinds]
        domains = None
        if ask.topology is not None and ask.topology.required:
            domains = self._cluster.labels.domains(ask.topology.key).of_row[: len(self.free)].copy()
        alike = tuple(
            (kind.number, kind.amounts.tobytes(), pool, kind.alone) for kind, pool in zip(kinds, pools, strict=True)
        )
        asked = (alike, ask.topology if domains is not None else None)
        every: Mask = np.logical_or.reduce([kind.accepting for kind in kinds])
        return Waiting(name, asked, kinds, self._pool(every), domains, holds_from=holds_from)

    def reserved(self, places: Sequence[tuple[Pod, str]], start: float) -> Reserved:
        """What is reserved by these places from that time on."""
        amounts = np.zeros_like(self.free)
        for pod, node in places:
            if node in self._rows:
                amounts[self._rows[node]] += self._vector(pod.shape.requests)
        return Reserved(start, amounts)

    def could(self, waiting: Waiting, budget: Budget) -> bool:
        """Whether it fits on the nodes if they are empty."""
        if waiting.asked not in self._could:
            budget.charge(len(waiting.kinds) * (units.CLASS + len(self._most)))
            self._could[waiting.asked] = take(self._most.copy(), waiting) is not None
        return self._could[waiting.asked]

    def _pool(self, accepting: Mask) -> int:
        number = self._pools.setdefault(accepting.tobytes(), len(self.pools))
        if number == len(self.pools):
            self.pools.append(accepting)
        return number

    def _accepts(self, shape: Shape) -> Mask:
        """The rows that accept members of the shape; none if no node has ever had something that it requests."""
        if shape not in self._accepting:
            accepting: Mask = np.zeros(len(self.free), dtype=np.bool_)
            if all(resource in self._columns for resource, _ in shape.requests):
                accepting = self._cluster.accepting(MemberClass(shape))[: len(self.free)]
            self._accepting[shape] = accepting
        return self._accepting[shape]

    def _vector(self, requests: Amounts) -> IntArray:
        if requests not in self._amounts:
            vector: IntArray = np.zeros(len(self._columns), dtype=np.int64)
            for resource, amount in (*requests, (PODS, 1)):
                if resource in self._columns:
                    vector[self._columns[resource]] = min(MOST, amount)
            self._amounts[requests] = vector
        return self._amounts[requests]
