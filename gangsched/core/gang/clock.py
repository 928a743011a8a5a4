"""How long a complete gang waits: its clock, time-out and back-off (contract rules 4 and 5), and aging.

By aging, waiting raises the place of a group in the order. It orders groups, and nobody is preempted for it.
"""

from __future__ import annotations

from hashlib import sha256

from msgspec.structs import replace

from gangsched.core.declarations.terms import Terms
from gangsched.core.gang.gang import Census, Gang
from gangsched.core.gang.plan import Plan
from gangsched.core.gang.writes import BindState
from gangsched.core.objects.duration import doubled
from gangsched.core.objects.podgroup import TimeoutPolicy
from gangsched.core.objects.policy import Aging, Policy
from gangsched.core.objects.record import Outcome

NEVER = float("inf")
_ROUNDING_S = 1e-6


def fail(gang: Gang, timeouts: int, settled_at: float = 0.0) -> None:
    """The time is up under timeoutPolicy Fail; members that were bound before `settled_at` stay bound."""
    gang.change(
        timeouts=timeouts,
        outcome=Outcome.OUT_OF_TIME,
        settled_at=settled_at or gang.record.settled_at,
        clock_start=0.0,
        prebinding_at=0.0,
        prebinding_clock=0.0,
    )


def start(gang: Gang, now: float) -> None:
    """Start the clock, or resume it if a cap has paused it."""
    capped, since = gang.record.capped, now
    if capped is not None and capped.paused_at:
        capped, since = replace(capped, paused_at=0.0, ran_s=0.0), now - capped.ran_s
    gang.change(clock_start=since, capped=capped, rollback_note="")


def pause(gang: Gang, now: float) -> None:
    """Pause the clock while a cap forbids placeholders."""
    capped, started = gang.record.capped, gang.record.clock_start
    if capped is not None:
        ran_s = now - started if started else 0.0
        gang.change(capped=replace(capped, paused_at=now, ran_s=ran_s), clock_start=0.0)


def runs_out(gang: Gang, census: Census, terms: Terms, policy: Policy) -> float:
    """When the clock runs out, in epoch seconds; NEVER while a binding is in flight or a member is bound.

    While the gang waits for pre-bindings the clock is paused, and the pre-bindings have a time-out of their own. The
    terms' jitter extends each attempt by a number of whole seconds, which the policy's seed determines.
    """
    if census.bound or not (gang.record.prebinding_at or gang.record.clock_start):
        return NEVER
    if any(binding.state is BindState.SENT for binding in gang.operations.bindings.values()):
        return NEVER
    if gang.record.prebinding_at:
        return gang.record.prebinding_at + policy.pre_bind_timeout_s
    longer_s = int(_jitter(gang, policy.seed, gang.record.timeouts) * terms.jitter_s) if terms.jitter_s else 0
    plan = gang.operations.plan
    stood_s = paused_s(gang, plan, terms, NEVER) if plan is not None else 0.0
    return gang.record.clock_start + terms.max_schedule_time_s + longer_s + stood_s


def paused_s(gang: Gang, plan: Plan, terms: Terms, now: float) -> float:
    """How many seconds the clock has stood still because of the plan until then.

    Its places are reserved for later, which does not stop the clock under timeoutPolicy Fail, or its victims end
    (`Plan.paused_s`).
    """
    if plan.start is None:
        return plan.paused_s(gang.record.timeouts, now)
    if terms.spec.timeout_policy is TimeoutPolicy.FAIL:
        return 0.0
    return max(0.0, now - max(plan.opened_at, gang.record.clock_start))


def go_on_after(gang: Gang, paused_s: float) -> None:
    """The clock has stood still for so many seconds."""
    if gang.record.clock_start:
        gang.change(clock_start=gang.record.clock_start + paused_s)


def back_off(gang: Gang, *, now: float, policy: Policy) -> None:
    """Count a failed attempt and start the back-off: initial × 2ⁿ up to the maximum, less up to a fifth as jitter."""
    timeouts, level = gang.record.timeouts + 1, gang.record.level + 1
    longest_s = doubled(policy.backoff_initial_s, level, longest=policy.backoff_max_s)
    retry_at = now + longest_s * (1 - _jitter(gang, policy.seed, timeouts) / 5)
    stopped = {"clock_start": 0.0, "prebinding_at": 0.0, "prebinding_clock": 0.0}
    gang.change(timeouts=timeouts, level=level, retry_at=retry_at, **stopped)


def reset_back_off(gang: Gang) -> None:
    """After a change of the spec, end the back-off or the failure by time-out (rule 5); a running clock goes on."""
    record = gang.record
    outcome = Outcome.NONE if record.outcome is Outcome.OUT_OF_TIME else record.outcome
    capped = None if record.capped is None else replace(record.capped, until=0.0)
    gang.change(
        outcome=outcome, capped=capped, retry_at=0.0, level=0, placeholders_expired=False, caps=0, rollback_note=""
    )
    gang.wait.try_again()
    gang.operations.attempt.hear("")


def _jitter(gang: Gang, seed: int, timeouts: int) -> float:
    digest = sha256(f"{seed}/{gang.key}/{timeouts}".encode()).digest()
    return int.from_bytes(digest[:4], "big") / 2**32


def raised_by(gang: Gang, aging: Aging, now: float) -> int:
    """By how much the group, which has waited since it became complete, is ahead of its priority."""
    since = gang.operations.complete_since
    if not aging.every_s or not since or gang.record.scheduled_at:
        return 0
    return min(aging.most, aging.by * _steps(since, aging, now))


def next_raise(gang: Gang, aging: Aging, now: float) -> float:
    """When that changes, in epoch seconds; infinity if it does not."""
    since = gang.operations.complete_since
    if not aging.every_s or not since or gang.record.scheduled_at or raised_by(gang, aging, now) >= aging.most:
        return NEVER
    return since + (_steps(since, aging, now) + 1) * aging.every_s


def _steps(since: float, aging: Aging, now: float) -> int:
    return int((now - since + _ROUNDING_S) / aging.every_s)
