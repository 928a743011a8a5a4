"""The course of a replay: what became of each gang, and which members came to and left each node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gangsched.core.objects.node import Node
from gangsched.whatif.traces.trace_values import Gang


class Told(NamedTuple):
    """At `at_s` a gang was told that it would probably start between `earliest_s` and `latest_s`; 0 for unknown."""

    at_s: float
    earliest_s: float
    latest_s: float


class Idle(NamedTuple):
    """From `at_s` on, these `amounts` by resource are kept free where places are reserved for later."""

    at_s: float
    amounts: Mapping[str, int]


@dataclass(slots=True, kw_only=True)
class Played:
    """The course of one gang, in seconds since the start; `bound_s` and `ended_s` are None until that happens.

    `nodes` counts its members by node, where it was bound last. It was preempted `preemptions` times, which lost
    `lost_s` seconds of its members' work. `reserved_s` is the first known start that was reserved for it. `told` are
    the expected starts that it was told, in chronological order.
    """

    gang: Gang
    bound_s: float | None = None
    ended_s: float | None = None
    nodes: dict[str, int] = field(default_factory=dict)
    preemptions: int = 0
    lost_s: float = 0.0
    reserved_s: float | None = None
    told: list[Told] = field(default_factory=list)

    @property
    def waited_s(self) -> float | None:
        """The time from its arrival to its last binding; None if it is not bound."""
        return None if self.bound_s is None else self.bound_s - self.gang.arrival_s

    @property
    def completion_s(self) -> float | None:
        """The time from its arrival to its end; None if it is not bound."""
        return None if self.bound_s is None else self.bound_s - self.gang.arrival_s + self.gang.duration_s


@dataclass(frozen=True, slots=True)
class Change:
    """At `at_s`, a member of part number `part` of a gang was bound to the node, or ended there (`taken` is False)."""

    at_s: float
    node: str
    gang: int
    part: int
    taken: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The result of a trace with one strategy or baseline, which `strategy` names.

    `gangs` are in order of arrival, `changes` and `idle` in chronological order.
    """

    strategy: str
    gangs: Sequence[Played]
    changes: Sequence[Change]
    nodes: Sequence[Node]
    idle: Sequence[Idle] = ()
