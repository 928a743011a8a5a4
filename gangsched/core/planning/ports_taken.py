"""Host ports that pods of the cluster, and members placed on a snapshot, have in use."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from gangsched.core.cluster.cache import Cluster
from gangsched.core.constraints.ports import PortsInUse
from gangsched.core.objects.shape import HostPort

_NONE = PortsInUse()


class PortsTaken:
    """By row. On an `emptied` snapshot those of the cluster's pods do not count."""

    def __init__(self, cluster: Cluster, *, emptied: bool) -> None:
        self._cluster = cluster
        self._emptied = emptied
        self._size = len(cluster.capacity.names)
        self._mine: dict[int, PortsInUse] = {}
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
        closed[[row for row, mine in self._mine.items() if mine.conflicts(ports)]] = True
        return closed

    def change(self, rows: Sequence[int], ports: tuple[HostPort, ...], sign: int) -> None:
        """A pod takes the ports on each of these rows (`sign` -1), or gives them back (1)."""
        for row in rows:
            mine = self._mine.setdefault(row, PortsInUse())
            (mine.add if sign < 0 else mine.remove)(ports)

    def look(self, row: int) -> Hashable:
        """What is taken on the row: equal while it is the same."""
        return self._cluster.ports.get(row, _NONE).look(), self._mine.get(row, _NONE).look()
