"""One gang: what is known of it, for a list, for the page and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from gangsched.api.times import format_time
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.expected_start import ExpectedStart
from gangsched.core.objects.podgroup import Group
from gangsched.core.objects.quantity import format_amount
from gangsched.core.objects.shape import Amounts
from gangsched.views import expected_starts
from gangsched.views.member_rows import Member
from gangsched.views.resource_names import OWN, resource_of

if TYPE_CHECKING:
    # A list of what statuses say does not need what decides.
    from gangsched.core.queueing.order import OrderKey
    from gangsched.views.timeline import Moment

WAITING = frozenset({"", "Pending", "Queued", "Reserved", "Binding", "TimedOut", "Degraded"})
"""Phases of a group that waits. Empty is the phase of a PodGroup that no operator has seen."""


class Ask(NamedTuple):
    """The number of `members` that request these amounts each."""

    members: int
    requests: Amounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """An open plan: the number of pods that leave for the gang, by their group, with None of those that have none.

    Times are in epoch seconds. `since` is when they were told to leave, 0.0 before that; `expires` is when the plan is
    given up.
    """

    pods: Mapping[GroupKey | None, int]
    since: float
    expires: float


class ReservedLater(NamedTuple):
    """Places on so many `nodes` are reserved from `start` on, in epoch seconds; 0.0 if nobody knows when.

    Until then so many `pods` there are to end.
    """

    start: float
    nodes: int
    pods: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """One gang. `declared`: it has a PodGroup, whose status counts. The `minimum` is 0 if it is unknown.

    `since` is when it began to wait, in epoch seconds, 0.0 if it does not wait. `running` of the `bound` members run.
    It was preempted `preemptions` times. `roster` are its members, with those that have ended, and `asks` what the
    others request. `turn` sorts gangs that wait for room in the order in which they are tried; empty for all others,
    such as incomplete ones and those that the present nodes could never take. `moments` are the stages that it is known
    to have reached, in chronological order. `plan` is open for it, if others are evicted; places may be `reserved` for
    later. `expected` is when it will probably start, as its status says.
    """

    key: GroupKey
    declared: bool
    phase: str
    reason: str
    message: str
    members: int
    minimum: int
    bound: int
    created: float
    since: float
    source: str = ""
    running: int = 0
    priority: int = 0
    preemptions: int = 0
    roster: Sequence[Member] = ()
    asks: Sequence[Ask] = ()
    turn: OrderKey | tuple[()] = ()
    moments: Sequence[Moment] = ()
    plan: Leaving | None = None
    reserved: ReservedLater | None = None
    expected: ExpectedStart | None = None

    @property
    def numbers(self) -> str:
        """How many of the needed members exist, as in 2/3; 2/- if it is not known how many are needed."""
        return f"{self.members}/{self.minimum or '-'}"

    @property
    def pods(self) -> Sequence[str]:
        """The names of its members."""
        return [member.name for member in self.roster]

    @property
    def resource(self) -> str:
        """The kind of the object that declares the gang, as kubectl writes it."""
        return OWN if self.declared else resource_of(self.key, self.source)

    @property
    def order(self) -> tuple[bool, float, GroupKey]:
        """A sort key: waiting gangs come first, the longest-waiting first; the others follow by name."""
        return not self.since, self.since, self.key


def of_declared(group: Group) -> GroupRow:
    """A PodGroup according to its status."""
    status = group.status
    condition = status.telling
    since = condition.since if condition is not None and condition.since else group.created
    return GroupRow(
        key=group.key,
        declared=True,
        phase=status.phase,
        reason=condition.reason if condition is not None else "",
        message=condition.message if condition is not None else "",
        members=status.members,
        minimum=group.spec.minimum if group.spec is not None else 0,
        bound=status.bound,
        created=group.created,
        since=since if status.phase in WAITING else 0.0,
        source=status.source,
        expected=status.expected,
    )


def as_object(row: GroupRow) -> dict[str, object]:
    """The row as a JSON object."""
    return {
        "namespace": row.key.namespace,
        "name": row.key.name,
        "podGroup": row.declared,
        "resource": row.resource,
        "phase": row.phase or None,
        "reason": row.reason or None,
        "message": row.message or None,
        "minimum": row.minimum,
        "members": row.members,
        "bound": row.bound,
        "running": row.running,
        "priority": row.priority,
        "created": format_time(row.created) if row.created else None,
        "waitingSince": format_time(row.since) if row.since else None,
        "source": row.source or None,
        "pods": list(row.pods),
        "asks": [
            {"members": ask.members, "requests": {name: format_amount(name, size) for name, size in ask.requests}}
            for ask in row.asks
        ],
        "turn": list(row.turn) or None,
        "plan": _plan_as_object(row.plan) if row.plan is not None else None,
        "reserved": _reserved_as_object(row.reserved) if row.reserved is not None else None,
        "expectedStart": expected_starts.as_object(row.expected, row.key.namespace),
        "timeline": [{"stage": moment.stage.value, "time": format_time(moment.at)} for moment in row.moments],
    }


def _plan_as_object(plan: Leaving) -> dict[str, object]:
    return {
        "leaving": [{"group": str(key) if key is not None else None, "pods": pods} for key, pods in plan.pods.items()],
        "since": format_time(plan.since) if plan.since else None,
        "expires": format_time(plan.expires),
    }


def _reserved_as_object(reserved: ReservedLater) -> dict[str, object]:
    start = format_time(reserved.start) if reserved.start else None
    return {"start": start, "nodes": reserved.nodes, "pods": reserved.pods}
