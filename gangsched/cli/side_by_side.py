"""Answers that are awaited together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

OnProgress = Callable[[str], None]
"""Receives a text that says how much has been read."""


def ignore(_: str) -> None:
    """Show no progress."""


async def side_by_side(*reads: Awaitable[Any], on_progress: OnProgress = ignore) -> list[Any]:
    """The results of what is read side by side, in order; where it fails, the exception."""
    left = len(reads)

    async def counted(read: Awaitable[Any]) -> Any:  # noqa: ANN401 - what it is depends on what is read
        nonlocal left
        result = await read
        left -= 1
        on_progress(f"reading the cluster, {len(reads) - left} of {len(reads)} lists")
        return result

    return await asyncio.gather(*map(counted, reads), return_exceptions=True)


def unless_error(result: Any) -> Any:  # noqa: ANN401 - as above
    """The result of one that was read side by side with others; raises it if it is an exception."""
    if isinstance(result, BaseException):
        raise result
    return result
