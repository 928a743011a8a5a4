"""Reasons and messages of a group: of its condition Scheduled, its Event and its members' conditions."""

from __future__ import annotations

from collections.abc import Callable

from gangsched.core.gang import bindings, prebinding, rollback
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.writes import Rollback
from gangsched.core.objects.duration import format_duration
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import Outcome, Phase
from gangsched.core.objects.status import Demand
from gangsched.core.objects.wording import counted, number_is, number_is_of_all, number_of, number_of_all
from gangsched.core.planning.refusal import Refusal
from gangsched.core.status import explanation
from gangsched.core.status.plan_sentences import reserved_later, waits_for_victims

QUIET_REASONS = frozenset(
    {
        Reason.SCHEDULED,
        Reason.SUCCEEDED,
        Reason.SUSPENDED,
        Reason.PRE_BINDING,
        Reason.BINDING,
        Reason.PLACES_HELD,
        Reason.NO_MEMBERS,
    }
)
"""Reasons that need no Warning Event and no condition on waiting members."""
_ENDS = {Phase.SUCCEEDED: Reason.SUCCEEDED, Phase.FAILED: Reason.GANG_FAILED, Phase.SUSPENDED: Reason.SUSPENDED}
NAMES_SHOWN = 3
"""Number of schedulerNames that one message or write names, because anyone may create pods with any number of them."""
NO_ROOM = frozenset(
    {
        Reason.UNSCHEDULABLE,
        Reason.SEARCH_EXHAUSTED,
        Reason.NEVER_FITS,
        Reason.TIMED_OUT,
        Reason.RESERVED_LATER,
        Reason.NOT_BEFORE_RESERVATION,
    }
)
"""Reasons of a group that waits for room."""


def refused_reason(refusal: Refusal) -> Reason:
    """The reason of members that find no room: an autoscaler acts on it unless no node that it could add would help."""
    if refusal.paused:
        return Reason.PODS_FAIL
    return Reason.NEVER_FITS if refusal.hopeless else Reason.UNSCHEDULABLE


def reason_of(gang: Gang, assessment: Assessment) -> Reason:
    """The reason of the group's condition."""
    if gang.record.phase in _ENDS or gang.record.outcome is Outcome.UNDECIDED:
        return _ENDS.get(gang.record.phase) or _missing_reason(gang)
    if gang.record.scheduled_at:
        return Reason.MEMBERS_MISSING if gang.record.late else Reason.SCHEDULED
    if gang.operations.rollback is not None and not rollback.is_preemption(gang.operations.rollback):
        return Reason.BINDING_UNDONE
    if assessment.terms.hindrance is not None and (
        gang.observed.pods or assessment.terms.hindrance.reason is not Reason.POD_GROUP_NOT_FOUND
    ):
        return assessment.terms.hindrance.reason
    if bindings.complaint(gang):
        return Reason.BINDING_REFUSED
    if begun := assessment.census.begun:
        if gang.operations.prepares and prebinding.first_awaited(gang) is not None:
            return Reason.PRE_BINDING
        return Reason.PLACES_HELD if len(assessment.census.held) == len(begun) else Reason.BINDING
    if gang.record.phase is Phase.TIMED_OUT:
        # One that can never fit is told so throughout, not only between two time-outs.
        never = gang.wait.refusal is not None and gang.wait.refusal.reason is Reason.NEVER_FITS
        waits = Reason.NEVER_FITS if never else Reason.TIMED_OUT
        return Reason.BINDING_UNDONE if gang.record.rollback_note else waits
    return _waiting_reason(gang) if assessment.facts.complete else _missing_reason(gang)


def _missing_reason(gang: Gang) -> Reason:
    """The reason of a group that lacks members, and is not bound."""
    present = gang.observed.pods and gang.record.outcome is not Outcome.UNDECIDED
    missing = Reason.PREEMPTED if gang.record.preempted_by else Reason.GANG_INCOMPLETE
    return missing if present or gang.record.preempted_by else Reason.NO_MEMBERS


def _waiting_reason(gang: Gang) -> Reason:
    """The reason of a group that is complete and not placed."""
    if gang.record.capped is not None:
        return gang.record.capped.reason
    if gang.wait.outside:
        return Reason.NAMESPACE_LIMIT
    if gang.wait.behind is not None:
        return Reason.NOT_ITS_TURN
    if gang.operations.plan is not None:
        return Reason.WAITS_FOR_VICTIMS if gang.operations.plan.start is None else Reason.RESERVED_LATER
    if gang.wait.refusal is not None:
        return gang.wait.refusal.reason
    return Reason.PODS_FAIL if gang.wait.pause.everywhere else Reason.UNSCHEDULABLE


WAITS_FOR_NODES = NO_ROOM | {Reason.PODS_FAIL}
"""Reasons of a group whose quorum was refused."""


def demand_of(gang: Gang, reason: Reason) -> tuple[Demand, ...]:
    """What new nodes must provide for a group with this reason; empty unless it waits for room."""
    return gang.wait.refusal.demand if gang.wait.refusal is not None and reason in NO_ROOM else ()


def _incomplete(gang: Gang, assessment: Assessment) -> str:
    message = explanation.incomplete(assessment, created_again=bool(gang.record.preempted_by))
    if leaving := gang.lingering():
        message += f" {number_is(leaving, 'pod')} still leaving."
    if gated := len(gang.gated()):
        message += f" {counted(gated, 'pod', 'has', 'have')} scheduling gates and will count without them."
    if former := gang.observed.ownership.former:
        do = counted(len(former), "pod", "does", "do")
        its = "its" if len(former) == 1 else "their"
        message += f" {do} not count, because {its} owner was deleted and another object has that name."
    if gang.observed.foreign_pods:
        do = counted(len(gang.observed.foreign_pods), "pod", "does", "do")
        names = " or ".join(schedulers(gang))
        its = "its" if len(gang.observed.foreign_pods) == 1 else "their"
        message += f" {do} not count, because {its} schedulerName is {names}."
    return message


def message_of(gang: Gang, assessment: Assessment, reason: Reason, *, refusal: str) -> str:
    """The sentence for the reason; `refusal` explains why the quorum does not fit, empty if it was not refused."""
    hindrance = assessment.terms.hindrance
    if hindrance is not None and reason is hindrance.reason:
        return hindrance.message
    if gang.record.capped is not None and reason is gang.record.capped.reason:
        return _capped(assessment, gang.record.capped.note)
    if reason is Reason.NAMESPACE_LIMIT:
        return gang.wait.outside
    refusal = f"{gang.wait.pause.note}." if gang.wait.pause.everywhere else refusal
    waited = format_duration(assessment.terms.max_schedule_time_s)
    messages: dict[Reason, Callable[[], str]] = {
        Reason.UNSCHEDULABLE: lambda: refusal or "Complete; waiting to be scheduled.",
        Reason.NEVER_FITS: lambda: refusal,
        Reason.SEARCH_EXHAUSTED: lambda: refusal,
        Reason.TIMED_OUT: lambda: (
            f"No room within {waited}; retried after a back-off, or as soon as a change may help. {refusal}"
        ),
        Reason.SUSPENDED: lambda: _suspended(gang),
        Reason.SUCCEEDED: lambda: f"The run ended with {number_of(gang.record.successes, 'member')} succeeded.",
        Reason.SCHEDULED: lambda: (
            f"{number_is(bound_or_done(assessment), 'member')} bound or done; {gang.record.minimum} needed."
        ),
        Reason.PRE_BINDING: lambda: _prebinding(gang),
        Reason.BINDING: lambda: f"{number_is(gang.operations.under_way(), 'binding')} under way.",
        Reason.WAITS_FOR_VICTIMS: lambda: waits_for_victims(gang),
        Reason.RESERVED_LATER: lambda: f"{reserved_later(gang)} {refusal}",
        Reason.NOT_BEFORE_RESERVATION: lambda: refusal,
        Reason.NOT_ITS_TURN: lambda: _in_line(gang, assessment),
        Reason.PLACES_HELD: lambda: _held(gang, assessment),
        Reason.MEMBERS_MISSING: lambda: late_message(gang, assessment),
        Reason.BINDING_UNDONE: lambda: _undone(gang),
        Reason.BINDING_REFUSED: lambda: _binding_refused(gang, assessment),
        Reason.PODS_FAIL: lambda: refusal,
        Reason.GANG_INCOMPLETE: lambda: _incomplete(gang, assessment),
        Reason.PREEMPTED: lambda: f"All members were evicted for another group. {_incomplete(gang, assessment)}",
        Reason.NO_MEMBERS: lambda: _no_members(gang),
        Reason.GANG_FAILED: lambda: (
            f"The run ended with {number_of_all(gang.record.successes, gang.record.minimum, 'member')} succeeded."
        ),
    }
    if reason is Reason.GANG_FAILED and gang.record.outcome is Outcome.OUT_OF_TIME:
        return (
            f"No room within {waited}, and timeoutPolicy is Fail: change the PodGroup's spec or delete all members "
            f"to start over. {refusal}"
        )
    return f"{messages[reason]().rstrip()} {assessment.terms.lowered if reason in NO_ROOM else ''}".rstrip()


def _capped(assessment: Assessment, note: str) -> str:
    """Which cap has released its reservation or prevents it, and how many members are bound meanwhile."""
    if not assessment.census.bound:
        return f"{note} {assessment.terms.lowered}".rstrip()
    return f"{number_is_of_all(len(assessment.census.bound), assessment.minimum, 'member')} bound and stay. {note}"


def _prebinding(gang: Gang) -> str:
    """The first pre-binding that the members with nodes wait for."""
    pending = prebinding.first_awaited(gang)
    if pending is None:
        return ""
    waiting = sum(binding.awaits is not None for binding in gang.operations.bindings.values())
    held = len(gang.operations.unconfirmed())
    refused = f" The API server refused this write, which is retried: {pending.complaint}"
    return (
        f"{counted(held, 'member', 'has a node and is', 'have nodes and are')} bound once everything is ready: "
        f"{pending.prebinding.awaited} ({counted(waiting, 'member', 'waits', 'wait')} like this)."
        f"{refused if pending.complaint else ''}"
    )


def _binding_refused(gang: Gang, assessment: Assessment) -> str:
    complaint = bindings.complaint(gang)
    doubted = sorted(gang.observed.pods[uid].name for uid in gang.operations.doubted & gang.observed.pods.keys())
    if not doubted or gang.operations.bindings or assessment.census.bound:
        return f"The API server refused a binding, which is retried: {complaint}"
    more = f" and {len(doubted) - 1} more" if len(doubted) > 1 else ""
    return (
        f"The API server refuses to bind {doubted[0]}{more} on every node that was tried, so no other member is bound "
        "and no place is held: find what refuses it, most often an admission policy, or delete the pod; it is retried "
        f"before the others after a back-off. Last response: {complaint}"
    )


def _in_line(gang: Gang, assessment: Assessment) -> str:
    """Which group is first in the lane of the instance group; one of another namespace is not named."""
    first = gang.wait.behind
    if first is None:
        return ""
    name = str(first) if first.namespace == gang.key.namespace else "a group of another namespace"
    return (
        f"Groups of the instance group {assessment.terms.instance_group} are bound in the order of their age, and "
        f"{name} waits for room before this one."
    )


def _held(gang: Gang, assessment: Assessment) -> str:
    """The reservation for members that do not exist yet, and how long it lasts."""
    places, terms = len(gang.operations.placeholders()), assessment.terms
    at_most_s = terms.max_hold_s if terms.sequential else min(terms.max_schedule_time_s, terms.max_hold_s)
    return (
        f"{number_is_of_all(len(assessment.census.bound), assessment.minimum, 'member')} bound and "
        f"{'a place is' if places == 1 else f'{places} places are'} held for the missing ones, for up to "
        f"{format_duration(at_most_s)}."
    )


def bound_or_done(assessment: Assessment) -> int:
    """The number of members that are bound, or have succeeded and count."""
    return len(assessment.census.bound) + assessment.census.done


def late_message(gang: Gang, assessment: Assessment) -> str:
    """How many members are bound of a group whose other members were not created in time."""
    if gang.operations.placeholders():
        return _held(gang, assessment)
    bound = f"{number_is_of_all(bound_or_done(assessment), gang.record.minimum, 'member')} bound"
    if not gang.record.placeholders_expired:
        return f"{bound}; the others are bound first, as soon as they exist and fit."
    return (
        f"{bound}; the others were not created within {format_duration(assessment.terms.max_schedule_time_s)}, so "
        "their places were released: create them, and they are bound first, as soon as there is room."
    )


def _undone(gang: Gang) -> str:
    current = gang.operations.rollback
    if current is None:
        return f"{gang.record.rollback_note}: its bindings and writes are undone, and it is retried after a back-off."
    if current.retried:
        return f"{current.note}; the rest is being retried."
    spared = rollback.spared(gang, current)
    if not spared or len(rollback.targets(gang, current)) > len(spared):
        return f"{current.note}: the bound members are evicted, so that the whole group starts over."
    if gang.observed.group is not None and not gang.observed.group.made:
        return f"{current.note}; the condition Degraded says why the bound members are left in place."
    return f"{current.note}; {left_in_place(gang, current)}."


def left_in_place(gang: Gang, doing: Rollback) -> str:
    """How many members a rollback spares, and why, for groups that have no condition Degraded."""
    spared = rollback.spared(gang, doing)
    why = doing.evictions.spared[spared[0].uid]
    return (
        f"{number_is(len(spared), 'member')} left in place ({spared[0].name}: {why}), and the rest is tried again "
        "after a back-off"
    )


def schedulers(gang: Gang) -> list[str]:
    """The schedulerNames of pods that name the group and do not count, at most NAMES_SHOWN of them."""
    return sorted({pod.scheduler for pod in gang.observed.foreign_pods.values()})[:NAMES_SHOWN]


def _suspended(gang: Gang) -> str:
    """Which workload wants no pods, and how to resume it."""
    idle = gang.observed.idle
    if idle is None:
        return ""
    how = "resume it" if idle.suspended else "scale it up"
    return f"No member is left, because the {idle.called} {idle.why}: {how} to begin the next run."


def _no_members(gang: Gang) -> str:
    """Why the group has no members: those of its last run are gone, or there has been no run."""
    if gang.record.outcome is Outcome.UNDECIDED:
        ended = "have ended or " if gang.record.successes or gang.record.failed else ""
        return f"All members {ended}were deleted, so this run is over: the next one begins with the next member."
    foreign_pods = gang.observed.foreign_pods
    if not foreign_pods:
        return "No pod names this PodGroup yet: label pods gangsched.io/pod-group and set schedulerName."
    return (
        f"{counted(len(foreign_pods), 'pod', 'names', 'name')} this PodGroup with a schedulerName that gangsched "
        f"does not serve ({', '.join(schedulers(gang))}): correct their schedulerName."
    )
