"""Writes a gang's PodGroup status, members' conditions and Events, and coalesces changes (contract rules 16 and 17).

The kind of a change decides when it is due: a decision at once, a refusal after it has lasted a second (so that one
lifted sooner is never written), a change of a message alone at most every 30 s. When a write is due, the gang's present
state is written, whatever led to it; a status that has not changed is not written again.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from gangsched.core.cluster.cache import Cluster
from gangsched.core.declarations.terms import Terms
from gangsched.core.gang import bindings, placeholders, prebinding, preempted, rollback
from gangsched.core.gang.assessment import Assessment
from gangsched.core.gang.clock import NEVER
from gangsched.core.gang.gang import Gang
from gangsched.core.objects.effects import Effect, PatchStatus
from gangsched.core.objects.expected_start import ExpectedStart
from gangsched.core.objects.pod import Pod, role_of
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import FINISHED, NO_RECORD, Outcome, Phase, Record
from gangsched.core.objects.shape import Amounts
from gangsched.core.objects.status import PREEMPTION, TIME, Condition, GroupStatus, Place, Reservation
from gangsched.core.status import explanation, member_conditions, pod_events, remedies
from gangsched.core.status.ahead import Ahead
from gangsched.core.status.conditions import WAITS_FOR_NODES, demand_of, message_of
from gangsched.core.status.degraded import degraded_message, degraded_reason
from gangsched.core.status.fitting import fitting
from gangsched.core.status.gang_events import events_of, has_news
from gangsched.core.status.holders import Holders

AT_ONCE = frozenset({Phase.SCHEDULED, Phase.TIMED_OUT, Phase.FAILED, Phase.SUCCEEDED, Phase.DEGRADED})
"""Phases that are written at once."""
OWNER_S = 2.0
"""Time, in seconds, within which a workload's object is usually seen after its first pod. Its absence is reported only
after that."""


class StatusWriter:
    """Writes what is due for a gang and records it in `gang.written`."""

    def __init__(
        self,
        policy: Policy,
        cluster: Cluster,
        holders: Holders,
        ahead: Ahead,
        start_told: Callable[[Gang], ExpectedStart | None],
    ) -> None:
        self._policy = policy
        self._cluster = cluster
        self._holders = holders
        self._ahead = ahead
        self._start_told = start_told
        self._rate_limit = pod_events.RateLimit()

    def schedule(self, gang: Gang, assessment: Assessment, now: float) -> None:
        """Set when the gang's status is next due; called after every change, as a later one may revert it unwritten."""
        written = gang.written
        reason = gang.reason
        old = written.status or GroupStatus()
        changed = _settled(old) != self._build(gang, assessment)
        decided = gang.record.phase in AT_ONCE and old.phase != gang.record.phase
        newly_scheduled = bool(gang.record.scheduled_at) and not gang.record.late and not old.scheduled_time
        if written.awaited is not None:
            due = float("inf")
        elif (
            (bindings.unsecured(gang) and gang.observed.group is not None)
            or decided
            or newly_scheduled
            or (gang.plain and reason is Reason.WAITS_FOR_VICTIMS and self._owes(gang, assessment, now))
            or (preempted.is_awaited(gang) and gang.observed.group is not None and not preempted.is_marked(gang))
        ):
            due = now
        elif changed or has_news(gang, assessment) or self._owes(gang, assessment, now):
            fold_s = OWNER_S if reason is Reason.OWNER_UNKNOWN else self._policy.fold_s
            due = max(min(written.write_at, now + fold_s), gang.reason_since + fold_s)
        elif written.unwritten and gang.observed.group is not None:
            due = now
        else:
            stale_at = now if written.behind or self._basis_changed(gang, assessment) else written.message_until
            stale_at = max(stale_at, written.message_at + self._policy.message_interval_s)
            due = min(stale_at, written.pods_at, written.conditions_at)
        written.write_at = max(due, written.write_again_at)

    def _owes(self, gang: Gang, assessment: Assessment, now: float) -> bool:
        return bool(member_conditions.owed(gang, assessment, self._policy, now))

    def write(self, gang: Gang, assessment: Assessment, now: float) -> list[Effect]:
        """The writes that are due now; empty if everything has been written."""
        reason = gang.reason
        refusal = explanation.quorum_refused(gang, assessment.terms.priority, self._holders, self._ahead)
        message = message_of(gang, assessment, reason, refusal=refusal)
        effects: list[Effect] = []
        written = gang.written
        if gang.observed.group is not None:
            status = self._status(gang, assessment, now, reason=reason, message=message)
            owed = bindings.unsecured(gang)
            if status != written.status or written.unwritten or owed:
                effects.append(
                    PatchStatus(
                        gang.key, gang.observed.group.uid, status, gang.observed.resource_version if owed else ""
                    )
                )
                awaited = None
                if status.reservation is not None:
                    awaited = frozenset((pod.uid, node) for pod, node in _reserved(gang))
                elif preempted.is_awaited(gang):
                    awaited = frozenset()
                written.wrote(status, gang.observed.resource_version, awaited)
        else:
            written.stands(self._complete(gang, assessment))
        written.told(reason, message, self._basis(gang, assessment), until=self._until(gang))
        written.write_at = float("inf")
        effects += events_of(gang, assessment, reason, message, scheduler=self._policy.scheduler_names[0])
        effects += member_conditions.write(gang, assessment, message, self._policy, now)
        effects += pod_events.emit(gang, assessment, self._rate_limit, message, now)
        return effects

    def _basis(self, gang: Gang, assessment: Assessment) -> tuple[object, ...]:
        """The inputs of the messages, other than the numbers in the status."""
        doing = gang.operations.rollback
        refused = next(iter(rollback.refusals(gang, doing)), None) if doing is not None else None
        spared = len(doing.evictions.spared) if doing is not None else 0
        return (
            gang.wait.refusal,
            assessment.terms.hindrance,
            bindings.complaint(gang),
            gang.record.rollback_note,
            spared,
            gang.record.capped.note if gang.record.capped is not None else gang.wait.outside,
            gang.observed.idle,
            assessment.terms.lowered,
            refused.why if refused else None,
            prebinding.awaited(gang),
            assessment.facts.complete or gang.record.scheduled_at or gang.lingering(),
            self._expected(gang, assessment),
        )

    def _basis_changed(self, gang: Gang, assessment: Assessment) -> bool:
        refusal, *others = self._basis(gang, assessment)
        written = gang.written.basis
        same = written and written[0] is refusal and list(written[1:]) == others
        return gang.observed.group is not None and not same

    def _expected(self, gang: Gang, assessment: Assessment) -> ExpectedStart | None:
        """When the group will probably start, if it waits for room."""
        waits = gang.wait.parked or assessment.want.quorum is not None or rollback.under_way(gang) is not None
        return self._start_told(gang) if waits else None

    def _until(self, gang: Gang) -> float:
        """When the message of the PodGroup says something else though nothing has changed."""
        refusal = gang.wait.refusal
        return float("inf") if refusal is None or gang.observed.group is None else self._holders.of(refusal).until

    # Status

    def _status(self, gang: Gang, assessment: Assessment, now: float, *, reason: Reason, message: str) -> GroupStatus:
        """The status with messages and demand; the last ones if only numbers have changed and the interval lasts.

        Where members fit and what would help change only together with the message or the demand, so that they cause no
        write of their own.
        """
        written = gang.written
        status = self._complete(gang, assessment)
        last = written.status or GroupStatus()
        old = {condition.type: condition for condition in last.conditions}
        due = now >= written.message_at + self._policy.message_interval_s
        written.behind = False
        conditions = []
        demand, told = status.demand, False
        for condition in status.conditions:
            # The demand has the same numbers as the message of this condition.
            demanded = condition.type == "Scheduled"
            text = message if demanded else degraded_message(gang, assessment)
            before = old.get(condition.type)
            since = before.since if before is not None and before.status == condition.status else now
            alike = before is not None and (before.status, before.reason) == (condition.status, condition.reason)
            new = before is None or text != before.message or (demanded and demand != last.demand)
            if before is not None and alike and new and not due:
                text = before.message
                demand = last.demand if demanded else demand
                written.behind = True
            elif new:
                written.message_written(now)
            if demanded:
                told = not alike or (new and due)
            conditions.append(replace(condition, message=text, since=since))
        status = replace(
            status, conditions=tuple(conditions), demand=demand, finished_at=_finished_at(gang.record, last, now)
        )
        if not told:
            return replace(status, fitting=last.fitting, helps=last.helps)
        refusal = gang.wait.refusal
        if refusal is None or reason not in WAITS_FOR_NODES:
            return status
        return replace(status, fitting=fitting(self._cluster.nodes, refusal), helps=remedies.helps(refusal, assessment))

    def _complete(self, gang: Gang, assessment: Assessment) -> GroupStatus:
        """The status without messages and transition times."""
        demand, expected = demand_of(gang, gang.reason), self._expected(gang, assessment)
        return replace(self._build(gang, assessment), demand=demand, expected=expected)

    def _build(self, gang: Gang, assessment: Assessment) -> GroupStatus:
        """The status without the parts that `_settled` leaves out, which decides whether something has changed."""
        record, census = gang.record, assessment.census
        scheduled = bool(record.scheduled_at)
        good = scheduled and not record.late and record.outcome not in (Outcome.FAILED, Outcome.UNDECIDED)
        generation = gang.observed.generation
        conditions = [Condition("Scheduled", good, gang.reason, "", 0.0, generation)]
        why = degraded_reason(gang, assessment)
        if why is not None:
            conditions.append(Condition("Degraded", gang.record.phase is Phase.DEGRADED, why, "", 0.0, generation))
        paused = record.capped is not None and bool(record.capped.paused_at)
        trying = bool(record.clock_start) or bool(gang.operations.bindings) or paused
        return GroupStatus(
            record=record,
            conditions=tuple(conditions),
            members=len(census.live),
            bound=len(census.bound),
            running=census.running,
            reservation=_reservation(gang, assessment.terms, self._policy) if gang.durability.asked_at else None,
            attempts=record.timeouts + (1 if trying or scheduled else 0),
            source=assessment.terms.source,
            scheduler=self._policy.kept_as,
        )


def _settled(status: GroupStatus) -> GroupStatus:
    """The status without the parts that may wait for the interval between messages."""
    return replace(
        status,
        demand=(),
        fitting=(),
        helps=(),
        expected=None,
        finished_at=0.0,
        conditions=tuple([replace(condition, message="", since=0.0) for condition in status.conditions]),
    )


def _finished_at(record: Record, last: GroupStatus, now: float) -> float:
    """Since when this run has been finished; `last` is the last status. 0.0 if it is not."""
    if record.phase not in FINISHED:
        return 0.0
    same_run = (last.record or NO_RECORD).run_start == record.run_start
    return (last.finished_at if same_run else 0.0) or now


def _reservation(gang: Gang, terms: Terms, policy: Policy) -> Reservation | None:
    """The places of members whose binding is not confirmed yet, and of members that do not exist yet."""
    held: dict[tuple[str, str, Amounts], list[str]] = {}
    for pod, node in _reserved(gang):
        held.setdefault((node, role_of(pod), pod.shape.requests), []).append(pod.name)
    if not held:
        return None
    plan = gang.operations.plan if not gang.operations.has_unconfirmed() else None
    held_until = min(placeholders.expires(gang, terms), placeholders.held_until(gang, terms))
    expires = plan.expires if plan is not None else held_until
    return Reservation(
        expires=expires if expires < NEVER else gang.durability.asked_at + policy.repair_deadline_s,
        placements=tuple(
            Place(node=node, role=role, count=len(pods), pods=tuple(sorted(filter(None, pods))), requests=requests)
            for (node, role, requests), pods in sorted(held.items())
        ),
        kind="" if plan is None else PREEMPTION if plan.start is None else TIME,
        start=plan.start if plan is not None and plan.start is not None and plan.start < NEVER else 0.0,
    )


def _reserved(gang: Gang) -> list[tuple[Pod, str]]:
    """The members with reserved places: those that are not bound yet or, while others leave for it, all of its plan."""
    unconfirmed = [(binding.pod, binding.node) for binding in gang.operations.unconfirmed()]
    plan = gang.operations.plan
    return unconfirmed or ([*plan.places] if plan is not None else [])
