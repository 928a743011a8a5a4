"""The progress of pre-bindings, as the objects show it, and the pre-bindings that are being undone."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from gangsched.core.inventory import unbound
from gangsched.core.inventory.device_index import Devices
from gangsched.core.inventory.volume_index import Volumes
from gangsched.core.objects.devices import NOBODY
from gangsched.core.objects.prebindings import Prebinding, PrebindingState, Taken, UseDevices


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
        self._undone = {each.writes: each for each in prebindings}

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
    return any(isinstance(each, UseDevices) and each.consumer == use.consumer for each in asking.values())
