"""A tiny fake API server: records the requests that reached it, and answers writes, lists and watches."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.faults.plan import Fault, Plan, Rates, only
from tests.faults.server import FaultServer

LIST = "/api/v1/pods"
BINDING = "/api/v1/namespaces/n/pods/p/binding"


class Upstream:
    """Each list has its own resourceVersion: 1, 2, 3, … A watch delivers what is put into `events`; None ends it."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.delay_s = 0.0
        self.events: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._lists = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked[request.method] += 1
        await asyncio.sleep(self.delay_s)
        if request.method != "GET":
            return web.json_response({"kind": "Status", "status": "Success"}, status=201)
        if "watch" in request.query:
            return await self._watch(request)
        self._lists += 1
        return web.json_response({"metadata": {"resourceVersion": str(self._lists)}, "items": ["x" * 1000] * 200})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        while (piece := await self.events.get()) is not None:
            await response.write(piece)
        return response


class Stand:
    """A proxy in front of such a server, and a client of the proxy."""

    def __init__(self, upstream: Upstream, server: FaultServer, client: aiohttp.ClientSession) -> None:
        self.upstream = upstream
        self.server = server
        self.client = client

    async def post(self, path: str = BINDING) -> int:
        """Send a write; returns the response's status."""
        async with self.client.post(path, data=b"{}") as answer:
            await answer.read()
            return answer.status

    async def version(self, **params: str) -> int:
        """Send a list; returns its resourceVersion."""
        headers = {"Accept-Encoding": "identity"}
        async with self.client.get(LIST, params=params, headers=headers) as answer:
            return int((await answer.json())["metadata"]["resourceVersion"])

    def watch(self) -> Any:
        return self.client.get(LIST, params={"watch": "true", "resourceVersion": "1"})


@asynccontextmanager
async def standing(*faults: Fault, rate: float = 1.0, seed: int = 1, **details: Any) -> AsyncIterator[Stand]:
    """A stand whose proxy injects these faults at this rate; without any it is calm."""
    upstream = Upstream()
    app = web.Application(handler_args={"auto_decompress": False, "handler_cancellation": True})
    app.router.add_route("*", "/{path:.*}", upstream.handle)
    origin = TestServer(app)
    await origin.start_server()
    rates = Rates(of=only(*faults, rate=rate), **details)
    server = FaultServer(f"http://127.0.0.1:{origin.port}", ca=None, plan=Plan(seed=seed, rates=rates))
    await server.start()
    try:
        # No keep-alive: aiohttp retries a GET by itself if a reused connection is lost.
        connector = aiohttp.TCPConnector(force_close=True, limit=0)
        async with aiohttp.ClientSession(server.url, connector=connector, auto_decompress=False) as client:
            yield Stand(upstream, server, client)
    finally:
        await server.stop()
        await origin.close()
