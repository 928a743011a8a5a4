"""The pre-bindings under way, as they are on one snapshot, which pods may leave."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from gangsched.core.objects.prebindings import Prebinding, Taken


class Pending:
    """The pre-bindings of the cluster's pods without those of pods that have left.

    `by_taken` are these by what they take and by owner; it is the cluster's own mapping until a pod leaves.
    """

    def __init__(self, there: Mapping[Taken, Mapping[str, Prebinding]]) -> None:
        self.by_taken = there
        self._there = there
        self._gone: set[str] = set()

    def recount(self, owners: Collection[str], sign: int) -> None:
        """Count the pre-bindings of these pods again (1), or no longer (-1)."""
        if not owners:
            return
        if sign < 0:
            self._gone.update(owners)
        else:
            self._gone.difference_update(owners)
        found = {
            taken: {owner: each for owner, each in by_owner.items() if owner not in self._gone}
            for taken, by_owner in self._there.items()
        }
        self.by_taken = (
            {taken: by_owner for taken, by_owner in found.items() if by_owner} if self._gone else self._there
        )
