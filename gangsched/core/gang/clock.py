"""How long a complete gang may wait: its clock, time-out and back-off (contract rules 4 and 5)."""

from __future__ import annotations

from hashlib import sha256

from msgspec.structs import replace

from gangsched.core.declarations.terms import Terms
from gangsched.core.gang.gang import Census, Gang
from gangsched.core.gang.writes import BindState
from gangsched.core.objects.podgroup import TimeoutPolicy
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.record import Outcome
from gangsched.core.objects.retry import doubled

NEVER = float("inf")


def keep_clock(
    gang: Gang, census: Census, terms: Terms, *, complete: bool, counts: bool, now: float, policy: Policy
) -> bool:
    """Start, clear and read the clock of a gang that is not scheduled. Returns whether it has just run out.

    The time `counts` only while the gang is tried and, if members do not exist yet, has placeholders for them (rule 4).
    """
    record = gang.record
    if record.scheduled_at or record.outcome is Outcome.OUT_OF_TIME:
        return False
    if not complete:
        # Placeholders expire all the same.
        gang.note(
            clock_start=record.clock_start if gang.vacant() else 0.0,
            retry_at=record.retry_at if record.undone and now < record.retry_at else 0.0,
        )
        gang.complete_since = 0.0
        gang.attempt.heard("")
        gang.attempt.forget_refusal()
        return False
    gang.complete_since = gang.complete_since or now
    if record.retry_at:
        if now < record.retry_at:
            return False
        gang.note(retry_at=0.0)
        gang.attempt.try_again()
    if gang.plain or census.bound:
        return False
    if not counts:
        gang.note(clock_start=0.0)
        return False
    if not record.clock_start:
        start(gang, now)
        gang.note(undone="")
    if now < runs_out(gang, census, terms, seed=policy.seed):
        return False
    if terms.spec.timeout_policy is TimeoutPolicy.FAIL:
        gang.note(timeouts=gang.record.timeouts + 1, outcome=Outcome.OUT_OF_TIME, clock_start=0.0)
    else:
        back_off(gang, now=now, policy=policy)
    return True


def start(gang: Gang, now: float) -> None:
    """Start the clock, or resume it if a cap has paused it."""
    capped = gang.record.capped
    if capped is None or not capped.paused_at:
        gang.note(clock_start=now)
    else:
        gang.note(clock_start=now - capped.ran_s, capped=replace(capped, paused_at=0.0, ran_s=0.0))


def pause(gang: Gang, now: float) -> None:
    """Pause the clock while a cap forbids placeholders."""
    capped, started = gang.record.capped, gang.record.clock_start
    if capped is not None:
        ran_s = now - started if started else 0.0
        gang.note(clock_start=0.0, capped=replace(capped, paused_at=now, ran_s=ran_s))


def runs_out(gang: Gang, census: Census, terms: Terms, *, seed: int) -> float:
    """When the clock runs out, in epoch seconds; NEVER while a binding was sent or a member is bound.

    `seed` decides how much of the terms' jitter is added in each attempt, in whole seconds.
    """
    sent = any(binding.state is BindState.SENT for binding in gang.bindings.values())
    if not gang.record.clock_start or census.bound or sent:
        return NEVER
    longer_s = int(_jitter(gang, seed) * terms.jitter_s) if terms.jitter_s else 0
    return gang.record.clock_start + terms.max_schedule_time_s + longer_s


def back_off(gang: Gang, *, now: float, policy: Policy) -> None:
    """Count a failed attempt and begin the back-off: initial × 2ⁿ up to the longest, less up to a fifth by jitter."""
    gang.note(timeouts=gang.record.timeouts + 1, level=gang.record.level + 1, clock_start=0.0)
    longest = doubled(policy.backoff_initial_s, gang.record.level, longest=policy.backoff_max_s)
    gang.note(retry_at=now + longest * (1 - _jitter(gang, policy.seed) / 5))


def begin_anew(gang: Gang) -> None:
    """After a change of the spec: end the back-off or the failure by time-out (rule 5); a running clock goes on."""
    record = gang.record
    gang.note(
        retry_at=0.0,
        level=0,
        outcome=Outcome.NONE if record.outcome is Outcome.OUT_OF_TIME else record.outcome,
        vacated=False,
        caps=0,
        capped=None if record.capped is None else replace(record.capped, until=0.0),
        undone="",
    )
    gang.attempt.heard("")
    gang.attempt.try_again()


def _jitter(gang: Gang, seed: int) -> float:
    digest = sha256(f"{seed}/{gang.key}/{gang.record.timeouts}".encode()).digest()
    return int.from_bytes(digest[:4], "big") / 2**32
