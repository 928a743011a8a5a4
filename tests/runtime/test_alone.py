from __future__ import annotations

import asyncio

from gangsched.runtime.alone import Alone


async def test_an_outage_as_long_as_the_limit_ends_the_term_and_the_next_waits_until_the_server_answers():
    away = [0.0]
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        away[0] = away[0] + seconds if away[0] or len(slept) == 3 else 0.0
        if away[0] >= 15:
            away[0] = 0.0

    alone = Alone(lambda: away[0], limit_s=10, sleep=sleep)
    await alone.acquire()
    assert (alone.term, alone.held(), slept) == (1, True, [])
    why = await asyncio.wait_for(alone.keep(), 5)
    assert why == "the API server has not answered for 10 s"
    assert alone.term == 2
    assert away[0] >= 10
    await alone.acquire()
    assert away[0] == 0.0


async def test_there_is_nobody_to_learn_from_to_wait_for_or_to_release_anything_to():
    alone = Alone(lambda: 0.0, limit_s=10)
    await alone.release(timeout_s=1.0)
    assert alone.held()
    assert (alone.elected, alone.handed_over, alone.standby, alone.problem) == (False, False, False, "")
    assert alone.role(decides=False) == "acting without leader election"
