"""The pre-bindings under way, as they are on one snapshot, which pods may leave."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from gangsched.core.objects.prebindings import Prebinding, Taken


class Pending:
    """The pre-bindings of the cluster's pods without those of pods that have left.

    `by_taken` are these by what they take and by owner; it is the cluster's own mapping until a pod leaves.
    """

    def __init__(self, by_taken: Mapping[Taken, Mapping[str, Prebinding]]) -> None:
        self.by_taken = by_taken
        self._all = by_taken
        self._gone: set[str] = set()

    def recount(self, owners: Collection[str], sign: int) -> None:
        """Count the pre-bindings of these pods again (1), or no longer (-1)."""
        if not owners:
            return
        if sign < 0:
            self._gone.update(owners)
        else:
            self._gone.difference_update(owners)
        staying = {
            taken: {owner: prebinding for owner, prebinding in by_owner.items() if owner not in self._gone}
            for taken, by_owner in self._all.items()
        }
        self.by_taken = (
            {taken: by_owner for taken, by_owner in staying.items() if by_owner} if self._gone else self._all
        )
