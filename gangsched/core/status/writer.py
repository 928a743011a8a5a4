"""What people are told of a gang: PodGroup status, members' conditions and Events, folded (contract rules 16 and 17).

A change becomes due by its kind: what has been decided at once, a refusal after it has lasted a second (so that one
lifted sooner is never written), a mere change of a message at most every 30 s. When due, the gang's present state is
written, whatever has led to it; what was written last is never written again.
"""

from __future__ import annotations

from msgspec.structs import replace

from gangsched.core.gang import bindings, ownership, placeholders, rollback
from gangsched.core.gang.clock import NEVER
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.lifecycle import Assessment
from gangsched.core.gang.terms import Terms
from gangsched.core.gang.writes import BindState
from gangsched.core.objects.effects import Effect, EmitEvent, PatchPodCondition, PatchStatus
from gangsched.core.objects.pod import Pod, role_of
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import Outcome, Phase
from gangsched.core.objects.shape import Amounts
from gangsched.core.objects.status import Condition, GroupStatus, Place, Reservation
from gangsched.core.queueing.queue import Queue
from gangsched.core.status import explanation
from gangsched.core.status.conditions import (
    demand_of,
    message_of,
    reason_of,
    refused_reason,
    scheduled_note,
)
from gangsched.core.status.degraded import degraded_message, degraded_reason
from gangsched.core.status.events import emit, has_new_owners, is_heard, new_strangers
from gangsched.core.status.members import member_message, member_verdicts

AT_ONCE = frozenset({Phase.SCHEDULED, Phase.TIMED_OUT, Phase.FAILED, Phase.SUCCEEDED, Phase.DEGRADED})
"""Phases that are told without waiting."""


class StatusWriter:
    """Writes what is due for a gang and records it in `gang.told`."""

    def __init__(self, policy: Policy, holders: explanation.Holders, queue: Queue) -> None:
        self._policy = policy
        self._holders = holders
        self._queue = queue

    def schedule(self, gang: Gang, assessment: Assessment, now: float) -> None:
        """Set when the gang is next due to be told of; called after every change, so that what goes again is untold."""
        told = gang.told
        reason = reason_of(gang, assessment)
        if reason != gang.reason:
            gang.reason = reason
            gang.reason_since = now
        old = told.status or GroupStatus()
        new = self._build(gang, assessment, reason)
        changed = _settled(old) != _settled(new)
        decided = gang.record.phase in AT_ONCE and old.phase != gang.record.phase
        newly_scheduled = bool(gang.record.scheduled_at) and not gang.record.late and not old.scheduled_time
        if told.awaited is not None:
            due = float("inf")
        elif (bindings.unsecured(gang) and gang.group is not None) or decided or newly_scheduled:
            due = now
        elif changed or self._owed(gang, assessment, now) or new_strangers(gang) or has_new_owners(gang):
            due = max(min(gang.tell_at, now + self._policy.fold_s), gang.reason_since + self._policy.fold_s)
        elif told.unwritten and gang.group is not None:
            due = now
        elif told.behind or _basis_changed(gang, assessment):
            due = max(now, told.message_at + self._policy.message_interval_s)
        else:
            due = float("inf")
        gang.tell_at = max(due, told.write_again_at)

    def tell(self, gang: Gang, assessment: Assessment, now: float) -> list[Effect]:
        """What is to be written now; nothing if it has all been said."""
        reason = reason_of(gang, assessment)
        message = message_of(gang, assessment, reason, refusal=self._refusal_text(gang))
        effects: list[Effect] = []
        told = gang.told
        if gang.group is not None:
            status = self._status(gang, assessment, now, reason=reason, message=message)
            owed = bindings.unsecured(gang)
            if status != told.status or told.unwritten or owed:
                effects.append(PatchStatus(gang.key, gang.group.uid, status, gang.resource_version if owed else ""))
                awaited = None
                if status.reservation is not None:
                    awaited = frozenset(binding.pod.uid for binding in gang.flying())
                told.wrote(status, gang.resource_version, awaited)
        else:
            told.unheard(self._build(gang, assessment, reason))
        told.basis = _basis(gang, assessment)
        gang.tell_at = float("inf")
        effects += self._event(gang, assessment, reason, message)
        effects += self._conditions(gang, assessment, message, now)
        effects += self._stranger_events(gang)
        effects += self._claims_event(gang, assessment)
        return effects

    # Status

    def _refusal_text(self, gang: Gang) -> str:
        refusal = gang.attempt.refusal
        if refusal is None:
            return ""
        own, number = self._queue.ahead(gang.key, most=explanation.NAMED)
        ahead = explanation.ahead_of(gang.key, own, others=number - len(own))
        return explanation.refused(refusal, holders=self._holders.sentence(gang.key, refusal), ahead=ahead)

    def _status(self, gang: Gang, assessment: Assessment, now: float, *, reason: Reason, message: str) -> GroupStatus:
        """The status with messages and demand: the former ones where only numbers have changed and it is not time."""
        told = gang.told
        status = self._build(gang, assessment, reason)
        last = told.status or GroupStatus()
        old = {condition.type: condition for condition in last.conditions}
        generation = gang.group.generation if gang.group else 0
        due = now >= told.message_at + self._policy.message_interval_s
        told.behind = False
        conditions = []
        demand = status.demand
        for condition in status.conditions:
            # The demand is made of the same numbers as the message beside it.
            demanded = condition.type == "Scheduled"
            text = message if demanded else degraded_message(gang, assessment)
            before = old.get(condition.type)
            since = before.since if before is not None and before.status == condition.status else now
            alike = before is not None and (before.status, before.reason) == (condition.status, condition.reason)
            new = before is None or text != before.message or (demanded and demand != last.demand)
            if before is not None and alike and new and not due:
                text = before.message
                demand = last.demand if demanded else demand
                told.behind = True
            elif new:
                told.said_message(now)
            conditions.append(replace(condition, message=text, since=since, generation=generation))
        return replace(status, conditions=tuple(conditions), demand=demand)

    def _build(self, gang: Gang, assessment: Assessment, reason: Reason) -> GroupStatus:
        """The status without messages and times of transition: what decides whether something changed."""
        record = gang.record
        census = assessment.census
        scheduled = bool(record.scheduled_at)
        good = scheduled and not record.late and record.outcome is not Outcome.FAILED
        conditions = [Condition("Scheduled", good, reason, "", 0.0)]
        why = degraded_reason(gang, assessment)
        if why is not None:
            conditions.append(Condition("Degraded", gang.record.phase is Phase.DEGRADED, why, "", 0.0))
        paused = record.capped is not None and bool(record.capped.paused_at)
        trying = bool(record.clock_start) or bool(gang.bindings) or paused
        return GroupStatus(
            record=record,
            conditions=tuple(conditions),
            members=len(census.live),
            bound=len(census.bound),
            running=census.running,
            reservation=_reservation(gang, assessment.terms, self._policy) if gang.durability.asked_at else None,
            attempts=record.timeouts + (1 if trying or scheduled else 0),
            source=assessment.terms.source,
            demand=demand_of(gang, reason),
        )

    # Events and members' conditions

    def _event(self, gang: Gang, assessment: Assessment, reason: Reason, message: str) -> list[Effect]:
        told = gang.told
        hindrance = assessment.hindrance
        if gang.record.scheduled_at and hindrance is not None and assessment.census.waiting:
            if hindrance.reason == told.hindered or is_heard(assessment, hindrance.reason):
                return []
            told.hindered = hindrance.reason
            return emit(gang, assessment, hindrance.reason, hindrance.message)
        told.hindered = ""
        if reason == told.event or reason in (Reason.BINDING, Reason.PLACES_HELD, Reason.NO_MEMBERS):
            return []
        if reason is Reason.GANG_INCOMPLETE and not assessment.census.live:
            return []
        refused = reason in (Reason.UNSCHEDULABLE, Reason.NEVER_FITS)
        if refused and gang.attempt.refusal is None:
            return []
        before = told.said(reason)
        if (refused or reason is Reason.NOT_ITS_TURN) and before == Reason.TIMED_OUT:
            return []
        members = refused_reason(gang.attempt.refusal) if refused and gang.attempt.refusal is not None else reason
        if gang.group is None and not before and is_heard(assessment, members):
            return []
        note = scheduled_note(gang, assessment) if reason is Reason.SCHEDULED else message
        return emit(gang, assessment, reason, note)

    def _conditions(self, gang: Gang, assessment: Assessment, group_message: str, now: float) -> list[Effect]:
        effects: list[Effect] = []
        for pod, reason in self._owed(gang, assessment, now):
            message = member_message(gang, assessment, pod, reason, group_message=group_message)
            gang.told.said_to_member(pod.uid, reason, now)
            since = 0.0 if pod.told_reason else now
            effects.append(PatchPodCondition(pod.uid, pod.namespace, pod.name, reason, message, since))
        return effects

    def _owed(self, gang: Gang, assessment: Assessment, now: float) -> list[tuple[Pod, Reason]]:
        """Waiting members whose condition says another reason than it should, or has not come to say it."""
        owed = []
        for pod, reason in member_verdicts(gang, assessment):
            said, at = gang.told.members.get(pod.uid, (pod.told_reason, float("-inf")))
            lost = pod.told_reason != reason and now >= at + self._policy.message_interval_s
            if said != reason or lost:
                owed.append((pod, reason))
        return owed

    def _stranger_events(self, gang: Gang) -> list[Effect]:
        effects: list[Effect] = []
        for pod in new_strangers(gang):
            gang.told.said_of_stranger(pod.uid)
            effects.append(
                EmitEvent(
                    kind="Pod",
                    namespace=pod.namespace,
                    name=pod.name,
                    uid=pod.uid,
                    type="Warning",
                    reason=Reason.FOREIGN_MEMBER,
                    action="Scheduling",
                    note=f"The pod names the group {gang.key.name}, but its schedulerName is {pod.scheduler}: it is no "
                    f"member. Set schedulerName to {self._policy.scheduler_names[0]} or remove the label.",
                )
            )
        return effects

    def _claims_event(self, gang: Gang, assessment: Assessment) -> list[Effect]:
        """One Event for the same owners, until they are gone."""
        told = gang.told
        if not assessment.census.live:
            told.named_owners = frozenset()
        if not has_new_owners(gang):
            return []
        told.named_owners |= gang.claims.keys()
        return emit(gang, assessment, Reason.SEVERAL_OWNERS, ownership.described(gang))


def _basis(gang: Gang, assessment: Assessment) -> tuple[object, ...]:
    """What the messages are made of, beside what the status counts."""
    refused = next(rollback.refusals(gang), None)
    spared = len(gang.undo.spared) if gang.undo is not None else 0
    return (
        gang.attempt.refusal,
        assessment.hindrance,
        bindings.complaint(gang),
        gang.record.undone,
        spared,
        gang.record.capped.note if gang.record.capped is not None else gang.outside,
        assessment.terms.lowered,
        refused.why if refused else None,
    )


def _basis_changed(gang: Gang, assessment: Assessment) -> bool:
    refusal, *others = _basis(gang, assessment)
    told = gang.told.basis
    return gang.group is not None and (not told or told[0] is not refusal or list(told[1:]) != others)


def _settled(status: GroupStatus) -> GroupStatus:
    """The status without what may wait until it is time for another message."""
    return replace(
        status,
        demand=(),
        conditions=tuple(replace(condition, message="", since=0.0, generation=0) for condition in status.conditions),
    )


def _reservation(gang: Gang, terms: Terms, policy: Policy) -> Reservation | None:
    """The places held for members whose binding has not been confirmed, or not been seen yet, and for those to come."""
    held: dict[tuple[str, str, Amounts], list[str]] = {}
    for binding in gang.bindings.values():
        if binding.state is not BindState.BOUND:
            key = (binding.node, role_of(binding.pod), binding.pod.shape.requests)
            held.setdefault(key, []).append(binding.pod.name)
    if not held:
        return None
    expires = min(placeholders.expires(gang, terms), placeholders.held_until(gang, terms))
    return Reservation(
        expires=expires if expires < NEVER else gang.durability.asked_at + policy.repair_deadline_s,
        placements=tuple(
            Place(node=node, role=role, count=len(pods), pods=tuple(sorted(filter(None, pods))), requests=requests)
            for (node, role, requests), pods in sorted(held.items())
        ),
    )
