"""Numbers that metrics show of the core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Stage(StrEnum):
    """A part of one call of the machine; the caller may measure how long each takes."""

    EVENTS = "Events"
    """Applying what has happened."""
    UPKEEP = "Upkeep"
    """Bringing gangs up to date."""
    PLAN = "Plan"
    """The scheduling cycle."""
    SEARCH = "Search"
    """Going on with searches that one call has no time for."""
    STATUS = "Status"
    """What people and autoscalers are told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What has been measured since the last look.

    `waits` are, for each group whose minimum was bound, its priority and the seconds from complete to bound.
    `partial_s` are the seconds for which quorums were bound in part that are now whole or wholly unbound. `budget` is
    which share of its budget the last call has spent; it may exceed 1.
    """

    waits: Sequence[tuple[int, float]] = ()
    partial_s: Sequence[float] = ()
    budget: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Plain numbers for metrics; `refusals` (by reason), `timeouts` and `node_refusals` only ever grow.

    `held` is what is reserved for members that are not bound, `idle` what bound members take of groups of which fewer
    than the minimum are bound: amounts by resource, as the core counts them. `partial` is how many quorums are bound in
    part.
    """

    pods: int
    nodes: int
    phases: Mapping[str, int]
    waiting: int
    parked: int
    refusals: Mapping[str, int]
    timeouts: int
    avoided_nodes: int
    node_refusals: int
    held: Mapping[str, int]
    idle: Mapping[str, int]
    partial: int
