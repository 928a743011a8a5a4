"""The free amounts of nodes, in which baselines place gangs: best fit, by requests alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gangsched.core.objects.node import Node
from gangsched.core.objects.shape import PODS
from gangsched.whatif.traces.trace_values import Trace, TraceRole

Amount = NDArray[np.int64]


class Share(NamedTuple):
    """Members of part number `part` of a gang: `counts` of them on each of the nodes in `rows`, taking `amounts`."""

    part: int
    rows: Amount
    counts: Amount
    amounts: Amount


class Need(NamedTuple):
    """What `members` members request each: `amounts`, of the resources in `columns`."""

    members: int
    columns: Amount
    amounts: Amount


class Room:
    """The free amounts, an array of nodes by resources. Nodes that are cordoned or tainted offer nothing."""

    def __init__(self, trace: Trace, nodes: Sequence[Node]) -> None:
        names = {name for gang in trace.gangs for part in gang.parts for name, _ in part.requests}
        self._column = {name: number for number, name in enumerate((*sorted(names), PODS))}
        self.total = np.zeros((len(nodes), len(self._column)), dtype=np.int64)
        for row, node in enumerate(nodes):
            if not node.unschedulable and all(taint.effect == "PreferNoSchedule" for taint in node.taints):
                for name, size in node.allocatable:
                    if name in self._column:
                        self.total[row, self._column[name]] = size
        self._size = np.maximum(self.total.sum(axis=0), 1)
        self.free = self.total.copy()

    def needs(self, parts: Sequence[TraceRole]) -> tuple[Need, ...]:
        """What the parts of a gang request."""
        needs = []
        for part in parts:
            requests = {name: size for name, size in (*part.requests, (PODS, 1)) if size}
            columns = np.array([self._column[name] for name in requests])
            needs.append(Need(part.members, columns, np.array(list(requests.values()), dtype=np.int64)))
        return tuple(needs)

    def place(self, needs: Sequence[Need], free: Amount) -> list[Share] | None:
        """Where all members fit in these free amounts; None if they do not."""
        left, shares = free, []
        for part, need in enumerate(needs):
            share = self.place_some(part, need, left)
            if share is None or share.counts.sum() < need.members:
                return None
            shares.append(share)
            if part + 1 < len(needs):
                left = left.copy()
                left[share.rows] -= share.amounts
        return shares

    def place_some(self, part: int, need: Need, free: Amount) -> Share | None:
        """Where as many of the members as possible fit, on the fullest nodes first; None if none does."""
        left = free[:, need.columns]
        fits = (left // need.amounts).min(axis=1)
        [rows] = np.nonzero(fits > 0)
        if not len(rows):
            return None
        slack = (left[rows] / self._size[need.columns]).sum(axis=1)
        rows = rows[np.argsort(slack, kind="stable")] if need.members > 1 else rows[[np.argmin(slack)]]
        before = np.cumsum(fits[rows]) - fits[rows]
        rows, before = rows[before < need.members], before[before < need.members]
        counts = np.minimum(fits[rows], need.members - before)
        amounts = np.zeros((len(rows), free.shape[1]), dtype=np.int64)
        amounts[:, need.columns] = counts[:, None] * need.amounts
        return Share(part, rows, counts, amounts)

    def take(self, shares: Sequence[Share]) -> None:
        """Members were bound."""
        for share in shares:
            self.free[share.rows] -= share.amounts

    def give(self, shares: Sequence[Share]) -> None:
        """Members ended."""
        for share in shares:
            self.free[share.rows] += share.amounts
