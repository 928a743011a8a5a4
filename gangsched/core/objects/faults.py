"""Exceptions in the logic of one gang, as the shell logs and counts them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Step(StrEnum):
    """In which step of a call the logic of one gang failed."""

    EVENT = "Event"
    """An event of one of its members, of its PodGroup, or the answer to one of its writes was applied."""
    RECOVERY = "Recovery"
    """What its PodGroup's status remembers was taken over."""
    UPKEEP = "Upkeep"
    """It was brought up to date."""
    CYCLE = "Cycle"
    """A scheduling cycle looked for its places."""
    TELLING = "Telling"
    """Its status, conditions and Events were written."""
    DEMAND = "Demand"
    """It was found out what new nodes must bring for it."""
    ROLLBACK = "Rollback"
    """It was parked for another fault, its bound members were to be evicted and people to be told."""


@dataclass(frozen=True, slots=True)
class Fault:
    """The logic of this gang failed, and it is parked for so many seconds."""

    gang: str
    step: Step
    error: Exception
    parked_s: float


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """After a fault the accounts contradicted each other, and were made anew from what was observed."""

    contradictions: Sequence[str]
