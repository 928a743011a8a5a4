"""The earliest moment at which an ask is placed, when others end by themselves and nobody is evicted.

What runs leaves in the order of its ends. Whether the ask is placed once a prefix of it has left is monotonic but for
what members ask about other pods, so the shortest prefix is found by bisection over the distinct ends, from the first
one on that sums do not exclude. It goes on from call to call like `leaving.Search`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Generator, Sequence
from operator import itemgetter
from typing import NamedTuple

from msgspec import Struct

from gangsched.core.cluster.claims import Claim
from gangsched.core.planning import budget as units
from gangsched.core.planning.ask import Ask
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.freed_sums import FreedSums
from gangsched.core.planning.placement import fits, place
from gangsched.core.planning.trial import Placement

_LEAVES = 100
"""Cost, in units of the budget, of each pod that leaves for a trial or comes back."""
_SORTED, _READ = 15, 30
"""The same of each pod that is put in its place, and whose amounts are read for the sums."""

_GROWS = 4


class Departure(NamedTuple):
    """A claim that ends then, in epoch seconds or one of `core.contention.ends`' values for unknown ends."""

    end: float
    claim: Claim


class Later(Struct, frozen=True):
    """The ask is placed at `start`, once those that are `leaving` its nodes until then have left. None: never."""

    start: float
    placement: Placement | None
    leaving: Sequence[Departure] = ()


class Earliest:
    """One search among these departures: call `go_on`, each time on a snapshot of the same cluster for the same viewer,
    until it has a result. Who has left by itself meanwhile, or was changed, is where the snapshot says.
    """

    def __init__(self, ask: Ask, departures: Sequence[Departure], now: float) -> None:
        self._ask = ask
        # Who ends at the same time leaves together.
        self._departures = sorted(departures, key=itemgetter(0))
        self._ends = [departure.end for departure in self._departures]
        self._now = now
        self._running: Generator[None, None, Later] | None = None
        self._away = 0
        self._mark: int | None = None

    def go_on(self, snapshot: Snapshot) -> Later | None:
        """Search until there is a result or the snapshot's budget is spent (None). The snapshot is as before."""
        self._snapshot = snapshot
        if self._running is None:
            self._running = self._search()
        try:
            next(self._running)
        except StopIteration as stopped:
            later: Later = stopped.value
            return later
        finally:
            self._restore()
        return None

    def _search(self) -> Generator[None, None, Later]:
        moments = [self._now, *dict.fromkeys(end for end in self._ends if end > self._now)]
        # Before that the sums exclude it. From there on it is searched in steps that grow, because who leaves late is
        # costly to let leave.
        self._snapshot.budget.charge(_SORTED * len(self._departures))
        yield from self._pause()
        sums = FreedSums(self._snapshot, self._ask, [departure.claim for departure in self._departures])
        self._snapshot.budget.charge(_READ * len(self._departures))
        yield from self._pause()
        first = bisect_left(moments, True, key=lambda at: sums.could(bisect_right(self._ends, at)))
        if first == len(moments):
            return Later(float("inf"), None)
        least, most, step = first - 1, first, 1
        while not (yield from self._works(moments[most])):
            if most == len(moments) - 1:
                return Later(float("inf"), None)
            least, most, step = most, min(most + step, len(moments) - 1), _GROWS * step
        while most - least > 1:
            middle = (least + most) // 2
            if (yield from self._works(moments[middle])):
                most = middle
            else:
                least = middle
        return self._at(moments[most])

    def _works(self, moment: float) -> Generator[None, None, bool]:
        self._let_leave(moment)
        works = fits(self._snapshot, self._ask)
        self._snapshot.budget.charge(units.MEMBER * len(self._ask.members))
        yield from self._pause()
        return works

    def _pause(self) -> Generator[None, None, None]:
        """Let the call end if its budget is spent."""
        if not self._snapshot.budget:
            self._restore()
            yield

    def _at(self, moment: float) -> Later:
        self._let_leave(moment)
        mark = self._snapshot.mark()
        placement = place(self._snapshot, self._ask)
        self._snapshot.undo(mark)
        if not isinstance(placement, Placement):
            return Later(float("inf"), None)
        nodes = {node for _, node in placement.assignments}
        leaving = [departure for departure in self._departures[: self._away] if departure.claim.node in nodes]
        # What is placed may need less than what has left by then.
        return Later(max((departure.end for departure in leaving), default=self._now), placement, leaving)

    def _let_leave(self, moment: float) -> None:
        """Let all have left that end until then, and nobody else."""
        if self._mark is None:
            self._mark, self._away = self._snapshot.mark(), 0
        until = bisect_right(self._ends, moment)
        first, last = sorted((self._away, until))
        claims = self._snapshot.cluster.ledger.claims
        present = (claims.get(departure.claim.pod.uid) for departure in self._departures[first:last])
        changed = [claim for claim in present if claim is not None and claim.counts]
        if until > self._away:
            self._snapshot.leave(changed)
        else:
            self._snapshot.stay(changed)
        self._away = until
        self._snapshot.budget.charge(_LEAVES * len(changed))

    def _restore(self) -> None:
        if self._mark is not None:
            self._snapshot.undo(self._mark)
        self._mark = None
