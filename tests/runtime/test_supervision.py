from __future__ import annotations

import asyncio
import logging

import pytest

from gangsched.runtime.supervision import supervise


async def test_a_fault_is_told_and_the_work_begun_again(caplog: pytest.LogCaptureFixture) -> None:
    begun, again = 0, asyncio.Event()

    async def work() -> None:
        nonlocal begun
        begun += 1
        if begun == 3:
            again.set()
            await asyncio.Event().wait()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fail())

    async def fail() -> None:
        raise KeyError("soak/a")

    async with asyncio.timeout(10):
        task = asyncio.create_task(supervise("page", work, pause_s=0.01))
        await again.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    told = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert [record.__dict__["part"] for record in told] == ["page", "page"]
    assert "scheduling continues" in told[0].getMessage()
