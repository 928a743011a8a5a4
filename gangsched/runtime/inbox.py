"""The queue through which all events reach the engine."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress

from gangsched.core.objects.events import Event, NodeGone, NodeSeen

_DEAR = 10
"""How many events of pods take as long to apply as a change of a node, on which dozens of pods are counted again."""


class Inbox:
    """An unbounded queue of events with many producers and one consumer.

    It is unbounded because no event may be lost and no producer may block. Reflectors cannot outrun the engine for
    long, because both share one event loop.
    """

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._arrived = asyncio.Event()
        self._urgent = asyncio.Event()
        self._is_urgent: Callable[[Event], bool] = lambda _: False

    def call_on_post(self, is_urgent: Callable[[Event], bool]) -> None:
        """Call `is_urgent` for each event posted from now on; an urgent event ends `rest`."""
        self._is_urgent = is_urgent

    def post(self, events: Iterable[Event]) -> None:
        """Add events in order. Synchronous and never blocks: any callback of the event loop may call it."""
        for event in events:
            self._events.append(event)
            if self._is_urgent(event):
                self._urgent.set()
        if self._events:
            self._arrived.set()

    def __len__(self) -> int:
        return len(self._events)

    def clear(self) -> list[Event]:
        """Remove and return all events posted so far, in order."""
        return self.take(_DEAR * len(self._events))

    async def arrival(self, timeout_s: float) -> None:
        """Return as soon as there are events, or after `timeout_s`.

        It always yields to other tasks once, so that a burst that arrives in several pieces becomes one list.
        """
        await asyncio.sleep(0)
        if not self._events and timeout_s > 0:
            try:
                async with asyncio.timeout(timeout_s):
                    await self._arrived.wait()
            except TimeoutError:
                pass
            else:
                await asyncio.sleep(0)

    async def rest(self, least_s: float, longest_s: float) -> None:
        """Return after `longest_s`, or as soon as there is an urgent event, but not before `least_s`."""
        if least_s > 0:
            await asyncio.sleep(least_s)
        if longest_s > 0 and not self._urgent.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(longest_s - max(least_s, 0.0)):
                    await self._urgent.wait()

    def take(self, most: int) -> list[Event]:
        """Remove and return the oldest events, in order, at most `most`; each of a node counts as several."""
        events: list[Event] = []
        while self._events and most > 0:
            events.append(self._events.popleft())
            most -= _DEAR if isinstance(events[-1], NodeSeen | NodeGone) else 1
        self._urgent.clear()
        if not self._events:
            self._arrived.clear()
        return events
