"""What counts on a snapshot for those who ask: pods that others have nominated, and room reserved for other groups.

A group for which pods leave has its places reserved. On each node, others must leave free what is reserved there less
what those pods still hold: the rest they leave behind themselves, so it grows as they go. If nobody knows when they go,
it is what is free of it, whoever has left it. What the members will close to others besides, such as ports, counts in
full.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property

import numpy as np
from msgspec.structs import replace

from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.claims import Reserved, Viewer, Withheld
from gangsched.core.constraints.constraint import Plan, concerned
from gangsched.core.constraints.node_resources import MOST_WITHHELD, ResourcesPlan
from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import PODS, Shape
from gangsched.core.planning.classes import MemberClass, Taken

_HOLDER = 160
"""Cost, in units of the budget, of finding what is withheld for one group, apart from applying what has changed."""

_ROW = 5
"""Cost of applying what has changed, for each of its rows."""

_Change = Callable[[Taken, int, Sequence[Plan]], None]


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

    def change_to(self, viewer: Viewer | None, gone: Collection[str]) -> int:
        """Count what counts for this viewer once these pods are gone (by UID), and nothing for None.

        Returns what that takes of the budget.
        """
        ledger, rows = self._cluster.ledger, self._cluster.capacity.rows
        nominated = {} if viewer is None else ledger.nominated
        wanted = {uid: claim for uid, claim in nominated.items() if viewer is not None and claim.counts_for(viewer)}
        for uid in self._nominated.keys() - wanted.keys():
            self._change(self._nominated.pop(uid), -1, self._plans)
        for uid in wanted.keys() - self._nominated.keys():
            row = rows.get(wanted[uid].node)
            if row is not None:
                member = self._class_of(wanted[uid].pod, self._bounded(wanted[uid].pod))
                self._nominated[uid] = _taken(member, np.array([row]))
                self._change(self._nominated[uid], 1, self._plans)
        reserved = ledger.reserved.items()
        holders = set() if viewer is None else {key for key, room in reserved if viewer.sees(key, room.start)}
        if holders or self._withheld:
            now = {holder: withheld(self._cluster, ledger.reserved[holder], gone) for holder in holders}
            before, self._withheld = self._withheld, now
            ended = [room for holder, room in before.items() if now.get(holder) is not room]
            begun = [room for holder, room in now.items() if before.get(holder) is not room]
            self._withhold(ended, -1)
            self._withhold(begun, 1)
            return _HOLDER * len(now) + _ROW * sum(len(room.rows) for room in (*ended, *begun))
        return 0

    @cached_property
    def _others(self) -> Sequence[Plan]:
        """The constraints that count members, apart from their requests."""
        return [plan for plan in self._plans if "take" in plan.overrides and plan is not self._resources]

    def _withhold(self, rooms: Sequence[Withheld], sign: int) -> None:
        alike: dict[object, tuple[Pod, list[IntArray]]] = {}
        for kind, pod, rows in (member for room in rooms for member in room.members):
            alike.setdefault(kind, (pod, []))[1].append(rows)
        for pod, those in alike.values():
            member = self._class_of(pod, replace(pod.shape, requests=()))
            if concerned(self._others, member):
                self._change(_taken(member, np.concatenate(those)), sign, self._others)
        by_resources: dict[tuple[str, ...], list[Withheld]] = {}
        for room in rooms:
            by_resources.setdefault(room.resources, []).append(room)
        for resources, kept in by_resources.items():
            places = np.concatenate([room.rows for room in kept])
            self._resources.withhold(places, resources, np.concatenate([room.amounts for room in kept]), sign)
            self._changed.append(places)

    def _class_of(self, pod: Pod, shape: Shape) -> MemberClass:
        """The class of pods like this one with this shape, with every property that could matter to others later."""
        seen = tuple(sight for plan in self._plans if (sight := plan.sees_nominated(pod)) is not None)
        return MemberClass(shape, seen)

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


def _taken(member: MemberClass, rows: IntArray) -> Taken:
    """One of the class for each of the rows."""
    return Taken(member, *np.unique(rows, return_counts=True), of_gang=False)


def withheld(cluster: Cluster, reserved: Reserved, gone: Collection[str]) -> Withheld:
    """What is withheld for a group once these pods (by UID) are gone; it is kept until something changes on which it
    depends.
    """
    claims, nodes = cluster.ledger.claims, cluster.node_changes
    present = reserved.remaining(claims)
    staying = present.difference(gone) if gone else present
    # The set that is kept has its hash already.
    staying = present if len(staying) == len(present) else staying
    known = reserved.withheld.get(staying)
    if known is not None and known.nodes == nodes:
        return known
    rows = cluster.capacity.rows
    members = [(claim.pod, rows[claim.node]) for claim in reserved.claims.values() if claim.node in rows]
    needed: dict[int, dict[str, int]] = {}
    for pod, row in members:
        _count(needed.setdefault(row, {}), pod, 1)
    for row, less in _not_withheld(cluster, reserved, staying).items():
        for resource, amount in less.items() if row in needed else ():
            needed[row][resource] = needed[row].get(resource, 0) - max(0, amount)
    resources = tuple(sorted({resource for amounts in needed.values() for resource in amounts}))
    table = [[min(MOST_WITHHELD, max(0, amounts.get(name, 0))) for name in resources] for amounts in needed.values()]
    amounts = np.array(table, dtype=np.int64).reshape(len(needed), len(resources))
    alike: dict[object, tuple[Pod, list[int]]] = {}
    for pod, row in members:
        kind = (pod.shape, pod.namespace, pod.labels, pod.uid if pod.uses_claims or pod.uses_devices else "")
        alike.setdefault(kind, (pod, []))[1].append(row)
    kinds = [(kind, pod, np.array(those, dtype=np.int64)) for kind, (pod, those) in alike.items()]
    room = Withheld(np.array([*needed], dtype=np.int64), resources, amounts, kinds, nodes)
    reserved.keep(staying, room)
    return room


def _not_withheld(cluster: Cluster, reserved: Reserved, staying: frozenset[str]) -> dict[int, dict[str, int]]:
    """How much less than what is reserved is withheld on rows: what those `staying` hold, or what is missing.

    Less is missing once others have left, but for those that leave it for another group.
    """
    claims, rows, sign = cluster.ledger.claims, cluster.capacity.rows, 1
    less = dict[int, dict[str, int]]()
    if reserved.fills_up:
        less = {rows[node]: {**amounts} for node, amounts in reserved.missing.items() if node in rows}
        staying, sign = reserved.remaining(claims) - staying - cluster.ledger.promised(), -1
    for claim in (claims[uid] for uid in staying if claims[uid].node in rows):
        _count(less.setdefault(rows[claim.node], {}), claim.pod, sign)
    return less


def _count(amounts: dict[str, int], pod: Pod, sign: int) -> None:
    """Add what the pod takes on its node, by resource, or subtract it."""
    for resource, amount in (*pod.shape.requests, (PODS, 1)):
        amounts[resource] = amounts.get(resource, 0) + sign * amount
