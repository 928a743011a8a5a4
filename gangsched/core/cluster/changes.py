"""What has changed: improvements that may help gangs that wait, claims and nodes, for those who follow them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np
from msgspec import Struct, field

from gangsched.core.constraints.tally import Question
from gangsched.core.inventory.capacity import Capacity
from gangsched.core.objects.arrays import IntArray, Mask


class Relief(Struct):
    """The improvements since the last `take`: `rows` of nodes that have more room or refuse less.

    `asked` are the questions about pods whose answers have changed; `all_asked`: any answer may have changed.
    `everywhere`: any node may now accept pods that it refused. `domains`: a node has moved to another topology domain,
    which may help gangs that must stay in one. `doubts`: a node has come or changed, so that what was proven without
    it may not hold any more, though it has no room or is shut for now. `changes` counts improvements and only grows.
    """

    rows: set[int] = field(default_factory=set)
    asked: set[Question] = field(default_factory=set)
    all_asked: bool = False
    everywhere: bool = False
    domains: bool = False
    doubts: bool = False
    changes: int = 0

    def __bool__(self) -> bool:
        return bool(self.rows or self.asked or self.all_asked or self.everywhere)

    @property
    def beyond_rows(self) -> bool:
        """Whether more than single rows may have improved."""
        return self.everywhere or self.all_asked or self.domains or bool(self.asked)

    def note(
        self,
        *,
        row: int | None = None,
        asked: Iterable[Question] = (),
        all_asked: bool = False,
        everywhere: bool = False,
        domains: bool = False,
        doubts: bool = False,
    ) -> None:
        """Record an improvement: the node of this row, or whatever the fields of these names mean."""
        if row is not None:
            self.rows.add(row)
        self.asked.update(asked)
        self.all_asked |= all_asked
        self.everywhere |= everywhere
        self.domains |= domains
        self.doubts |= doubts
        self.changes += row is not None or all_asked or everywhere or domains or doubts

    def no_node(self, row: int) -> None:
        """The row no longer has a node."""
        self.rows.discard(row)

    def take(self) -> Relief:
        """Return all improvements, and start again from none."""
        taken = Relief(self.rows, self.asked, self.all_asked, self.everywhere, self.domains, self.doubts)
        self.rows, self.asked = set(), set()
        self.all_asked = self.everywhere = self.domains = self.doubts = False
        return taken


class Journal:
    """For each who follows the claims, their owners (UIDs) of which something was noted since they were last taken."""

    def __init__(self) -> None:
        self._noted: dict[str, dict[str, None]] = {}

    def forget(self, who: str) -> None:
        """This one does not follow them any more."""
        self._noted.pop(who, None)

    def note(self, owner: str) -> None:
        """The owner's claim has begun, has ended or has changed; or the pod, which had none, is gone."""
        for noted in self._noted.values():
            noted[owner] = None

    def take(self, who: str) -> Collection[str] | None:
        """The owners that were noted for this one since the last call; None if it only begins to follow them."""
        taken, self._noted[who] = self._noted.get(who), {}
        return taken


class Touched:
    """Which nodes have changed, or claims there: each change has a number, and `changes` is that of the last one."""

    def __init__(self, capacity: Capacity) -> None:
        self.changes = 0
        self._capacity = capacity
        self._last: IntArray = np.zeros(16, dtype=np.int64)
        self._taken: dict[str, int] = {}

    def note(self, node: str) -> None:
        """The node has changed, or a claim there."""
        self.changes += 1
        if (row := self._capacity.rows.get(node)) is not None:
            if row >= len(self._last):
                self._last = np.pad(self._last, (0, row + 1))
            self._last[row] = self.changes

    def take(self, who: str) -> set[str]:
        """The nodes that were touched since this one last took them; at first all that were ever touched."""
        before, self._taken[who] = self._taken.get(who, 0), self.changes
        return {self._capacity.names[row] for row in np.flatnonzero(self._last > before).tolist()}

    def last(self, rows: Mask) -> int:
        """The last change on these rows; 0 before the first."""
        return int(self._last[: len(rows)][rows[: len(self._last)]].max(initial=0))
