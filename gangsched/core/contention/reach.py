"""The nodes on which groups could be whose places may be reserved, whatever there is on those nodes."""

from __future__ import annotations

import numpy as np

from gangsched.core.cluster.cache import Cluster
from gangsched.core.contention.asking import Asking
from gangsched.core.gang.gang import Gang
from gangsched.core.objects.arrays import Mask
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.planning import budget as units
from gangsched.core.planning.ask import Ask
from gangsched.core.planning.budget import Budget
from gangsched.core.planning.filling import classify


class Reach:
    """Finds their rows; what it has found is kept until the group asks for something else or a node has changed."""

    def __init__(self, cluster: Cluster, asking: Asking) -> None:
        self._cluster = cluster
        self._asking = asking
        self._kept: dict[GroupKey, tuple[tuple[object, ...], int, Mask]] = {}

    def of(self, gang: Gang, ask: Ask, budget: Budget, now: float) -> Mask:
        """The rows of nodes that accept members."""
        kept, nodes = self._kept.get(gang.key), self._cluster.node_changes
        if kept is not None and kept[0] is gang.wait.asked and kept[1] == nodes:
            return kept[2]
        snapshot = self._asking.snapshot(gang, {}, budget, now)
        rows: Mask = np.zeros(len(self._cluster.capacity.names), dtype=np.bool_)
        for member in set(classify(snapshot, ask.members, ask.pause.nodes).values()):
            budget.charge(units.CLASS + len(rows))
            rows |= self._cluster.accepting(member)
        self._kept[gang.key] = (gang.wait.asked, nodes, rows)
        return rows

    def before(self, key: GroupKey) -> Mask | None:
        """Those that were found for what the group asked for last; None if a node has changed since."""
        kept = self._kept.get(key)
        return kept[2] if kept is not None and kept[1] == self._cluster.node_changes else None

    def drop(self, key: GroupKey) -> None:
        """The group is gone."""
        self._kept.pop(key, None)


def depending(ask: Ask, rows: Mask) -> Mask:
    """The rows with pods on which it depends whether these rows take the members."""
    return np.ones_like(rows) if any(pod.shape.depends_on_pods for pod in ask.members) else rows
