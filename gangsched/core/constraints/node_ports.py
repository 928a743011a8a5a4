"""NodePorts: a node takes no pod with a host port that is already in use there.

Source: k8s.io/kubernetes pkg/scheduler/framework/plugins/nodeports and HostPortInfo of k8s.io/kube-scheduler/framework.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

import numpy as np

from gangsched.core.constraints.constraint import Constraint, Leavers, Member, Plan, Words, World
from gangsched.core.constraints.naming import port as named
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.indexes import uncount
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.reasons import NodeReason
from gangsched.core.objects.shape import HostPort

_EVERY_IP = HostPort(port=0).ip


class PortsInUse:
    """The host ports that pods use on one node.

    Ports are counted, so that `remove` reverts `add` exactly even if pods that another scheduler bound use a port
    twice. Falsy while no port is in use.
    """

    __slots__ = ("_taken",)

    def __init__(self) -> None:
        self._taken: dict[tuple[str, int], dict[str, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._taken)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PortsInUse) and self._taken == other._taken

    __hash__ = None  # type: ignore[assignment]

    def add(self, ports: Iterable[HostPort]) -> None:
        """Count a pod that uses these ports."""
        for port in ports:
            ips = self._taken.setdefault((port.protocol, port.port), {})
            ips[port.ip] = ips.get(port.ip, 0) + 1

    def remove(self, ports: Iterable[HostPort]) -> None:
        """Stop counting a pod that used these ports.

        Raises:
            KeyError: one of the ports was never added.
        """
        for port in ports:
            ips = self._taken[port.protocol, port.port]
            uncount(ips, port.ip)
            if not ips:
                del self._taken[port.protocol, port.port]

    def copy(self) -> PortsInUse:
        """An independent copy."""
        copy = PortsInUse()
        copy._taken = {port: dict(ips) for port, ips in self._taken.items()}
        return copy

    def digest(self) -> Hashable:
        """A digest of the ports in use, regardless of how many pods use each."""
        return frozenset((port, ip) for port, ips in self._taken.items() for ip in ips)

    def conflicts(self, ports: Iterable[HostPort]) -> bool:
        """Whether one of the ports is in use: same protocol and number, and equal IPs or one of them 0.0.0.0.

        IPs are compared as text, as in kube-scheduler: `::` is no wildcard.
        """
        for port in ports:
            ips = self._taken.get((port.protocol, port.port))
            if ips and (port.ip == _EVERY_IP or port.ip in ips or _EVERY_IP in ips):
                return True
        return False


_NONE = PortsInUse()


class NodePorts(Constraint):
    """The filter of this name."""

    proves = True
    words = (
        Words(
            NodeReason.HOST_PORT,
            "with the host port {resource} taken",
            "a host port other than {resource}, or the end of the pod that uses it: taken on {nodes}",
        ),
    )

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._by_row: dict[int, PortsInUse] = {}
        self._by_port: dict[tuple[str, int], dict[int, int]] = {}

    def add(self, pod: Pod, row: int) -> None:
        """Count the pod's ports on the row."""
        if pod.shape.host_ports:
            self._by_row.setdefault(row, PortsInUse()).add(pod.shape.host_ports)
        for port in pod.shape.host_ports:
            rows = self._by_port.setdefault((port.protocol, port.port), {})
            rows[row] = rows.get(row, 0) + 1

    def remove(self, pod: Pod, row: int) -> None:
        """Stop counting the pod's ports on the row."""
        for port in pod.shape.host_ports:
            rows = self._by_port[port.protocol, port.port]
            uncount(rows, row)
            if not rows:
                del self._by_port[port.protocol, port.port]
        if pod.shape.host_ports:
            self._by_row[row].remove(pod.shape.host_ports)
            if not self._by_row[row]:
                del self._by_row[row]

    def state(self) -> object:
        """The ports by row, and the rows by port."""
        return self._by_row, self._by_port

    def on(self, row: int) -> PortsInUse:
        """The ports in use on the row; read-only."""
        return self._by_row.get(row, _NONE)

    def rows_taking(self, ports: Iterable[HostPort]) -> list[int]:
        """The rows on which one of the ports is in use."""
        rows = {row for port in ports for row in self._by_port.get((port.protocol, port.port), ())}
        return [row for row in rows if self._by_row[row].conflicts(ports)]

    def plan(self, *, emptied: bool) -> Plan:
        """The ports of a snapshot."""
        return _Plan(NodePorts(self._world) if emptied else self, self._world.nodes.size)


class _Plan(Plan):
    """The ports on one snapshot. `_changed` holds the rows whose ports differ from the cluster."""

    about = frozenset({"host_ports"})

    def __init__(self, before: NodePorts, size: int) -> None:
        self._before = before
        self._size = size
        self._changed: dict[int, PortsInUse] = {}
        self._closed_before: dict[tuple[HostPort, ...], Mask] = {}

    def room(self, member: Member, rows: IntArray) -> IntArray | None:
        """One where the ports are free, because every port conflicts with itself."""
        if not member.shape.host_ports:
            return None
        return np.where(self._closed(member.shape.host_ports)[rows], 0, 1)

    def take(self, member: Member, rows: IntArray, counts: IntArray) -> None:
        """Count the members' ports on these rows, or uncount them where negative."""
        ports = member.shape.host_ports
        for row, count in zip(rows.tolist(), counts.tolist(), strict=True) if ports else ():
            self._own(row).add(ports * count)
            self._own(row).remove(ports * -count)

    def recount(self, leavers: Leavers, sign: int) -> None:
        """Count the pods' ports again (1), or no longer (-1)."""
        for alike in leavers.alike:
            for row in alike.rows.tolist() if alike.shape.host_ports else ():
                change = self._own(row).add if sign > 0 else self._own(row).remove
                change(alike.shape.host_ports)

    def refusals(self, member: Member, rows: IntArray) -> Iterator[tuple[str, str, Mask]]:
        """For each port, the rows where it is in use."""
        for port in dict.fromkeys(member.shape.host_ports):
            yield NodeReason.HOST_PORT, named(port), self._closed((port,))[rows]

    def digest(self, rows: IntArray) -> Hashable:
        """A digest of the ports in use on these rows."""
        return tuple(self._changed.get(row, self._before.on(row)).digest() for row in rows.tolist())

    def excludes(self, member: Member, other: Member) -> bool:
        """Whether they have a port in common."""
        taken = PortsInUse()
        taken.add(member.shape.host_ports)
        return taken.conflicts(other.shape.host_ports)

    def _own(self, row: int) -> PortsInUse:
        if row not in self._changed:
            self._changed[row] = self._before.on(row).copy()
        return self._changed[row]

    def _closed(self, ports: tuple[HostPort, ...]) -> Mask:
        """The rows on which one of the ports is in use."""
        known = self._closed_before.get(ports)
        if known is None:
            known = np.zeros(self._size, dtype=np.bool_)
            known[self._before.rows_taking(ports)] = True
            self._closed_before[ports] = known
        closed = known.copy()
        for row, own in self._changed.items():
            closed[row] = own.conflicts(ports)
        return closed
