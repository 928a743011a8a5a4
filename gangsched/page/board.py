"""What there is to see now, for any number of browsers that follow it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator


class Board:
    """The newest view as JSON, in one line; empty until there is one."""

    def __init__(self) -> None:
        self.newest = ""
        self._changed = asyncio.Event()

    def show(self, view: str) -> None:
        """This is to be seen from now on."""
        if view != self.newest:
            self.newest = view
            self._changed.set()
            self._changed = asyncio.Event()

    async def follow(self, *, silent_s: float) -> AsyncIterator[str]:
        """The view and each newer one; an empty text whenever nothing has changed for `silent_s` seconds."""
        seen = ""
        while True:
            changed = self._changed
            if self.newest != seen:
                seen = self.newest
                yield seen
                continue
            try:
                await asyncio.wait_for(changed.wait(), silent_s)
            except TimeoutError:
                yield ""
