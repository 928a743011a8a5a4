"""Where every member of a gang goes, decided at once: `place(snapshot, ask)` gives a Placement or a Refusal.

Members of one class (equal shape, closed out by the same existing pods) are counted, not walked: how many of them a
node takes is arithmetic on the capacity matrix, which is exact for a gang of one class. Several classes are a packing
problem: they are tried scarcest first, then largest first, and small cases that still fail are searched exhaustively
within a budget, so that what can fit does fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gangsched.core import search
from gangsched.core.model import Pod
from gangsched.core.refusal import Refusal, refuse
from gangsched.core.snapshot import MemberClass, Snapshot
from gangsched.core.strategies import STRATEGIES, Room, Strategy

Counts = dict[MemberClass, int]
Share = tuple[MemberClass, int, int]
"""(class, row, how many)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a gang asks for: of `members`, in the order in which they are to be tried, `need` must be placed.

    `role_needs` are minima among them by role; `own` counts members that are bound already, by node.
    """

    members: Sequence[Pod]
    need: int
    role_needs: Mapping[str, int] = field(default_factory=dict)
    strategy: str = "Pack"
    own: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Placement:
    """A node for each member of the quorum; the snapshot has it taken."""

    assignments: tuple[tuple[Pod, str], ...]


def place(snapshot: Snapshot, ask: Ask) -> Placement | Refusal:
    """Find places for the quorum on the snapshot, which keeps them taken; a refusal leaves it as it was.

    Members that fit nowhere are passed over while the minimum and each role's can still be reached (contract rule 8).
    """
    _mark_own(snapshot, ask.own)
    classes = classify(snapshot, ask.members)
    found = _quorum(snapshot, ask, classes)
    if found is not None:
        return Placement(tuple(found))
    ever = snapshot.emptied()
    never = _quorum(ever, ask, classify(ever, ask.members)) is None
    return refuse(
        snapshot,
        classes=[classes[pod.uid] for pod in ask.members],
        wanted=ask.need,
        failing=_first_short(snapshot, ask, classes),
        never=never,
    )


def classify(snapshot: Snapshot, members: Iterable[Pod]) -> dict[str, MemberClass]:
    """Each member's class, by UID."""
    if not snapshot.heeds_pods:
        return {pod.uid: MemberClass(pod.shape) for pod in members}
    return {pod.uid: MemberClass(pod.shape, snapshot.cluster.forbidden(pod)) for pod in members}


def _mark_own(snapshot: Snapshot, own: Mapping[str, int]) -> None:
    snapshot.own[:] = 0
    for node, count in own.items():
        row = snapshot.cluster.capacity.rows.get(node)
        if row is not None and row < snapshot.size:
            snapshot.own[row] = count


def _quorum(snapshot: Snapshot, ask: Ask, classes: Mapping[str, MemberClass]) -> list[tuple[Pod, str]] | None:
    strategy = STRATEGIES[ask.strategy]
    tried: list[list[Pod]] = []
    passed: set[str] = set()
    while True:
        chosen = _choose(ask, ask.members, passed)
        if chosen is None:
            break
        tried.append(chosen)
        shares, short = _fill(snapshot, _count(chosen, classes), strategy)
        if not short:
            return _assign(snapshot, chosen, classes, shares)
        passed |= _last_of(chosen, classes, short)
    by_size = sorted(ask.members, key=lambda pod: search.size(snapshot, classes[pod.uid]))
    smallest = _choose(ask, by_size, set())
    if smallest is not None and smallest not in tried:
        tried.append(smallest)
        shares, short = _fill(snapshot, _count(smallest, classes), strategy)
        if not short:
            return _assign(snapshot, smallest, classes, shares)
    for chosen in tried:
        counts = _count(chosen, classes)
        if len(counts) > 1 and (exact := search.exhaustive(snapshot, counts)) is not None:
            return _assign(snapshot, chosen, classes, exact)
    return None


def _choose(ask: Ask, members: Sequence[Pod], passed: set[str]) -> list[Pod] | None:
    """The first members, in order, that satisfy each role's need and the whole; None if too few are left."""
    able = [pod for pod in members if pod.uid not in passed]
    owed = {role: need for role, need in ask.role_needs.items() if need > 0}
    free = ask.need - sum(owed.values())
    chosen = []
    for pod in able:
        role = pod.declaration.role if pod.declaration else ""
        if owed.get(role, 0) > 0:
            owed[role] -= 1
        elif free > 0:
            free -= 1
        else:
            continue
        chosen.append(pod)
    return chosen if free <= 0 and not any(owed.values()) else None


def _count(members: Iterable[Pod], classes: Mapping[str, MemberClass]) -> Counts:
    counts: Counts = {}
    for pod in members:
        member = classes[pod.uid]
        counts[member] = counts.get(member, 0) + 1
    return counts


def _last_of(chosen: Sequence[Pod], classes: Mapping[str, MemberClass], short: Counts) -> set[str]:
    left = dict(short)
    passed = set()
    for pod in reversed(chosen):
        member = classes[pod.uid]
        if left.get(member, 0) > 0:
            left[member] -= 1
            passed.add(pod.uid)
    return passed


def _fill(snapshot: Snapshot, counts: Counts, strategy: Strategy) -> tuple[list[Share], Counts]:
    """Place all classes, or none: the shares, or which class was short by how many in the first order tried."""
    room = {member: int(snapshot.caps(member).sum()) for member in counts}
    hopeless = {member: count - room[member] for member, count in counts.items() if room[member] < count}
    if hopeless:
        return [], hopeless
    scarcest = sorted(counts, key=lambda member: (room[member] / counts[member], -search.size(snapshot, member)))
    largest = sorted(counts, key=lambda member: -search.size(snapshot, member))
    orders = [scarcest] if largest == scarcest else [scarcest, largest]
    attempts = [(order, chosen) for chosen in _with_fallback(strategy) for order in orders]
    first_short: Counts = {}
    for order, chosen in attempts:
        mark = snapshot.mark()
        shares: list[Share] = []
        for member in order:
            placed = fill_class(snapshot, member, counts[member], chosen)
            shares += placed
            missing = counts[member] - sum(count for _, _, count in placed)
            if missing:
                first_short = first_short or {member: missing}
                snapshot.undo(mark)
                break
        else:
            return shares, {}
    return [], first_short


def _with_fallback(strategy: Strategy) -> list[Strategy]:
    """The wanted strategy, then Pack: a gang that fits only when packed is packed rather than refused."""
    pack = STRATEGIES["Pack"]
    return [strategy] if strategy is pack else [strategy, pack]


def fill_class(snapshot: Snapshot, member: MemberClass, count: int, strategy: Strategy) -> list[Share]:
    """Place as many as possible of `count` members of one class, by the strategy."""
    caps = snapshot.caps(member)
    rows = np.flatnonzero(caps)
    total = min(count, int(caps.sum()))
    if not total:
        return []
    room = Room(
        rows=rows,
        caps=np.minimum(caps[rows], total),
        fullness=snapshot.fullness(member.shape, rows),
        own=snapshot.own[rows],
        rank=snapshot.cluster.rank()[rows],
    )
    shares = strategy.distribute(room, total)
    for row, number in shares:
        snapshot.take(row, member, number)
    return [(member, row, number) for row, number in shares]


def _assign(
    snapshot: Snapshot, chosen: Sequence[Pod], classes: Mapping[str, MemberClass], shares: Iterable[Share]
) -> list[tuple[Pod, str]]:
    places: dict[MemberClass, list[str]] = {}
    for member, row, count in shares:
        places.setdefault(member, []).extend([snapshot.name(row)] * count)
    for names in places.values():
        names.reverse()
    return [(pod, places[classes[pod.uid]].pop()) for pod in chosen]


def _first_short(snapshot: Snapshot, ask: Ask, classes: Mapping[str, MemberClass]) -> MemberClass:
    chosen = _choose(ask, ask.members, set()) or list(ask.members)
    _, short = _fill(snapshot, _count(chosen, classes), STRATEGIES[ask.strategy])
    return next(iter(short), classes[chosen[0].uid])
