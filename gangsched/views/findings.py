"""The state of a group in a machine, in the terms of its status, for `simulate` and `explain`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.writes import BindState
from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import Phase
from gangsched.core.objects.status import Condition
from gangsched.core.planning.refusal import Refusal
from gangsched.core.queueing.order import OrderKey, order_key
from gangsched.core.status import explanation
from gangsched.core.status.ahead import holds_up
from gangsched.core.status.conditions import message_of, reason_of
from gangsched.core.status.degraded import degraded_message, degraded_reason
from gangsched.core.status.holders import Held, Holders
from gangsched.views.resource_names import resource_of
from gangsched.views.undeclared_phase import UNREAD, phase_of, unread_member

_OPERATORS_OWN = frozenset(
    {
        Reason.BINDING_REFUSED,
        Reason.BINDING_UNDONE,
        Reason.EVICTION_REFUSED,
        Reason.INTERNAL_ERROR,
        Reason.PARTLY_BOUND,
        Reason.PRE_BINDING,
    }
)
"""Reasons that no copy of the cluster shows: what the operator was answered, waits for, or failed on."""
FITS = "It fits now: the operator will bind it in its next scheduling cycle."


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The current state of one group. `placements` are the nodes of bound members, by pod name.

    `source` says how the group was declared; empty for a pod without a group. `besides` says why other members wait.
    `order` sorts groups in the order in which a scheduling cycle tries them.
    """

    key: GroupKey
    order: OrderKey
    phase: str
    reason: str
    message: str
    minimum: int
    members: int
    placements: Mapping[str, str]
    source: str = ""
    besides: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether this is a pod without a group."""
        return bool(self.key.pod_uid)

    @property
    def is_whole(self) -> bool:
        """Whether at least the minimum is bound."""
        return bool(self.placements) and len(self.placements) >= self.minimum

    @property
    def resource(self) -> str:
        """The kind of the object that declares the group, as kubectl writes it."""
        return resource_of(self.key, self.source)


class Findings:
    """Reads the current state of a machine. It is stale after the machine's next step."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._holders = Holders(machine.cluster, machine.called)

    def all(self) -> list[Finding]:
        """All groups and all waiting plain pods, in the order in which a scheduling cycle tries them."""
        findings = [self.of(key) for key in self._machine.gangs]
        return sorted(findings, key=lambda finding: finding.order)

    def of(self, key: GroupKey) -> Finding:
        """The state of the group with this key, which the machine must know."""
        gang, assessment = self._machine.gangs[key], self._machine.assessments[key]
        reason = reason_of(gang, assessment)
        refusal = explanation.quorum_refused(gang, assessment.terms.priority, self._holders, self._machine.ahead)
        phase, message = gang.record.phase, message_of(gang, assessment, reason, refusal=refusal)
        suspended = _suspended(gang, assessment)
        if phase is Phase.DEGRADED and (degraded := degraded_reason(gang, assessment)) is not None:
            reason, message = degraded, degraded_message(gang, assessment)
        if suspended is not None:
            phase, reason, message = Phase.SUSPENDED, Reason.SUSPENDED, suspended.message
        return Finding(
            key=key,
            order=order_key(gang, assessment),
            phase=phase.value,
            reason=reason.value,
            message=message,
            minimum=assessment.minimum,
            members=len(assessment.census.live),
            placements={pod.name: node for pod in assessment.census.bound if (node := gang.node_of(pod))},
            source=assessment.terms.source,
            besides=tuple(_besides(gang, assessment)),
        )

    def on_copy(self, key: GroupKey) -> Finding:
        """The state of the group in a cluster of which the machine has a copy without back-offs.

        What the copy has decided to bind, the operator has yet to bind; and it may be unable to read what the caller
        could.
        """
        finding, gang, assessment = self.of(key), self._machine.gangs[key], self._machine.assessments[key]
        group = gang.observed.group
        if group is None and not gang.plain:
            finding = replace(finding, phase=phase_of(gang, assessment).value)
        unread = unread_member(gang)
        if unread is not None and finding.reason not in UNREAD:
            message = unread.condition_message.removeprefix(f"{assessment.terms.keys.noun} {key.name}: ")
            return replace(finding, phase=Phase.PENDING.value, reason=unread.condition_reason, message=message)
        if is_sent(gang):
            status = group.status if group is not None else None
            telling = status.telling if status is not None else None
            phase = finding.phase if finding.phase == Phase.DEGRADED else Phase.QUEUED.value
            return replace(
                finding,
                phase=status.phase if status is not None and status.phase else phase,
                reason=telling.reason if telling is not None else "",
                message=telling.message if telling is not None and telling.reason in _OPERATORS_OWN else FITS,
            )
        if finding.phase == Phase.DEGRADED or gang.operations.partial_since:
            return _degraded(finding, gang)
        if finding.phase == Phase.QUEUED and group is not None and group.status.phase == Phase.TIMED_OUT:
            # The copy tries at once what the operator tries at the end of the back-off.
            reason = finding.reason if finding.reason == Reason.NEVER_FITS else Reason.TIMED_OUT.value
            return replace(finding, phase=Phase.TIMED_OUT.value, reason=reason)
        return finding

    def held(self, refusal: Refusal) -> Held:
        """What is held of the scarcest resource of a refused quorum."""
        return self._holders.of(refusal)

    def ahead(self, key: GroupKey) -> list[GroupKey]:
        """The waiting groups that are tried before this refused one and may take its room, in order."""
        wait = self._machine.gangs[key].wait
        if wait.refusal is None or not holds_up(wait):
            return []
        return self._machine.ahead.before(key, self._holders.contending(wait.refusal))


def is_sent(gang: Gang) -> bool:
    """Whether the machine has decided to bind members of the gang, and has not seen them bound."""
    return any(binding.state is BindState.SENT for binding in gang.operations.bindings.values())


def _degraded(finding: Finding, gang: Gang) -> Finding:
    """With what keeps the group Degraded, if it is: as the operator says it where the copy cannot know."""
    status = gang.observed.group.status if gang.observed.group is not None else None
    telling = status.telling if status is not None else None
    if status is not None and telling is not None and telling.type == "Degraded" and telling.reason in _OPERATORS_OWN:
        return replace(finding, phase=status.phase, reason=telling.reason, message=telling.message)
    # Nothing records the phase of a gang without a PodGroup.
    unrecorded = finding.phase == Phase.DEGRADED and finding.reason == Reason.SCHEDULED
    return replace(finding, reason=Reason.MEMBERS_MISSING.value) if unrecorded else finding


def _suspended(gang: Gang, assessment: Assessment) -> Condition | None:
    """The operator's condition of a suspended group, whose workload the caller may have been unable to read."""
    status = gang.observed.group.status if gang.observed.group is not None else None
    if status is None or status.phase != Phase.SUSPENDED or assessment.census.live:
        return None
    return next((condition for condition in status.conditions if condition.reason == Reason.SUSPENDED), None)


def _besides(gang: Gang, assessment: Assessment) -> Iterator[str]:
    """Why those members wait that the group's own message does not mention."""
    refused = gang.wait.refused_members
    waiting = [refused[pod.uid] for pod in assessment.census.waiting if pod.uid in refused]
    if waiting and gang.record.phase is not Phase.DEGRADED:
        yield f"{_members(len(waiting))} still for room: {explanation.refused(waiting[0])}"
    if degraded_reason(gang, assessment) is Reason.MINIMUM_RAISED:
        yield degraded_message(gang, assessment)
    if gang.observed.ownership.owners:
        yield gang.observed.ownership.described(gang.key.name)
    if assessment.surplus:
        yield f"{_members(len(assessment.surplus))} because the group has maxMember members already."


def _members(number: int) -> str:
    return "1 more member waits" if number == 1 else f"{number} more members wait"
