"""What is true of a gang now, and when its life goes on though nothing happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gangsched.core.gang import placeholders, rollback
from gangsched.core.gang.census import Census
from gangsched.core.gang.clock import NEVER, runs_out
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.states import Facts
from gangsched.core.gang.terms import Terms
from gangsched.core.gang.wants import Need, role_minima
from gangsched.core.gang.writes import BindState
from gangsched.core.objects.pod import Pod, role_of
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.record import Outcome


def is_complete(gang: Gang, need: Need, there: Sequence[Pod]) -> bool:
    """Whether these members, beside the bound ones, are enough; always so once the group was scheduled."""
    return bool(gang.record.scheduled_at) or (need.met_by(there) and bool(need or there))


def roles_to_come(terms: Terms, census: Census) -> dict[str, int]:
    """How many members of each role are still to be created."""
    if not terms.spec.roles:
        return {}
    live = Counter(map(role_of, census.live))
    return {role: number - live[role] for role, number in role_minima(terms.spec).items() if number > live[role]}


def facts_of(gang: Gang, census: Census, *, complete: bool, now: float, policy: Policy) -> Facts:
    """The facts by which the table of `states` finds the phase."""
    record = gang.record
    scheduled = bool(record.scheduled_at) and not record.ended
    flying = [] if scheduled else gang.flying()
    sent = any(binding.state is BindState.SENT for binding in flying)
    short = bool(gang.short_since) and (record.late or now >= gang.short_since + policy.degraded_after_s)
    undoing = gang.undo is not None and now >= gang.undo.since + policy.degraded_after_s
    return Facts(
        complete=complete,
        held=(bool(flying) and not sent) or (record.capped is not None and not scheduled and bool(census.bound)),
        binding=sent or (gang.undo is not None and not undoing and not scheduled),
        quorum_running=scheduled and census.running + census.done >= record.minimum,
        was_scheduled=scheduled,
        degraded=short or undoing,
        backing_off=now < record.retry_at,
        failed_for_good=record.outcome is Outcome.OUT_OF_TIME,
        ended_well=record.outcome is Outcome.SUCCEEDED,
        ended_badly=record.outcome is Outcome.FAILED,
    )


def is_hopeless(gang: Gang, census: Census, need: Need, *, complete: bool) -> bool:
    """Whether no place is worth holding: together they are no quorum (or none is wanted), and nothing has been bound.

    Binding them would only make a part of a gang; given up, the gang is planned anew and whole.
    """
    if gang.record.scheduled_at or census.bound or not gang.bindings:
        return False
    held = [binding.pod for binding in gang.bindings.values() if binding.state is BindState.HELD]
    return len(held) == len(gang.bindings) and (not complete or not need.met_by(held))


def next_due(gang: Gang, census: Census, terms: Terms, facts: Facts, policy: Policy) -> float:
    """When the gang's life goes on though nothing happens to it, in epoch seconds."""
    record = gang.record
    # Places beside which nobody is bound are given up with the group's own clock, and not before a binding is answered.
    due = [placeholders.expires(gang, terms) if record.scheduled_at or census.bound else NEVER]
    if gang.undo is not None and not facts.degraded:
        due.append(gang.undo.since + policy.degraded_after_s)
    held_until = placeholders.held_until(gang, terms)
    due.append(held_until if held_until < placeholders.expires(gang, terms) else NEVER)
    if record.capped is not None and record.capped.until:
        due.append(record.capped.until)
    # Members stay barred though the run in which they were refused is over, as when the group's PodGroup was replaced.
    due += [barred.until for barred in gang.barred.values() if barred.until]
    if record.scheduled_at:
        if gang.short_since and not facts.degraded:
            due.append(gang.short_since + policy.degraded_after_s)
        return min(due)
    if gang.partial_since and (gang.undo is None or gang.undo.retried):
        due.append(rollback.due_at(gang, policy))
    if record.outcome is not Outcome.OUT_OF_TIME:
        due.append(record.retry_at or runs_out(gang, census, terms, seed=policy.seed))
    return min(due)
