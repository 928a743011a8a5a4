"""VolumeZone: a node that has a zone or region must be in one of those that the labels of a pod's volumes name.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/volumezone. Volumes of ephemeral volumes are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gangsched.core.constraints.constraint import Member, NodeConstraint, Words
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.reasons import NodeReason

NOW_CALLED = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""The former names of the labels, and the present ones."""
ZONE_LABELS = (*NOW_CALLED, *NOW_CALLED.values())


@dataclass(frozen=True, slots=True)
class Zones:
    """Labels, each with the values of which a node must have one."""

    labels: tuple[tuple[str, tuple[str, ...]], ...]

    def in_order(self) -> Sequence[object]:
        """The labels, sorted."""
        return self.labels


class VolumeZone(NodeConstraint):
    """The filter of this name."""

    words = (
        Words(
            NodeReason.VOLUME_ZONE,
            "outside the domain of a PersistentVolume, which is {resource}",
            "room in the zone of the member's PersistentVolumes: {nodes} outside",
        ),
    )

    @property
    def selective(self) -> bool:
        """Whether there are any claims."""
        return self._world.volumes.matter

    def sees(self, pod: Pod) -> Zones | None:
        """The labels of its volumes."""
        if not pod.volume_claims:
            return None
        found = {label for volume in self._world.volumes.volumes(pod, own=False) for label in volume.zones}
        return Zones(tuple(sorted(found))) if found else None

    def refusals(self, member: Member, rows: IntArray) -> Iterator[tuple[str, str, Mask]]:
        """Where nodes are elsewhere, and the zones and regions of the volumes."""
        seen, mask = member.sight(Zones), self.mask(member, rows)
        if seen is not None and mask is not None:
            yield (
                NodeReason.VOLUME_ZONE,
                ", ".join(f"{key}={' or '.join(values)}" for key, values in seen.labels),
                ~mask,
            )

    def mask(self, member: Member, rows: IntArray) -> Mask | None:
        """The rows without any zone or region, and those in the zones and regions of all volumes.

        A node need not have a former name of a label beside the present one.
        """
        seen = member.sight(Zones)
        if seen is None:
            return None
        nodes = self._world.nodes
        inside: Mask = np.ones(len(rows), dtype=np.bool_)
        for key, values in seen.labels:
            column = nodes.by_label(key)
            of_label = column.among(values, rows)
            if key in NOW_CALLED:
                of_label |= ~column.any(rows) & nodes.by_label(NOW_CALLED[key]).among(values, rows)
            inside &= of_label
        nowhere: Mask = np.ones(len(rows), dtype=np.bool_)
        for key in ZONE_LABELS:
            nowhere &= ~nodes.by_label(key).any(rows)
        return inside | nowhere
