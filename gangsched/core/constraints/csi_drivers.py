"""NodeVolumeLimits, its first part: a node must have the CSI drivers of a pod's volumes, where the drivers demand it.

Source: `checkCSIDriverOnNode` in k8s.io/kubernetes pkg/scheduler/framework/plugins/nodevolumelimits/csi.go at v1.37.2.
A CSIDriver demands it by `preventPodSchedulingIfMissing`, a field that the API server keeps by default since 1.37.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from gangsched.core.constraints.constraint import Member, NodeConstraint, Words
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.reasons import NodeReason
from gangsched.core.objects.volumes import keys_of


class Needed(Struct, frozen=True):
    """The drivers that a pod's node must have, sorted."""

    drivers: tuple[str, ...]

    def in_order(self) -> Sequence[object]:
        """The drivers."""
        return self.drivers


class CsiDrivers(NodeConstraint):
    """Whether nodes have the drivers. A driver may be installed at any time, so that this proves nothing for good."""

    about = frozenset({Needed, "disks"})
    words = (
        Words(
            NodeReason.VOLUME_DRIVER,
            "without the CSI driver {resource}",
            "a node with the CSI driver {resource}: {nodes} without it",
        ),
    )

    @property
    def selective(self) -> bool:
        """Whether there are claims, and drivers that demand it."""
        return bool(self._world.volumes.claims and self._world.volumes.demanding)

    def sees(self, pod: Pod) -> Needed | None:
        """The drivers of the pod's claims that demand it."""
        volumes = self._world.volumes
        attachments = filter(None, map(volumes.attachment, keys_of(pod)))
        drivers = {driver for driver, _ in attachments if driver in volumes.demanding}
        return Needed(tuple(sorted(drivers))) if drivers else None

    def mask(self, member: Member, rows: IntArray) -> Mask | None:
        """The rows that have all drivers."""
        inside: Mask | None = None
        for _, having in self._needs(member, rows):
            inside = having if inside is None else inside & having
        return inside

    def refusals(self, member: Member, rows: IntArray) -> Iterator[tuple[str, str, Mask]]:
        """For each driver, the rows that lack it and have those before it."""
        left: Mask = np.ones(len(rows), dtype=np.bool_)
        for driver, having in self._needs(member, rows):
            yield NodeReason.VOLUME_DRIVER, driver, left & ~having
            left &= having

    def _needs(self, member: Member, rows: IntArray) -> Iterator[tuple[str, Mask]]:
        """The drivers that the class needs, each with the rows that suffice.

        A disk that pods name themselves is of a driver only on nodes with a CSINode; claims are on all nodes.
        """
        volumes, seen = self._world.volumes, member.sight(Needed)
        for driver in () if seen is None else seen.drivers:
            yield driver, self._having(driver, rows)
        if not volumes.demanding:
            return
        own = {disk.attachment[0] for disk in member.shape.disks if disk.attachment is not None}
        for driver in sorted(own & volumes.demanding):
            yield driver, self._having(driver, rows) | ~self._known(rows)

    def _having(self, driver: str, rows: IntArray) -> Mask:
        names, installed = self._world.stock.names, self._world.volumes.installed
        return np.array([driver in installed.get(names[row], ()) for row in rows.tolist()], dtype=np.bool_)

    def _known(self, rows: IntArray) -> Mask:
        names, installed = self._world.stock.names, self._world.volumes.installed
        return np.array([names[row] in installed for row in rows.tolist()], dtype=np.bool_)
