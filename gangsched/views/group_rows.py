"""The gangs of a machine, a row for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import isfinite

from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.plan import Plan
from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import Group
from gangsched.core.objects.record import Phase
from gangsched.core.objects.shape import PODS
from gangsched.core.queueing.order import order_key
from gangsched.core.status.ahead import holds_up
from gangsched.views.group_row import WAITING, Ask, GroupRow, Leaving, ReservedLater, of_declared
from gangsched.views.member_rows import member, runs
from gangsched.views.timeline import moments
from gangsched.views.undeclared_phase import phase_of

MOST_ASKS = 8
"""Maximum number of different requests of a group's members that are listed; the largest number of members first."""


def rows(machine: Machine) -> list[GroupRow]:
    """The gangs of a machine that is up to date, the longest-waiting first. Pods without a group are left out."""
    listed = [row(gang, machine.assessments[key]) for key, gang in machine.gangs.items() if not gang.plain]
    return sorted(listed, key=lambda row: row.order)


def row(gang: Gang, assessment: Assessment) -> GroupRow:
    """The current state of the gang."""
    group_row = (
        _declared(gang.observed.group, gang, assessment.minimum)
        if gang.observed.group is not None
        else _undeclared(gang, assessment)
    )
    in_line = assessment.facts.complete and holds_up(gang.wait)
    turn = order_key(gang, assessment) if group_row.since and in_line else ()
    plan = gang.operations.plan
    return replace(
        _with_members(group_row, gang),
        turn=turn,
        priority=assessment.terms.priority,
        preemptions=gang.record.preemptions,
        plan=_leaving(plan) if plan is not None and (plan.start is None or plan.victims) else None,
        reserved=_reserved(plan) if plan is not None and plan.start is not None else None,
    )


def stated(group: Group, gang: Gang) -> GroupRow:
    """A gang that the machine has decided nothing about: what the status of its PodGroup says, with its members."""
    return _with_members(_declared(group, gang, 0), gang)


def _with_members(group_row: GroupRow, gang: Gang) -> GroupRow:
    live = gang.live()
    return replace(
        group_row,
        running=sum(bool(pod.node) and runs(pod) for pod in live),
        roster=tuple(map(member, gang.observed.pods.values())),
        asks=_asks(live),
        moments=tuple(moments(gang, group_row.minimum)),
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


def _declared(group: Group, gang: Gang, minimum: int) -> GroupRow:
    """A gang with a PodGroup: what its status says, with the members that exist."""
    row, live = of_declared(group), gang.live()
    return replace(row, members=len(live), minimum=minimum or row.minimum, bound=sum(bool(pod.node) for pod in live))


def _undeclared(gang: Gang, assessment: Assessment) -> GroupRow:
    """A gang without a PodGroup, according to its members and their conditions."""
    live, phase = gang.live(), phase_of(gang, assessment)
    waiting = [pod for pod in live if not pod.node]
    waits = phase in WAITING and waiting
    reason, message = "", ""
    if refused := next((pod for pod in waiting if pod.condition_reason), None) if waits else None:
        reason, message = refused.condition_reason, refused.condition_message
    elif not waiting and phase is Phase.PENDING and (hindrance := assessment.terms.hindrance):
        # No member has a condition that says so, for example after the PodGroup of bound ones was deleted.
        reason, message = hindrance.reason.value, hindrance.message
    return GroupRow(
        key=gang.key,
        declared=False,
        phase=phase,
        reason=reason,
        message=message,
        members=len(live),
        minimum=assessment.minimum if assessment.terms.minimum_known else 0,
        bound=len(live) - len(waiting),
        created=min((pod.created for pod in gang.observed.pods.values()), default=0.0),
        since=min(pod.created for pod in waiting) if waits else 0.0,
        source=assessment.terms.source,
    )
