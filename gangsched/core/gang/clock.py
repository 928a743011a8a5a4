"""The clock of a complete gang: how long it may wait, its time-out and its back-off (contract rules 4 and 5)."""

from __future__ import annotations

from hashlib import sha256

from msgspec.structs import replace

from gangsched.core.declarations.terms import Terms
from gangsched.core.gang.gang import Census, Gang
from gangsched.core.gang.steps import Step, apply
from gangsched.core.gang.writes import BindState
from gangsched.core.objects.podgroup import TimeoutPolicy
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.record import Outcome
from gangsched.core.objects.retry import doubled

NEVER = float("inf")


def keep_clock(
    gang: Gang, census: Census, terms: Terms, *, complete: bool, counts: bool, now: float, policy: Policy
) -> bool:
    """Start, clear and check the clock of a gang that is not scheduled. Returns whether it has just run out.

    The time `counts` only while the gang is being tried and, if members do not exist yet, placeholders are reserved for
    them (rule 4).
    """
    record = gang.record
    if record.scheduled_at or record.outcome is Outcome.OUT_OF_TIME:
        return False
    if not complete:
        # Placeholders expire nevertheless, so the clock goes on for them.
        since = record.clock_start if gang.operations.placeholders() else 0.0
        retry_at = record.retry_at if record.rollback_note and now < record.retry_at else 0.0
        apply(gang, Step.INCOMPLETE, clock_start=since, retry_at=retry_at)
        gang.observed.note_complete(0.0)
        return False
    gang.observed.note_complete(gang.observed.complete_since or now)
    if record.retry_at:
        if now < record.retry_at:
            return False
        apply(gang, Step.BACK_OFF_ENDS)
    if census.bound or (gang.plain and not gang.record.prebinding_at):
        return False
    if not (counts or gang.record.prebinding_at):
        apply(gang, Step.CLOCK_STOPS)
        return False
    if not (record.clock_start or gang.record.prebinding_at):
        start(gang, now)
    if now < runs_out(gang, census, terms, policy):
        return False
    if terms.spec.timeout_policy is TimeoutPolicy.FAIL:
        apply(gang, Step.OUT_OF_TIME, timeouts=gang.record.timeouts + 1, outcome=Outcome.OUT_OF_TIME)
    else:
        back_off(gang, now=now, policy=policy)
    return True


def start(gang: Gang, now: float) -> None:
    """Start the clock, or resume it if a cap has paused it."""
    capped = gang.record.capped
    if capped is None or not capped.paused_at:
        apply(gang, Step.CLOCK_STARTS, clock_start=now)
    else:
        capped, since = replace(capped, paused_at=0.0, ran_s=0.0), now - capped.ran_s
        apply(gang, Step.CLOCK_STARTS, clock_start=since, capped=capped)


def pause(gang: Gang, now: float) -> None:
    """Pause the clock while a cap forbids placeholders."""
    capped, started = gang.record.capped, gang.record.clock_start
    if capped is not None:
        ran_s = now - started if started else 0.0
        apply(gang, Step.CLOCK_PAUSES, capped=replace(capped, paused_at=now, ran_s=ran_s))


def runs_out(gang: Gang, census: Census, terms: Terms, policy: Policy) -> float:
    """When the clock runs out, in epoch seconds; NEVER while a binding is in flight or a member is bound.

    While the gang waits for pre-bindings the clock is paused, and the pre-bindings have a time-out of their own. The
    terms' jitter extends each attempt by a number of whole seconds, which the policy's seed determines.
    """
    sent = any(binding.state is BindState.SENT for binding in gang.operations.bindings.values())
    if gang.record.prebinding_at and not (census.bound or sent):
        return gang.record.prebinding_at + policy.pre_bind_timeout_s
    if not gang.record.clock_start or census.bound or sent:
        return NEVER
    longer_s = int(_jitter(gang, policy.seed, gang.record.timeouts) * terms.jitter_s) if terms.jitter_s else 0
    return gang.record.clock_start + terms.max_schedule_time_s + longer_s


def back_off(gang: Gang, *, now: float, policy: Policy) -> None:
    """Count a failed attempt and start the back-off: initial × 2ⁿ up to the maximum, less up to a fifth as jitter."""
    timeouts, level = gang.record.timeouts + 1, gang.record.level + 1
    longest_s = doubled(policy.backoff_initial_s, level, longest=policy.backoff_max_s)
    retry_at = now + longest_s * (1 - _jitter(gang, policy.seed, timeouts) / 5)
    apply(gang, Step.BACKS_OFF, timeouts=timeouts, level=level, retry_at=retry_at)


def reset_back_off(gang: Gang) -> None:
    """After a change of the spec, end the back-off or the failure by time-out (rule 5); a running clock goes on."""
    record = gang.record
    outcome = Outcome.NONE if record.outcome is Outcome.OUT_OF_TIME else record.outcome
    capped = None if record.capped is None else replace(record.capped, until=0.0)
    apply(gang, Step.SPEC_CHANGES, outcome=outcome, capped=capped)


def _jitter(gang: Gang, seed: int, timeouts: int) -> float:
    digest = sha256(f"{seed}/{gang.key}/{timeouts}".encode()).digest()
    return int.from_bytes(digest[:4], "big") / 2**32
