"""The bindings that were sent to the API server, until the watch shows their pods on a node.

They are facts, whatever a gang decides later: such a pod may be on its node already. They survive a fault in their gang
and a rebuild of the state, but not the process.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from gangsched.core.objects.pod import Pod


class Flight(Struct, frozen=True):
    """A binding to this node. `confirmed`: the API server has made it; otherwise its result has not arrived."""

    node: str
    confirmed: bool = False


class Flights:
    """The last binding of each pod, by UID, and to which nodes bindings of a waiting pod were ever sent."""

    def __init__(self) -> None:
        self._flights: dict[str, Flight] = {}
        self._nodes: dict[str, set[str]] = {}

    def __iter__(self) -> Iterator[str]:
        """The pods of which something is remembered."""
        return iter({**self._flights, **self._nodes})

    def of(self, uid: str) -> Flight | None:
        """The pod's binding; None if none is on its way."""
        return self._flights.get(uid)

    def awaited(self, uid: str) -> str:
        """The node of a binding of the pod whose result has still to arrive; empty if there is none."""
        flight = self._flights.get(uid)
        return flight.node if flight is not None and not flight.confirmed else ""

    def are_shown_by(self, old: Pod | None, new: Pod) -> bool:
        """Whether the pod's new form shows only that it is on the node to which its binding was confirmed before."""
        flight = self._flights.get(new.uid)
        if flight is None or not flight.confirmed or flight.node != new.node or old is None or old.node:
            return False
        also = {"condition_reason": new.condition_reason, "condition_message": new.condition_message}
        return new == replace(old, node=new.node, bound_at=new.bound_at, lifetime=new.lifetime, **also)

    def sent(self, uid: str, node: str) -> None:
        """A binding of the pod to the node is sent."""
        self._flights[uid] = Flight(node)
        self._nodes.setdefault(uid, set()).add(node)

    def confirmed(self, uid: str, node: str) -> None:
        """The API server has bound the pod to the node."""
        if self._leads_to(uid, node):
            self._flights[uid] = Flight(node, confirmed=True)

    def refused(self, uid: str, node: str) -> None:
        """The API server has not bound the pod to the node, or was not asked after all."""
        if self._leads_to(uid, node):
            del self._flights[uid]

    def ended(self, uid: str) -> set[str]:
        """The watch shows that the pod is on a node, or gone. Returns the nodes to which bindings were sent."""
        self._flights.pop(uid, None)
        return self._nodes.pop(uid, set())

    def _leads_to(self, uid: str, node: str) -> bool:
        flight = self._flights.get(uid)
        return flight is not None and flight.node == node
