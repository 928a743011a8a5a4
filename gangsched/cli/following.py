"""Looks at something again and again, and shows what has changed: `--watch`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Sequence

Seen = tuple[Hashable, object, str]
"""What is looked at, by a key; what tells whether it has changed; and how it is shown."""

_EVERY_S = 2.0
_SHARE = 10
"""A look that takes long is repeated after this many times its duration, so that it is a small load on the cluster."""


async def follow(look: Callable[[], Awaitable[Sequence[Seen]]], show: Callable[[str], None]) -> None:
    """Show what each look has found first, and then whatever has changed since the look before. It never ends."""
    known: dict[Hashable, object] = {}
    while True:
        began = time.monotonic()
        found = await look()
        for key, state, text in found:
            if key not in known or known[key] != state:
                show(text)
        known = {key: state for key, state, _ in found}
        await asyncio.sleep(max(_EVERY_S, _SHARE * (time.monotonic() - began)))
