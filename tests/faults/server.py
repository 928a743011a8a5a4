"""The server between a client and a real API server: forwards everything and injects the faults of the plan.

Connections to the client are plain HTTP on 127.0.0.1, those to the API server TLS verified with its CA. The caller's
own credentials are forwarded, so that the API server sees the real caller.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from http import HTTPStatus

import aiohttp
from aiohttp import web
from yarl import URL

from tests.faults.answers import AFTERWARDS, INSTEAD, Answer, Reset, end_to_end, failure, reset
from tests.faults.plan import OF_STREAMS, Asked, Decision, Fault, Plan, Rates, Rule
from tests.faults.streams import End, Relay

_AUTOMATIC = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
_READ_BUFFER_BYTES = 1 << 20

OUTAGE = "outage"


class FaultServer:
    """Forwards requests to the API server at `upstream`, verified with the CA file `ca` if it speaks TLS."""

    def __init__(self, upstream: str, *, ca: str | None, plan: Plan) -> None:
        self.injected: Counter[str] = Counter()
        """How often each fault has occurred, by its value; OUTAGE counts the requests that met an outage."""
        self._upstream = upstream
        self._ca = ca
        self._plan = plan
        self._relays: dict[Relay, asyncio.Transport] = {}
        self._answering: set[asyncio.Task[Answer]] = set()
        self._released = asyncio.Event()
        self._blocked = False

    async def start(self, port: int = 0) -> None:
        """Listen on this port of 127.0.0.1; on any if it is 0."""
        self._client = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=ssl.create_default_context(cafile=self._ca)),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=_READ_BUFFER_BYTES,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
        )
        self._server = web.Server(self._handle, access_log=None, handler_cancellation=True, auto_decompress=False)
        self._runner = web.ServerRunner(self._server, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        """End every connection."""
        self.block()
        for task in self._answering:
            task.cancel()
        await asyncio.gather(*self._answering, return_exceptions=True)
        await self._runner.cleanup()
        await self._client.close()

    def calm(self) -> None:
        """Inject no more faults except by rules; release what is held back, and end watches that have a fault."""
        self._plan.stormy = False
        self._release()
        self._end_watches(lambda relay: relay.fault is not None)

    def storm(self, rates: Rates | None = None) -> None:
        """Inject faults again, at other rates if any are given; end all watches, so that new ones get the faults."""
        if rates is not None:
            self._plan.rates = rates
        self._plan.stormy = True
        self._end_watches(lambda _: True)

    def forget(self) -> None:
        """See `Plan.forget`."""
        self._plan.forget()

    def next(self, rule: Rule) -> None:
        """See `Plan.add`."""
        self._plan.add(rule)

    def block(self) -> None:
        """Cut the API server off: reset every connection, and every new one at its first request.

        Requests that have reached the server may take effect; those that are held back are lost.
        """
        self._blocked = True
        self._release()
        spared = {transport for relay, transport in self._relays.items() if relay.fault is Fault.WATCH_REORDERS}
        self._end_watches(lambda relay: relay.fault is Fault.WATCH_REORDERS)
        for connection in self._server.connections:
            if connection.transport not in spared:
                reset(connection.transport)

    def unblock(self) -> None:
        """Make the API server reachable again."""
        self._blocked = False

    def _release(self) -> None:
        """Release everything that is held back now."""
        self._released.set()
        self._released = asyncio.Event()

    def _end_watches(self, chosen: Callable[[Relay], bool]) -> None:
        for relay in self._relays:
            if chosen(relay):
                relay.end()

    def _count(self, fault: Fault | None) -> None:
        if fault is not None:
            self.injected[fault.value] += 1

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.content.read()
        asked = Asked(request.method, request.rel_url.raw_path, request.query, body)
        decision = self._plan.decide(asked)
        try:
            if asked.is_watch:
                return await self._watch(request, decision)
            # Requests in flight continue without their sender: a server receives a request even if the client gives up.
            work = asyncio.create_task(self._answer(request, body, decision))
            self._answering.add(work)
            work.add_done_callback(self._answering.discard)
            answer = await asyncio.shield(work)
            if decision.fault is Fault.TRUNCATED:
                return await self._truncate(request, answer)
            return answer.response()
        except (Reset, aiohttp.ClientError, OSError):
            reset(request.transport)
            return web.Response()

    async def _answer(self, request: web.BaseRequest, body: bytes, decision: Decision) -> Answer:
        refused = await self._before(decision)
        if refused is not None:
            return refused
        async with self._send(request, body) as said:
            answer = await Answer.of(said)
        return await self._after(answer, decision)

    async def _before(self, decision: Decision) -> Answer | None:
        """Apply a request's faults before it reaches the server; returns the answer if the server is not asked."""
        fault = decision.fault
        if fault in INSTEAD:
            self._count(fault)
            retry_after_s = self._plan.rates.retry_after_s if fault is Fault.THROTTLED else None
            return failure(*INSTEAD[fault], retry_after_s=retry_after_s)
        if fault is Fault.RESET_BEFORE:
            self._count(fault)
            raise Reset
        if fault is Fault.DELAY_BEFORE:
            await self._delay(decision)
        self._check_outage()
        return None

    async def _after(self, answer: Answer, decision: Decision) -> Answer:
        """Apply an answer's faults; returns the answer to give."""
        fault = decision.fault
        if fault in AFTERWARDS:
            self._count(fault)
            return failure(*AFTERWARDS[fault])
        if fault is Fault.RESET_AFTER:
            self._count(fault)
            raise Reset
        if fault in (Fault.DELAY_AFTER, Fault.STALE_LIST):
            await self._delay(decision)
        self._check_outage()
        return answer

    def _check_outage(self) -> None:
        if self._blocked:
            self.injected[OUTAGE] += 1
            raise Reset

    async def _delay(self, decision: Decision) -> None:
        self._count(decision.fault)
        released = self._released
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(decision.dice.uniform(*self._plan.rates.delay_s)):
                await released.wait()

    async def _truncate(self, request: web.BaseRequest, answer: Answer) -> web.StreamResponse:
        self._count(Fault.TRUNCATED)
        response = web.StreamResponse(status=answer.status, headers=answer.headers)
        response.content_length = len(answer.body)
        await response.prepare(request)
        await response.write(answer.body[: len(answer.body) // 2])
        if request.transport is not None:
            request.transport.close()
        return response

    async def _watch(self, request: web.BaseRequest, decision: Decision) -> web.StreamResponse:
        refused = await self._before(decision)
        if refused is not None:
            return refused.response()
        # Streams are manipulated line by line, so they must not be in a binary format.
        async with self._send(request, b"", Accept="application/json") as said:
            if said.status != HTTPStatus.OK:
                return (await Answer.of(said)).response()
            response = web.StreamResponse(headers=end_to_end(said.headers))
            response.enable_chunked_encoding()
            await response.prepare(request)
            relay = Relay(
                said.content.iter_any(),
                response.write,
                fault=decision.fault if decision.fault in OF_STREAMS else None,
                dice=decision.dice,
                rates=self._plan.rates,
                count=self._count,
            )
            if request.transport is None:
                raise Reset
            self._relays[relay] = request.transport
            try:
                if await relay.run() is End.RESET:
                    raise Reset
            finally:
                del self._relays[relay]
            return response

    def _send(
        self, request: web.BaseRequest, body: bytes, **headers: str
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        sent = end_to_end(request.headers)
        sent.update(headers)
        return self._client.request(
            request.method,
            URL(self._upstream + request.raw_path, encoded=True),
            headers=sent,
            data=body or None,
            skip_auto_headers=_AUTOMATIC,
            allow_redirects=False,
        )
