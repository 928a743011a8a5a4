"""Faults in the lines of a watch.

A client resumes a broken watch at the last version that it has seen, and must be able to do so at any line without
losing an event: a real API server sends events in the order of their versions, which guarantees that. Reordering
therefore obeys these rules:
    Events change places only within one batch that is held back and then sent in one write, after which the stream only
    ever ends cleanly (neither by a reset, which could tear the batch at the client, nor in the middle of a line).
    The newest event of the batch stays last, so that the client's last version is the one that a real server would have
    left it with. Events never move past a bookmark or an error.
    Events of one name in one namespace keep their order, including an object's deletion and its successor.
A duplicate directly follows its original. Duplicating, lagging, ending and cutting keep the order; a reset may then
strike anywhere, because only the newest events are lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from enum import Enum, auto
from random import Random

import aiohttp

from tests.faults.plan import Fault, Rates

_HOLD_S = (0.02, 0.3)
_HOLD_EVENTS = 50
_DUPLICATED = 0.5

_EXPIRED = {
    "type": "ERROR",
    "object": {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "too old resource version (injected)",
        "reason": "Expired",
        "code": 410,
    },
}


class End(Enum):
    """How to end a stream."""

    ORDERLY = auto()
    RESET = auto()


class _Over(Exception):  # noqa: N818 - no error
    """The server's stream has ended."""

    def __init__(self, end: End) -> None:
        super().__init__(end)
        self.end = end


class Relay:
    """Relays one watch from server to client, with at most one fault.

    `write` takes whole lines, except for a line that is cut. `count` is called when the fault occurs, so that a fault
    of a stream that ends too early is not counted.
    """

    def __init__(
        self,
        pieces: AsyncIterator[bytes],
        write: Callable[[bytes], Awaitable[None]],
        *,
        fault: Fault | None,
        dice: Random,
        rates: Rates,
        count: Callable[[Fault], None],
    ) -> None:
        self.fault = fault
        self._pieces = pieces
        self._write = write
        self._dice = dice
        self._rates = rates
        self._count = count
        self._blocks: asyncio.Queue[bytes | End] = asyncio.Queue()
        self._lines: deque[bytes] = deque()
        self._ended = asyncio.Event()

    def end(self) -> None:
        """End the stream cleanly, at once."""
        self._ended.set()

    async def run(self) -> End:
        """Relay until the server or the fault ends it, or `end` is called."""
        relaying = asyncio.create_task(self._relay())
        tasks = [relaying, asyncio.create_task(self._ended.wait()), asyncio.create_task(self._read())]
        try:
            await asyncio.wait(tasks[:2], return_when=asyncio.FIRST_COMPLETED)
            return relaying.result() if relaying.done() else End.ORDERLY
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self) -> None:
        rest = b""
        try:
            async for piece in self._pieces:
                whole, feed, begun = piece.rpartition(b"\n")
                if feed:
                    self._blocks.put_nowait(rest + whole + feed)
                    rest = begun
                else:
                    rest += piece
        except (aiohttp.ClientError, OSError):
            self._blocks.put_nowait(End.RESET)
        else:
            self._blocks.put_nowait(End.ORDERLY)

    async def _relay(self) -> End:
        try:
            match self.fault:
                case Fault.WATCH_DUPLICATES:
                    return await self._duplicate()
                case Fault.WATCH_REORDERS:
                    return await self._reorder()
                case Fault.WATCH_LAGS:
                    return await self._lag()
                case None:
                    return await self._pass()
                case fault:
                    await self._pass_for_a_while()
                    return await self._fail(fault)
        except _Over as over:
            return End.ORDERLY if self.fault is Fault.WATCH_REORDERS else over.end

    async def _pass(self) -> End:
        while True:
            await self._write(await self._block())

    async def _pass_for_a_while(self) -> None:
        count = self._dice.randint(0, self._rates.watch_events)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._dice.uniform(*self._rates.watch_s)):
                for _ in range(count):
                    await self._write(await self._line())

    async def _fail(self, fault: Fault) -> End:
        if fault is Fault.WATCH_CUT:
            line = await self._line()
            await self._write(line[: len(line) // 2])
            self._count(fault)
            return End.RESET
        self._count(fault)
        if fault is Fault.EXPIRED_LATER:
            await self._write(json.dumps(_EXPIRED).encode() + b"\n")
        elif fault is Fault.WATCH_SILENT:
            await self._ended.wait()
        return End.ORDERLY

    async def _duplicate(self) -> End:
        while True:
            line = await self._line()
            twice = self._dice.random() < _DUPLICATED
            await self._write(line * 2 if twice else line)
            if twice:
                self._count(Fault.WATCH_DUPLICATES)

    async def _reorder(self) -> End:
        while True:
            held = [await self._line()]
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._dice.uniform(*_HOLD_S)):
                    while len(held) < _HOLD_EVENTS:
                        held.append(await self._line())
            shuffled = shuffle(held, self._dice)
            await self._write(b"".join(shuffled))
            if shuffled != held:
                self._count(Fault.WATCH_REORDERS)

    async def _lag(self) -> End:
        over: End | None = None
        while over is None:
            late = await self._block()
            self._count(Fault.WATCH_LAGS)
            await asyncio.sleep(self._dice.uniform(*self._rates.delay_s))
            while over is None and not self._blocks.empty():
                found = self._blocks.get_nowait()
                if isinstance(found, End):
                    over = found
                else:
                    late += found
            await self._write(late)
        return over

    async def _block(self) -> bytes:
        """Read the next lines, as many as arrived together.

        Raises:
            _Over: the stream has ended.
        """
        found = await self._blocks.get()
        if isinstance(found, End):
            raise _Over(found)
        return found

    async def _line(self) -> bytes:
        """Read the next line with its line feed; otherwise as `_block`."""
        if not self._lines:
            self._lines.extend(line + b"\n" for line in (await self._block()).split(b"\n")[:-1])
        return self._lines.popleft()


def shuffle(lines: list[bytes], dice: Random) -> list[bytes]:
    """The lines of a watch in another order that is safe for a client (see above)."""
    done: list[bytes] = []
    batch: list[tuple[Hashable, bytes]] = []
    for line in lines:
        subject = _subject(line)
        if subject is None:
            done += [*_merged(batch, dice), line]
            batch = []
        else:
            batch.append((subject, line))
    return done + _merged(batch, dice)


def _merged(batch: list[tuple[Hashable, bytes]], dice: Random) -> list[bytes]:
    """The lines in a random order that keeps the order within each subject and the last line last."""
    queues: dict[Hashable, deque[bytes]] = defaultdict(deque)
    for subject, line in batch[:-1]:
        queues[subject].append(line)
    order = [subject for subject, _ in batch[:-1]]
    dice.shuffle(order)
    return [queues[subject].popleft() for subject in order] + [line for _, line in batch[-1:]]


def _subject(line: bytes) -> Hashable | None:
    """The object of the event; None for a line that no event may move past."""
    event = json.loads(line)
    if event["type"] in ("BOOKMARK", "ERROR"):
        return None
    meta = event["object"]["metadata"]
    return meta.get("namespace", ""), meta["name"]
