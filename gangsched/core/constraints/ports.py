"""Host ports: which are taken on a node, and whose pods can stand side by side."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from gangsched.core.objects.shape import HostPort

_EVERY_IP = HostPort(port=0).ip


class PortsInUse:
    """The host ports that pods take on one node.

    Ports are counted, so that `remove` undoes `add` exactly even where pods that another scheduler bound take one port
    twice. Falsy while no port is taken.
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
        """A pod that takes these ports stands on the node."""
        for port in ports:
            ips = self._taken.setdefault((port.protocol, port.port), {})
            ips[port.ip] = ips.get(port.ip, 0) + 1

    def remove(self, ports: Iterable[HostPort]) -> None:
        """A pod that took these ports has left.

        Raises:
            KeyError: one of the ports was never added.
        """
        for port in ports:
            ips = self._taken[port.protocol, port.port]
            ips[port.ip] -= 1
            if not ips[port.ip]:
                del ips[port.ip]
            if not ips:
                del self._taken[port.protocol, port.port]

    def without(self, leaving: PortsInUse) -> PortsInUse:
        """What is taken by the pods that stay when others leave; ports that none of them takes are passed over."""
        left = PortsInUse()
        for port, ips in self._taken.items():
            gone = leaving._taken.get(port, {})
            kept = {ip: number - gone.get(ip, 0) for ip, number in ips.items() if number > gone.get(ip, 0)}
            if kept:
                left._taken[port] = kept
        return left

    def look(self) -> Hashable:
        """Which ports are taken: equal for equal ones, however many pods take them."""
        return frozenset((port, ip) for port, ips in self._taken.items() for ip in ips)

    def conflicts(self, ports: Iterable[HostPort]) -> bool:
        """Whether one of the ports is taken: same protocol and number, and IPs that are equal or one of them 0.0.0.0.

        IPs are compared as text, as kube-scheduler does: `::` is no wildcard.
        """
        for port in ports:
            ips = self._taken.get((port.protocol, port.port))
            if ips and (port.ip == _EVERY_IP or port.ip in ips or _EVERY_IP in ips):
                return True
        return False


def self_conflicting(ports: tuple[HostPort, ...]) -> bool:
    """Whether two pods that take these ports cannot stand on one node: any port conflicts with itself."""
    return bool(ports)
