"""The exhaustive search for a packing of several classes of members, within a budget of steps.

It is the last resort of `placement`: greedy orders find nearly everything; this finds the rest where the problem is
small enough to be searched. Nodes that no class can tell apart are interchangeable, so only one order of filling them
is tried.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gangsched.core.snapshot import MemberClass, Snapshot

BUDGET = 4000
"""Steps before the search gives up."""
WIDEST = 400
"""Largest number of nodes × classes that is searched."""

Share = tuple[MemberClass, int, int]


def size(snapshot: Snapshot, member: MemberClass) -> float:
    """The largest share of any node's largest amount of a resource that one member takes: 1.0 fills a node."""
    capacity = snapshot.cluster.capacity
    shares = [0.0]
    for resource, amount in member.shape.requests:
        column = capacity.column(resource)
        known = column is not None and snapshot.size > 0
        largest = int(capacity.allocatable[: snapshot.size, column].max()) if known else 0
        shares.append(amount / largest if largest else float("inf"))
    return max(shares)


def exhaustive(snapshot: Snapshot, counts: Mapping[MemberClass, int]) -> list[Share] | None:
    """Places for all members, taken on the snapshot; None, and nothing taken, if there are none or the budget ends."""
    classes = sorted(counts, key=lambda member: -size(snapshot, member))
    rows = np.flatnonzero(sum(snapshot.caps(member) for member in classes)).tolist()
    if len(rows) * len(classes) > WIDEST or _too_much_in_all(snapshot, counts, rows):
        return None
    accepts = {row: tuple(bool(snapshot.caps(member)[row]) for member in classes) for row in rows}
    rows.sort(key=lambda row: (accepts[row], snapshot.free[row].tolist(), snapshot.name(row)))
    attempt = _Search(snapshot=snapshot, classes=classes, counts=counts, rows=rows, accepts=accepts)
    mark = snapshot.mark()
    shares = attempt.run()
    if shares is None:
        snapshot.undo(mark)
    return shares


def _too_much_in_all(snapshot: Snapshot, counts: Mapping[MemberClass, int], rows: list[int]) -> bool:
    wanted: dict[str, int] = {}
    for member, count in counts.items():
        for resource, amount in member.shape.requests:
            wanted[resource] = wanted.get(resource, 0) + count * amount
    capacity = snapshot.cluster.capacity
    for resource, amount in wanted.items():
        column = capacity.column(resource)
        if column is None or amount > sum(max(0, int(snapshot.free[row, column])) for row in rows):
            return True
    return False


@dataclass(slots=True, kw_only=True)
class _Search:
    snapshot: Snapshot
    classes: list[MemberClass]
    counts: Mapping[MemberClass, int]
    rows: list[int]
    accepts: dict[int, tuple[bool, ...]]
    steps: int = 0

    def run(self) -> list[Share] | None:
        return self._class(0)

    def _class(self, which: int) -> list[Share] | None:
        if which == len(self.classes):
            return []
        member = self.classes[which]
        states = [(self.accepts[row], tuple(self.snapshot.free[row].tolist())) for row in self.rows]
        caps = self.snapshot.caps(member)
        room = [int(caps[row]) for row in self.rows]
        return self._row(which, at=0, left=self.counts[member], room=room, states=states, last=0)

    def _row(
        self, which: int, *, at: int, left: int, room: list[int], states: Sequence[tuple[object, ...]], last: int
    ) -> list[Share] | None:
        if left == 0:
            return self._class(which + 1)
        if at == len(self.rows) or sum(room[at:]) < left:
            return None
        most = min(left, room[at])
        if at and states[at] == states[at - 1]:
            most = min(most, last)
        row = self.rows[at]
        member = self.classes[which]
        for number in range(most, -1, -1):
            self.steps += 1
            if self.steps > BUDGET:
                return None
            mark = self.snapshot.mark()
            if number:
                self.snapshot.take(row, member, number)
            rest = self._row(which, at=at + 1, left=left - number, room=room, states=states, last=number)
            if rest is not None:
                return [(member, row, number), *rest] if number else rest
            self.snapshot.undo(mark)
        return None
