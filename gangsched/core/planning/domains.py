"""Chooses the topology domain of a quorum, and how many domains it takes where one is preferred but none has room.

Members that are already placed decide: the gang stays where most of them are. Otherwise the domains that take the
quorum are compared: first by how many of the members that exist each of them takes, so that those above the minimum are
not shut out by the choice for the minimum; then by which members make the quorum; then by utilisation (`topology`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from gangsched.core.cluster.labels import Area
from gangsched.core.constraints.constraint import Plan
from gangsched.core.objects.declaration import Topology
from gangsched.core.planning import budget as units
from gangsched.core.planning import topology
from gangsched.core.planning.ask import Ask, asked_for, classes_of, confined
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.dependence import bond
from gangsched.core.planning.filling import fill_singly
from gangsched.core.planning.snapshot import Snapshot
from gangsched.core.planning.topology import RecentRequests, worth_trying
from gangsched.core.planning.trial import Placement, Unfinished, found_in

_MOST_RUNS = 64
"""Beyond this many runs of equal members in their order, further members are counted class by class."""
_TRIED = 64
"""Limit for the number of combinations of equally many domains that are tried."""
_DROPPED = 32
"""Limit for the number of domains that are left out again on trial."""


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
    values = topology.candidates(snapshot, Topology(key), bonded, max(1, ask.need - others))
    best = best_domain(snapshot, ask, key, values, recent, of=bonded)
    if best is None or isinstance(best, Unfinished):
        return best
    return found_in(snapshot, ask, (key, best), of=bonded)


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
    plans = [plan for plan in snapshot.plans if type(plan).shared_digest is not Plan.shared_digest]
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
        mark, broken_off = snapshot.mark(), snapshot.budget.broken_off
        found = found_in(snapshot, ask, (key, value), of=of)
        if found is None:
            failed[value] = digest
            if snapshot.budget.broken_off > broken_off:
                unsure[value] = digest
        else:
            scores.append((_score(snapshot, ask, (key, value), found, of=of), value))
            snapshot.undo(mark)
    if not scores and any(failed.get(value) == digest for value, digest in unsure.items()):
        snapshot.budget.broke_off()
    return max(scores, key=itemgetter(0))[1] if scores else None


def _score(
    snapshot: Snapshot, ask: Ask, area: Area, found: Placement, *, of: Collection[MemberClass] | None = None
) -> _Score:
    """How good it is to place the quorum like this, which is taken on the snapshot."""
    there = {pod.uid for pod, _ in found.assignments}
    chosen = tuple(-at for at, pod in enumerate(ask.members) if pod.uid in there)
    utilisation = topology.utilisation(snapshot, found.assignments)
    return _Score(len(there) + _further(snapshot, ask, area, there, of=of), chosen, utilisation)


def _further(
    snapshot: Snapshot, ask: Ask, area: Area, there: Collection[str], *, of: Collection[MemberClass] | None = None
) -> int:
    """How many members can be placed there beside the quorum, in their order."""
    rest = [pod for pod in (*ask.members, *ask.following) if pod.uid not in there]
    left = len(rest) if ask.most is None else min(len(rest), max(0, ask.most - len(there)))
    classes = confined(snapshot, rest, ask.avoided, area, of=of) if left else {}
    runs = [(member, len(list(run))) for member, run in groupby(rest if left else (), key=lambda pod: classes[pod.uid])]
    if len(runs) > _MOST_RUNS:
        runs = list(Counter(classes[pod.uid] for pod in rest).items())
    mark, number, closed = snapshot.mark(), 0, set[MemberClass]()
    for member, count in runs:
        wanted = min(count, left - number)
        while wanted and member not in closed:
            placed = sum(each for _, _, each in fill_singly(snapshot, member, wanted, strategy=ask.strategy, prefer=()))
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
    wanted = Topology(key)
    rooms = topology.rooms(snapshot, wanted, classes_of(snapshot, ask))
    used = tuple(value for value in topology.occupied(snapshot, wanted, snapshot.by_row(ask.own)) if value in rooms)
    others = {value: found for value, found in rooms.items() if found[0] and value not in used}
    began = snapshot.budget.spent

    def best(areas: Iterable[tuple[str, ...]]) -> tuple[str, ...] | None:
        scores: list[tuple[_Score, tuple[str, ...]]] = []
        for tried, values in enumerate(areas):
            if tried >= _TRIED or len(scores) >= topology.COMPARED or snapshot.budget.spent - began > units.DOMAINS:
                break
            mark = snapshot.mark()
            found = found_in(snapshot, ask, (key, values))
            if found is not None:
                scores.append((_score(snapshot, ask, (key, values), found), values))
                snapshot.undo(mark)
        return max(scores, key=itemgetter(0))[1] if scores else None

    there = sum(rooms[value][0] for value in used)
    for number in range(not used, len(others) + 1):
        combined = topology.combinations(others, number, ask.need - there)
        chosen = best((*used, *values) for values in combined)
        if chosen is not None:
            return found_in(snapshot, ask, (key, chosen))
        if snapshot.budget.spent - began > units.DOMAINS:
            break
    return _found_by_adding(snapshot, ask, key, used, sorted(others, key=lambda value: (-others[value][0], value)))


def _found_by_adding(
    snapshot: Snapshot, ask: Ask, key: str, used: tuple[str, ...], others: Sequence[str]
) -> Placement | None:
    """Take places in the first of the other domains that together with those used take the quorum."""

    def fits(values: Sequence[str]) -> bool:
        mark = snapshot.mark()
        found = found_in(snapshot, ask, (key, (*used, *values)))
        snapshot.undo(mark)
        return found is not None

    low, high = 0, len(others)
    if not fits(others):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(others[:middle]) else (middle, high)
    chosen = list(others[:high])
    for value in [*reversed(chosen)][:_DROPPED]:
        fewer = [each for each in chosen if each != value]
        chosen = fewer if fits(fewer) else chosen
    return found_in(snapshot, ask, (key, (*used, *chosen)))
