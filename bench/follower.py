"""A stand-in for a browser on the operator's page: `python -m bench.follower ADDRESS` reads and drops its events."""

from __future__ import annotations

import asyncio
import os
import sys

import aiohttp


async def follow(address: str) -> None:
    """Exchange the address's token and read events until the server ends."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        async with session.get(address) as page:
            page.raise_for_status()
        base = address.partition("?")[0]
        async with session.get(f"{base}events", timeout=aiohttp.ClientTimeout(total=None)) as events:
            events.raise_for_status()
            async for _ in events.content.iter_any():
                pass


if __name__ == "__main__":
    # A real browser runs on another machine.
    os.nice(19)
    asyncio.run(follow(sys.argv[1]))
