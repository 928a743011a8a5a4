"""What counts on a snapshot for those who ask: pods that others have nominated, and room reserved for other groups.

A group for which pods leave has its places reserved. On each node, others must leave free what is reserved there less
what those pods still hold: the rest they leave behind themselves, so it grows as they go. What the members will close
to others besides, such as ports, counts in full.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.claims import Claims, Reserved, Viewer
from gangsched.core.constraints.constraint import Plan
from gangsched.core.constraints.node_resources import MOST_WITHHELD, ResourcesPlan
from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import PODS, Shape
from gangsched.core.planning.classes import MemberClass, Taken

_Change = Callable[[Taken, int, Sequence[Plan]], None]


class Withheld(NamedTuple):
    """The `amounts` by row and resource, and the `members`, each with its row."""

    amounts: Mapping[int, Mapping[str, int]]
    members: Sequence[tuple[Pod, int]]


class Guests:
    """What counts at present. It is counted by `change`, which applies a change to some plans of the snapshot."""

    def __init__(
        self,
        cluster: Cluster,
        plans: Sequence[Plan],
        resources: ResourcesPlan,
        changed: list[IntArray],
        change: _Change,
    ) -> None:
        self._cluster = cluster
        self._plans = plans
        self._resources = resources
        self._changed = changed
        self._change = change
        self._nominated: dict[str, Taken] = {}
        self._withheld: dict[GroupKey, Withheld] = {}

    def change_to(self, viewer: Viewer | None) -> None:
        """Count what counts for this viewer, and nothing for None."""
        ledger, rows = self._cluster.ledger, self._cluster.capacity.rows
        nominated = {} if viewer is None else ledger.nominated
        wanted = {uid: claim for uid, claim in nominated.items() if viewer is not None and claim.counts_for(viewer)}
        for uid in self._nominated.keys() - wanted.keys():
            self._change(self._nominated.pop(uid), -1, self._plans)
        for uid in wanted.keys() - self._nominated.keys():
            row = rows.get(wanted[uid].node)
            if row is not None:
                self._nominated[uid] = self._taken(wanted[uid].pod, row, self._bounded(wanted[uid].pod))
                self._change(self._nominated[uid], 1, self._plans)
        holders = ledger.reserved.keys() - viewer.hidden if viewer is not None and ledger.reserved else set()
        for holder in self._withheld.keys() - holders:
            self._withhold(self._withheld.pop(holder), -1)
        for holder in holders - self._withheld.keys():
            self._withheld[holder] = withheld(ledger.reserved[holder], ledger.claims, rows)
            self._withhold(self._withheld[holder], 1)

    def _withhold(self, what: Withheld, sign: int) -> None:
        others = [plan for plan in self._plans if plan is not self._resources]
        for pod, row in what.members:
            self._change(self._taken(pod, row, replace(pod.shape, requests=())), sign, others)
        self._resources.withhold(what.amounts, sign)
        self._changed.append(np.array([*what.amounts], dtype=np.int64))

    def _taken(self, pod: Pod, row: int, shape: Shape) -> Taken:
        """The pod with this shape on the row, of a class with every property that could matter to others later."""
        seen = tuple(sight for plan in self._plans if (sight := plan.sees_nominated(pod)) is not None)
        one = np.ones(1, dtype=np.int64)
        return Taken(MemberClass(shape, seen), row * one, one, of_gang=False)

    def _bounded(self, pod: Pod) -> Shape:
        """The shape of a nominated pod, with requests only for resources that some node has.

        The amounts are bounded, because nothing checks that the node has enough and sums of absurd amounts would
        overflow.
        """
        requests = tuple(
            (resource, min(amount, MOST_WITHHELD))
            for resource, amount in pod.shape.requests
            if self._resources.column(resource) is not None
        )
        return replace(pod.shape, requests=requests)


def withheld(reserved: Reserved, claims: Claims, rows: Mapping[str, int]) -> Withheld:
    """What is withheld for a group with these `reserved` claims, beside all `claims`; `rows` are those of nodes."""
    members = [(each.pod, rows[each.node]) for each in reserved.claims.values() if each.node in rows]
    needed: dict[int, Counter[str]] = {}
    for pod, row in members:
        needed.setdefault(row, Counter()).update(_requested(pod))
    for claim in filter(None, map(claims.get, reserved.leaving)):
        row = rows.get(claim.node, -1)
        if row in needed and claim.counts:
            needed[row].subtract(_requested(claim.pod))
    return Withheld({row: +amounts for row, amounts in needed.items()}, members)


def _requested(pod: Pod) -> dict[str, int]:
    """What the pod takes on its node, by resource."""
    return dict((*pod.shape.requests, (PODS, 1)))
