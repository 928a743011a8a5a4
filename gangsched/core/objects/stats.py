"""Statistics of the core, for metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct, field


class Stage(StrEnum):
    """A part of one call of the machine; the caller may measure how long each takes."""

    EVENTS = "Events"
    """Storing the events."""
    UPKEEP = "Upkeep"
    """Checking held places again, and starting gangs from their records."""
    PLAN = "Plan"
    """Bringing gangs up to date and placing them, in order."""
    STATUS = "Status"
    """Writing status, Events and what autoscalers read."""


class Measured(Struct, frozen=True, kw_only=True):
    """The measurements since they were last taken.

    `waits` are, for each group whose minimum was bound, its priority and the seconds from complete to bound.
    `plans_s` are the seconds for which plans of preemption were open until their groups had their places.
    `starts` are, for each group that has begun, the basis of the start that it was told five minutes before, and how
    many seconds it began outside of that interval.
    `partial_s` are the seconds for which quorums were partly bound that are now completely bound or unbound. `budget`
    is the share of its budget that the last call has spent; it may exceed 1.
    """

    waits: Sequence[tuple[int, float]] = ()
    partial_s: Sequence[float] = ()
    plans_s: Sequence[float] = ()
    starts: Sequence[tuple[str, float]] = ()
    budget: float = 0.0


class Stats(Struct, frozen=True, kw_only=True):
    """Plain numbers for metrics; `refusals` (by reason), `timeouts` and `node_refusals` never decrease.

    `held` are the amounts reserved for members that are not bound, `idle` those that bound members take in groups with
    fewer than the minimum bound: by resource, in the core's units. `partial` is the number of partly bound quorums.
    `plans` is the number of open plans of preemption, `ended` counts those that have ended, by how, and `evictions` the
    evictions that were decided, by cause; `lost` are the resource-seconds of pods that were told to leave for others,
    in the core's units, and `trials` is how often searches for them have tried to place a group. For `reservations`
    groups places are reserved for later; `reserved_idle` is what is kept free for them, and `backfilled` counts groups
    that have used such nodes until then.
    `set_aside` are the numbers of objects, by kind, over which an exception occurred that concerns no gang.
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
    set_aside: Mapping[str, int]
    plans: int = 0
    ended: Mapping[str, int] = field(default_factory=dict)
    evictions: Mapping[str, int] = field(default_factory=dict)
    lost: Mapping[str, float] = field(default_factory=dict)
    trials: int = 0
    reservations: int = 0
    reserved_idle: Mapping[str, int] = field(default_factory=dict)
    backfilled: int = 0
