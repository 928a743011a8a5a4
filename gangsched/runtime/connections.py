"""Limits the connections to a port that every pod of the cluster may reach.

Idle connections would otherwise take all open files of the process, and the operator could not reach the API server any
more. No connection is refused, because it may be a probe's: when there are too many, the oldest one is closed of the
address that has most of them.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from aiohttp import web

MOST_CONNECTIONS = 64
"""Maximum number of connections at a time. A kubelet and a Prometheus need one or two each."""
LONGEST_S = 97.0
"""Longest life of a connection, in seconds, after which its client opens another one. It is no multiple of an interval
at which anybody scrapes metrics, so that few scrapes meet the end."""
ENDING_S = 1.0
"""Time, in seconds, in which a connection may finish its answer before it is closed."""


class Connections:
    """The connections to the application of a runner, oldest first; called, it makes the protocol of a new one."""

    def __init__(self, runner: web.AppRunner, *, most: int = MOST_CONNECTIONS, longest_s: float = LONGEST_S) -> None:
        self._runner = runner
        self._most = most
        self.longest_s = longest_s
        self._open: dict[Connection, str] = {}

    def __call__(self) -> Connection:
        server = self._runner.server
        if server is None:
            raise RuntimeError("the runner must be set up before it listens")
        return Connection(self, server())

    def __len__(self) -> int:
        return len(self._open)

    def opened(self, connection: Connection, address: str) -> None:
        """Note a connection from this address, and make room for it."""
        self._open[connection] = address
        if len(self._open) > self._most:
            (crowd, _), *_ = Counter(self._open.values()).most_common(1)
            oldest = next(peer for peer, address in self._open.items() if address == crowd)
            self.closed(oldest)
            oldest.abort()

    def closed(self, connection: Connection) -> None:
        """Forget a connection."""
        self._open.pop(connection, None)


class Connection(asyncio.Protocol):
    """One connection, whose bytes aiohttp's `handler` reads and writes."""

    def __init__(self, connections: Connections, handler: web.RequestHandler) -> None:
        self._connections = connections
        self.handler = handler
        self._end: asyncio.TimerHandle | None = None
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self.handler.connection_made(transport)
        self._end = asyncio.get_running_loop().call_later(self._connections.longest_s, self._close)
        peer = transport.get_extra_info("peername")
        self._connections.opened(self, str(peer[0]) if peer else "")

    def _close(self) -> None:
        self.handler.close()
        self._end = asyncio.get_running_loop().call_later(ENDING_S, self.abort)

    def abort(self) -> None:
        """Close the connection at once. What its client does not read would otherwise keep it open for ever."""
        self.handler.force_close()
        if isinstance(self._transport, asyncio.WriteTransport):
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._end is not None:
            self._end.cancel()
        self._connections.closed(self)
        self.handler.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self.handler.data_received(data)

    def eof_received(self) -> bool | None:
        self.handler.eof_received()
        return None

    def pause_writing(self) -> None:
        self.handler.pause_writing()

    def resume_writing(self) -> None:
        self.handler.resume_writing()
