"""The condition Degraded."""

from __future__ import annotations

from gangsched.core.gang import rollback
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.lifecycle import Assessment
from gangsched.core.gang.wants import raised
from gangsched.core.gang.writes import Undo
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import Phase
from gangsched.core.objects.wording import number_is
from gangsched.core.status.conditions import late_message


def degraded_reason(gang: Gang, assessment: Assessment) -> Reason | None:
    """The reason of the Degraded condition, whatever its status; None for a group that has no such condition."""
    if gang.undo is not None:
        if any(rollback.refusals(gang)):
            return Reason.EVICTION_REFUSED
        if gang.undo.restart is not None:
            return Reason.RESTARTING
        return Reason.PARTLY_BOUND if rollback.spared(gang) else Reason.BINDING_UNDONE
    if not gang.record.scheduled_at or gang.record.ended:
        return None
    if gang.record.phase is Phase.DEGRADED:
        return Reason.MEMBERS_MISSING
    return Reason.MINIMUM_RAISED if raised(gang, assessment.terms.spec) else Reason.HEALTHY


def degraded_message(gang: Gang, assessment: Assessment) -> str:
    """The message of the Degraded condition, whatever its status."""
    if gang.undo is not None:
        return _evicting(gang, gang.undo)
    if gang.record.late:
        return late_message(gang, assessment)
    there = len(assessment.census.bound) + assessment.census.done
    minimum = assessment.terms.spec.minimum
    if gang.record.phase is Phase.DEGRADED:
        capped = f" {gang.record.capped.note}" if gang.record.capped is not None else ""
        return (
            f"{there} of {number_is(gang.record.minimum, 'member')} left; a replacement is bound first of all as soon "
            f"as it exists.{capped}"
        )
    if minimum > gang.record.minimum:
        are = "is" if there == 1 else "are"
        return f"minMember was raised from {gang.record.minimum} to {minimum}; {there} {are} bound."
    return "The minimum is bound."


def _evicting(gang: Gang, doing: Undo) -> str:
    left = rollback.targets(gang)
    spared = rollback.spared(gang)
    refusal = next(rollback.refusals(gang), None)
    parts = [doing.note]
    if doing.retried:
        parts.append("the rest is being tried again")
    elif len(left) > len(spared):
        parts.append(f"{number_is(len(left) - len(spared), 'member')} still to be evicted")
    if refusal is not None and not doing.retried:
        parts.append(f"the API server refuses it, which is tried again: {refusal.message}")
    if spared:
        why = doing.spared[spared[0].uid]
        parts.append(
            f"{number_is(len(spared), 'member')} left in place ({spared[0].name}: {why}): delete them to free their "
            "nodes, or make room so that the rest can be bound"
        )
    return "; ".join(parts) + "."
