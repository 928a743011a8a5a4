"""What groups were told about their start, now and some time before it: how far from that they start."""

from __future__ import annotations

from collections import deque

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.expected_start import Basis, ExpectedStart

BEFORE_S = 300.0
"""A start is compared with what stood in the status so many seconds before."""


class ToldStarts:
    """The expected start of each group, as it was told last, and the earlier ones that may count."""

    def __init__(self) -> None:
        self.last: dict[GroupKey, ExpectedStart] = {}
        self._told: dict[GroupKey, deque[tuple[float, ExpectedStart]]] = {}
        self._errors: list[tuple[Basis, float]] = []

    def tell(self, key: GroupKey, start: ExpectedStart, now: float) -> None:
        """The group is told this start, and no other one any more."""
        self.last[key] = start
        told = self._told.setdefault(key, deque())
        told.append((now, start))
        while len(told) > 1 and told[1][0] <= now - BEFORE_S:
            told.popleft()

    def drop(self, key: GroupKey, began: float = 0.0) -> None:
        """The group waits no more. If it began then, in epoch seconds, what it was told some time before is judged."""
        self.last.pop(key, None)
        standing = [start for at, start in self._told.pop(key, ()) if at <= began - BEFORE_S]
        earliest, latest, basis = standing[-1][:3] if standing else ExpectedStart()[:3]
        if basis is not None:
            self._errors.append((basis, max(0.0, earliest - began, began - latest if latest else 0.0)))

    def take_errors(self) -> list[tuple[Basis, float]]:
        """For each group that has begun since the last call, the basis and how many seconds outside of the interval."""
        errors, self._errors = self._errors, []
        return errors
