"""How long a complete gang may wait: its clock, its time-out and the back-off that follows (contract rules 4 and 5)."""

from __future__ import annotations

from hashlib import sha256

from gangsched.core.gang.census import Census
from gangsched.core.gang.gang import Gang
from gangsched.core.gang.run import Run
from gangsched.core.gang.terms import Terms
from gangsched.core.gang.writes import BindState
from gangsched.core.objects.podgroup import TimeoutPolicy
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.retry import doubled

NEVER = float("inf")


def keep_clock(
    gang: Gang, census: Census, terms: Terms, *, complete: bool, counts: bool, now: float, policy: Policy
) -> bool:
    """Start, clear and read the clock of a gang that is not scheduled. Returns whether it has just run out.

    Its wait `counts` only while it is tried, and where members are to come while places are held for them (rule 4).
    """
    run = gang.run
    if run.scheduled_at or run.failed_for_good:
        return False
    if not complete:
        # Places that are held meanwhile expire all the same.
        run.clock_start = run.clock_start if gang.vacant() else 0.0
        gang.complete_since = 0.0
        if not gang.undone or now >= run.backoff_until:
            run.backoff_until = 0.0
        gang.complaint = ""
        gang.refusal = gang.held_up_by = None
        return False
    gang.complete_since = gang.complete_since or now
    if run.backoff_until:
        if now < run.backoff_until:
            return False
        run.backoff_until = 0.0
        gang.parked = False
    if gang.plain or census.bound:
        return False
    if not counts:
        run.clock_start = 0.0
        return False
    if not run.clock_start:
        start(run, now)
        gang.undone = ""
    if now < runs_out(gang, census, terms, seed=policy.seed):
        return False
    if terms.spec.timeout_policy is TimeoutPolicy.FAIL:
        run.timeouts += 1
        run.failed_for_good = True
        run.clock_start = 0.0
    else:
        back_off(gang, now=now, policy=policy)
    return True


def start(run: Run, now: float) -> None:
    """Let the clock run, from where it stood if a cap has paused it."""
    run.clock_start = now
    if run.capped is not None and run.capped.paused_at:
        run.clock_start -= run.capped.ran_s
        run.capped.paused_at = run.capped.ran_s = 0.0


def pause(run: Run, now: float) -> None:
    """Let the clock stand while a cap keeps places from being held."""
    if run.capped is not None:
        run.capped.paused_at = now
        run.capped.ran_s = now - run.clock_start if run.clock_start else 0.0
        run.clock_start = 0.0


def runs_out(gang: Gang, census: Census, terms: Terms, *, seed: int) -> float:
    """When the running clock ends, in epoch seconds; never while a binding is with the server or a member is bound.

    `seed` decides how much of the terms' jitter each attempt gets, in whole seconds.
    """
    sent = any(binding.state is BindState.SENT for binding in gang.bindings.values())
    if not gang.run.clock_start or census.bound or sent:
        return NEVER
    longer_s = int(_jitter(gang, seed) * terms.jitter_s) if terms.jitter_s else 0
    return gang.run.clock_start + terms.max_schedule_time_s + longer_s


def back_off(gang: Gang, *, now: float, policy: Policy) -> None:
    """Count a failed attempt and let the gang wait: initial × 2ⁿ up to the longest, less up to a fifth by jitter."""
    run = gang.run
    run.timeouts += 1
    run.level += 1
    longest = doubled(policy.backoff_initial_s, run.level, longest=policy.backoff_max_s)
    run.backoff_until = now + longest * (1 - _jitter(gang, policy.seed) / 5)
    run.clock_start = 0.0


def begin_anew(gang: Gang) -> None:
    """Let a change of the spec end the back-off or the failure by the clock (rule 5); a running clock runs on."""
    gang.run.backoff_until = 0.0
    gang.run.level = 0
    gang.run.failed_for_good = False
    gang.run.vacated = False
    gang.run.caps = 0
    if gang.run.capped is not None:
        gang.run.capped.until = 0.0
    gang.complaint = ""
    gang.undone = ""
    gang.parked = False


def _jitter(gang: Gang, seed: int) -> float:
    digest = sha256(f"{seed}/{gang.key}/{gang.run.timeouts}".encode()).digest()
    return int.from_bytes(digest[:4], "big") / 2**32
