"""VolumeZone: a node that has a zone or region must be in one of those that the labels of a pod's volumes name.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/volumezone. Volumes of ephemeral volumes are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

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
    """Labels, each with the values of which a node must have one. For each, a volume of one pod of the class."""

    labels: tuple[tuple[str, tuple[str, ...]], ...]
    volumes: tuple[str, ...] = field(default=(), compare=False)

    def in_order(self) -> Sequence[object]:
        """The labels, sorted."""
        return self.labels


class VolumeZone(NodeConstraint):
    """The filter of this name."""

    words = (
        Words(
            NodeReason.VOLUME_ZONE,
            "outside the domain of the PersistentVolume {resource}",
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
        volumes = self._world.volumes.volumes(pod, own=False)
        found = {label: volume.name for volume in volumes for label in volume.zones}
        labels = tuple(sorted(found))
        return Zones(labels, tuple(found[label] for label in labels)) if found else None

    def refusals(self, member: Member, rows: IntArray) -> Iterator[tuple[str, str, Mask]]:
        """For each volume with its zone or region, where it is the first that is elsewhere."""
        seen = member.sight(Zones)
        if seen is None:
            return
        left = ~self._nowhere(rows)
        for (key, values), volume in zip(seen.labels, seen.volumes, strict=True):
            inside = self._inside(key, values, rows)
            yield NodeReason.VOLUME_ZONE, f"{volume} ({key}={' or '.join(values)})", left & ~inside
            left &= inside

    def mask(self, member: Member, rows: IntArray) -> Mask | None:
        """The rows without any zone or region, and those in the zones and regions of all volumes.

        A node need not have a former name of a label beside the present one.
        """
        seen = member.sight(Zones)
        if seen is None:
            return None
        inside: Mask = np.ones(len(rows), dtype=np.bool_)
        for key, values in seen.labels:
            inside &= self._inside(key, values, rows)
        return inside | self._nowhere(rows)

    def _inside(self, key: str, values: Sequence[str], rows: IntArray) -> Mask:
        """The rows with one of these values of the label, or of its present name if they lack the former."""
        nodes = self._world.nodes
        inside = nodes.by_label(key).among(values, rows)
        if key in NOW_CALLED:
            inside |= ~nodes.by_label(key).any(rows) & nodes.by_label(NOW_CALLED[key]).among(values, rows)
        return inside

    def _nowhere(self, rows: IntArray) -> Mask:
        """The rows without any zone or region."""
        nowhere: Mask = np.ones(len(rows), dtype=np.bool_)
        for key in ZONE_LABELS:
            nowhere &= ~self._world.nodes.by_label(key).any(rows)
        return nowhere
