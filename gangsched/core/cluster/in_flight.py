"""Writes on their way: bindings that were sent until the watch shows them, and the progress of pre-bindings.

Bindings that were sent are facts, whatever a gang decides later: such a pod may be on its node already. They survive a
fault in their gang and a rebuild of the state, but not the process.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from gangsched.core.inventory import unbound
from gangsched.core.inventory.device_index import Devices
from gangsched.core.inventory.volume_index import Volumes
from gangsched.core.objects.devices import NOBODY
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.prebindings import Prebinding, PrebindingState, Taken, UseDevices


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


class Prebindings:
    """The pre-bindings of all gangs. `pending_prebindings` are those of claims, by what they take and by owner."""

    def __init__(
        self, volumes: Volumes, devices: Devices, pending_prebindings: Mapping[Taken, Mapping[str, Prebinding]]
    ) -> None:
        self._volumes = volumes
        self._devices = devices
        self._pending_prebindings = pending_prebindings
        self._undone: dict[tuple[str, ...], Prebinding] = {}

    def state_of(self, prebinding: Prebinding) -> PrebindingState:
        """The progress of the pre-binding; `GIVEN_UP` while a former one at the same location is being undone."""
        former = self._undone.get(prebinding.writes)
        if former is not None and self._is_shown(former):
            return PrebindingState.GIVEN_UP
        if isinstance(prebinding, UseDevices):
            return self._devices.state_of(prebinding)
        return unbound.state_of(self._volumes, prebinding, self._pending_prebindings)

    def shown(self, schedulers: Container[str]) -> list[Prebinding]:
        """The pre-bindings that objects show for members, of these schedulers, that are not bound yet."""
        return [*self._volumes.marked, *self._devices.users.shown(schedulers)]

    def is_asked_for(self, prebinding: Prebinding) -> bool:
        """Whether a claim of the ledger asks for this pre-binding, which an object shows."""
        asking = self._pending_prebindings.get(prebinding.takes[0], {})
        if isinstance(prebinding, UseDevices):
            return _is_use_asked_for(prebinding, asking)
        return prebinding in asking.values()

    def take_back(self, prebindings: Iterable[Prebinding]) -> None:
        """Set the pre-bindings that are being undone: what they have written no longer counts."""
        self._undone = {prebinding.writes: prebinding for prebinding in prebindings}

    def _is_shown(self, prebinding: Prebinding) -> bool:
        if isinstance(prebinding, UseDevices):
            return self._devices.users.shows(prebinding)
        return prebinding in self._volumes.marked


def _is_use_asked_for(use: UseDevices, asking: Mapping[str, Prebinding]) -> bool:
    """Whether one of these owners asks for the reservation, or any of them if there is only a mark."""
    if use.consumer == NOBODY:
        return bool(asking)
    if not use.consumer.group:
        return use.consumer.uid in asking
    return any(isinstance(asked, UseDevices) and asked.consumer == use.consumer for asked in asking.values())
