"""The current content of the page, for any number of browsers. Each one is sent only what it has not seen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping

import msgspec

MOST_GONE = 10_000
"""Maximum number of deleted names to remember. Beyond it, all are forgotten, and clients get the full state again."""

_NAME = msgspec.json.Encoder()


class Board:
    """Things by name, each as JSON, with the number of the change that last set each, and the names that are gone.

    `followers` is the current number of followers.
    """

    def __init__(self) -> None:
        self._things: dict[str, bytes] = {}
        self._since: dict[str, int] = {}
        self._gone: dict[str, int] = {}
        self._change = 0
        self._oldest = 0
        self._changed = asyncio.Event()
        self.followers = 0
        self._followed = asyncio.Event()

    def show(self, things: Mapping[str, bytes]) -> None:
        """Replace all things by these."""
        new = {name: thing for name, thing in things.items() if self._things.get(name) != thing}
        gone = self._things.keys() - things.keys()
        if not new and not gone:
            return
        self._change += 1
        for name in new:
            self._gone.pop(name, None)
        self._since.update(dict.fromkeys(new, self._change))
        for name in gone:
            del self._since[name]
        self._gone.update(dict.fromkeys(gone, self._change))
        if len(self._gone) > MOST_GONE:
            self._gone.clear()
            self._oldest = self._change
        self._things = dict(things)
        self._changed.set()
        self._changed = asyncio.Event()

    def note(self, name: str, thing: bytes) -> None:
        """Set this thing, and keep all others."""
        self.show({**self._things, name: thing})

    async def follow(self, *, silent_s: float) -> AsyncGenerator[bytes, None]:
        """Yield the full state and then each change, as lines of JSON; an empty one after `silent_s` without a change.

        A line has `set` with things by name, `gone` with names, and `whole`, which says that `set` is the full state.
        """
        seen = 0
        self.followers += 1
        self._followed.set()
        try:
            while True:
                changed = self._changed
                if self._change != seen:
                    line = self._line(seen)
                    seen = self._change
                    yield line
                    continue
                try:
                    await asyncio.wait_for(changed.wait(), silent_s)
                except TimeoutError:
                    yield b""
        finally:
            self.followers -= 1
            if not self.followers:
                self._followed.clear()

    async def followed(self) -> None:
        """Return as soon as there is a follower."""
        await self._followed.wait()

    def _line(self, seen: int) -> bytes:
        whole = not seen or seen < self._oldest
        gone = [] if whole else [name for name, change in self._gone.items() if change > seen]
        things = b",".join(self._newer(0 if whole else seen))
        return b'{"whole":%b,"set":{%b},"gone":%b}' % (b"true" if whole else b"false", things, _NAME.encode(gone))

    def _newer(self, seen: int) -> Iterator[bytes]:
        for name, thing in self._things.items():
            if self._since[name] > seen:
                yield _NAME.encode(name) + b":" + thing
