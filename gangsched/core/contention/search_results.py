"""What searches have come to, and what those of one moment share."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from gangsched.core.contention.pool import Pool
from gangsched.core.planning.ask import Ask
from gangsched.core.planning.leaving import Search

State = tuple[int, ...]
"""Numbers that change with everything on which a search depends, except the time."""


class Looked(NamedTuple):
    """A search without a result, for what the group had `asked`: of which state, when, and until when time alone cannot
    help.
    """

    state: State
    at: float
    until: float
    asked: tuple[object, ...]


class Running(Struct):
    """A search that goes on among those of this pool, for what the group has `asked`, begun in this `state`.

    `exceeds`: disruption budgets do not count in it.
    """

    search: Search
    pool: Pool
    state: State
    asked: tuple[object, ...]
    exceeds: bool


class Moment(Struct):
    """What is the same for all that are searched for at one time in one state: all that may leave, and until when no
    search has another result if nothing happens.
    """

    when: tuple[float, State] | None = None
    pool: Pool | None = None
    until: float = float("inf")


def stays_hopeless(ask: Ask) -> bool:
    """Whether no more nodes accept the members later, as long as no node changes."""
    return not (ask.avoided or any(pod.uses_claims or pod.uses_devices for pod in ask.members))
