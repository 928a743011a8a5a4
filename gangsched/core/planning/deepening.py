"""Continues searches that were cut short before a quorum was found or proved impossible: lowest priority, in slices.

A search that ran out of steps is repeated with each of `EFFORTS` times the steps, a slice in each call of the machine.
If members do not depend on each other, the search works on a copy and its result is tried on the cluster as it is then;
if they do, it ends as soon as the cluster changes. A gang that is refused again with the same request while its search
is running does not restart it.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, replace

from gangsched.core.cluster.cache import Cluster
from gangsched.core.cluster.labels import Domain
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.planning import budget as units
from gangsched.core.planning.budget import Budget
from gangsched.core.planning.dependence import any_couples
from gangsched.core.planning.placement import Ask, Placement, domains_of, quorum_in
from gangsched.core.planning.search import STEPS, Pausing, Selection, Share, Steps
from gangsched.core.planning.snapshot import Snapshot

EFFORTS = (4, 16)
_LEAST = 64 * units.STEP
"""Least budget, in units, that must be left in a call for a search to continue."""


@dataclass(slots=True)
class _Search:
    """`work` is None before the search starts and after it ends; `found` is its result, with the domain."""

    ask: Ask
    priority: int | None
    budget: Budget
    work: Pausing[Selected | None] | None = None
    ended: bool = False
    found: Selected | None = None


@dataclass(frozen=True, slots=True)
class Selected:
    """The kinds of members that were selected and their places; all of them in the domain, if there is one."""

    domain: Domain | None
    selection: Selection
    shares: list[Share]


class Deepening:
    """The searches by gang, in the order in which they were requested."""

    def __init__(self) -> None:
        self._searches: dict[GroupKey, _Search] = {}

    @property
    def waits(self) -> bool:
        """Whether a search is still running."""
        return any(not search.ended for search in self._searches.values())

    def want(self, key: GroupKey, ask: Ask, priority: int | None) -> None:
        """Start a search for the gang, with more steps than the one that ran out, unless the same one is running."""
        ask = _anywhere(ask)
        known = self._searches.get(key)
        if known is None or known.ended or known.ask != ask:
            self._searches[key] = _Search(ask, priority, Budget(0))

    def drop(self, key: GroupKey) -> None:
        """End the gang's search: the gang is placed, or no longer needs a place."""
        self._searches.pop(key, None)

    def go_on(self, cluster: Cluster, budget: Budget) -> GroupKey | None:
        """Continue searches while the budget lasts. Returns the first gang that has a result, None if there is none."""
        for key, search in self._searches.items():
            while not search.ended and budget.left >= _LEAST:
                began = search.budget.spent
                search.budget.leave(budget.left)
                self._continue(search, cluster)
                budget.charge(max(units.STEP, search.budget.spent - began))
            if search.ended and search.found is not None:
                return key
        return None

    def take(self, key: GroupKey, ask: Ask, snapshot: Snapshot) -> Placement | None:
        """Take the places found for this gang, if its request is unchanged and they are still free."""
        search = self._searches.get(key)
        if search is None or search.found is None:
            return None
        del self._searches[key]
        found = search.found
        if search.ask != _anywhere(ask):
            return None
        mark = snapshot.mark()
        snapshot.begin(ask.own)
        quorum = quorum_in(snapshot, search.ask, found.domain)
        for member, row, number in found.shares:
            if member not in quorum.room or snapshot.caps(member)[row] < number:
                snapshot.undo(mark)
                return None
            snapshot.take(row, member, number)
        snapshot.undo(mark)
        snapshot.begin(ask.own)
        return Placement(tuple(quorum.place(found.selection, found.shares)))

    def validate(self, alive: Container[GroupKey]) -> Iterator[str]:
        """Inconsistencies, each as a sentence."""
        yield from (f"{key}: a search is kept although the gang is gone" for key in self._searches if key not in alive)

    def _continue(self, search: _Search, cluster: Cluster) -> None:
        if search.work is None:
            search.work = _searching(search.ask, search.priority, search.budget, cluster)
        try:
            next(search.work)
        except StopIteration as end:
            search.ended, search.found, search.work = True, end.value, None


def _anywhere(ask: Ask) -> Ask:
    return replace(ask, avoided=frozenset(), refused=frozenset())


def _searching(ask: Ask, priority: int | None, budget: Budget, cluster: Cluster) -> Pausing[Selected | None]:
    """Search with each effort in each domain, until a quorum is found or proved impossible."""
    for effort in EFFORTS:
        certain, hopeless = True, True
        for domain in domains_of(_fresh(cluster, ask, priority, budget), ask):
            snapshot, changes = _fresh(cluster, ask, priority, budget), cluster.changes
            quorum = quorum_in(snapshot, ask, domain)
            volatile = any_couples(snapshot, list(quorum.room))
            steps = Steps(STEPS * effort, budget=budget, pauses=True)
            work = quorum.search(quorum.slots.number, steps)
            while True:
                try:
                    next(work)
                except StopIteration as end:
                    found = end.value
                    break
                yield
                if volatile and cluster.changes != changes:
                    return None
            if found is not None:
                return Selected(domain, *found)
            certain &= not steps.ended
            hopeless &= steps.left == STEPS * effort
            yield
        # More steps do not help a search that was too large to start.
        if certain or hopeless:
            return None
    return None


def _fresh(cluster: Cluster, ask: Ask, priority: int | None, budget: Budget) -> Snapshot:
    snapshot = Snapshot(cluster, budget=budget)
    if priority is not None:
        snapshot.count_nominated(priority)
    snapshot.begin(ask.own)
    return snapshot
