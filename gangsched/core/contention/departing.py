"""When everything that is on nodes ends, found out from call to call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from gangsched.core.cluster.claims import Claim
from gangsched.core.contention.covering import ranked
from gangsched.core.contention.ends import End
from gangsched.core.planning.budget import Budget
from gangsched.core.planning.earliest import Departure

_END = 60
"""Cost, in units of the budget, of finding out when a pod ends, and of putting it in its place among others."""
_AT_ONCE = 200


class Departing:
    """The `ends` of these claims, by UID, as far as they are known."""

    def __init__(self, claims: Iterable[Claim], end_of: Callable[[Claim], End]) -> None:
        self.ends: dict[str, End] = {}
        self._found: list[Departure] = []
        self._left: Iterator[Claim] = iter([*claims])
        self._end_of = end_of

    def go_on(self, budget: Budget) -> list[Departure] | None:
        """All of them in the order in which they are waited for; None if the budget ends before that is known."""
        while budget:
            several = [*islice(self._left, _AT_ONCE)]
            if not several:
                return ranked(self._found)
            for claim in several:
                end = self.ends[claim.pod.uid] = self._end_of(claim)
                self._found.append(Departure(end.promised, claim))
            budget.charge(_END * len(several))
        return None
