"""The gangs of a machine, a row for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import NamedTuple

from gangsched.api.times import format_time
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.plan import Plan
from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.expected_start import ExpectedStart
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import Group
from gangsched.core.objects.quantity import format_amount
from gangsched.core.objects.record import Phase
from gangsched.core.objects.shape import PODS, Amounts
from gangsched.core.queueing.order import OrderKey, order_key
from gangsched.core.status.ahead import holds_up
from gangsched.views import expected_starts
from gangsched.views.member_rows import Member, member, runs
from gangsched.views.resource_names import OWN, resource_of
from gangsched.views.timeline import Moment, moments

_WAITING = frozenset({"", "Pending", "Queued", "Reserved", "Binding", "TimedOut", "Degraded"})
"""Phases of a group that waits. Empty is the phase of a PodGroup that no operator has seen."""
MOST_ASKS = 8
"""Maximum number of different requests of a group's members that are listed; the largest number of members first."""


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
    """One gang. `declared`: it has a PodGroup, whose status counts.

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
    def pods(self) -> Sequence[str]:
        """The names of its members."""
        return [each.name for each in self.roster]

    @property
    def resource(self) -> str:
        """The kind of the object that declares the gang, as kubectl writes it."""
        return OWN if self.declared else resource_of(self.key, self.source)

    @property
    def order(self) -> tuple[bool, float, GroupKey]:
        """A sort key: waiting gangs come first, the longest-waiting first; the others follow by name."""
        return not self.since, self.since, self.key


def rows(machine: Machine) -> list[GroupRow]:
    """The gangs of a machine that is up to date, the longest-waiting first. Pods without a group are left out."""
    listed = [row(gang, machine.assessments[key]) for key, gang in machine.gangs.items() if not gang.plain]
    return sorted(listed, key=lambda row: row.order)


def row(gang: Gang, assessment: Assessment) -> GroupRow:
    """The current state of the gang."""
    minimum = assessment.minimum
    group_row = (
        of_declared(gang.observed.group, gang, minimum)
        if gang.observed.group is not None
        else _undeclared(gang, minimum, assessment.terms.source)
    )
    in_line = assessment.facts.complete and holds_up(gang.wait)
    turn = order_key(gang, assessment) if group_row.since and in_line else ()
    plan, live = gang.operations.plan, gang.live()
    return replace(
        group_row,
        turn=turn,
        running=sum(bool(pod.node) and runs(pod) for pod in live),
        priority=assessment.terms.priority,
        preemptions=gang.record.preemptions,
        roster=tuple(map(member, gang.observed.pods.values())),
        asks=_asks(live),
        moments=tuple(moments(gang, minimum)),
        plan=_leaving(plan) if plan is not None and (plan.start is None or plan.victims) else None,
        reserved=_reserved(plan) if plan is not None and plan.start is not None else None,
    )


def _asks(members: Iterable[Pod]) -> Sequence[Ask]:
    numbers = Counter(pod.shape.requests for pod in members)
    return tuple(
        Ask(number, tuple(pair for pair in requests if pair[0] != PODS))
        for requests, number in numbers.most_common(MOST_ASKS)
    )


def _leaving(plan: Plan) -> Leaving:
    pods: dict[GroupKey | None, int] = {key: len(uids) for key, uids in sorted({**plan.whole, **plan.single}.items())}
    if plan.loose:
        pods[None] = len(plan.loose)
    return Leaving(pods=pods, since=plan.evicting_since, expires=plan.expires)


def _reserved(plan: Plan) -> ReservedLater:
    start = plan.start if plan.start is not None and isfinite(plan.start) else 0.0
    return ReservedLater(start, len(plan.nodes), len(plan.ends))


def of_declared(group: Group, gang: Gang | None = None, minimum: int = 0) -> GroupRow:
    """A PodGroup according to its status. Existing members are counted if the `gang` is given."""
    status = group.status
    scheduled = next((entry for entry in status.conditions if entry.type == "Scheduled"), None)
    degraded = next((entry for entry in status.conditions if entry.type == "Degraded" and entry.status), None)
    condition = degraded if degraded is not None and status.phase == Phase.DEGRADED else scheduled
    since = condition.since if condition is not None and condition.since else group.created
    live = gang.live() if gang is not None else ()
    return GroupRow(
        key=group.key,
        declared=True,
        phase=status.phase,
        reason=condition.reason if condition is not None else "",
        message=condition.message if condition is not None else "",
        members=len(live) if gang is not None else status.members,
        minimum=minimum or (group.spec.minimum if group.spec is not None else 0),
        bound=sum(bool(pod.node) for pod in live) if gang is not None else status.bound,
        created=group.created,
        since=since if status.phase in _WAITING else 0.0,
        source=status.source,
        expected=status.expected,
    )


def _undeclared(gang: Gang, minimum: int, source: str) -> GroupRow:
    """A gang without a PodGroup, according to its members and their conditions."""
    live = gang.live()
    bound = sum(bool(pod.node) for pod in live)
    waiting = [pod for pod in live if not pod.node]
    refused = next((pod for pod in waiting if pod.condition_reason), None)
    if live and bound >= minimum:
        phase = Phase.RUNNING if gang.record.phase == Phase.RUNNING else Phase.SCHEDULED
    elif len(live) < minimum:
        phase = Phase.PENDING
    else:
        phase = Phase.DEGRADED if bound else Phase.QUEUED
    waits = phase in _WAITING and waiting
    return GroupRow(
        key=gang.key,
        declared=False,
        phase=phase,
        reason=refused.condition_reason if refused is not None and waits else "",
        message=refused.condition_message if refused is not None and waits else "",
        members=len(live),
        minimum=minimum,
        bound=bound,
        created=min((pod.created for pod in gang.observed.pods.values()), default=0.0),
        since=min(pod.created for pod in waiting) if waits else 0.0,
        source=source,
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
