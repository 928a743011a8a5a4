"""The exhaustive search for members that depend on each other: pod by pod, in every order, within a budget of steps.

It replaces `search` where a member placed on one node changes which other nodes accept further members. It places
members on the snapshot itself, so each step costs as much as evaluating all nodes, and only small gangs are searched
completely.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.classes import MemberClass
from gangsched.core.planning.search import WIDEST, Selection, Share, Steps

MOST_MEMBERS = 64
"""Larger gangs are not searched."""
_ROWS_IN_A_STEP = 16
"""Number of rows that are evaluated in the time of one step."""

_Placed = frozenset[tuple[int, int, int]]
"""(class number, row, members) for each class and row that has members."""


class Backtracking:
    """The search on one snapshot with these classes; `find` runs it for a selection and undoes all that it takes."""

    def __init__(self, snapshot: Snapshot, classes: Sequence[MemberClass], steps: Steps) -> None:
        self._snapshot = snapshot
        self._classes = classes
        self._steps = steps
        self._failed: set[tuple[tuple[int, ...], _Placed]] = set()
        if snapshot.size * len(classes) > WIDEST:
            steps.break_off()

    def find(self, selection: Selection) -> list[Share] | None:
        """Places for all members of the selection, in an order in which they can be placed; None as in `Search`."""
        counts = Counter[MemberClass]()
        for (member, _), count in selection.items():
            counts[member] += count
        if counts.total() > MOST_MEMBERS:
            self._steps.break_off()
        if self._steps.ended:
            return None
        return self._from_here(tuple(counts[member] for member in self._classes), {})

    def _from_here(self, left: tuple[int, ...], placed: dict[tuple[int, int], int]) -> list[Share] | None:
        """Places for the members that are `left`, given those `placed` already, by class and row."""
        if not any(left):
            return []
        state = left, frozenset((which, row, number) for (which, row), number in placed.items())
        cost = 1 + len(self._classes) * (1 + self._snapshot.size // _ROWS_IN_A_STEP)
        if state in self._failed or not self._steps.spend(cost):
            return None
        for which, member in enumerate(self._classes):
            for row in np.flatnonzero(self._snapshot.caps(member)).tolist() if left[which] else ():
                mark = self._snapshot.mark()
                self._snapshot.take(row, member, 1)
                more = placed | {(which, row): placed.get((which, row), 0) + 1}
                rest = self._from_here((*left[:which], left[which] - 1, *left[which + 1 :]), more)
                self._snapshot.undo(mark)
                if rest is not None:
                    return [(member, row, 1), *rest]
                if self._steps.ended:
                    return None
        self._failed.add(state)
        return None
