"""How much work one call of `Machine.handle` may do: counted in units, never timed, so that a replay does the same.

A unit is a look at one row for one class of members. Whatever costs otherwise is counted as so many units as it takes
the time of. Planning charges what it has done, whether or not that was left; who is about to begin something asks
first. So one call exceeds its budget by at most the work on one gang, which is bounded in turn.
"""

from __future__ import annotations

from dataclasses import dataclass

TURN = 600_000
"""One call of `Machine.handle`. 20,000 to 30,000 units take a millisecond of one core of the benchmark's machine:
`python -m bench "core: longest call"` prints what a call took at most."""
HUNT = 200_000
"""Looking through topology domains for one gang; what is left is looked through in the next call."""
DIAGNOSIS = 200_000
"""Finding out whether a gang that was refused could ever fit; what is not found out by then is not said."""
CLASS = 1_000
"""What a look at a class costs beside its rows, however few they are."""
MEMBER = 300
"""Giving one member its place, and sending its binding."""
GANG = 6_000
"""Bringing one gang up to date and telling of it, beside its pods."""
POD = 60
"""The same for each of its pods."""
STEP = 30
"""A step of the exhaustive search."""


@dataclass(slots=True)
class Budget:
    """Units that are `left`, which may be negative, of those that there were, and how many were `spent` so far."""

    left: int = TURN
    spent: int = 0

    def charge(self, units: int) -> None:
        """Note that so much was done."""
        self.left -= units
        self.spent += units

    def leave(self, units: int) -> None:
        """Have at least so many left, whatever was charged."""
        self.left = max(self.left, units)

    def __bool__(self) -> bool:
        """Whether anything is left."""
        return self.left > 0
