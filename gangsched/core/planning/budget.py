"""Limits the work of one call of `Machine.handle`. Work is counted in units, not timed, so that a replay is identical.

A unit is the evaluation of one row for one class of members; other work costs the number of units that take the same
time. Planning charges work after doing it, even if that overdraws the budget; code checks the budget before it starts
something new. So one call exceeds its budget by at most the work on one gang, which is itself bounded.
"""

from __future__ import annotations

from msgspec import Struct

CALL = 600_000
"""Units for one call of `Machine.handle`. 20,000 to 30,000 units take a millisecond on one core of the benchmark's
machine; `python -m bench "core: longest call"` prints how long a call took at most."""
DOMAINS = 200_000
"""Units for trying topology domains for one gang; the next call tries the remaining domains."""
DIAGNOSIS = 200_000
"""Units for finding out whether a refused gang could ever fit; beyond this limit the question stays open."""
CLASS = 1_000
"""Fixed cost of evaluating a class, on top of its rows."""
MEMBER = 300
"""Cost of placing one member and sending its binding."""
TRIED = 30
"""Cost of each member when a quorum is tried in some domains."""
GANG = 6_000
"""Cost of reconciling one gang and its status, on top of its pods."""
POD = 60
"""Cost of reconciling each of the gang's pods."""
MATCH = 20
"""Cost of matching one pod of the cluster against the pod affinity and topology spread terms of members."""
STEP = 30
"""Cost of one step of the exhaustive search."""


class Budget(Struct):
    """The units `left` (may be negative) and `spent` so far, and the number of searches that were cut short.

    `most_steps`: none of these takes more steps, where that is less than it may take anyway.
    """

    left: int = CALL
    spent: int = 0
    broken_off: int = 0
    most_steps: int | None = None

    def charge(self, units: int) -> None:
        """Spend this many units."""
        self.left -= units
        self.spent += units

    def broke_off(self) -> None:
        """Count a search that was cut short, without a result."""
        self.broken_off += 1

    def leave(self, units: int) -> None:
        """Raise what is left to at least this many units, whatever was charged."""
        self.left = max(self.left, units)

    def __bool__(self) -> bool:
        """Whether anything is left."""
        return self.left > 0
