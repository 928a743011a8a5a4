"""The check before the start of a group whose object states minResources: is as much free as the whole group will need?

Spark and others create most members only once the first one runs, so the members that exist say too little. The check
is a sum over all nodes, as in Volcano's overcommit plug-in and in coscheduling (CheckClusterResource): it prevents a
start that cannot go on. It is no promise that each member fits on a node.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gangsched.core.constraints.taint_toleration import KEEPING_OUT
from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.node import Node
from gangsched.core.objects.shape import Amounts, Shape, Toleration
from gangsched.core.objects.start import Start
from gangsched.core.objects.status import Demand
from gangsched.core.planning import budget as units
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.refusal import Gap, Refusal

_SHUT = "node.kubernetes.io/"
"""Prefix of the taints of nodes that are cordoned, not ready or out of something."""
_ANYBODY = MemberClass(Shape(tolerations=(Toleration(operator="Exists"),)))
"""Stands for the missing members while the group is parked: whatever is freed may help it."""


def lacking(snapshot: Snapshot, start: Start) -> Amounts:
    """Per resource, how much less is free than the start needs; empty if the group may start."""
    snapshot.budget.charge(units.CLASS + snapshot.size)
    free, promised = _free(snapshot, dict(start.asked)), dict(start.promised)
    missing = ((name, amount + promised.get(name, 0) - free[name]) for name, amount in start.asked if name in free)
    return tuple((name, amount) for name, amount in missing if amount > 0)


def refused(snapshot: Snapshot, start: Start, short: Amounts, *, wanted: int) -> Refusal:
    """The refusal of a quorum of `wanted` members because this much is `short`."""
    stand_in = MemberClass(Shape(requests=short))
    present = np.flatnonzero(snapshot.cluster.nodes_by_row.among_first(snapshot.size))
    offered = _sums(snapshot, snapshot.cluster.capacity.allocatable, present, dict(start.asked))
    return Refusal(
        asked=("start", start.asked, snapshot.viewer),
        wanted=wanted,
        fits=0,
        nodes=len(snapshot.cluster.nodes),
        never=any(name in offered and amount > offered[name] for name, amount in start.asked),
        failing=stand_in,
        classes=(_ANYBODY,),
        missing={stand_in: 1},
        gaps=(Gap(wanted, ()),),
        short=short,
        demand=(Demand(count=1, requests=short),),
        start=start,
    )


def _free(snapshot: Snapshot, asked: Mapping[str, int]) -> dict[str, int]:
    """What is free in total of these resources, on nodes that take new pods."""
    open_ = snapshot.cluster.nodes_by_row.among_first(snapshot.size)
    rows = snapshot.cluster.capacity.rows
    open_[[rows[name] for name, node in snapshot.cluster.nodes.items() if _is_shut(node)]] = False
    return _sums(snapshot, snapshot.free, np.flatnonzero(open_), asked)


def _is_shut(node: Node) -> bool:
    return node.unschedulable or any(
        taint.effect in KEEPING_OUT and taint.key.startswith(_SHUT) for taint in node.taints
    )


def _sums(snapshot: Snapshot, amounts: IntArray, rows: IntArray, asked: Mapping[str, int]) -> dict[str, int]:
    """The sums over these rows; without resources that devices provide, of which nodes state no amount."""
    sums = {}
    for name in asked:
        if name not in snapshot.resources.delegated:
            column = snapshot.resources.column(name)
            # Summed as Python integers, which do not overflow.
            sums[name] = 0 if column is None else sum(np.maximum(amounts[rows, column], 0).tolist())
    return sums
