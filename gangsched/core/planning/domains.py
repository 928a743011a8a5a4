"""Chooses the topology domain of a quorum, and how many domains it takes where one is preferred but none has room.

Members that are already placed decide: the gang stays where most of them are. Otherwise the domains that take the
quorum are compared: first by how many of the members that exist each of them takes, so that those above the minimum are
not shut out by the choice for the minimum; then by which members make the quorum; then by utilisation (`topology`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from gangsched.core.cluster.labels import Within
from gangsched.core.objects.declaration import Topology
from gangsched.core.planning import budget as units
from gangsched.core.planning import topology
from gangsched.core.planning.ask import Ask, asked_for, classes_of, confined
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.dependence import bond, depends
from gangsched.core.planning.filling import fill_singly
from gangsched.core.planning.part_choice import quorum_in
from gangsched.core.planning.search import STEPS
from gangsched.core.planning.topology import RecentRequests, worth_trying
from gangsched.core.planning.trial import Placement, Unfinished, found_in

_MOST_RUNS = 64
"""Beyond this many runs of equal members in their order, further members are counted class by class."""
_STEPS = STEPS // 16
"""Limit of steps of the exhaustive search for a trial of several domains, of which there may be many."""


class _Score(NamedTuple):
    """The number of members that exist which domains take, the members of the quorum (earlier ones are larger), and
    the utilisation of their nodes.
    """

    takes: int
    chosen: tuple[int, ...]
    utilisation: float


def found_together(snapshot: Snapshot, ask: Ask, recent: RecentRequests | None) -> Placement | Unfinished | None:
    """Find places by trying each domain for the members whose affinity requires all of them to share one."""
    bonds = {member: bond(snapshot, member) for member in dict.fromkeys(classes_of(snapshot, ask))}
    key = max(bonds.values(), default="")
    if not key:
        return None
    bonded = [member for member in classes_of(snapshot, ask) if bonds[member] == key]
    others = len(ask.members) - len(bonded)
    rooms = topology.candidates(snapshot, Topology(key), bonded, max(1, ask.need - others))
    values = {value: takes + others for value, takes in rooms.items()}
    best = best_domain(snapshot, ask, key, values, recent, of=bonded)
    if best is None or isinstance(best, Unfinished):
        return best
    return found_in(snapshot, ask, ((key, best),), of=bonded)


def best_domain(
    snapshot: Snapshot,
    ask: Ask,
    key: str,
    values: Mapping[str, int],
    recent: RecentRequests | None,
    *,
    of: Collection[MemberClass] | None = None,
) -> str | Unfinished | None:
    """The best of the domains that take the quorum; None if none does. `of` is as in `quorum_in`.

    `values` are the domains, in the order in which to try them, with the most members that each may take.
    """
    scores: list[tuple[_Score, str]] = []
    began = snapshot.budget.spent
    asked = key, asked_for(snapshot, ask)
    failed, unsure = (recent.of(asked), recent.of((*asked, "unsure"))) if recent is not None else ({}, {})
    plans = snapshot.having["shared_digest"]
    members = dict.fromkeys(classes_of(snapshot, ask))
    shared_digest = hash(tuple(plan.shared_digest(member) for plan in plans for member in members))
    for value, digest in worth_trying(snapshot, key, list(values), failed, shared_digest):
        best = max((score.takes for score, _ in scores), default=0)
        if values[value] < best or (values[value] == best and len(scores) >= topology.COMPARED):
            continue
        if recent is not None and snapshot.budget.spent - began > units.DOMAINS:
            if not scores:
                return Unfinished()
            break
        snapshot.budget.charge(units.TRIED * len(ask.members))
        mark, broken_off = snapshot.mark(), snapshot.budget.broken_off
        placement = found_in(snapshot, ask, ((key, value),), of=of)
        if placement is None:
            failed[value] = digest
            if snapshot.budget.broken_off > broken_off:
                unsure[value] = digest
        else:
            scores.append((_score(snapshot, ask, ((key, value),), placement, of=of), value))
            snapshot.undo(mark)
    if not scores and any(failed.get(value) == digest for value, digest in unsure.items()):
        snapshot.budget.broke_off()
    return max(scores, key=itemgetter(0))[1] if scores else None


def roomiest_domain(snapshot: Snapshot, ask: Ask, wanted: Topology) -> str | None:
    """The domain that takes most of a quorum that fits into none, ties broken by name; None if there is no domain.

    Members that compete for a node count in the bound by which the domains are ordered, but not in what they take. Only
    some are tried, within a limit; members that are alike take what the bound says.
    """
    members = classes_of(snapshot, ask)
    if len(set(members)) == 1 and not depends(members[0]):
        return topology.roomiest(snapshot, wanted, members)
    rooms = topology.rooms(snapshot, wanted, members)
    order = sorted(rooms, key=lambda value: (-rooms[value][0], value))
    roomiest, most = next(iter(order), None), 0
    until = snapshot.budget.spent + units.DOMAINS
    for value in order[: topology.COMPARED]:
        if rooms[value][0] <= most or snapshot.budget.spent > until:
            break
        snapshot.budget.charge(units.TRIED * len(members))
        mark = snapshot.mark()
        snapshot.begin(ask.own)
        takes, _, _ = quorum_in(snapshot, ask, ((wanted.key, value),)).take_most()
        snapshot.undo(mark)
        if takes > most:
            roomiest, most = value, takes
    return roomiest


def _score(
    snapshot: Snapshot, ask: Ask, within: Within, placement: Placement, *, of: Collection[MemberClass] | None = None
) -> _Score:
    """How good it is to place the quorum like this, which is taken on the snapshot."""
    placed = {pod.uid for pod, _ in placement.assignments}
    chosen = tuple(-at for at, pod in enumerate(ask.members) if pod.uid in placed)
    utilisation = topology.utilisation(snapshot, placement.assignments)
    return _Score(len(placed) + _further(snapshot, ask, within, placed, of=of), chosen, utilisation)


def _further(
    snapshot: Snapshot, ask: Ask, within: Within, quorum: Collection[str], *, of: Collection[MemberClass] | None = None
) -> int:
    """How many members can be placed there beside the quorum, in their order."""
    rest = [pod for pod in (*ask.members, *ask.following) if pod.uid not in quorum]
    left = len(rest) if ask.most is None else min(len(rest), max(0, ask.most - len(quorum)))
    classes = confined(snapshot, rest, ask.avoided, within, of=of) if left else {}
    runs = [(member, len(list(run))) for member, run in groupby(rest if left else (), key=lambda pod: classes[pod.uid])]
    if len(runs) > _MOST_RUNS:
        runs = list(Counter(classes[pod.uid] for pod in rest).items())
    mark, number, closed = snapshot.mark(), 0, set[MemberClass]()
    for member, count in runs:
        wanted = min(count, left - number)
        while wanted and member not in closed:
            placed = sum(part for _, _, part in fill_singly(snapshot, member, wanted, strategy=ask.strategy, prefer=()))
            if not placed:
                closed.add(member)
            wanted -= placed
            number += placed
    snapshot.undo(mark)
    return number


def found_in_fewest(snapshot: Snapshot, ask: Ask, key: str) -> Placement | None:
    """Take places for the quorum in as few domains as possible, beside those where members are already placed.

    None if no domain may help, or if the quorum needs nodes without the label. Small cases are searched to the end;
    beyond that, domains are added from the one that takes most and dropped again where the others are enough.
    """
    fewest = _Fewest(snapshot, ask, key)
    chosen = fewest.combined() or fewest.added()
    return found_in(snapshot, ask, ((key, chosen),), steps=_STEPS) if chosen else None


class _Fewest:
    """The choice of several domains: those `_used` by members, and some of the `_others`. Nothing stays taken."""

    def __init__(self, snapshot: Snapshot, ask: Ask, key: str) -> None:
        self._snapshot = snapshot
        self._ask = ask
        self._key = key
        wanted = Topology(key)
        rooms = topology.rooms(snapshot, wanted, classes_of(snapshot, ask))
        self._used = tuple(topology.occupied(snapshot, wanted, snapshot.by_row(ask.own)))
        self._takes = sum(rooms[value][0] for value in self._used)
        self._others = {value: room for value, room in rooms.items() if room[0] and value not in self._used}
        self._until = snapshot.budget.spent + units.DOMAINS

    def combined(self) -> tuple[str, ...] | None:
        """The best of the smallest choices that take the quorum; None if none is found within the budget."""
        for number in range(not self._used, len(self._others) + 1):
            scores: list[tuple[_Score, tuple[str, ...]]] = []
            for values in topology.combinations(self._others, number, self._ask.need - self._takes):
                if len(scores) == topology.COMPARED or self._is_spent():
                    break
                score = self._try((*self._used, *values))
                if score is not None:
                    scores.append((score, (*self._used, *values)))
            if scores:
                return max(scores, key=itemgetter(0))[1]
            if self._is_spent():
                break
        return None

    def added(self) -> tuple[str, ...] | None:
        """The first domains, those that take most before others, without those that are not needed."""
        order = sorted(self._others, key=lambda value: (-self._others[value][0], value))
        few, enough = 0, len(order)
        self._until = self._snapshot.budget.spent + units.DOMAINS
        if self._try((*self._used, *order)) is None:
            return None
        while enough - few > 1 and not self._is_spent():
            middle = (few + enough) // 2
            if self._try((*self._used, *order[:middle])) is None:
                few = middle
            else:
                enough = middle
        chosen = order[:enough]
        for value in reversed(order[:enough]):
            fewer = [other for other in chosen if other != value]
            if self._is_spent():
                break
            if self._try((*self._used, *fewer)) is not None:
                chosen = fewer
        return (*self._used, *chosen)

    def _is_spent(self) -> bool:
        return self._snapshot.budget.spent > self._until

    def _try(self, values: tuple[str, ...]) -> _Score | None:
        """How good it is to place the quorum in these domains; None if they do not take it."""
        within, mark = ((self._key, values),), self._snapshot.mark()
        self._snapshot.budget.charge(units.TRIED * len(self._ask.members))
        placement = found_in(self._snapshot, self._ask, within, steps=_STEPS)
        if placement is None:
            return None
        score = _score(self._snapshot, self._ask, within, placement)
        self._snapshot.undo(mark)
        return score
