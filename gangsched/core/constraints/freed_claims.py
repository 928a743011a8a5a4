"""The ResourceClaims that nobody uses any more, because pods have left a snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gangsched.core.inventory.device_index import Devices
from gangsched.core.objects.devices import Allocation, ResourceClaim
from gangsched.core.objects.offered_devices import ObjectKey


class FreedClaims:
    """The pods that have left, by UID (`gone`), and the allocations of claims whose devices are free since then.

    They are free once no known pod that has not left names the claim, and nobody else has reserved it.
    """

    def __init__(self, devices: Devices) -> None:
        self.gone: frozenset[str] = frozenset()
        self._devices = devices
        self._freed: dict[ObjectKey, Allocation] = {}

    def __contains__(self, claim: ObjectKey) -> bool:
        return claim in self._freed

    def recount(self, users: Mapping[str, Sequence[ResourceClaim]], sign: int) -> list[tuple[Allocation, int]]:
        """These pods, with the claims that end with them, leave (-1) or stay after all (1).

        Returns the allocations that end with that (-1), or count again (1).
        """
        self.gone = self.gone - users.keys() if sign > 0 else self.gone | users.keys()
        before, freed = self._freed, dict(self._freed)
        for uid, claims in users.items():
            for claim in claims:
                freed.pop(claim.key, None)
                using = {uid, *self._devices.users.of(claim.key), *claim.reserved}
                if claim.allocation is not None and using <= self.gone:
                    freed[claim.key] = claim.allocation
        self._freed = freed
        ended = [(each, -1) for key, each in freed.items() if key not in before]
        return ended + [(each, 1) for key, each in before.items() if key not in freed]
