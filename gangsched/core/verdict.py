"""A gang's state in a word and a sentence: the reason and message of its condition, its Event and its members."""

from __future__ import annotations

from collections.abc import Iterator

from gangsched.core import bindings, claims, explain, undo
from gangsched.core.demand import raised
from gangsched.core.gang import Gang, Undo
from gangsched.core.life import Assessment
from gangsched.core.model import Demand, Pod
from gangsched.core.reasons import Reason
from gangsched.core.refusal import Refusal
from gangsched.core.states import Phase

UNTOLD_REASONS = frozenset({Reason.SCHEDULED, Reason.SUCCEEDED, Reason.BINDING, Reason.PLACES_HELD, Reason.NO_MEMBERS})
"""Reasons that need no Warning Event and no condition on waiting members."""
_ENDS = {Phase.SUCCEEDED: Reason.SUCCEEDED, Phase.FAILED: Reason.GANG_FAILED}
NO_ROOM = frozenset({Reason.UNSCHEDULABLE, Reason.NEVER_FITS, Reason.TIMED_OUT})
"""Reasons of a group that waits for room."""
NODES_SHOWN = 30
"""The Scheduled Event names so many nodes; an Event's note holds 1,024 characters."""


def member_verdicts(gang: Gang, assessment: Assessment) -> Iterator[tuple[Pod, Reason]]:
    """Each waiting member that is kept from a node, with the reason for its own condition.

    It is `Unschedulable` only where more capacity would help, because autoscalers act on it.
    """
    surplus = {pod.uid for pod in assessment.surplus}
    general = _general_reason(gang, assessment)
    for uid in sorted(gang.disowned & gang.pods.keys()):
        yield gang.pods[uid], Reason.SEVERAL_OWNERS
    for pod in assessment.census.waiting:
        if pod.uid in surplus:
            yield pod, Reason.SURPLUS
        elif pod.uid in gang.refused_members:
            yield pod, refused_reason(gang.refused_members[pod.uid])
        elif pod.uid in gang.barred:
            yield pod, Reason.BINDING_REFUSED
        elif general is not None:
            yield pod, general


def member_message(gang: Gang, assessment: Assessment, pod: Pod, reason: Reason, *, group_message: str) -> str:
    """The sentence for a member's reason, which begins with its group's name if that is known."""
    message = group_message
    if reason is Reason.SURPLUS:
        message = _above_maximum(gang, pod)
    elif reason is Reason.SEVERAL_OWNERS:
        return claims.described(gang)
    elif pod.uid in gang.refused_members:
        message = explain.refused(gang.refused_members[pod.uid])
    elif pod.uid in gang.barred:
        message = f"The API server refused its binding, which is tried again later: {gang.barred[pod.uid].message}"
    elif gang.run.scheduled_at and assessment.hindrance is not None:
        message = assessment.hindrance.message
    elif gang.run.scheduled_at and gang.refusal is not None:
        message = explain.refused(gang.refusal)
    elif gang.run.scheduled_at:
        message = degraded_message(gang, assessment)
    return message if gang.plain or not gang.key.name else f"Group {gang.key.name}: {message}"


def _above_maximum(gang: Gang, pod: Pod) -> str:
    if gang.group is not None and not gang.group.made:
        return "As many members as maxMember allows are there already: raise maxMember to have this pod scheduled."
    leading = pod.declaration.leading if pod.declaration is not None else ""
    who = f"its {leading}" if leading else "the group"
    return f"As many members as {who} asks for are there already: this pod is bound once another one has ended."


def _general_reason(gang: Gang, assessment: Assessment) -> Reason | None:
    """The reason of members that have none of their own; None where nothing need be said."""
    reason = reason_of(gang, assessment)
    if reason in (Reason.SCHEDULED, Reason.MEMBERS_MISSING):
        if assessment.hindrance is not None:
            return assessment.hindrance.reason
        if gang.refusal is not None:
            return refused_reason(gang.refusal)
        return Reason.GANG_INCOMPLETE if raised(gang, assessment.terms.spec) else None
    if reason in UNTOLD_REASONS or (reason is Reason.UNSCHEDULABLE and gang.refusal is None):
        return None
    if gang.refusal is not None and reason in NO_ROOM:
        return refused_reason(gang.refusal)
    return reason


def refused_reason(refusal: Refusal) -> Reason:
    """The reason of members that find no room: an autoscaler is to act unless no node that it could add would help."""
    return Reason.NEVER_FITS if refusal.hopeless else Reason.UNSCHEDULABLE


def reason_of(gang: Gang, assessment: Assessment) -> Reason:
    """The reason of the group's condition."""
    if gang.phase in _ENDS:
        return _ENDS[gang.phase]
    if gang.run.scheduled_at:
        return Reason.MEMBERS_MISSING if gang.run.late else Reason.SCHEDULED
    if gang.undo is not None:
        return Reason.BINDING_UNDONE
    if assessment.hindrance is not None and (
        gang.pods or assessment.hindrance.reason is not Reason.POD_GROUP_NOT_FOUND
    ):
        return assessment.hindrance.reason
    if bindings.complaint(gang):
        return Reason.BINDING_REFUSED
    if gang.flies():
        return Reason.BINDING if any(not binding.vacant for binding in gang.flying()) else Reason.PLACES_HELD
    if gang.phase is Phase.TIMED_OUT:
        return Reason.BINDING_UNDONE if gang.undone else Reason.TIMED_OUT
    if not assessment.facts.complete:
        return Reason.GANG_INCOMPLETE if gang.pods else Reason.NO_MEMBERS
    return _waiting_reason(gang)


def _waiting_reason(gang: Gang) -> Reason:
    """The reason of a group that is complete and not placed."""
    if gang.run.capped is not None:
        return gang.run.capped.reason
    if gang.outside:
        return Reason.NAMESPACE_LIMIT
    if gang.held_up_by is not None:
        return Reason.NOT_ITS_TURN
    if gang.refusal is not None and gang.refusal.never:
        return Reason.NEVER_FITS
    return Reason.UNSCHEDULABLE


def demand_of(gang: Gang, reason: Reason) -> tuple[Demand, ...]:
    """What new nodes must bring for a group of this reason; nothing unless it is room that it waits for."""
    return gang.refusal.demand if gang.refusal is not None and reason in NO_ROOM else ()


def _gated(gang: Gang) -> str:
    gated = sum(pod.gated for pod in gang.pods.values())
    if not gated:
        return ""
    return f" {'1 pod has' if gated == 1 else f'{gated} pods have'} scheduling gates and will count without them."


def _disowned(gang: Gang) -> str:
    number = len(gang.disowned)
    if not number:
        return ""
    return f" {'1 pod does' if number == 1 else f'{number} pods do'} not count, because another owner has the group."


def _nobody(gang: Gang) -> str:
    if not gang.strangers:
        return "No pod names this PodGroup yet: label pods gangsched.io/pod-group and set schedulerName."
    names = ", ".join(sorted({pod.scheduler for pod in gang.strangers.values()}))
    count = len(gang.strangers)
    return (
        f"{'1 pod names' if count == 1 else f'{count} pods name'} this PodGroup with a schedulerName that gangsched "
        f"does not serve ({names}): correct their schedulerName."
    )


def message_of(gang: Gang, assessment: Assessment, reason: Reason, *, refusal: str) -> str:
    """The sentence for the reason; `refusal` explains why the quorum does not fit, empty if it was not refused."""
    hindrance = assessment.hindrance
    if hindrance is not None and reason is hindrance.reason:
        return hindrance.message
    census = assessment.census
    if gang.run.capped is not None and reason is gang.run.capped.reason:
        return _capped(gang, assessment)
    if reason is Reason.NAMESPACE_LIMIT:
        return gang.outside
    time_s = assessment.terms.max_schedule_time_s
    succeeded = len(gang.run.succeeded)
    said = {
        Reason.UNSCHEDULABLE: refusal or "Complete; waits to be tried.",
        Reason.NEVER_FITS: refusal,
        Reason.TIMED_OUT: f"No room within {time_s:g}s; tried again after a back-off, or as soon as something helps. "
        f"{refusal}",
        Reason.SUCCEEDED: f"The run ended with {explain.number_of(succeeded, 'member')} succeeded.",
        Reason.SCHEDULED: f"{_number(len(census.bound) + census.done, 'member')} bound or done, of {gang.run.minimum} "
        "needed.",
        Reason.BINDING: f"{_number(len(gang.flying()) - len(gang.vacant()), 'binding')} under way.",
        Reason.NOT_ITS_TURN: _in_line(gang, assessment),
        Reason.PLACES_HELD: _held(gang, assessment),
        Reason.MEMBERS_MISSING: _late(gang, assessment),
        Reason.BINDING_UNDONE: _undone(gang),
        Reason.BINDING_REFUSED: _binding_refused(gang, assessment),
        Reason.GANG_INCOMPLETE: explain.incomplete(assessment) + _gated(gang) + _disowned(gang),
        Reason.NO_MEMBERS: _nobody(gang),
        Reason.GANG_FAILED: f"The run ended with {succeeded} of {explain.number_of(gang.run.minimum, 'member')} "
        "succeeded.",
    }
    if reason is Reason.GANG_FAILED and gang.run.failed_for_good:
        return (
            f"No room within {time_s:g}s, and timeoutPolicy is Fail: change the PodGroup's spec or delete all members "
            f"to begin anew. {refusal}"
        )
    return f"{said[reason].rstrip()} {assessment.terms.lowered if reason in NO_ROOM else ''}".rstrip()


def _capped(gang: Gang, assessment: Assessment) -> str:
    """Which cap has released its places or keeps them from being held, and who is bound meanwhile."""
    capped = gang.run.capped
    note = capped.note if capped is not None else ""
    if not assessment.census.bound:
        return f"{note} {assessment.terms.lowered}".rstrip()
    return f"{len(assessment.census.bound)} of {_number(assessment.minimum, 'member')} bound and stay. {note}"


def _binding_refused(gang: Gang, assessment: Assessment) -> str:
    said = bindings.complaint(gang)
    doubted = sorted(gang.pods[uid].name for uid in gang.doubted & gang.pods.keys())
    if not doubted or gang.bindings or assessment.census.bound:
        return f"The API server refused a binding, which is tried again: {said}"
    more = f" and {len(doubted) - 1} more" if len(doubted) > 1 else ""
    return (
        f"The API server refuses to bind {doubted[0]}{more} wherever that was tried, so nobody else is bound and no "
        "place is held: find what refuses it, most often an admission policy, or delete the pod; it is tried again "
        f"first of all after a back-off. The last answer: {said}"
    )


def _in_line(gang: Gang, assessment: Assessment) -> str:
    """Who is first in the line of the instance group; the name of another namespace's group is not told."""
    first = gang.held_up_by
    if first is None:
        return ""
    name = str(first) if first.namespace == gang.key.namespace else "a group of another namespace"
    return (
        f"Groups of the instance group {assessment.terms.instance_group} are bound in the order of their age, and "
        f"{name} waits for room before this one."
    )


def _held(gang: Gang, assessment: Assessment) -> str:
    """Of places held for members to come. For how long is said by the status."""
    number = len(gang.vacant())
    return (
        f"{len(assessment.census.bound)} of {_number(assessment.minimum, 'member')} bound and "
        f"{'a place is' if number == 1 else f'{number} places are'} held for those to come, for up to "
        f"{min(assessment.terms.max_schedule_time_s, assessment.terms.max_hold_s):g}s."
    )


def _late(gang: Gang, assessment: Assessment) -> str:
    if gang.vacant():
        return _held(gang, assessment)
    there = f"{len(assessment.census.bound) + assessment.census.done} of {_number(gang.run.minimum, 'member')} bound"
    if not gang.run.vacated:
        return f"{there}; the others are bound first of all as soon as they exist and fit."
    return (
        f"{there}; the others had not come within "
        f"{assessment.terms.max_schedule_time_s:g}s, and their places were released: create them, and they are bound "
        "first of all as soon as there is room."
    )


def _undone(gang: Gang) -> str:
    if gang.undo is not None and gang.undo.retried:
        return f"{gang.undo.note}; the rest is being tried again."
    if gang.undo is not None and len(undo.targets(gang)) > len(undo.spared(gang)):
        return f"{gang.undo.note}: the bound members are evicted, so that the group starts over whole."
    if gang.undo is not None:
        return f"{gang.undo.note}; the condition Degraded says why the bound members are left."
    return f"{gang.undone}: those were evicted; the group is planned anew after a back-off."


def scheduled_note(gang: Gang, assessment: Assessment) -> str:
    """The note of the Scheduled Event, which names the nodes."""
    nodes: dict[str, int] = {}
    for pod in assessment.census.bound:
        node = pod.node or gang.bindings[pod.uid].node
        nodes[node] = nodes.get(node, 0) + 1
    shown = ", ".join(f"{node} ({count})" for node, count in sorted(nodes.items())[:NODES_SHOWN])
    more = f" and {explain.number_of(len(nodes) - NODES_SHOWN, 'more node')}" if len(nodes) > NODES_SHOWN else ""
    return f"Bound {explain.number_of(len(assessment.census.bound), 'member')} to {shown}{more}."


def degraded_reason(gang: Gang, assessment: Assessment) -> Reason | None:
    """The reason of the Degraded condition, whatever its status; None for a group that has no such condition."""
    if gang.undo is not None:
        if any(undo.refusals(gang)):
            return Reason.EVICTION_REFUSED
        if gang.undo.restart is not None:
            return Reason.RESTARTING
        return Reason.PARTLY_BOUND if undo.spared(gang) else Reason.BINDING_UNDONE
    if not gang.run.scheduled_at or gang.run.ended:
        return None
    if gang.phase is Phase.DEGRADED:
        return Reason.MEMBERS_MISSING
    return Reason.MINIMUM_RAISED if raised(gang, assessment.terms.spec) else Reason.HEALTHY


def degraded_message(gang: Gang, assessment: Assessment) -> str:
    """The message of the Degraded condition, whatever its status."""
    if gang.undo is not None:
        return _evicting(gang, gang.undo)
    if gang.run.late:
        return _late(gang, assessment)
    there = len(assessment.census.bound) + assessment.census.done
    minimum = assessment.terms.spec.minimum
    if gang.phase is Phase.DEGRADED:
        capped = f" {gang.run.capped.note}" if gang.run.capped is not None else ""
        return (
            f"{there} of {_number(gang.run.minimum, 'member')} left; a replacement is bound first of all as soon as it "
            f"exists.{capped}"
        )
    if minimum > gang.run.minimum:
        are = "is" if there == 1 else "are"
        return f"minMember was raised from {gang.run.minimum} to {minimum}; {there} {are} bound."
    return "The minimum is bound."


def _evicting(gang: Gang, doing: Undo) -> str:
    left = undo.targets(gang)
    spared = undo.spared(gang)
    refusal = next(undo.refusals(gang), None)
    parts = [doing.note]
    if doing.retried:
        parts.append("the rest is being tried again")
    elif len(left) > len(spared):
        parts.append(f"{_number(len(left) - len(spared), 'member')} still to be evicted")
    if refusal is not None and not doing.retried:
        parts.append(f"the API server refuses it, which is tried again: {refusal.message}")
    if spared:
        why = doing.spared[spared[0].uid]
        parts.append(
            f"{_number(len(spared), 'member')} left in place ({spared[0].name}: {why}): delete them to free their "
            "nodes, or make room so that the rest can be bound"
        )
    return "; ".join(parts) + "."


def _number(count: int, thing: str) -> str:
    return f"{explain.number_of(count, thing)} {'is' if count == 1 else 'are'}"
