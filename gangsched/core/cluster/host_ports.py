"""The host ports that are claimed, by node and by port."""

from __future__ import annotations

from dataclasses import dataclass, field

from gangsched.core.constraints.ports import PortsInUse
from gangsched.core.objects.shape import HostPort


@dataclass(slots=True)
class ClaimedPorts:
    """`by_row` are the ports in use on each row; `rows_of`, by protocol and number, how often each row has one in use.

    Rows and ports of which nothing is in use are left out.
    """

    by_row: dict[int, PortsInUse] = field(default_factory=dict)
    rows_of: dict[tuple[str, int], dict[int, int]] = field(default_factory=dict)

    def add(self, row: int, ports: tuple[HostPort, ...]) -> None:
        """A pod takes these ports on the row."""
        if not ports:
            return
        self.by_row.setdefault(row, PortsInUse()).add(ports)
        for port in ports:
            rows = self.rows_of.setdefault((port.protocol, port.port), {})
            rows[row] = rows.get(row, 0) + 1

    def remove(self, row: int, ports: tuple[HostPort, ...]) -> None:
        """A pod that took these ports on the row is there no more."""
        if not ports:
            return
        self.by_row[row].remove(ports)
        if not self.by_row[row]:
            del self.by_row[row]
        for port in ports:
            rows = self.rows_of[port.protocol, port.port]
            rows[row] -= 1
            if not rows[row]:
                del rows[row]
            if not rows:
                del self.rows_of[port.protocol, port.port]
