"""The reason and the message of a group's condition Degraded."""

from __future__ import annotations

from gangsched.core.declarations.minima import chosen, minima, missing_of
from gangsched.core.gang import rollback
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.wants import raised
from gangsched.core.gang.writes import Rollback
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import Phase
from gangsched.core.objects.wording import number_is, number_is_of_all
from gangsched.core.status.conditions import bound_or_done, late_message
from gangsched.core.status.explanation import missing_parts, refused
from gangsched.core.status.plan_sentences import waits_for_victims


def degraded_reason(gang: Gang, assessment: Assessment) -> Reason | None:
    """The reason of the Degraded condition, whatever its status; None for a group that has no such condition."""
    doing = gang.operations.rollback
    if doing is not None:
        if rollback.refusals(gang, doing):
            return Reason.EVICTION_REFUSED
        if doing.restart is not None:
            return Reason.PREEMPTED if rollback.is_preemption(doing) else Reason.RESTARTING
        return Reason.PARTLY_BOUND if rollback.spared(gang, doing) else Reason.BINDING_UNDONE
    if not gang.record.scheduled_at or gang.record.ended:
        return None
    if gang.record.phase is Phase.DEGRADED:
        return Reason.MEMBERS_MISSING
    return Reason.MINIMUM_RAISED if raised(gang, assessment.terms.spec) else Reason.HEALTHY


def degraded_message(gang: Gang, assessment: Assessment) -> str:
    """The message of the Degraded condition, whatever its status."""
    if gang.operations.rollback is not None:
        return _evicting(gang, gang.operations.rollback)
    if gang.record.late:
        return late_message(gang, assessment)
    present = bound_or_done(assessment)
    minimum = assessment.terms.spec.minimum
    if gang.record.phase is Phase.DEGRADED:
        why = f" {gang.record.capped.note}" if gang.record.capped is not None else ""
        why += f" {gang.wait.pause.note}." if gang.wait.pause else ""
        why += f" {waits_for_victims(gang)}" if gang.operations.plan is not None else ""
        left = number_is_of_all(present, gang.record.minimum, "member")
        waits = _waits(gang, assessment) or "a replacement is bound first, as soon as it exists and fits."
        return f"{left} left; {waits}{why}"
    if minimum > gang.record.minimum:
        are = "is" if present == 1 else "are"
        ours = gang.observed.group is not None and not gang.observed.group.made
        field = "minMember" if ours else "The minimum"
        note = f"{field} was raised from {gang.record.minimum} to {minimum}; {present} {are} bound"
        short = minimum - present - len(assessment.census.waiting)
        if missing_parts(assessment):
            return f"{note}; missing: {missing_parts(assessment)}."
        if short > 0:
            return f"{note}; {number_is(short, 'more member')} needed, or a lower minimum."
        return f"{note}; {_waits(gang, assessment) or 'the others are bound together, as soon as they fit.'}"
    placed = assessment.census.kept
    missing = missing_of(chosen(minima(assessment.terms.spec), placed), placed).roles
    roles = ", ".join(f"{number} of role {role}" for role, number in sorted(missing.items()) if number)
    if roles and raised(gang, assessment.terms.spec):
        return f"Minima of roles were raised; missing: {roles}."
    return "The minimum is bound."


def _waits(gang: Gang, assessment: Assessment) -> str:
    """The members that exist and are not bound, and why; empty if there are none, or nothing is known to keep them."""
    waiting, hindrance = assessment.census.waiting, assessment.terms.hindrance
    if waiting and hindrance is not None:
        return f"{number_is(len(waiting), 'member')} waiting: {hindrance.message}"
    refusals = (gang.wait.refused_members.get(pod.uid) or gang.wait.refusal for pod in waiting)
    refusal = next(filter(None, refusals), None)
    return f"{number_is(len(waiting), 'member')} waiting for room: {refused(refusal)}" if refusal is not None else ""


def _evicting(gang: Gang, doing: Rollback) -> str:
    left = rollback.targets(gang, doing)
    spared = rollback.spared(gang, doing)
    refusal = next(iter(rollback.refusals(gang, doing)), None)
    parts = [doing.note]
    if doing.retried:
        parts.append("the rest is being retried")
    elif len(left) > len(spared):
        parts.append(f"{number_is(len(left) - len(spared), 'member')} still to be evicted")
    if refusal is not None and not doing.retried:
        parts.append(f"the API server refuses an eviction, which is retried: {refusal.message}")
    if spared:
        why = doing.evictions.spared[spared[0].uid]
        parts.append(
            f"{number_is(len(spared), 'member')} left in place ({spared[0].name}: {why}): delete them to free their "
            "nodes, or make room so that the rest can be bound"
        )
    return "; ".join(parts) + "."
