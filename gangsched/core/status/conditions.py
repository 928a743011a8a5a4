"""A gang's state in a word and a sentence: the reason and message of its condition, its Event and its members."""

from __future__ import annotations

from gangsched.core.gang import bindings, rollback
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.lifecycle import Assessment
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import Outcome, Phase
from gangsched.core.objects.status import Demand
from gangsched.core.objects.wording import number_is, number_of
from gangsched.core.planning.refusal import Refusal
from gangsched.core.status import explanation

UNTOLD_REASONS = frozenset({Reason.SCHEDULED, Reason.SUCCEEDED, Reason.BINDING, Reason.PLACES_HELD, Reason.NO_MEMBERS})
"""Reasons that need no Warning Event and no condition on waiting members."""
_ENDS = {Phase.SUCCEEDED: Reason.SUCCEEDED, Phase.FAILED: Reason.GANG_FAILED}
NO_ROOM = frozenset({Reason.UNSCHEDULABLE, Reason.NEVER_FITS, Reason.TIMED_OUT})
"""Reasons of a group that waits for room."""
NODES_SHOWN = 30
"""The Scheduled Event names so many nodes; an Event's note holds 1,024 characters."""


def refused_reason(refusal: Refusal) -> Reason:
    """The reason of members that find no room: an autoscaler is to act unless no node that it could add would help."""
    return Reason.NEVER_FITS if refusal.hopeless else Reason.UNSCHEDULABLE


def reason_of(gang: Gang, assessment: Assessment) -> Reason:
    """The reason of the group's condition."""
    if gang.record.phase in _ENDS:
        return _ENDS[gang.record.phase]
    if gang.record.scheduled_at:
        return Reason.MEMBERS_MISSING if gang.record.late else Reason.SCHEDULED
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
    if gang.record.phase is Phase.TIMED_OUT:
        return Reason.BINDING_UNDONE if gang.record.undone else Reason.TIMED_OUT
    if not assessment.facts.complete:
        return Reason.GANG_INCOMPLETE if gang.pods else Reason.NO_MEMBERS
    return _waiting_reason(gang)


def _waiting_reason(gang: Gang) -> Reason:
    """The reason of a group that is complete and not placed."""
    if gang.record.capped is not None:
        return gang.record.capped.reason
    if gang.outside:
        return Reason.NAMESPACE_LIMIT
    if gang.attempt.held_up_by is not None:
        return Reason.NOT_ITS_TURN
    if gang.attempt.refusal is not None and gang.attempt.refusal.never:
        return Reason.NEVER_FITS
    return Reason.UNSCHEDULABLE


def demand_of(gang: Gang, reason: Reason) -> tuple[Demand, ...]:
    """What new nodes must bring for a group of this reason; nothing unless it is room that it waits for."""
    return gang.attempt.refusal.demand if gang.attempt.refusal is not None and reason in NO_ROOM else ()


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
    if gang.record.capped is not None and reason is gang.record.capped.reason:
        return _capped(gang, assessment)
    if reason is Reason.NAMESPACE_LIMIT:
        return gang.outside
    time_s = assessment.terms.max_schedule_time_s
    succeeded = gang.record.successes
    said = {
        Reason.UNSCHEDULABLE: refusal or "Complete; waits to be tried.",
        Reason.NEVER_FITS: refusal,
        Reason.TIMED_OUT: f"No room within {time_s:g}s; tried again after a back-off, or as soon as something helps. "
        f"{refusal}",
        Reason.SUCCEEDED: f"The run ended with {number_of(succeeded, 'member')} succeeded.",
        Reason.SCHEDULED: f"{number_is(len(census.bound) + census.done, 'member')} bound or done, of "
        f"{gang.record.minimum} needed.",
        Reason.BINDING: f"{number_is(len(gang.flying()) - len(gang.vacant()), 'binding')} under way.",
        Reason.NOT_ITS_TURN: _in_line(gang, assessment),
        Reason.PLACES_HELD: _held(gang, assessment),
        Reason.MEMBERS_MISSING: late_message(gang, assessment),
        Reason.BINDING_UNDONE: _undone(gang),
        Reason.BINDING_REFUSED: _binding_refused(gang, assessment),
        Reason.GANG_INCOMPLETE: explanation.incomplete(assessment) + _gated(gang) + _disowned(gang),
        Reason.NO_MEMBERS: _nobody(gang),
        Reason.GANG_FAILED: f"The run ended with {succeeded} of {number_of(gang.record.minimum, 'member')} succeeded.",
    }
    if reason is Reason.GANG_FAILED and gang.record.outcome is Outcome.OUT_OF_TIME:
        return (
            f"No room within {time_s:g}s, and timeoutPolicy is Fail: change the PodGroup's spec or delete all members "
            f"to begin anew. {refusal}"
        )
    return f"{said[reason].rstrip()} {assessment.terms.lowered if reason in NO_ROOM else ''}".rstrip()


def _capped(gang: Gang, assessment: Assessment) -> str:
    """Which cap has released its places or keeps them from being held, and who is bound meanwhile."""
    capped = gang.record.capped
    note = capped.note if capped is not None else ""
    if not assessment.census.bound:
        return f"{note} {assessment.terms.lowered}".rstrip()
    return f"{len(assessment.census.bound)} of {number_is(assessment.minimum, 'member')} bound and stay. {note}"


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
    first = gang.attempt.held_up_by
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
        f"{len(assessment.census.bound)} of {number_is(assessment.minimum, 'member')} bound and "
        f"{'a place is' if number == 1 else f'{number} places are'} held for those to come, for up to "
        f"{min(assessment.terms.max_schedule_time_s, assessment.terms.max_hold_s):g}s."
    )


def late_message(gang: Gang, assessment: Assessment) -> str:
    """Who of a group is there whose other members had not come in time."""
    if gang.vacant():
        return _held(gang, assessment)
    there = (
        f"{len(assessment.census.bound) + assessment.census.done} of {number_is(gang.record.minimum, 'member')} bound"
    )
    if not gang.record.vacated:
        return f"{there}; the others are bound first of all as soon as they exist and fit."
    return (
        f"{there}; the others had not come within "
        f"{assessment.terms.max_schedule_time_s:g}s, and their places were released: create them, and they are bound "
        "first of all as soon as there is room."
    )


def _undone(gang: Gang) -> str:
    if gang.undo is not None and gang.undo.retried:
        return f"{gang.undo.note}; the rest is being tried again."
    if gang.undo is not None and len(rollback.targets(gang)) > len(rollback.spared(gang)):
        return f"{gang.undo.note}: the bound members are evicted, so that the group starts over whole."
    if gang.undo is not None:
        return f"{gang.undo.note}; the condition Degraded says why the bound members are left."
    return f"{gang.record.undone}: those were evicted; the group is planned anew after a back-off."


def scheduled_note(gang: Gang, assessment: Assessment) -> str:
    """The note of the Scheduled Event, which names the nodes."""
    nodes: dict[str, int] = {}
    for pod in assessment.census.bound:
        node = pod.node or gang.bindings[pod.uid].node
        nodes[node] = nodes.get(node, 0) + 1
    shown = ", ".join(f"{node} ({count})" for node, count in sorted(nodes.items())[:NODES_SHOWN])
    more = f" and {number_of(len(nodes) - NODES_SHOWN, 'more node')}" if len(nodes) > NODES_SHOWN else ""
    return f"Bound {number_of(len(assessment.census.bound), 'member')} to {shown}{more}."
