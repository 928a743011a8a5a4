"""What a pod prefers in its node. It orders nodes that take the pod, and never decides whether one does."""

from __future__ import annotations

from msgspec import Struct

from gangsched.core.objects.shape import NodeTerm, PodTerm, Spread

Images = tuple[tuple[str, int], ...]
"""Images on a node: (name, size in bytes) pairs, sorted by name; each name once."""


class Soft(Struct, frozen=True, gc=False, cache_hash=True):
    """A pod's soft constraints, except that it prefers nodes without taints that it does not tolerate.

    `node_terms` are preferred node affinity: weights from 1 to 100, and what a node must match for them. `images` are
    the names that its containers and image volumes need, sorted, once for each; `containers` is how many containers it
    has. `pod_terms` are preferred affinity to other pods, and with a negative weight anti-affinity. `spread` are the
    topology spread constraints with ScheduleAnyway.
    """

    node_terms: tuple[tuple[int, NodeTerm], ...] = ()
    images: tuple[str, ...] = ()
    containers: int = 0
    pod_terms: tuple[tuple[int, PodTerm], ...] = ()
    spread: tuple[Spread, ...] = ()
