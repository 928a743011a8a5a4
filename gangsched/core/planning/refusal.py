"""Explains why a gang does not fit: nodes counted by reason and resource, for users, metrics and autoscalers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from gangsched.core.cluster.labels import Domain
from gangsched.core.constraints import registry
from gangsched.core.constraints.constraint import NodeConstraint
from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.reasons import NodeReason, Reason
from gangsched.core.objects.shape import Amounts
from gangsched.core.objects.start import Start
from gangsched.core.objects.status import Demand
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.classes import MemberClass

MOST_EXPLAINED = 3
"""Limit for the number of classes whose refusals are explained."""


class Obstacle(Struct, frozen=True):
    """One reason why nodes refuse one more member, the number of such nodes, and the resource in question.

    Reasons are those of `NodeReason` and of added constraints (`Constraint.words`).
    """

    reason: str
    nodes: int
    resource: str = ""


class Gap(Struct, frozen=True):
    """The number of `members` of one class without a place, and why nodes refuse one more after those that fit."""

    members: int
    obstacles: tuple[Obstacle, ...]


class Refusal(Struct, frozen=True, kw_only=True):
    """The quorum of `wanted` members does not fit; at most `fits` of them do.

    `gaps` explain why: the first for the class `failing`, the others for further classes, at most MOST_EXPLAINED
    classes in all. `short` is, per resource, how much more the quorum requests than is free in total on the nodes that
    accept it; empty if enough is free in total. `fragmented`: each of those nodes has too little left for one member.
    `never`: it would not fit even if the nodes were empty. It was examined `within` these domains: where all members
    must be in one, that of the members already placed, else the one with most room, whose value is None if no node has
    the label. `missing` counts, by class, the members that would complete the quorum and fit nowhere; `demand` is what
    new nodes must offer so that they fit, empty if no new node can help. Quorums with an equal `asked`, which ends with
    who asks, are refused for the same reason. `exhausted`: the search was cut short, so it may have missed places.
    `waits_for_pods`: no new node helps until the pods that the members' affinity requires exist. `oversized` lists the
    resources of which one member of the class `failing` requests more than any node that accepts it offers, with both
    amounts. `paused`: it would fit on nodes that are closed to it for now, for this reason; empty if it fits nowhere.
    `start` is what must be free before the group starts (`core.planning.start`), if less is; then `failing` stands for
    all that is `short`. `by_parts`: no choice of parts of the group, or of domains for them, fits, and this is why the
    first one does not. `fitting` counts the members that fit, by name of the node. `reserved_until`: it would fit, but
    for places that are reserved for others from this time on (epoch seconds, infinity if nobody knows); else 0.0.
    """

    asked: tuple[Hashable, ...]
    wanted: int
    fits: int
    nodes: int
    never: bool
    failing: MemberClass
    classes: tuple[MemberClass, ...]
    missing: Mapping[MemberClass, int]
    gaps: tuple[Gap, ...]
    short: Amounts
    fragmented: bool = False
    exhausted: bool = False
    waits_for_pods: bool = False
    within: tuple[Domain, ...] = ()
    demand: tuple[Demand, ...] = ()
    oversized: tuple[tuple[str, int, int], ...] = ()
    paused: str = ""
    start: Start | None = None
    by_parts: bool = False
    fitting: Mapping[str, int] = field(default_factory=dict)
    reserved_until: float = 0.0

    def seen_by(self, viewer: Hashable) -> Refusal:
        """The same for one that sees this by now, and would be refused too."""
        return replace(self, asked=(*self.asked[:-1], viewer))

    @property
    def reason(self) -> Reason:
        """The gang's reason that follows from this refusal."""
        if self.paused:
            return Reason.PODS_FAIL
        if self.never:
            return Reason.NEVER_FITS
        if self.reserved_until:
            return Reason.NOT_BEFORE_RESERVATION
        return Reason.SEARCH_EXHAUSTED if self.exhausted else Reason.UNSCHEDULABLE

    @property
    def unlabelled(self) -> str:
        """The label whose domains are asked for and that no node has; empty otherwise. Amounts do not matter then."""
        return next((key for key, value in self.within if value is None), "")

    @property
    def hopeless(self) -> bool:
        """Whether the gang stays unschedulable even if other pods end or new nodes come."""
        return self.never and not self.demand

    @property
    def obstacles(self) -> tuple[Obstacle, ...]:
        """Why nodes refuse one more member of the class `failing`."""
        return self.gaps[0].obstacles

    @property
    def accepted(self) -> bool:
        """Whether a node accepts members of the class `failing`, however little it has left."""
        closed = sum(obstacle.nodes for obstacle in self.obstacles if registry.is_of_node(obstacle.reason))
        return closed < self.nodes

    @property
    def lacking(self) -> tuple[str, ...]:
        """The resources of which a node that otherwise accepts the failing class has too little."""
        return tuple(obstacle.resource for obstacle in self.obstacles if obstacle.reason is NodeReason.INSUFFICIENT)


def shortage(snapshot: Snapshot, counts: Mapping[MemberClass, int]) -> Amounts:
    """Per resource, how much more these members request than is free in total on the nodes that accept any of them."""
    accepting = np.zeros(snapshot.size, dtype=np.bool_)
    asked: Counter[str] = Counter()
    for member, count in counts.items():
        # What pods close to others does not count here, their own terms or those of others: the obstacles report it.
        accepting |= snapshot.cluster.accepting(member)[: snapshot.size] & snapshot.inside(member.within)
        for resource, amount in member.shape.requests:
            if resource not in snapshot.resources.delegated:
                asked[resource] += count * amount
    short = []
    for resource, amount in sorted(asked.items()):
        column = snapshot.resources.column(resource)
        # Summed as Python integers, which do not overflow.
        free = 0 if column is None else sum(np.maximum(snapshot.free[accepting, column], 0).tolist())
        if amount > free:
            short.append((resource, amount - free))
    return tuple(short)


def gaps(snapshot: Snapshot, failing: MemberClass, missing: Mapping[MemberClass, int], number: int) -> tuple[Gap, ...]:
    """The gaps of the class `failing` and of further classes among the `missing` members, `number` in all."""
    classes = [failing, *(member for member in missing if member != failing)] if failing in missing else [failing]
    refused: Counter[tuple[Obstacle, ...]] = Counter()
    for member in classes[:MOST_EXPLAINED]:
        refused[obstacles(snapshot, member)] += missing.get(member, number)
    return tuple(Gap(members, reasons) for reasons, members in refused.items())


def obstacles(snapshot: Snapshot, member: MemberClass, rows: IntArray | None = None) -> tuple[Obstacle, ...]:
    """Why nodes (or those on these rows) refuse one more member of the class now, the most frequent reason first.

    A node that refuses the class regardless of the pods there counts for that reason only.
    """
    rows = np.arange(snapshot.size) if rows is None else rows
    rows = rows[snapshot.cluster.nodes_by_row.there(rows)]
    refused: Counter[tuple[str, str]] = Counter()
    if member.within:
        inside = snapshot.inside(member.within)[rows]
        refused[NodeReason.DOMAIN, ""] = len(rows) - int(inside.sum())
        rows = rows[inside]
    for plan in sorted(snapshot.plans, key=lambda plan: not isinstance(plan, NodeConstraint)):
        open_ = np.ones(len(rows), dtype=np.bool_)
        for reason, resource, where in plan.refusals(member, rows):
            refused[reason, resource] += int(where.sum())
            open_ &= ~where
        if isinstance(plan, NodeConstraint):
            rows = rows[open_]
    return tuple(
        Obstacle(reason, nodes, resource)
        for (reason, resource), nodes in sorted(refused.items(), key=lambda item: (-item[1], item[0]))
        if nodes
    )


def oversized(snapshot: Snapshot, member: MemberClass) -> tuple[tuple[str, int, int], ...]:
    """The resources of which one member requests more than any node that accepts it offers, with both amounts."""
    rows = np.flatnonzero(snapshot.cluster.accepting(member))
    exceeded = []
    for resource, amount in member.shape.requests if len(rows) else ():
        column = snapshot.resources.column(resource)
        offered = 0 if column is None else int(snapshot.cluster.capacity.allocatable[rows, column].max())
        if amount > offered and resource not in snapshot.resources.delegated:
            exceeded.append((resource, amount, offered))
    return tuple(exceeded)


def fragmented(snapshot: Snapshot, member: MemberClass) -> bool:
    """Whether there are nodes that accept the class, each with too little of some resource for one more member."""
    rows = np.flatnonzero(snapshot.accepts(member))
    lacking = np.zeros(len(rows), dtype=np.bool_)
    for reason, _, where in snapshot.resources.refusals(member, rows):
        if reason == NodeReason.INSUFFICIENT:
            lacking |= where
    return bool(len(rows)) and bool(lacking.all())
