"""A scripted API server on loopback: it gives the queued answers in order and records the requests."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self

from aiohttp import web
from aiohttp.test_utils import TestServer

from gangsched.core.objects.events import Event
from gangsched.kube.client.credentials import Connection
from gangsched.kube.client.session import ApiSession

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Asked:
    """One request as it arrived."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any


class Inbox:
    """Collects what a watch posts and counts; `until` waits for a condition on it."""

    def __init__(self) -> None:
        self.batches: list[list[Event]] = []
        self.relists: list[tuple[str, str]] = []
        self.counted: Counter[str] = Counter()
        self._news = asyncio.Event()

    @property
    def events(self) -> list[Event]:
        return [event for batch in self.batches for event in batch]

    def post(self, events: Sequence[Event]) -> None:
        self.batches.append(list(events))
        self._news.set()

    def watch_events(self, resource: str, count: int) -> None:
        self.counted[resource] += count

    def relisted(self, resource: str, cause: str) -> None:
        self.relists.append((resource, cause))

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not holds():
                self._news.clear()
                await self._news.wait()


class FakeApi:
    """Answers are queued by method and path; a watch is the method WATCH. A request without an answer gets 500."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self._news = asyncio.Event()
        self._answers: dict[tuple[str, str], deque[Answer]] = defaultdict(deque)

    @classmethod
    def answering(cls, method: str, path: str, *answers: Answer) -> Self:
        """A server with these answers."""
        api = cls()
        api.answer(method, path, *answers)
        return api

    def answer(self, method: str, path: str, *answers: Answer) -> None:
        self._answers[method, path].extend(answers)

    def of(self, method: str) -> list[Asked]:
        """The requests of this method so far."""
        return [asked for asked in self.asked if asked.method == method]

    async def until_asked(self, count: int) -> None:
        """Wait until this number of requests has arrived."""
        async with asyncio.timeout(30):
            while len(self.asked) < count:
                self._news.clear()
                await self._news.wait()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        method = "WATCH" if request.query.get("watch") == "true" else request.method
        body = await request.read()
        asked = Asked(
            method,
            request.raw_path.partition("?")[0],
            dict(request.query),
            request.headers,
            json.loads(body or b"null"),
        )
        self.asked.append(asked)
        self._news.set()
        answers = self._answers[method, asked.path]
        return await (answers.popleft() if answers else status(500, "nobody expected this request"))(request)


@asynccontextmanager
async def serving(api: FakeApi) -> AsyncIterator[ApiSession]:
    """A session with the fake server."""
    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{path:.*}", api.handle)
    server = TestServer(app)
    await server.start_server()
    session = ApiSession(Connection(server=f"http://127.0.0.1:{server.port}", authorization=_authorization))
    try:
        yield session
    finally:
        await session.close()
        await server.close()


async def _authorization() -> str | None:
    return "Bearer of-tests"


def body(content: object, code: int = 200) -> Answer:
    """An answer with this JSON."""

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.json_response(content, status=code)

    return answer


def status(code: int, message: str = "", *, reason: str = "", headers: Mapping[str, str] | None = None) -> Answer:
    """A failure in the API server's format."""

    async def answer(_: web.Request) -> web.StreamResponse:
        told = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
        return web.json_response(told, status=code, headers=headers)

    return answer


def page(items: Iterable[object], version: int, *, more: str | None = None) -> Answer:
    """A page of a list; `more` is its continue token."""
    return body({"metadata": {"resourceVersion": str(version), "continue": more}, "items": list(items)})


def stream(*pieces: object, then: str = "end") -> Answer:
    """A watch: dicts become lines, bytes are sent unchanged; `then` it ends, hangs or drops the connection."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece if isinstance(piece, bytes) else json.dumps(piece).encode() + b"\n")
        if then == "hang":
            await asyncio.Event().wait()
        if then == "drop":
            _drop(request)
        return response

    return answer


def dropped() -> Answer:
    """No answer: the connection is lost."""

    async def answer(request: web.Request) -> web.StreamResponse:
        _drop(request)
        return web.Response()

    return answer


def _drop(request: web.Request) -> None:
    assert request.transport is not None
    request.transport.abort()
