"""Where the members of a refused quorum fit, by what the nodes share: their pool, their machine and their zone.

Nodes are not named: whoever may read the status of a group need not be allowed to list nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from gangsched.core.cluster.labels import names_of
from gangsched.core.objects.node import Node
from gangsched.core.objects.quantity import format_amount
from gangsched.core.objects.status import LONGEST_SHARED, MOST_FITTING, Fitting, Shared
from gangsched.core.objects.wording import shortened
from gangsched.core.planning.refusal import Refusal

POOLS = (
    "karpenter.sh/nodepool",
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
)
"""Labels that name the pool of a node; the first one that it has counts."""
TYPES = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
ZONES = names_of("topology.kubernetes.io/zone")
OFFERED = "allocatable"
"""Stands for the label of a machine's type where it has none: the value says what the node offers."""


def fitting(nodes: Mapping[str, Node], refusal: Refusal) -> tuple[Fitting, ...]:
    """Where members fit, the most members first; what exceeds MOST_FITTING is summed in the last one."""
    members: Counter[Shared] = Counter()
    alike: Counter[Shared] = Counter()
    for name, number in refusal.fitting.items():
        if name in nodes:
            shared = tuple(sorted(pair for kind in kinds_of(nodes[name]) for pair in kind))
            members[shared] += number
            alike[shared] += 1
    ordered = sorted(members.items(), key=lambda item: (-item[1], item[0]))
    listed = len(ordered) if len(ordered) <= MOST_FITTING else MOST_FITTING - 1
    parts = [Fitting(members=number, nodes=alike[shared], shared=shared) for shared, number in ordered[:listed]]
    if rest := ordered[listed:]:
        parts.append(Fitting(members=sum(number for _, number in rest), nodes=sum(alike[shared] for shared, _ in rest)))
    return tuple(parts)


def kinds_of(node: Node) -> tuple[Shared, Shared, Shared]:
    """Pool, machine and zone of the node; pool and zone are empty if the node has none."""
    labels = dict(node.labels)
    pool, kind, zone = (
        tuple((key, labels[key]) for key in keys if key in labels)[:1] for keys in (POOLS, TYPES, ZONES)
    )
    return pool, kind or ((OFFERED, _offered(node)),), zone


def _offered(node: Node) -> str:
    """The offered resources that distinguish machines: CPU and devices, but not memory, which differs slightly."""
    offered = ", ".join(
        f"{resource} {format_amount(resource, amount)}"
        for resource, amount in node.allocatable
        if resource == "cpu" or "/" in resource
    )
    return shortened(offered, LONGEST_SHARED)
