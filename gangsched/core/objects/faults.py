"""Exceptions that are contained, as the shell logs and counts them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct


class FaultyStep(StrEnum):
    """The step of a call in which the logic of one gang failed."""

    EVENT = "Event"
    """Applying an event of one of its members or of its PodGroup, or the result of one of its writes."""
    RECOVERY = "Recovery"
    """Recovering from the record in its PodGroup's status."""
    UPKEEP = "Upkeep"
    """Reconciling it."""
    CYCLE = "Cycle"
    """Placing it in a scheduling cycle."""
    STATUS = "Status"
    """Writing its status, conditions and Events."""
    DEMAND = "Demand"
    """Computing what new nodes must provide for it."""
    ROLLBACK = "Rollback"
    """Evicting its bound members and writing its status while it was parked for another fault."""


class Fault(Struct, frozen=True):
    """The logic of this gang failed, and the gang is parked for `parked_s` seconds.

    `story` tells its last steps and what led to them, each with its time (epoch seconds).
    """

    gang: str
    step: FaultyStep
    error: Exception
    parked_s: float
    story: Sequence[tuple[float, str]] = ()


class Rebuilt(Struct, frozen=True):
    """A fault left the state inconsistent, and it was rebuilt from what was observed; `error` is one over an event."""

    contradictions: Sequence[str]
    error: Exception | None = None


class SetAside(Struct, frozen=True):
    """An exception that concerns no gang occurred over this object, which counts as not there until it changes."""

    name: str
    error: Exception


class Omitted(Struct, frozen=True):
    """An exception in a part that decides nothing: it does nothing for `pause_s` seconds."""

    part: str
    error: Exception
    pause_s: float
