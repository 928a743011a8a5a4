"""The HTTP server for probes and Prometheus: /livez, /readyz and /metrics."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from aiohttp import web

from gangsched.runtime.connections import Connections
from gangsched.runtime.metrics import Metrics

_log = logging.getLogger(__name__)
_SILENT = logging.getLogger(f"{__name__}.http")
"""The logger to which aiohttp reports invalid HTTP, with tracebacks and the content. Strangers could fill the log."""
_SILENT.disabled = True

_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Problems = Callable[[], Sequence[str]]
"""Returns the problems, one sentence each; empty if there are none."""


Role = Callable[[], str]
"""Returns the role of this replica, such as "leading", for readers of /readyz."""


class ListenError(Exception):
    """The server cannot listen on the address; the message says why."""


class Health:
    """The HTTP server. It calls `alive`, `ready`, `role` and `notes` at each request.

    `notes` are problems that do not keep this replica from being ready; the text of /readyz shows them.
    """

    def __init__(self, metrics: Metrics, *, alive: Problems, ready: Problems, role: Role, notes: Problems) -> None:
        self._metrics = metrics
        self._alive = alive
        self._ready = ready
        self._role = role
        self._notes = notes
        app = web.Application()
        app.router.add_get("/metrics", self._render)
        app.router.add_get("/livez", self._livez)
        app.router.add_get("/readyz", self._readyz)
        self._runner = web.AppRunner(app, access_log=None, logger=_SILENT, shutdown_timeout=1.0)
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen, log and return the port. An empty host means all addresses, port 0 any free port.

        Raises:
            ListenError: the address is in use or does not belong to this machine.
        """
        await self._runner.setup()
        try:
            loop = asyncio.get_running_loop()
            self._server = await loop.create_server(Connections(self._runner), host or None, port)
        except OSError as error:
            await self._runner.cleanup()
            raise ListenError(
                f"cannot listen on {host}:{port} ({error.strerror or error}): choose another --listen"
            ) from error
        actual = int(self._server.sockets[0].getsockname()[1])
        _log.info("serving metrics and probes", extra={"listen": f"{host}:{actual}"})
        return actual

    async def stop(self) -> None:
        """Close all connections and stop listening."""
        if self._server is not None:
            self._server.close()
        await self._runner.cleanup()

    async def _render(self, _: web.Request) -> web.Response:
        return web.Response(body=self._metrics.render(), headers={"Content-Type": _METRICS_TYPE})

    async def _livez(self, _: web.Request) -> web.Response:
        return _answer(self._alive(), well="ok")

    async def _readyz(self, _: web.Request) -> web.Response:
        problems, notes = self._ready(), self._notes()
        return _answer([*problems, *notes] if problems else (), well="\n".join((f"ok: {self._role()}", *notes)))


def _answer(problems: Sequence[str], *, well: str) -> web.Response:
    if not problems:
        return web.Response(text=f"{well}\n")
    return web.Response(status=503, text="".join(f"{problem}\n" for problem in problems))
