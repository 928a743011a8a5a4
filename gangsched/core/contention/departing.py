"""When everything that is on nodes ends, found out from call to call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
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
    """When these claims end, as far as that is known."""

    def __init__(self, claims: Iterable[Claim], end_of: Callable[[Claim], End]) -> None:
        self._ends: dict[str, End] = {}
        self._departures: list[Departure] = []
        self._left: Iterator[Claim] = iter([*claims])
        self._end_of = end_of

    def go_on(self, budget: Budget) -> list[Departure] | None:
        """All of them in the order in which they are waited for; None if the budget ends before that is known."""
        while budget:
            claims = [*islice(self._left, _AT_ONCE)]
            if not claims:
                return ranked(self._departures)
            for claim in claims:
                end = self._ends[claim.pod.uid] = self._end_of(claim)
                self._departures.append(Departure(end.promised, claim))
            budget.charge(_END * len(claims))
        return None

    def ends_of(self, departures: Iterable[Departure]) -> dict[str, End]:
        """When these end, by UID."""
        return {claim.pod.uid: self._ends[claim.pod.uid] for _, claim in departures}

    def distrust(self, uids: Collection[str]) -> None:
        """These, by UID, are not taken at their word: nothing but a limit ends them."""
        self._ends |= {uid: End(end.certain, end.certain) for uid, end in self._ends.items() if uid in uids}
        self._departures = [Departure(self._ends[claim.pod.uid].promised, claim) for _, claim in self._departures]
