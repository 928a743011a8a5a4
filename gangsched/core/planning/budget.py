"""How much work one call of `Machine.handle` may do: counted in units, never timed, so that a replay does the same.

A unit is a look at one row for one class of members; other work is counted as the number of units that take the same
time. Planning charges what it has done, even beyond what is left; code that is about to begin something checks first.
So one call exceeds its budget by at most the work on one gang, which is itself bounded.
"""

from __future__ import annotations

from dataclasses import dataclass

TURN = 600_000
"""One call of `Machine.handle`. 20,000 to 30,000 units take a millisecond of one core of the benchmark's machine:
`python -m bench "core: longest call"` prints what a call took at most."""
HUNT = 200_000
"""Trying topology domains for one gang; the next call tries those that are left."""
DIAGNOSIS = 200_000
"""Finding out whether a refused gang could ever fit; beyond this nothing is said about it."""
CLASS = 1_000
"""The fixed cost of a look at a class, beside its rows."""
MEMBER = 300
"""Placing one member, and sending its binding."""
GANG = 6_000
"""Bringing one gang and its status up to date, beside its pods."""
POD = 60
"""The same for each of its pods."""
LOOK = 20
"""A look at one pod of the cluster for what members ask of other pods."""
STEP = 30
"""A step of the exhaustive search."""


@dataclass(slots=True)
class Budget:
    """Units that are `left` (may be negative), and that were `spent` so far; and how many searches broke off."""

    left: int = TURN
    spent: int = 0
    broken_off: int = 0

    def charge(self, units: int) -> None:
        """Spend so many units."""
        self.left -= units
        self.spent += units

    def broke_off(self) -> None:
        """A search has ended without an answer."""
        self.broken_off += 1

    def leave(self, units: int) -> None:
        """Have at least so many units left, whatever was charged."""
        self.left = max(self.left, units)

    def __bool__(self) -> bool:
        """Whether anything is left."""
        return self.left > 0
