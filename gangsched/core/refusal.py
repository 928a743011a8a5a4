"""Why a gang does not fit: counted per reason and per resource, for a person, a metric or an autoscaler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gangsched.core.capacity import PODS
from gangsched.core.cluster import ACCEPTED, STATIC_REASONS
from gangsched.core.reasons import NodeReason
from gangsched.core.snapshot import MemberClass, Snapshot


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
    there means that enough is free in all, but in pieces too small). `never`: not even if the nodes were empty.
    """

    wanted: int
    fits: int
    nodes: int
    never: bool
    failing: MemberClass
    classes: tuple[MemberClass, ...]
    obstacles: tuple[Obstacle, ...]
    short: tuple[tuple[str, int], ...]

    @property
    def lacking(self) -> tuple[str, ...]:
        """The resources of which too little is free on some node that otherwise accepts the failing class."""
        return tuple(obstacle.resource for obstacle in self.obstacles if obstacle.reason is NodeReason.INSUFFICIENT)


def refuse(
    snapshot: Snapshot, *, classes: Sequence[MemberClass], wanted: int, failing: MemberClass, never: bool
) -> Refusal:
    """Explain why the members do not fit on the snapshot, which is left as it was."""
    mark = snapshot.mark()
    counts = Counter(classes)
    short = _short(snapshot, counts, wanted)
    fits = _pack_smallest_first(snapshot, counts)
    obstacles = _obstacles(snapshot, failing)
    snapshot.undo(mark)
    return Refusal(
        wanted=wanted,
        fits=fits,
        nodes=len(snapshot.cluster.nodes),
        never=never,
        failing=failing,
        classes=tuple(counts),
        obstacles=obstacles,
        short=short,
    )


def _pack_smallest_first(snapshot: Snapshot, counts: Counter[MemberClass]) -> int:
    fits = 0
    for member in sorted(counts, key=lambda member: member.shape.requests):
        left = counts[member]
        caps = snapshot.caps(member)
        for row in np.flatnonzero(caps).tolist():
            number = min(left, int(caps[row]))
            if number:
                snapshot.take(row, member, number)
                fits += number
                left -= number
    return fits


def _short(snapshot: Snapshot, counts: Counter[MemberClass], wanted: int) -> tuple[tuple[str, int], ...]:
    accepted = np.zeros(snapshot.size, dtype=np.bool_)
    asked: Counter[str] = Counter()
    left = wanted
    for member, count in counts.items():
        accepted |= snapshot.cluster.verdicts(member.shape)[: snapshot.size] == ACCEPTED
        number = min(left, count)
        left -= number
        for resource, amount in member.shape.requests:
            asked[resource] += number * amount
    short = []
    for resource, amount in sorted(asked.items()):
        column = snapshot.cluster.capacity.column(resource)
        free = 0 if column is None else sum(np.maximum(snapshot.free[accepted, column], 0).tolist())
        if amount > free:
            short.append((resource, amount - free))
    return tuple(short)


def _obstacles(snapshot: Snapshot, member: MemberClass) -> tuple[Obstacle, ...]:
    codes = snapshot.cluster.verdicts(member.shape)[: snapshot.size]
    found: Counter[tuple[NodeReason, str]] = Counter()
    for number, reason in enumerate(STATIC_REASONS, start=1):
        found[reason, ""] += int((codes == number).sum())
    open_ = codes == ACCEPTED
    ports = [row for row in snapshot.closed_by_ports(member) if open_[row]]
    pods = [row for row in snapshot.closed_by_anti_affinity(member) if open_[row]]
    found[NodeReason.HOST_PORT, ""] += len(ports)
    found[NodeReason.ANTI_AFFINITY, ""] += len(pods)
    capacity = snapshot.cluster.capacity
    for resource, amount in (*member.shape.requests, (PODS, 1)):
        column = capacity.column(resource)
        lacking = int(open_.sum()) if column is None else int((snapshot.free[open_, column] < amount).sum())
        key = (NodeReason.TOO_MANY_PODS, "") if resource == PODS else (NodeReason.INSUFFICIENT, resource)
        found[key] += lacking
    return tuple(
        Obstacle(reason, nodes, resource)
        for (reason, resource), nodes in sorted(found.items(), key=lambda item: (-item[1], item[0]))
        if nodes
    )
