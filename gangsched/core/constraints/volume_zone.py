"""VolumeZone: a node with a zone or region label must be in the zones and regions that a pod's volumes name.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/volumezone. Volumes of ephemeral volumes are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from gangsched.core.constraints.constraint import Member, NodeConstraint, Words
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.reasons import NodeReason
from gangsched.core.objects.volumes import NOW_CALLED, ZONE_LABELS


@dataclass(frozen=True, slots=True)
class Zones:
    """Labels, each with the values that a node may have; `volumes` are examples, one for each, from one pod."""

    labels: tuple[tuple[str, tuple[str, ...]], ...]
    volumes: tuple[str, ...] = field(default=(), compare=False)

    def in_order(self) -> Sequence[object]:
        """The labels, sorted."""
        return self.labels


class VolumeZone(NodeConstraint):
    """The filter of this name."""

    about = frozenset({Zones})
    proves = True
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
        return bool(self._world.volumes.claims)

    def sees(self, pod: Pod) -> Zones | None:
        """The zone and region labels of the pod's volumes."""
        if not pod.volume_claims:
            return None
        volumes = self._world.volumes.volumes(pod, own=False)
        by_label = {label: volume.name for volume in volumes for label in volume.zones}
        labels = tuple(sorted(by_label))
        return Zones(labels, tuple(by_label[label] for label in labels)) if by_label else None

    def refusals(self, member: Member, rows: IntArray) -> Iterator[tuple[str, str, Mask]]:
        """For each volume with a zone or region, the rows on which it is the first that is elsewhere."""
        seen = member.sight(Zones)
        if seen is None:
            return
        left = ~self._nowhere(rows)
        for (key, values), volume in zip(seen.labels, seen.volumes, strict=True):
            inside = self._inside(key, values, rows)
            yield NodeReason.VOLUME_ZONE, f"{volume} ({key}={' or '.join(values)})", left & ~inside
            left &= inside

    def mask(self, member: Member, rows: IntArray) -> Mask | None:
        """The rows without a zone or region label, and those in the zones and regions of all volumes.

        A node with the current label needs no label with the former name.
        """
        seen = member.sight(Zones)
        if seen is None:
            return None
        inside: Mask = np.ones(len(rows), dtype=np.bool_)
        for key, values in seen.labels:
            inside &= self._inside(key, values, rows)
        return inside | self._nowhere(rows)

    def at_best(self, member: Member, rows: IntArray) -> Mask | None:
        """These rows, and those of nodes whose zone and region are not known yet."""
        mask, seen, nodes = self.mask(member, rows), member.sight(Zones), self._world.nodes
        if mask is None or seen is None:
            return None
        open_ = nodes.unsettled(rows)
        for key, values in seen.labels:
            named = nodes.by_label(key).any(rows) | nodes.by_label(NOW_CALLED.get(key, key)).any(rows)
            open_ &= self._inside(key, values, rows) | ~named
        return mask | open_

    def _inside(self, key: str, values: Sequence[str], rows: IntArray) -> Mask:
        """The rows with one of these values of the label, or of its current name if they lack the former one."""
        nodes = self._world.nodes
        inside = nodes.by_label(key).among(values, rows)
        if key in NOW_CALLED:
            inside |= ~nodes.by_label(key).any(rows) & nodes.by_label(NOW_CALLED[key]).among(values, rows)
        return inside

    def _nowhere(self, rows: IntArray) -> Mask:
        """The rows without a zone or region label."""
        nowhere: Mask = np.ones(len(rows), dtype=np.bool_)
        for key in ZONE_LABELS:
            nowhere &= ~self._world.nodes.by_label(key).any(rows)
        return nowhere
