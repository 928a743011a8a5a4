"""The conditions of waiting members."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from gangsched.core.declarations.minima import above, rest_of, roles_in
from gangsched.core.gang import rollback
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.clock import NEVER
from gangsched.core.gang.gang import Census, Gang
from gangsched.core.gang.wants import placed_of, raised
from gangsched.core.gang.writes import Part
from gangsched.core.gang.written import MemberCondition
from gangsched.core.objects.effects import Effect, PatchPodCondition
from gangsched.core.objects.pod import Pod, role_of
from gangsched.core.objects.podgroup import GroupSpec
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import Minima
from gangsched.core.status import explanation
from gangsched.core.status.conditions import NO_ROOM, QUIET_REASONS, left_in_place, refused_reason
from gangsched.core.status.degraded import degraded_message
from gangsched.core.status.plan_sentences import waits_for_victims

EVENT_AFTER_S = 4.0
"""Delay, in seconds, between a member's condition and an Event with the same reason. The condition itself is written
one second after the refusal."""
TOLD = 200
"""By so many characters of a sentence about the declaration it is found out whether a condition says another one."""


def write(gang: Gang, assessment: Assessment, group_message: str, policy: Policy, now: float) -> list[Effect]:
    """The writes of members' conditions that are due."""
    effects, written, is_new = list[Effect](), gang.written, False
    for pod, reason, told in owed(gang, assessment, policy, now):
        text = message(gang, assessment, pod, reason, group_message)
        since = 0.0 if pod.condition_reason else now
        is_new |= _differs(written.members.get(pod.uid), told)
        written.member_condition_written(pod.uid, told)
        effects.append(PatchPodCondition(pod.uid, pod.namespace, pod.name, reason, text, since, told.nominated))
    if effects and now + EVENT_AFTER_S < written.pods_at:
        written.pods_due(now + EVENT_AFTER_S)
    unseen = (_differs(seen, told) for *_, seen, told in _compared(gang, assessment, now))
    if is_new:
        written.conditions_at = now + policy.message_interval_s
    elif written.conditions_at < NEVER and (now >= written.conditions_at or not any(unseen)):
        # One that was lost twice is written again when something else happens.
        written.conditions_at = NEVER
    return effects


def _lacks(assessment: Assessment, reason: Reason) -> str:
    """What the declaration lacks, if that is the reason, as the start of its sentence; empty otherwise."""
    hindrance = assessment.terms.hindrance
    return hindrance.message[:TOLD] if hindrance is not None and reason is hindrance.reason else ""


def _nominated(gang: Gang, pod: Pod, reason: Reason) -> str | None:
    """The node that others leave for the member, which the same write says; None if there is nothing to say."""
    plan = gang.operations.plan
    if reason is Reason.WAITS_FOR_VICTIMS and plan is not None:
        return next((node for other, node in plan.places if other.uid == pod.uid), None)
    return "" if pod.condition_reason == Reason.WAITS_FOR_VICTIMS else None


def owed(gang: Gang, assessment: Assessment, policy: Policy, now: float) -> list[tuple[Pod, Reason, MemberCondition]]:
    """Waiting members whose condition says something else than it should, with what it should say, or was lost.

    What the group's declaration lacks is told anew, because members may be the only ones who tell it.
    """
    due = []
    for pod, reason, seen, told in _compared(gang, assessment, now):
        written = gang.written.members.get(pod.uid, seen)
        again_s = 0.0
        if not _differs(written, told):
            again_s = policy.message_interval_s if _differs(seen, told) else NEVER
        elif written.reason == reason and written.lacks != told.lacks:
            # Another sentence about it may follow soon.
            again_s = EVENT_AFTER_S
        if now >= written.at + again_s:
            due.append((pod, reason, told))
    return due


def _compared(
    gang: Gang, assessment: Assessment, now: float
) -> Iterator[tuple[Pod, Reason, MemberCondition, MemberCondition]]:
    """Each waiting member, why it waits, its condition as it is seen, and as it should be."""
    for pod, reason in conditions(gang, assessment):
        told = MemberCondition(reason, now, _nominated(gang, pod, reason), _lacks(assessment, reason))
        lacks = told.lacks if told.lacks in pod.condition_message else ""
        yield pod, reason, MemberCondition(pod.condition_reason, float("-inf"), pod.nominated_node, lacks), told


def _differs(one: MemberCondition | None, told: MemberCondition) -> bool:
    """Whether that condition says something else than it is to tell."""
    if one is None or (one.reason, one.lacks) != (told.reason, told.lacks):
        return True
    return told.nominated not in (None, one.nominated)


def conditions(gang: Gang, assessment: Assessment) -> Iterator[tuple[Pod, Reason]]:
    """Each waiting member that cannot be bound now, with the reason for its condition.

    The reason is `Unschedulable` only if more capacity would help, because autoscalers act on it.
    """
    surplus = {pod.uid for pod in assessment.surplus}
    general = _general_reason(gang, assessment)
    spec = assessment.terms.spec
    parts = _incomplete_parts(gang, assessment.census, spec) if gang.record.scheduled_at and spec.tree else {}
    plan, tried = gang.operations.plan, assessment.terms.hindrance is None
    given_up = _given_up(gang) if tried else {}
    for uid in sorted(gang.observed.ownership.former & gang.observed.pods.keys()):
        yield gang.observed.pods[uid], Reason.SEVERAL_OWNERS
    for pod in assessment.census.waiting:
        if pod.uid in surplus:
            yield pod, Reason.SURPLUS
        elif gang.record.scheduled_at and plan is not None and pod.uid in plan.members:
            yield pod, Reason.WAITS_FOR_VICTIMS
        elif pod.uid in gang.wait.refused_members:
            yield pod, refused_reason(gang.wait.refused_members[pod.uid])
        elif tried and not gang.operations.may_try(pod):
            yield pod, Reason.BINDING_REFUSED
        elif role_of(pod) in given_up:
            yield pod, Reason.BINDING_UNDONE
        elif general is not None:
            yield pod, general
        elif role_of(pod) in parts:
            yield pod, Reason.GANG_INCOMPLETE


def message(gang: Gang, assessment: Assessment, pod: Pod, reason: Reason, group_message: str) -> str:
    """The message for a member's reason, which begins with its group's name if it has one."""
    text = group_message
    if reason is Reason.SURPLUS:
        text = _above_maximum(gang, pod)
    elif pod.uid in gang.observed.ownership.former:
        whose = f"{pod.owner.kind} {pod.owner.name}" if pod.owner is not None else "owner"
        return (
            f"The {whose} of this pod, or the object that created it, was deleted, and another object has its name "
            f"now: the pod is no member of the group {gang.key.name}. Delete it, unless its controller does."
        )
    elif reason is Reason.WAITS_FOR_VICTIMS:
        text = waits_for_victims(gang)
    elif pod.uid in gang.wait.refused_members:
        text = explanation.refused(gang.wait.refused_members[pod.uid])
    elif reason is Reason.BINDING_REFUSED and pod.uid in gang.operations.barred:
        text = gang.operations.barred[pod.uid].message
    elif reason is Reason.BINDING_UNDONE and role_of(pod) in (given_up := _given_up(gang)):
        text = _why_given_up(gang, given_up[role_of(pod)])
    elif gang.record.scheduled_at and assessment.terms.hindrance is not None:
        text = assessment.terms.hindrance.message
    elif gang.record.scheduled_at and gang.wait.refusal is not None:
        text = explanation.refused(gang.wait.refusal)
    elif gang.record.scheduled_at:
        paused = f"{gang.wait.pause.note}."
        part = _incomplete_parts(gang, assessment.census, assessment.terms.spec).get(role_of(pod))
        text = paused if reason is Reason.PODS_FAIL else degraded_message(gang, assessment)
        if reason is Reason.GANG_INCOMPLETE and part is not None:
            text = explanation.incomplete_part(part)
    return text if gang.plain or not gang.key.name else f"{assessment.terms.keys.noun} {gang.key.name}: {text}"


def _above_maximum(gang: Gang, pod: Pod) -> str:
    if gang.observed.group is not None and not gang.observed.group.made:
        return "The group already has as many members as maxMember allows: raise maxMember to have this pod scheduled."
    leading = pod.declaration.leading if pod.declaration is not None else ""
    who = f"its {leading}" if leading else "it"
    return f"The group already has as many members as {who} asks for: this pod is bound once another one has ended."


def _general_reason(gang: Gang, assessment: Assessment) -> Reason | None:
    """The reason of members that have none of their own; None if no condition is needed."""
    reason = gang.reason
    if reason in (Reason.SCHEDULED, Reason.MEMBERS_MISSING):
        if assessment.terms.hindrance is not None:
            return assessment.terms.hindrance.reason
        if gang.wait.refusal is not None:
            return refused_reason(gang.wait.refusal)
        if gang.wait.pause.everywhere:
            return Reason.PODS_FAIL
        return Reason.GANG_INCOMPLETE if raised(gang, assessment.terms.spec) else None
    if reason in QUIET_REASONS or (reason is Reason.UNSCHEDULABLE and gang.wait.refusal is None):
        return None
    if gang.wait.refusal is not None and reason in NO_ROOM:
        return refused_reason(gang.wait.refusal)
    return reason


def _given_up(gang: Gang) -> dict[str, Part]:
    """The parts that were given up and are not being tried again yet, by each of their roles."""
    given_up = (part for part in gang.operations.parts if part.rollback is not None or part.retry_at)
    return {role: part for part in given_up for role in part.needs}


def _why_given_up(gang: Gang, part: Part) -> str:
    spared = rollback.spared(gang, part.rollback) if part.rollback is not None else []
    if part.rollback is None or not spared:
        evicted = part.rollback is not None and rollback.targets(gang, part.rollback)
        first = "what is bound of it is evicted, and it" if evicted else "it"
        return f"{part.note}: {first} is tried again as a whole after a back-off."
    return f"{part.note}; {left_in_place(gang, part.rollback)}."


def _incomplete_parts(gang: Gang, census: Census, spec: GroupSpec) -> dict[str, Minima]:
    """For members of parts above the minimum, by role, what is missing for their part to be bound, if it is."""
    if spec.tree is None:
        return {}
    open_ = above(spec.tree, Counter(map(role_of, placed_of(gang))) + Counter(dict(gang.record.succeeded)))
    waiting = Counter(map(role_of, census.waiting))
    rests = [(part, rest) for part in open_.parts if (rest := rest_of(part, waiting)).total]
    return {role: rest for part, rest in rests for role in roles_in(part)}
