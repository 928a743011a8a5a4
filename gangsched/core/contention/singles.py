"""Members above the minimum of their gangs that leave for open plans."""

from __future__ import annotations

from collections.abc import Collection

from gangsched.core.gang import preempted
from gangsched.core.membership.members import Members
from gangsched.core.objects.declaration import GroupKey


class Singles:
    """The `gangs` with such members."""

    def __init__(self, members: Members) -> None:
        self._members = members
        self.gangs: dict[GroupKey, None] = {}

    def evict(self, key: GroupKey, uids: Collection[str], now: float) -> None:
        """These members of the gang leave from now on."""
        preempted.part_with(self._members.gangs[key], uids, now)
        self.gangs[key] = None
        self._members.dirty.note(key)

    def keep(self, wanted: Collection[str]) -> None:
        """Let all others stay, but those whose evictions are on their way only once these are refused."""
        for key in [*self.gangs]:
            gang = self._members.gangs.get(key)
            if gang is None or gang.operations.parting is None:
                del self.gangs[key]
            elif preempted.keep_all_but(gang, wanted):
                self._members.dirty.note(key)
