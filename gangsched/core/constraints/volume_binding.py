"""VolumeBinding: a node must match the node affinity of each volume of a pod, whose claims must all be bound.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/volumebinding. Which claims are ready is said in
`cluster/volumes.py`. Claims that wait for the pod's node are not bound by gangsched yet: it refuses them by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from gangsched.core.constraints.constraint import Member, NodeConstraint, Words, World
from gangsched.core.constraints.node_affinity import NodeAffinity
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.reasons import NodeReason
from gangsched.core.objects.shape import NodeTerm


@dataclass(frozen=True, slots=True)
class BoundTo:
    """The node affinities of a pod's volumes, each once; or that a claim is not `ready`.

    Whose claim that is (`claim`) is told of one pod of the class alone.
    """

    affinities: tuple[tuple[NodeTerm, ...], ...] = ()
    ready: bool = True
    claim: str = field(default="", compare=False)

    def in_order(self) -> Sequence[object]:
        """Whether it is ready, and the affinities."""
        return self.ready, repr(self.affinities)


class VolumeBinding(NodeConstraint):
    """The filter of this name."""

    words = (
        Words(
            NodeReason.VOLUME_CLAIM,
            "closed until the PersistentVolumeClaim {resource} is ready",
            "a PersistentVolumeClaim that is bound: {nodes} closed without",
        ),
        Words(
            NodeReason.VOLUME_AFFINITY,
            "not matched by the node affinity of a PersistentVolume",
            "room where the member's PersistentVolumes are: {nodes} elsewhere",
        ),
    )

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._affinity = NodeAffinity(world)

    @property
    def selective(self) -> bool:
        """Whether there are any claims."""
        return self._world.volumes.matter

    def sees(self, pod: Pod) -> BoundTo | None:
        """What its claims demand of nodes; nothing if all nodes do."""
        if not pod.uses_claims:
            return None
        unready = self._world.volumes.unready(pod)
        if unready is not None:
            return BoundTo(ready=False, claim=unready.claim)
        found = {volume.node_affinity for volume in self._world.volumes.volumes(pod)} - {None}
        return BoundTo(tuple(sorted((terms for terms in found if terms is not None), key=repr))) if found else None

    def mask(self, member: Member, rows: IntArray) -> Mask | None:
        """The rows that all volumes can be used on; none if a claim is not ready."""
        seen = member.sight(BoundTo)
        if seen is None:
            return None
        mask: Mask = np.full(len(rows), seen.ready, dtype=np.bool_)
        for terms in seen.affinities:
            mask &= self._affinity.among(terms, rows)
        return mask

    def refusals(self, member: Member, rows: IntArray) -> Iterator[tuple[str, str, Mask]]:
        """The claim, or where the volumes cannot be used."""
        seen, mask = member.sight(BoundTo), self.mask(member, rows)
        if seen is None or mask is None:
            return
        if seen.ready:
            yield NodeReason.VOLUME_AFFINITY, "", ~mask
        else:
            yield NodeReason.VOLUME_CLAIM, seen.claim, ~mask
