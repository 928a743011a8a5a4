"""Each node's result for a pod, one by one: the same checks that a plan makes for all nodes at once."""

from __future__ import annotations

import numpy as np

from gangsched.core.cluster.cache import Cluster
from gangsched.core.constraints.node_resources import NodeResources
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.reasons import NodeReason
from gangsched.core.objects.shape import Shape
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.filling import classify

OF_RESOURCES = {words.reason for words in NodeResources.words}


def class_of(snapshot: Snapshot, pod: Pod) -> MemberClass:
    """The pod's member class."""
    return classify(snapshot, [pod])[pod.uid]


def verdicts(snapshot: Snapshot, member: MemberClass) -> dict[str, str]:
    """The first reason of each node that refuses the class; room comes last."""
    found: dict[str, str] = {}
    for reason, rows in refusals(snapshot, member):
        for row in rows:
            found.setdefault(snapshot.name(row), reason)
    return {name: reason for name, reason in found.items() if name}


def refusals(snapshot: Snapshot, member: MemberClass) -> list[tuple[str, list[int]]]:
    """Each reason with the rows that refuse the class for it."""
    every = np.arange(snapshot.size)
    found = [
        (reason, np.flatnonzero(where).tolist())
        for plan in snapshot.plans
        for reason, _, where in plan.refusals(member, every)
    ]
    return sorted(found, key=lambda each: each[0] in OF_RESOURCES)


def closed(snapshot: Snapshot, member: MemberClass, reason: NodeReason) -> list[int]:
    """The rows that refuse the class for this reason."""
    return [row for each, rows in refusals(snapshot, member) if each == reason for row in rows]


def refusal(asked: Shape, offered: Node) -> str | None:
    """Why the node refuses every pod of this shape even when empty; None if it accepts them."""
    cluster = Cluster()
    cluster.set_node(offered)
    reason = verdicts(Snapshot(cluster), MemberClass(asked)).get(offered.name)
    return None if reason in OF_RESOURCES else reason
