"""What people are told of a gang: PodGroup status, members' conditions and Events, folded (contract rules 16 and 17).

A change becomes due by its kind: what has been decided at once, a refusal after it has lasted a second (so that one
lifted sooner is never written), a mere change of a message at most every 30 s. When due, the gang's present state is
written, whatever has led to it; what was written last is never written again.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from gangsched.core import explain
from gangsched.core.effects import Effect, EmitEvent, PatchPodCondition, PatchStatus
from gangsched.core.gang import BindState, Gang, role_of
from gangsched.core.life import Assessment
from gangsched.core.model import Condition, GroupStatus, Place, Pod, Reservation
from gangsched.core.policy import Policy
from gangsched.core.reasons import Reason
from gangsched.core.states import Phase
from gangsched.core.verdict import degraded_message, member_reason, message_of, reason_of, scheduled_note

AT_ONCE = frozenset({Phase.SCHEDULED, Phase.TIMED_OUT, Phase.FAILED, Phase.SUCCEEDED, Phase.DEGRADED})
"""Phases that are told without waiting."""
UNTOLD_REASONS = frozenset({Reason.SCHEDULED, Reason.SUCCEEDED, Reason.BINDING, Reason.NO_MEMBERS})
"""Reasons that need no Warning Event and no condition on waiting members."""


class Teller:
    """Writes what is due for a gang and remembers it in `gang.told`.

    `ahead` gives the waiting groups before a gang, in order.
    """

    def __init__(self, policy: Policy, holders: explain.Holders, ahead: Callable[[Gang], str]) -> None:
        self._policy = policy
        self._holders = holders
        self._ahead = ahead

    def schedule(self, gang: Gang, assessment: Assessment, now: float) -> None:
        """Set when the gang is next due to be told of."""
        old = gang.told.status or GroupStatus()
        new = self._outline(gang, assessment)
        if _without_messages(old) != new or self._members_owed(gang, assessment) or _strangers(gang):
            hurried = gang.phase in AT_ONCE and old.phase != gang.phase
            due = max(now if hurried else now + self._policy.fold_s, gang.told.retry_at)
            gang.tell_at = min(gang.tell_at, due)
        elif gang.refusal != gang.told.refusal:
            gang.tell_at = min(gang.tell_at, max(now, gang.told.message_at + self._policy.message_interval_s))
        else:
            gang.tell_at = float("inf")

    def tell(self, gang: Gang, assessment: Assessment, now: float) -> list[Effect]:
        """What is to be written now; nothing if it has all been said."""
        gang.tell_at = float("inf")
        reason = reason_of(gang, assessment)
        message = message_of(gang, assessment, reason, refusal=self._refusal_text(gang))
        effects: list[Effect] = []
        if gang.group is not None:
            status = self._status(gang, assessment, now, reason=reason, message=message)
            if status != gang.told.status:
                condition_on = gang.resource_version if gang.durable_asked_at and not gang.durable else ""
                effects.append(PatchStatus(gang.key, gang.group.uid, status, condition_on))
                gang.told.status = status
        else:
            gang.told.status = self._outline(gang, assessment)
        effects += self._event(gang, assessment, reason, message)
        effects += self._conditions(gang, assessment, message)
        effects += self._stranger_events(gang)
        return effects

    # Status

    def _refusal_text(self, gang: Gang) -> str:
        if gang.refusal is None:
            return ""
        return explain.refused(
            gang.refusal, holders=self._holders.sentence(gang.key, gang.refusal), ahead=self._ahead(gang)
        )

    def _outline(self, gang: Gang, assessment: Assessment) -> GroupStatus:
        """The status without messages and times of transition: what decides whether something changed."""
        return self._build(gang, assessment, reason_of(gang, assessment))

    def _status(self, gang: Gang, assessment: Assessment, now: float, *, reason: Reason, message: str) -> GroupStatus:
        status = self._build(gang, assessment, reason)
        old = {condition.type: condition for condition in (gang.told.status or GroupStatus()).conditions}
        generation = gang.group.generation if gang.group else 0
        conditions = []
        for condition in status.conditions:
            before = old.get(condition.type)
            text = message if condition.type == "Scheduled" else degraded_message(gang, assessment)
            if condition.type == "Scheduled":
                text = self._folded(gang, before, condition, text, now)
            since = before.since if before is not None and before.status == condition.status else now
            conditions.append(replace(condition, message=text, since=since, generation=generation))
        return replace(status, conditions=tuple(conditions))

    def _folded(self, gang: Gang, before: Condition | None, after: Condition, text: str, now: float) -> str:
        """The new text, or the former one where only numbers have changed and it is not time to say so."""
        if (
            before is not None
            and (before.status, before.reason) == (after.status, after.reason)
            and now < gang.told.message_at + self._policy.message_interval_s
        ):
            return before.message
        gang.told.message_at = now
        gang.told.refusal = gang.refusal
        return text

    def _build(self, gang: Gang, assessment: Assessment, reason: Reason) -> GroupStatus:
        run = gang.run
        census = assessment.census
        scheduled = bool(run.scheduled_at)
        good = scheduled and not (run.ended and not run.ended_well)
        conditions = [Condition("Scheduled", good, reason, "", 0.0)]
        if scheduled and not run.ended:
            short = gang.phase is Phase.DEGRADED
            raised = assessment.terms.spec.minimum > run.minimum
            why = Reason.MEMBERS_MISSING if short else Reason.MINIMUM_RAISED if raised else Reason.HEALTHY
            conditions.append(Condition("Degraded", short, why, "", 0.0))
        trying = bool(run.clock_start) or bool(gang.bindings)
        return GroupStatus(
            phase=gang.phase,
            conditions=tuple(conditions),
            members=len(census.live),
            bound=len(census.bound),
            running=census.running,
            succeeded=len(run.succeeded),
            failed=len(run.failed),
            minimum=run.minimum,
            reservation=_reservation(gang, self._policy) if gang.durable_asked_at else None,
            schedule_start_time=run.clock_start,
            scheduled_time=run.scheduled_at,
            attempts=run.timeouts + (1 if trying or scheduled else 0),
            source=assessment.terms.source,
        )

    # Events and members' conditions

    def _event(self, gang: Gang, assessment: Assessment, reason: Reason, message: str) -> list[Effect]:
        if reason == gang.told.event or reason in (Reason.BINDING, Reason.NO_MEMBERS):
            return []
        regarding = _regarding(gang, assessment)
        if regarding is None or (reason is Reason.GANG_INCOMPLETE and not assessment.census.live):
            return []
        gang.told.event = reason
        good = reason in UNTOLD_REASONS
        kind, name, uid = regarding
        note = message
        if reason is Reason.SCHEDULED:
            note = scheduled_note(gang, assessment)
        return [
            EmitEvent(
                kind=kind,
                namespace=gang.key.namespace,
                name=name,
                uid=uid,
                type="Normal" if good else "Warning",
                reason=reason,
                action="Scheduling",
                note=note,
            )
        ]

    def _conditions(self, gang: Gang, assessment: Assessment, group_message: str) -> list[Effect]:
        effects: list[Effect] = []
        for pod, reason in _owed(gang, assessment):
            message = group_message
            if reason is Reason.SURPLUS:
                message = "The group has maxMember members already: raise maxMember to have this pod scheduled."
            elif pod.uid in gang.refused_members:
                message = explain.refused(gang.refused_members[pod.uid])
            if not gang.plain:
                message = f"Group {gang.key.name}: {message}"
            gang.told.members[pod.uid] = reason
            effects.append(PatchPodCondition(pod.uid, pod.namespace, pod.name, reason, message))
        for uid in gang.told.members.keys() - gang.pods.keys():
            del gang.told.members[uid]
        return effects

    def _members_owed(self, gang: Gang, assessment: Assessment) -> bool:
        return next(iter(_owed(gang, assessment)), None) is not None

    def _stranger_events(self, gang: Gang) -> list[Effect]:
        effects: list[Effect] = []
        for pod in _strangers(gang):
            gang.told.strangers.add(pod.uid)
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
        gang.told.strangers &= gang.strangers.keys()
        return effects


def _owed(gang: Gang, assessment: Assessment) -> list[tuple[Pod, Reason]]:
    """Waiting members whose condition says another reason than it should."""
    general = member_reason(reason_of(gang, assessment))
    surplus = {pod.uid for pod in assessment.surplus}
    owed = []
    for pod in assessment.census.waiting:
        if pod.uid in surplus:
            reason = Reason.SURPLUS
        elif pod.uid in gang.refused_members:
            reason = Reason.UNSCHEDULABLE
        elif general in UNTOLD_REASONS:
            hindrance = assessment.hindrance
            if hindrance is None:
                continue
            reason = hindrance.reason
        elif general is Reason.UNSCHEDULABLE and gang.refusal is None:
            continue
        else:
            reason = general
        if gang.told.members.get(pod.uid, pod.told_reason) != reason:
            owed.append((pod, reason))
    return owed


def _regarding(gang: Gang, assessment: Assessment) -> tuple[str, str, str] | None:
    if gang.group is not None:
        return "PodGroup", gang.key.name, gang.group.uid
    live = assessment.census.live
    return ("Pod", live[0].name, live[0].uid) if live else None


def _strangers(gang: Gang) -> list[Pod]:
    return [pod for uid, pod in gang.strangers.items() if uid not in gang.told.strangers]


def _without_messages(status: GroupStatus) -> GroupStatus:
    return replace(
        status,
        conditions=tuple(replace(condition, message="", since=0.0, generation=0) for condition in status.conditions),
    )


def _reservation(gang: Gang, policy: Policy) -> Reservation | None:
    """The places held for members whose binding has not been confirmed, or not been seen yet."""
    places: dict[tuple[str, str, tuple[tuple[str, int], ...]], list[str]] = {}
    for binding in gang.bindings.values():
        if binding.state is not BindState.BOUND:
            key = (binding.node, role_of(binding.pod), binding.pod.shape.requests)
            places.setdefault(key, []).append(binding.pod.name)
    if not places:
        return None
    return Reservation(
        expires=gang.durable_asked_at + policy.repair_deadline_s,
        placements=tuple(
            Place(node=node, role=role, count=len(pods), pods=tuple(sorted(pods)), requests=requests)
            for (node, role, requests), pods in sorted(places.items())
        ),
    )
