"""Serves a page on a port of this machine's loopback, with a limited number of connections.

Anyone who may forward the operator's ports reaches it without a token, and must not exhaust the operator's open files.
"""

from __future__ import annotations

import asyncio
import logging

from aiohttp import web

from gangsched.page.server import Page

HOST = "127.0.0.1"
MOST_CONNECTIONS = 128
"""Maximum number of connections at a time; a further one is closed at once. A browser opens at most six."""
_SHUTDOWN_S = 1.0
_SILENT = logging.getLogger(f"{__name__}.http")
"""The logger to which aiohttp reports invalid HTTP, with tracebacks and the content. Strangers could fill the log."""
_SILENT.disabled = True


class Listener:
    """The port of a page. A request is cancelled when its browser disconnects."""

    def __init__(self, page: Page, *, most_connections: int = MOST_CONNECTIONS) -> None:
        self._runner = web.AppRunner(
            page.application(),
            access_log=None,
            logger=_SILENT,
            shutdown_timeout=_SHUTDOWN_S,
            handler_cancellation=True,
        )
        self._most = most_connections
        self._server: asyncio.Server | None = None

    async def start(self, port: int) -> int:
        """Listen and return the port; port 0 means any free one.

        Raises:
            OSError: the port is in use.
        """
        await self._runner.setup()
        self._server = await asyncio.get_running_loop().create_server(self._protocol, HOST, port)
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stop listening and close all connections."""
        if self._server is not None:
            self._server.close()
        await self._runner.cleanup()

    def _protocol(self) -> asyncio.Protocol:
        server = self._runner.server
        if server is None or len(server.connections) >= self._most:
            return _Closed()
        return server()


class _Closed(asyncio.Protocol):
    """Closes its connection at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()
