"""The soft constraints of a pod. They order the nodes that take the pod, and never decide whether a node does."""

from __future__ import annotations

from msgspec import Struct

from gangsched.core.objects.shape import NodeTerm, PodTerm, Spread

Images = tuple[tuple[str, int], ...]
"""Images on a node: (name, size in bytes) pairs, sorted by name, without duplicates."""


class Soft(Struct, frozen=True, gc=False, cache_hash=True):
    """A pod's soft constraints, other than its preference for nodes whose taints it tolerates.

    `node_terms` are the (weight, term) pairs of preferred node affinity, with weights from 1 to 100. `images` are the
    names of the images that its containers and image volumes need, sorted, without duplicates; `containers` is the
    number of these containers and volumes. `pod_terms` are the (weight, term) pairs of preferred affinity to other
    pods; a negative weight means anti-affinity. `spread` are the topology spread constraints with ScheduleAnyway.
    """

    node_terms: tuple[tuple[int, NodeTerm], ...] = ()
    images: tuple[str, ...] = ()
    containers: int = 0
    pod_terms: tuple[tuple[int, PodTerm], ...] = ()
    spread: tuple[Spread, ...] = ()
