"""How far pre-bindings have come, by what the objects show, and which of them are being taken back."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from gangsched.core.cluster import unbound
from gangsched.core.cluster.devices import Devices
from gangsched.core.cluster.volumes import Volumes
from gangsched.core.objects.prebindings import Prebinding, Standing, Taken, UseDevices


class Prebindings:
    """Those of all gangs. `spoken_for`: what the ledger's claims ask for, by what it takes and by owner."""

    def __init__(
        self, volumes: Volumes, devices: Devices, spoken_for: Mapping[Taken, Mapping[str, Prebinding]]
    ) -> None:
        self._volumes = volumes
        self._devices = devices
        self._spoken_for = spoken_for
        self._undone: dict[tuple[str, ...], Prebinding] = {}

    def standing(self, prebinding: Prebinding) -> Standing:
        """How far it has come; given up while a former one in its place is being taken back."""
        former = self._undone.get(prebinding.writes)
        if former is not None and self._is_shown(former):
            return Standing.GIVEN_UP
        if isinstance(prebinding, UseDevices):
            return self._devices.standing(prebinding)
        return unbound.standing(self._volumes, prebinding)

    def shown(self, schedulers: Container[str]) -> list[Prebinding]:
        """Those that objects show and whose members, of these schedulers, are not bound yet."""
        return [*self._volumes.marked, *self._devices.shown(schedulers)]

    def is_asked_for(self, prebinding: Prebinding) -> bool:
        """Whether a claim of the ledger asks for what an object shows."""
        asking = self._spoken_for.get(prebinding.takes[0], {})
        if isinstance(prebinding, UseDevices):
            return prebinding.pod_uid in asking if prebinding.pod_uid else bool(asking)
        return prebinding in asking.values()

    def take_back(self, prebindings: Iterable[Prebinding]) -> None:
        """From now on these are being taken back, and no others: what they have written counts no longer."""
        self._undone = {each.writes: each for each in prebindings}

    def _is_shown(self, prebinding: Prebinding) -> bool:
        if isinstance(prebinding, UseDevices):
            return self._devices.shows(prebinding)
        return prebinding in self._volumes.marked
