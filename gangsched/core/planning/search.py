"""The exhaustive search for a packing of several classes of members, within a budget of steps.

It is the last resort of `quorum`: greedy orders find nearly everything. Where the problem is small enough, the search
finds the rest or proves that no packing exists. Nodes that no remaining class can tell apart are interchangeable, so
only one order of filling them is tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice
from typing import NamedTuple

import numpy as np
from msgspec import Struct, field

from gangsched.core.objects.pod import Pod, role_of
from gangsched.core.planning import budget as units
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.classes import MemberClass

STEPS = 20_000
"""Limit of steps for one search. A step is the evaluation of one class on one row and takes a microsecond or two."""
WIDEST = 400
"""Largest number of nodes × classes that is searched; a larger problem counts as cut short."""
MOST_KINDS = 64
"""Largest number of kinds of members of which selections are tried; with more kinds nothing is searched."""
_KIND_STEPS = 4
_TRIAL_STEPS = 4

Share = tuple[MemberClass, int, int]
"""(class, row, number of members)"""
Kind = tuple[MemberClass, str]
"""Members that neither a node nor the group's roles can tell apart: class and role."""
Selection = Mapping[Kind, int]


class Steps(Struct):
    """The steps that are left for one search, charged to the budget of the whole call.

    `ended`: the search was cut short, so what it did not find may still exist.
    """

    left: int = STEPS
    ended: bool = False
    budget: units.Budget = field(default_factory=units.Budget)

    def __post_init__(self) -> None:
        """Heed the limit that holds for all searches with this budget."""
        if self.budget.most_steps is not None:
            self.left = min(self.left, self.budget.most_steps)

    def break_off(self) -> None:
        """Cut the search short: it is too large to finish."""
        self.ended = True
        self.budget.broke_off()

    def rests_on(self, other: Steps) -> None:
        """Count as cut short if that search was, which is a part of this one."""
        self.ended |= other.ended

    def spend(self, steps: int = 1) -> bool:
        """Spend this many steps. If fewer are left, returns False and sets `ended`."""
        if steps > self.left:
            self.break_off()
            return False
        self.left -= steps
        self.budget.charge(units.STEP * steps)
        return True


class Slots(NamedTuple):
    """The composition of a quorum: the number of members of each role, and of members with any role (`free`)."""

    roles: Mapping[str, int]
    free: int

    @classmethod
    def of(cls, need: int, roles: Mapping[str, int]) -> Slots:
        """The slots for `need` members, with these minima by role."""
        return cls(roles, max(0, need - sum(roles.values())))

    @property
    def number(self) -> int:
        """The quorum's size."""
        return self.free + sum(self.roles.values())

    def open_to(self, role: str) -> int:
        """The number of members of the role that the slots take."""
        return self.roles.get(role, 0) + self.free

    def without(self, role: str, number: int) -> Slots:
        """The slots that stay open after `number` members of the role have filled some, the role's own slots first."""
        own = self.roles.get(role, 0)
        return Slots({**self.roles, role: max(0, own - number)}, self.free - max(0, number - own))

    def first_of(self, members: Iterable[Pod]) -> list[Pod]:
        """The first members, in order, that fill the slots, those of their own role first; fewer if too few fit."""
        if not self.roles:
            return list(islice(members, self.free))
        owed, free, most = dict(self.roles), self.free, self.number
        chosen = []
        for pod in members:
            role = role_of(pod)
            if owed.get(role, 0) > 0:
                owed[role] -= 1
            elif free > 0:
                free -= 1
            else:
                continue
            chosen.append(pod)
            if len(chosen) == most:
                break
        return chosen


def size(snapshot: Snapshot, member: MemberClass) -> float:
    """The largest share that one member takes of the amount of a resource on the largest node: 1.0 fills that node."""
    capacity = snapshot.cluster.capacity
    shares = [0.0]
    for resource, amount in member.shape.requests:
        column = capacity.column(resource)
        largest = 0 if column is None else int(capacity.allocatable[: snapshot.size, column].max(initial=0))
        shares.append(amount / largest if largest else float("inf"))
    return max(shares)


def selections(kinds: Sequence[tuple[Kind, int, int]], slots: Slots, number: int) -> Iterator[Selection]:
    """The ways to choose `number` members that each fill a slot; selections with most of the first kinds come first.

    `kinds` are (kind, members, least number of them to choose).
    """
    if number < sum(least for _, _, least in kinds):
        return
    if number == 0:
        yield {}
    elif number <= _fillable(kinds, slots):
        (kind, count, least), *rest = kinds
        for chosen in range(min(count, number, slots.open_to(kind[1])), least - 1, -1):
            for others in selections(rest, slots.without(kind[1], chosen), number - chosen):
                yield {kind: chosen, **others}


def _fillable(kinds: Sequence[tuple[Kind, int, int]], slots: Slots) -> int:
    """The largest number of slots that these members can fill."""
    by_role: Counter[str] = Counter()
    for (_, role), count, _ in kinds:
        by_role[role] += count
    in_roles = sum(min(count, slots.roles.get(role, 0)) for role, count in by_role.items())
    return in_roles + min(slots.free, by_role.total() - in_roles)


State = tuple[tuple[int, ...], int, tuple[int, ...]]
"""The amount of each resource that a row has left, a bit mask of the classes that it is closed to, and how many members
of each class it takes at most, for what is no amount, such as devices."""
Found = list[tuple[int, int, int]]
"""(number of the class, position of the row, number of members)"""


class Search:
    """The search on one snapshot with classes that each fit somewhere; `find` runs it for a selection.

    It takes nothing on the snapshot.
    """

    def __init__(self, snapshot: Snapshot, classes: Sequence[MemberClass], steps: Steps) -> None:
        self._steps = steps
        self._classes = classes
        caps = np.array([snapshot.caps(member) for member in classes])
        open_ = caps > 0
        rows = np.flatnonzero(open_.any(axis=0)).tolist()
        if len(rows) * len(classes) > WIDEST:
            rows = []
            steps.break_off()
        amounts = [
            {
                (at, number): amount
                for at, plan in enumerate(snapshot.plans)
                for number, amount in plan.amounts(member).items()
            }
            for member in classes
        ]
        columns = sorted(set().union(*amounts))
        left = [snapshot.plans[at].left(number, np.array(rows, dtype=np.int64)).tolist() for at, number in columns]
        states = {
            row: (tuple(free), sum(1 << int(i) for i in np.flatnonzero(~open_[:, row])), tuple(caps[:, row].tolist()))
            for row, *free in zip(rows, *left, strict=True)
        }
        self._rows = sorted(rows, key=lambda row: (states[row], snapshot.name(row)))
        self._states = [states[row] for row in self._rows]
        self._needs = [[(columns.index(column), need) for column, need in amount.items()] for amount in amounts]
        self._clashes = _clashes(snapshot, classes)
        self._counts: tuple[int, ...] = ()
        self._failed: set[tuple[int, ...]] = set()

    def find(self, selection: Selection) -> list[Share] | None:
        """Places for all members of the selection; None if there are none or the steps run out."""
        counts = Counter[MemberClass]()
        for (member, _), count in selection.items():
            counts[member] += count
        self._counts = tuple(counts[member] for member in self._classes)
        if not self._steps.spend(_KIND_STEPS * len(selection)) or self._counts in self._failed:
            return None
        placed = self._places(0, self._states)
        if placed is None:
            self._failed.add(self._counts)
            return None
        return [(self._classes[which], self._rows[at], number) for which, at, number in placed]

    def _places(self, which: int, states: Sequence[State]) -> Found | None:
        """Places for the classes from this one on."""
        if which == len(self._counts):
            return []
        if not self._steps.spend(len(states) * (len(self._counts) - which) + 1):
            return None
        if self._too_little(which + 1, states):
            return None
        step = _Step(which, [self._room(which, state) for state in states], states)
        return self._fill(step, 0, self._counts[which])

    def _too_little(self, first: int, states: Sequence[State]) -> bool:
        """Whether a class from this one on has too little room even on its own."""
        return any(
            count > sum(self._room(later, state) for state in states)
            for later, count in enumerate(self._counts[first:], start=first)
            if count
        )

    def _fill(self, step: _Step, at: int, left: int, last: int = 0) -> Found | None:
        """Distribute the `left` members of the class over the rows from `at` on; the row before `at` got `last`."""
        if left == 0:
            return self._places(step.which + 1, step.states)
        if step.behind[at] < left:
            return None
        before = step.states[at]
        most = min(left, step.room[at], last) if step.alike[at] else min(left, step.room[at])
        for number in range(most, -1, -1):
            if not self._steps.spend(_TRIAL_STEPS):
                break
            step.states[at] = self._after(step.which, before, number)
            rest = self._fill(step, at + 1, left - number, number)
            if rest is not None:
                return [(step.which, at, number), *rest] if number else rest
        return None

    def _room(self, which: int, state: State) -> int:
        free, closed, most = state
        if closed >> which & 1:
            return 0
        room = min([most[which], *(free[column] // need for column, need in self._needs[which])])
        return min(room, 1) if self._clashes[which] >> which & 1 else room

    def _after(self, which: int, state: State, number: int) -> State:
        if not number:
            return state
        left = list(state[0])
        for column, need in self._needs[which]:
            left[column] -= number * need
        return tuple(left), state[1] | self._clashes[which], state[2]


class _Step:
    """The distribution of one class over the rows.

    `room` is the number of members that each row takes, `behind` its sum from each row on. `alike` marks the rows that
    neither this class nor a later one can tell from the row before. `states` are those of all rows.
    """

    def __init__(self, which: int, room: list[int], states: Sequence[State]) -> None:
        left = [(free, closed >> which, most[which:]) for free, closed, most in states]
        self.which = which
        self.room = room
        self.behind = list(accumulate(reversed(room), initial=0))[::-1]
        self.alike = [at > 0 and left[at] == left[at - 1] for at in range(len(left))]
        self.states = list(states)


def _clashes(snapshot: Snapshot, classes: Sequence[MemberClass]) -> list[int]:
    """For each class, a bit mask of the classes that cannot share a node with it."""
    return [
        sum(1 << at for at, other in enumerate(classes) if any(plan.excludes(member, other) for plan in snapshot.plans))
        for member in classes
    ]
