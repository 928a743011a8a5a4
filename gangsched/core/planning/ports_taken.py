"""Host ports that pods of the cluster, and members placed on a snapshot, have in use.

A pod of the cluster whose place is given up leaves its ports to whoever takes the place.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import numpy.typing as npt

from gangsched.core.cluster.cache import Cluster
from gangsched.core.constraints.ports import PortsInUse
from gangsched.core.objects.shape import HostPort
from gangsched.core.planning.classes import Taken

_NONE = PortsInUse()


class PortsTaken:
    """By row. On an `emptied` snapshot those of the cluster's pods do not count."""

    def __init__(self, cluster: Cluster, *, emptied: bool) -> None:
        self._cluster = cluster
        self._emptied = emptied
        self._size = len(cluster.capacity.names)
        self._mine: dict[int, PortsInUse] = {}
        self._before: dict[int, PortsInUse] = {}
        self._left: dict[int, PortsInUse] = {}
        self._by_others: dict[tuple[HostPort, ...], npt.NDArray[np.bool_]] = {}

    def closed(self, ports: tuple[HostPort, ...]) -> npt.NDArray[np.bool_]:
        """The rows on which one of the ports is taken."""
        known = self._by_others.get(ports)
        if known is None:
            known = np.zeros(self._size, dtype=np.bool_)
            if not self._emptied:
                taken, by_port = self._cluster.ports, self._cluster.port_rows
                rows = {row for port in ports for row in by_port.get((port.protocol, port.port), ())}
                known[[row for row in rows if taken[row].conflicts(ports)]] = True
            self._by_others[ports] = known
        closed = known.copy()
        for row in self._left:
            closed[row] = self._of_others(row).conflicts(ports)
        closed[[row for row, mine in self._mine.items() if mine.conflicts(ports)]] = True
        return closed

    def change(self, taken: Taken, sign: int) -> None:
        """The members take their ports (`sign` -1), or that is undone (1); where their count is -1, a pod leaves."""
        for row, count in zip(taken.rows.tolist(), taken.counts.tolist(), strict=True):
            if count < 0 and row not in self._before:
                # The cluster goes on: the pod may be forgotten there, and another one be counted in its place.
                self._before[row] = self._of_others(row).without(_NONE)
            ports = (self._left if count < 0 else self._mine).setdefault(row, PortsInUse())
            (ports.add if sign < 0 else ports.remove)(taken.member.shape.host_ports)

    def look(self, row: int) -> Hashable:
        """What is taken on the row: equal while it is the same."""
        return self._of_others(row).look(), self._mine.get(row, _NONE).look()

    def _of_others(self, row: int) -> PortsInUse:
        """What pods of the cluster take on the row, without those that have left."""
        if row in self._left:
            return self._before[row].without(self._left[row])
        return self._cluster.ports.get(row, _NONE)
