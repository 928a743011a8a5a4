"""Topology domains that were looked at in vain, so that looking through thousands of them goes on where it stopped.

A domain that has not changed since need not be looked at again, neither in the next call of the machine nor when room
has been freed in another one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

from gangsched.core.planning.snapshot import Snapshot

_KEPT = 256
_LOOK = 100
"""Units for finding out that a domain has not changed."""


class Hunts:
    """For so many different requests, what each domain looked like when it was found not to take the quorum."""

    def __init__(self) -> None:
        self._failed: dict[Hashable, dict[str, int]] = {}

    def of(self, asked: Hashable) -> dict[str, int]:
        """The domains that did not take this quorum, with their looks."""
        failed = self._failed.pop(asked, {})
        self._failed[asked] = failed
        if len(self._failed) > _KEPT:
            del self._failed[next(iter(self._failed))]
        return failed


def to_look_at(
    snapshot: Snapshot, key: str, values: Sequence[str], failed: Mapping[str, int]
) -> Iterator[tuple[str, int]]:
    """The domains that may take a quorum which these did not, with their looks: first those never looked at."""
    for value in sorted(values, key=failed.__contains__):
        snapshot.budget.charge(_LOOK)
        look = snapshot.look(key, value)
        if failed.get(value) != look:
            yield value, look
