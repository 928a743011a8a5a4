"""Why a gang does not fit: counted per reason and per resource, for a person, a metric or an autoscaler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from gangsched.core.cluster.capacity import PODS
from gangsched.core.cluster.domains import Domain
from gangsched.core.constraints.feasibility import ACCEPTED, STATIC_REASONS, VACANT
from gangsched.core.objects.reasons import NodeReason
from gangsched.core.objects.shape import Amounts
from gangsched.core.objects.status import Demand
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.snapshot import Mask, Snapshot


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One reason why nodes do not take one more member: how many nodes give it, and for which resource."""

    reason: NodeReason
    nodes: int
    resource: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The quorum of `wanted` members does not fit; `fits` of them do at most.

    `obstacles` say what each node answers to one more member of the class `failing` once those that fit are placed;
    `short` says, per resource, how much more the quorum asks than is free in all on the nodes that accept it (nothing
    there means that enough is free in all); `fragmented`: all of those nodes have pieces left that are too small.
    `never`: not even if the nodes were empty. `domain` is the one in which all this was found, where the members must
    all be in one: that of those which are placed already, else the one with most room; its value is None where no node
    has the label. `missing` are the classes of those that complete the quorum and find no place; `demand` is what new
    nodes must bring so that they do, nothing if no new node can help. Who `asked` for the same is refused for the same.
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
    domain: Domain | None = None
    demand: tuple[Demand, ...] = ()

    @property
    def hopeless(self) -> bool:
        """Whether neither the end of pods nor a new node can help."""
        return self.never and not self.demand

    @property
    def lacking(self) -> tuple[str, ...]:
        """The resources of which too little is free on some node that otherwise accepts the failing class."""
        return tuple(obstacle.resource for obstacle in self.obstacles if obstacle.reason is NodeReason.INSUFFICIENT)


def shortage(snapshot: Snapshot, counts: Mapping[MemberClass, int]) -> Amounts:
    """Per resource, how much more so many members of these classes ask than is free on all nodes that accept any."""
    accepting = np.zeros(snapshot.size, dtype=np.bool_)
    asked: Counter[str] = Counter()
    for member, count in counts.items():
        accepting |= snapshot.accepts(member)
        for resource, amount in member.shape.requests:
            asked[resource] += count * amount
    short = []
    for resource, amount in sorted(asked.items()):
        column = snapshot.column(resource)
        # Summed as Python integers, which do not overflow.
        free = 0 if column is None else sum(np.maximum(snapshot.free[accepting, column], 0).tolist())
        if amount > free:
            short.append((resource, amount - free))
    return tuple(short)


def obstacles(snapshot: Snapshot, member: MemberClass) -> tuple[Obstacle, ...]:
    """What the nodes answer to one more member of the class now, the most frequent reason first."""
    codes = snapshot.cluster.verdicts(member.shape)[: snapshot.size]
    found: Counter[tuple[NodeReason, str]] = Counter()
    if member.domain is not None:
        outside = ~snapshot.inside(member.domain) & (codes != VACANT)
        found[NodeReason.DOMAIN, ""] = int(outside.sum())
        codes = np.where(outside, VACANT, codes)
    for number, reason in enumerate(STATIC_REASONS, start=1):
        found[reason, ""] += int((codes == number).sum())
    open_ = codes == ACCEPTED
    found[NodeReason.HOST_PORT, ""] += int(open_[snapshot.closed_by_ports(member)].sum())
    found[NodeReason.ANTI_AFFINITY, ""] += int(open_[snapshot.closed_by_anti_affinity(member)].sum())
    for resource, amount in (*member.shape.requests, (PODS, 1)):
        key = (NodeReason.TOO_MANY_PODS, "") if resource == PODS else (NodeReason.INSUFFICIENT, resource)
        found[key] += int((open_ & _lacking(snapshot, resource, amount)).sum())
    return tuple(
        Obstacle(reason, nodes, resource)
        for (reason, resource), nodes in sorted(found.items(), key=lambda item: (-item[1], item[0]))
        if nodes
    )


def fragmented(snapshot: Snapshot, member: MemberClass) -> bool:
    """Whether nodes accept the class and each of them has too little of some resource for one more."""
    accepting = snapshot.accepts(member)
    lacking = np.zeros(snapshot.size, dtype=np.bool_)
    for resource, amount in member.shape.requests:
        lacking |= _lacking(snapshot, resource, amount)
    return bool(accepting.any()) and bool(lacking[accepting].all())


def _lacking(snapshot: Snapshot, resource: str, amount: int) -> Mask:
    column = snapshot.column(resource)
    if column is None:
        return np.ones(snapshot.size, dtype=np.bool_)
    lacking: Mask = snapshot.free[:, column] < amount
    return lacking
