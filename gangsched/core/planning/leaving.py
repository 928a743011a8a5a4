"""Searches for the units that must leave so that an ask can be placed: the least important ones, at the least loss.

1. By sums: what is free and what units free is less than asked for. Then there is no way.
2. The lowest level at which it works if all units up to it may leave, found by bisection from the lowest one that the
   sums do not exclude.
3. At that level, `victims` chooses by sums; more and more units leave until the ask is really placed, in the end all.
4. Reprieve: units stay that need not leave, the most important first, until none can be spared. Where the sums are
   exact they decide that alone (`sparing`). Else they, and what each row was measured to take once all had left, tell
   who must leave; the ask is placed anew to see whether all others can stay, and if not for half of them, and so on.
5. Improvement: the same without one of the chosen, while that takes little.

A search goes on from call to call, each time on a snapshot of the same cluster, and changes no snapshot for longer than
a trial. Every trial is done whole on one snapshot, so its result does not depend on where a call ends. A "no" is
certain unless it says that it is `exhausted`.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping
from typing import TypeVar

from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.planning import budget as units
from gangsched.core.planning.after import After, NoWay
from gangsched.core.planning.ask import Ask
from gangsched.core.planning.away import Departures
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.counted import Counted, matched
from gangsched.core.planning.filling import classify
from gangsched.core.planning.placement import fits, place
from gangsched.core.planning.removable import Removable
from gangsched.core.planning.sparing import Sums, first_spared
from gangsched.core.planning.trial import Placement
from gangsched.core.planning.victim_sets import VictimSets

MOST_TRIALS = 400
"""Limit for the number of times that one search places the ask."""
MOST_LEAVING = 20_000
"""Limit for the number of pods that leave for a trial, which takes about a microsecond for each of their resources."""
_LEAVES = 100
"""Cost, in units of the budget, of each pod that leaves for a trial and comes back, beyond what `Snapshot` charges."""
_ROW = 4
"""The same for each row of the snapshot."""
_FACTORS = tuple(1 << at for at in range(7))
"""For so many times the members there is room by the sums in the first trials; then all units leave."""

_IMPROVING = 300_000
"""Limit, in units of the budget, for improving a set that is known already."""
_CROWD = 3
"""That limit is so much lower for each row and pair of unit and row: among many, one unit less seldom gains much."""
_STEPS = 20_000
"""Limit of the steps of all exhaustive searches for places in a trial, divided by the number of members."""
_Chosen = frozenset[int]
_Result = TypeVar("_Result")
_Steps = Generator[None, None, tuple[Mask, _Chosen] | None]
"""Steps that find among which units some are, after whose departure the ask is placed, and these."""


class _EffortEndedError(Exception):
    """The effort for one search has ended."""


class Search:
    """One search: call `go_on`, each time on a snapshot of the same cluster for the same viewer, until it has a result.

    Units of `removable` may leave whose level is `below` this one (None: all), and which are not `passed` (by name),
    within the `allowed` evictions of disruption budgets, by name. What they have worked counts until `now`.
    """

    def __init__(
        self,
        ask: Ask,
        removable: Removable,
        allowed: Mapping[str, int],
        *,
        below: int | None = None,
        passed: Collection[str] = (),
        now: float = 0.0,
    ) -> None:
        self.trials = 0
        self._ask = ask
        self._removable = removable
        self._allowed = allowed
        self._below = below
        self._passed = passed
        self._now = now
        self._unsure = False
        # Units of the budget that were spent so far, as if each trial began on a new snapshot: the same for all slices.
        self._effort = 0
        self._round_effort = 0
        self._departures = Departures(removable)
        self._running: Generator[None, None, After | NoWay] | None = None
        self._result: After | NoWay | None = None
        # Whether a unit that stays may help.
        self._helped = any(pod.shape.affinity or pod.shape.spread for pod in ask.members)

    def go_on(self, snapshot: Snapshot) -> After | NoWay | None:
        """Search until there is a result or the snapshot's budget is spent (None). The snapshot is as before."""
        self._snapshot = snapshot
        # What the members ask about other pods is counted from here on, also on a snapshot of a later call.
        classify(snapshot, self._ask.members, self._ask.avoided)
        if self._running is None:
            self._running = self._search()
        if self._result is None:
            try:
                next(self._running)
            except StopIteration as stopped:
                self._result = stopped.value
            except _EffortEndedError:
                self._result = NoWay(exhausted=True)
            self._departures.restore(self._snapshot)
        return self._result

    def _search(self) -> Generator[None, None, After | NoWay]:
        self._counted = counted = Counted(self._snapshot, self._ask, self._removable, self._now)
        self._helped &= not counted.spread_alone
        self.open_rows = counted.open
        self._sets = VictimSets(counted, self._allowed)
        eligible = self._removable.eligible(self._allowed, below=self._below, passed=self._passed, now=self._now)
        if counted.number and not counted.could(eligible):
            return NoWay(hopeless=True)
        yield from self._pause()
        levels: list[int | None] = [None, *sorted(set(self._removable.levels[eligible].tolist()))]
        steps = [self._removable.up_to(eligible, level) for level in levels]
        least, most = 0, len(levels) - 1
        while least < most and counted.number:
            middle = (least + most) // 2
            if counted.could(steps[middle]):
                most = middle
            else:
                least = middle + 1
        lowest = yield from self._lowest(steps[least:])
        if lowest is None:
            return NoWay(exhausted=self._unsure or self._sets.refused)
        before = self._effort
        leaving = yield from self._reprieved(lowest[1])
        self._round_effort += self._effort - before
        leaving = yield from self._improved(leaving, lowest[0])
        result = self._after(leaving)
        return NoWay(exhausted=True) if result is None else result

    # Trials

    def _pause(self) -> Generator[None, None, None]:
        """Let the call end if its budget is spent."""
        if not self._snapshot.budget:
            self._departures.restore(self._snapshot)
            yield

    def _paid(self, steps: Generator[int, None, _Result]) -> Generator[None, None, _Result]:
        """Take steps that yield what they take of the budget."""
        while True:
            try:
                price = next(steps)
            except StopIteration as stopped:
                result: _Result = stopped.value
                return result
            self._effort += price
            self._snapshot.budget.charge(price)
            yield from self._pause()

    def _works(self, chosen: Collection[int]) -> Generator[None, None, bool]:
        """Whether the ask is placed once these have left."""
        if self.trials >= MOST_TRIALS:
            raise _EffortEndedError
        number = sum(len(self._removable.units[at].claims) for at in chosen)
        if number > MOST_LEAVING:
            self._unsure = True
            return False
        self.trials += 1
        changed = self._departures.let_leave(self._snapshot, chosen)
        snapshot, members = self._snapshot, len(self._ask.members)
        self._effort += _LEAVES * number + units.MEMBER * members + _ROW * snapshot.size
        broken_off = snapshot.budget.broken_off
        snapshot.budget.most_steps = _STEPS // max(1, members)
        try:
            works = fits(snapshot, self._ask)
        finally:
            snapshot.budget.most_steps = None
        snapshot.budget.charge(_LEAVES * changed + units.MEMBER * members + _ROW * snapshot.size)
        self._unsure |= not works and snapshot.budget.broken_off > broken_off
        yield from self._pause()
        return works

    def _after(self, leaving: Collection[int]) -> After | None:
        self._departures.let_leave(self._snapshot, leaving)
        mark = self._snapshot.mark()
        placement = place(self._snapshot, self._ask)
        self._snapshot.undo(mark)
        if not isinstance(placement, Placement):
            return None
        victims = tuple(self._removable.units[at] for at in sorted(leaving))
        return After(placement, victims, max((unit.level for unit in victims), default=None))

    # Levels

    def _lowest(self, steps: list[Mask]) -> _Steps:
        """Units after whose departure the ask is placed, of the lowest of these levels at which there are any."""
        lowest = yield from self._at(steps[0])
        least, most = 0, len(steps) - 1
        if lowest is not None or not most:
            return lowest
        lowest = yield from self._at(steps[most])
        while lowest is not None and most - least > 1:
            middle = (least + most) // 2
            lower = yield from self._at(steps[middle])
            if lower is None:
                least = middle
            else:
                lowest, most = lower, middle
        return lowest

    def _at(self, eligible: Mask) -> _Steps:
        """Units among these after whose departure the ask is placed; None if there are none, or none are found."""
        ways = [eligible]
        if self._helped:
            self._unsure = True
            terms = {term for pod in self._ask.members for term in pod.shape.affinity}
            # Members may be placed only where these stay.
            staying = eligible & ~matched(self._removable, terms, self._snapshot)
            ways = [staying, eligible] if (staying != eligible).any() else ways
        for way in ways:
            before: set[_Chosen] = set()
            for factor in _FACTORS:
                before_it = self._effort
                chosen = yield from self._paid(self._sets.cheapest(way, factor))
                self._round_effort = self._effort - before_it
                if not chosen:
                    break
                for victims in chosen:
                    if victims not in before and (yield from self._works(victims)):
                        return way, victims
                before.update(chosen)
            whole = self._sets.whole(way)
            if whole not in before and (yield from self._works(whole)):
                return way, whole
        return None

    # Reprieve

    def _reprieved(self, chosen: _Chosen) -> Generator[None, None, _Chosen]:
        """Those of the chosen that must leave once every other has been spared.

        Where sums do not tell, and that takes little, once the most important are spared first, and once those with
        which most work is lost.
        """
        if chosen in self._sets.least:
            return chosen
        limits = yield from self._limits(chosen)
        least = yield from self._least(chosen, limits, by_work=False)
        if self._counted.faithful or self._helped or not self._sets.is_small:
            return least
        other = yield from self._least(chosen, limits, by_work=True)
        return min(least, other, key=lambda victims: self._removable.badness(victims, self._counted.costs))

    def _least(
        self, chosen: _Chosen, limits: list[IntArray] | None, *, by_work: bool
    ) -> Generator[None, None, _Chosen]:
        """Those of the chosen that must leave after so many rounds of reprieve that no other could stay."""
        while True:
            self._unsure = False
            fewer = yield from self._spared(chosen, limits, by_work=by_work)
            # Where whoever stays only takes room, who could not be spared before cannot be spared later.
            if fewer == chosen or not (self._unsure or self._helped):
                return fewer
            chosen = fewer

    def _limits(self, chosen: _Chosen) -> Generator[None, None, list[IntArray] | None]:
        """How many members rows take at most once no more than the chosen have left; None if others may help them."""
        if self._helped or self._counted.spread_alone:
            return None
        self._departures.let_leave(self._snapshot, chosen)
        limits = self._counted.measured(self._snapshot)
        yield from self._pause()
        return limits

    def _spared(
        self, chosen: _Chosen, limits: list[IntArray] | None, *, by_work: bool
    ) -> Generator[None, None, _Chosen]:
        """One round of reprieve, the most important first, or those first with which most work is lost: all of whom the
        sums say that they can stay, or where that fails half of them, and so on.
        """
        removable = self._removable
        sums = Sums(self._counted, chosen, limits)
        self._snapshot.budget.charge(sums.cost)
        left = removable.from_most_important(chosen, self._counted.costs, by_work=by_work)
        number = len(left)
        while left:
            spared, walked = yield from self._paid(first_spared(sums, left, number, removable))
            if not spared:
                break
            works = yield from self._works(sums.away)
            if not works:
                for at in spared:
                    sums.leave(at)
            if works:
                left = left[walked:]
            elif len(spared) == 1:
                # Those after it were refused as if it stayed.
                left = left[left.index(spared[0]) + 1 :]
            number = 2 * number if works else max(1, len(spared) // 2)
        return frozenset(sums.away)

    def _improved(self, chosen: _Chosen, eligible: Mask) -> Generator[None, None, _Chosen]:
        """The chosen, or a better set found without one of them; only where little effort finds it."""
        removable, costs = self._removable, self._counted.costs
        best, left = chosen, sorted(chosen, key=lambda at: (-costs[at], at))
        most = self._effort + _IMPROVING - _CROWD * self._sets.size
        while left and self._effort + self._round_effort <= most:
            at, began = left.pop(0), self._effort
            without = eligible.copy()
            without[[at, *removable.takers.get(at, ())]] = False
            sets = yield from self._paid(self._sets.cheapest(without, 1))
            if not self._counted.faithful:
                sets = [*sets[:2], self._sets.whole(without)]
            for other in dict.fromkeys(sets):
                better = yield from self._better(other, best)
                if better != best:
                    best, left = better, sorted(better, key=lambda at: (-costs[at], at))
            self._round_effort = max(self._round_effort, self._effort - began)
        return best

    def _better(self, other: _Chosen, best: _Chosen) -> Generator[None, None, _Chosen]:
        """What must leave of the other set, if that is better and found with little effort; else the best."""
        removable, costs = self._removable, self._counted.costs
        if self._counted.faithful and removable.badness(other, costs) >= removable.badness(best, costs):
            return best
        try:
            if not (yield from self._works(other)):
                return best
            needed = yield from self._reprieved(other)
        except _EffortEndedError:
            return best
        return min(needed, best, key=lambda chosen: removable.badness(chosen, costs))
