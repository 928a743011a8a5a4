from __future__ import annotations

import pytest

from gangsched.runtime.clocks import Clock, measure_loop_lag


def test_the_clock_starts_at_the_wall_and_then_follows_the_monotonic_clock_alone():
    wall, monotonic = [1_000_000.0], [50.0]
    clock = Clock(wall=lambda: wall[0], monotonic=lambda: monotonic[0])
    assert clock.now() == 1_000_000.0
    wall[0] -= 3600
    monotonic[0] += 2.5
    assert clock.now() == 1_000_002.5


async def test_loop_lag_is_what_a_sleep_took_too_long_and_never_negative():
    now = [0.0]
    oversleeps = iter([0.25, -0.1])
    seen: list[float] = []

    async def sleep(seconds: float) -> None:
        now[0] += seconds + next(oversleeps)

    with pytest.raises(RuntimeError, match="StopIteration"):
        await measure_loop_lag(seen.append, interval_s=1.0, sleep=sleep, monotonic=lambda: now[0])
    assert seen == [pytest.approx(0.25), 0.0]
