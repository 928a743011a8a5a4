"""How waiting raises a group's place in the order. It orders groups, and nobody is preempted for it."""

from __future__ import annotations

from gangsched.core.gang.clock import NEVER
from gangsched.core.gang.gang import Gang
from gangsched.core.objects.policy import Aging

_ROUNDING_S = 1e-6


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
