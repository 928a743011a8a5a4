"""Why a gang does not fit: counted by reason and resource, for users, metrics and autoscalers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from gangsched.core.cluster.labels import Domain
from gangsched.core.constraints.constraint import NodeConstraint
from gangsched.core.objects.reasons import NodeReason, Reason
from gangsched.core.objects.shape import Amounts
from gangsched.core.objects.status import Demand
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One reason why nodes do not take one more member: how many nodes refuse for it, and for which resource.

    Reasons are those of `NodeReason` and of added constraints (`Constraint.words`).
    """

    reason: str
    nodes: int
    resource: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The quorum of `wanted` members does not fit; `fits` of them do at most.

    `obstacles` count why nodes refuse one more member of the class `failing` once those that fit are placed. `short`
    is, per resource, how much more the quorum requests than is free in total on the nodes that accept it (empty: enough
    is free in total). `fragmented`: each of those nodes has too little left for one member. `never`: it would not fit
    even if the nodes were empty. `domain`, where all members must be in one, is the domain that was examined: that of
    the members already placed, else the one with most room; its value is None where no node has the label. `missing`
    are the classes of the members that would complete the quorum and fit nowhere; `demand` is what new nodes must offer
    so that they fit, empty if no new node can help. Quorums that `asked` for the same are refused for the same reason.
    `exhausted`: the search broke off, so there may be places that were not found.
    """

    asked: Hashable
    wanted: int
    fits: int
    nodes: int
    never: bool
    failing: MemberClass
    classes: tuple[MemberClass, ...]
    missing: Mapping[MemberClass, int]
    obstacles: tuple[Obstacle, ...]
    short: Amounts
    fragmented: bool = False
    exhausted: bool = False
    domain: Domain | None = None
    demand: tuple[Demand, ...] = ()

    @property
    def reason(self) -> Reason:
        """The reason of a gang that was refused for this."""
        if self.never:
            return Reason.NEVER_FITS
        return Reason.SEARCH_EXHAUSTED if self.exhausted else Reason.UNSCHEDULABLE

    @property
    def hopeless(self) -> bool:
        """Whether neither the end of other pods nor a new node can help."""
        return self.never and not self.demand

    @property
    def lacking(self) -> tuple[str, ...]:
        """The resources of which some node that otherwise accepts the failing class has too little."""
        return tuple(obstacle.resource for obstacle in self.obstacles if obstacle.reason is NodeReason.INSUFFICIENT)


def shortage(snapshot: Snapshot, counts: Mapping[MemberClass, int]) -> Amounts:
    """Per resource, how much more these members request than is free in total on the nodes that accept any of them."""
    accepting = np.zeros(snapshot.size, dtype=np.bool_)
    asked: Counter[str] = Counter()
    for member, count in counts.items():
        # Which pods are where may change; it is said by the obstacles.
        by_nodes = snapshot.cluster.accepting(member) if member.shape.heeds_pods else snapshot.accepts(member)
        accepting |= by_nodes[: snapshot.size]
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


def obstacles(snapshot: Snapshot, member: MemberClass) -> tuple[Obstacle, ...]:
    """Why nodes refuse one more member of the class now, the most frequent reason first.

    Nodes that refuse it regardless of the pods there give no other reason.
    """
    rows = np.flatnonzero(snapshot.cluster.nodes_by_row.there(np.arange(snapshot.size)))
    found: Counter[tuple[str, str]] = Counter()
    if member.domain is not None:
        inside = snapshot.inside(member.domain)[rows]
        found[NodeReason.DOMAIN, ""] = len(rows) - int(inside.sum())
        rows = rows[inside]
    for plan in sorted(snapshot.plans, key=lambda plan: not isinstance(plan, NodeConstraint)):
        open_ = np.ones(len(rows), dtype=np.bool_)
        for reason, resource, where in plan.refusals(member, rows):
            found[reason, resource] += int(where.sum())
            open_ &= ~where
        if isinstance(plan, NodeConstraint):
            rows = rows[open_]
    return tuple(
        Obstacle(reason, nodes, resource)
        for (reason, resource), nodes in sorted(found.items(), key=lambda item: (-item[1], item[0]))
        if nodes
    )


def fragmented(snapshot: Snapshot, member: MemberClass) -> bool:
    """Whether nodes accept the class and each of them has too little of some resource for one more."""
    rows = np.flatnonzero(snapshot.accepts(member))
    lacking = np.zeros(len(rows), dtype=np.bool_)
    for reason, _, where in snapshot.resources.refusals(member, rows):
        if reason == NodeReason.INSUFFICIENT:
            lacking |= where
    return bool(len(rows)) and bool(lacking.all())
