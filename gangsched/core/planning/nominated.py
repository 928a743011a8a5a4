"""Room that is left for pods which somebody else has nominated to a node (`status.nominatedNodeName`).

As in kube-scheduler, which counts nominated pods of equal or higher priority when it filters. It looks only at those of
the node in question, and not always at their required anti-affinity; here that closes its whole domain at once, as it
will when they are bound.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec.structs import replace

from gangsched.core.cluster.cache import Cluster
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import Shape
from gangsched.core.planning.classes import MemberClass, Seen, Taken

MOST_HEEDED = 1 << 52
"""A nominated pod counts with no more of a resource: nobody looks whether its node has that much, and sums of absurd
amounts would overflow."""


class Nominated:
    """The nominated pods of a cluster, on one snapshot.

    `change` has a share of a row taken (1) or given back (-1). `priority` is that for which they are heeded, None while
    none are.
    """

    def __init__(
        self,
        cluster: Cluster,
        change: Callable[[Taken, int], None],
        column: Callable[[str], int | None],
        seen: Callable[[Pod], Seen],
    ) -> None:
        self.priority: int | None = None
        self._cluster = cluster
        self._change = change
        self._column = column
        self._seen = seen
        self._heeded: dict[str, Taken] = {}

    def heed(self, priority: int) -> None:
        """Treat those whose priority is at least this as if they were there, until this is called again."""
        if priority == self.priority:
            return
        self.priority = priority
        wanted = {uid: pod for uid, pod in self._cluster.nominated.items() if pod.priority >= priority}
        for uid in self._heeded.keys() - wanted.keys():
            self._change(self._heeded.pop(uid), -1)
        for uid in wanted.keys() - self._heeded.keys():
            pod = wanted[uid]
            row = self._cluster.capacity.rows.get(pod.nominated_node)
            if row is not None:
                member = MemberClass(self._known_part(pod.shape), self._seen(pod))
                one = np.ones(1, dtype=np.int64)
                self._heeded[uid] = Taken(member, row * one, one, of_gang=False)
                self._change(self._heeded[uid], 1)

    def _known_part(self, shape: Shape) -> Shape:
        """The shape with what it requests of resources that some node has: nobody else could take of the others."""
        asked = tuple(
            (resource, min(amount, MOST_HEEDED))
            for resource, amount in shape.requests
            if self._column(resource) is not None
        )
        return shape if asked == shape.requests else replace(shape, requests=asked)
