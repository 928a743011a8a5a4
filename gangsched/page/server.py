"""Answers browsers on this machine only.

The address that is opened first carries a token, which can be exchanged once for a cookie. Requests for another host
are refused, because a host name of an attacker may resolve to this address (DNS rebinding), and so are requests that
another page has caused. Nothing can be changed. Manifests that are posted to /what-if are tried on a copy.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from importlib.resources import files
from typing import Protocol

import msgspec
from aiohttp import web

from gangsched.page.board import Board

_log = logging.getLogger(__name__)

SILENT_S = 15.0
"""Longest time, in seconds, without a message to a browser, so that it notices a lost connection."""
MOST_BYTES = 1 << 20
"""Maximum size of a manifest to try."""
MOST_BROWSERS = 16
"""Maximum number of sessions, and of event streams. A further session ends the oldest; a further stream is refused."""
_HOSTS = ("127.0.0.1", "localhost")
_TYPES = {"css": "text/css", "js": "text/javascript"}
_STATIC = files("gangsched.page").joinpath("static")
_FILES = {file.name for file in _STATIC.iterdir()} - {"index.html"}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_OTHER = "This page answers no requests of other pages.\n"
_MANIFEST = "application/yaml"


class WhatIfService(Protocol):
    """Decides on a copy of the cluster. Answers are JSON objects; `error` says in a sentence why there is no answer."""

    async def tried(self, manifests: bytes) -> dict[str, object]:
        """The outcome of these manifests."""
        ...

    async def helps(self, namespace: str, name: str) -> dict[str, object]:
        """What would help the group."""
        ...


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Page:
    """The page of a board.

    `token` is part of the address that is opened first, and can be used once. There is a new one after that only if
    `renewed` is given, which is called with it. `again` is the message for a browser without token or session. `now`
    returns the time, in epoch seconds, from which ages are counted.
    """

    def __init__(
        self,
        board: Board,
        *,
        again: str,
        what_if: WhatIfService,
        renewed: Callable[[str], None] | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.token = secrets.token_urlsafe(32)
        self._again = again
        self._renewed = renewed
        self._what_if = what_if
        self._now = now
        self._sessions: deque[str] = deque(maxlen=MOST_BROWSERS)
        self._streams = 0
        self._board = board

    def application(self) -> web.Application:
        """The web application that serves the page."""
        application = web.Application(middlewares=[self._guard], client_max_size=MOST_BYTES)
        application.router.add_get("/", self._index)
        application.router.add_get("/events", self._events)
        application.router.add_get("/helps/{namespace}/{name}", self._helps)
        application.router.add_get("/{name}", self._file)
        application.router.add_post("/what-if", self._try)
        return application

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            response = self._refusal(request) or await handler(request)
        except web.HTTPException as error:
            response = _text(error.status, f"{error.reason}\n")
        except Exception:  # noqa: BLE001 - a request may end no more than its own answer
            _log.exception("an answer of the page failed, which is a bug")
            response = _text(500, "The request failed, which is a bug: see the log.\n")
        if not response.prepared:
            response.headers.update(_HEADERS)
        return response

    def _refusal(self, request: web.Request) -> web.Response | None:
        """The refusal of the request, or the exchange of its token for a cookie; None if the request may proceed."""
        if _host(request) not in _HOSTS or request.host.rpartition(":")[0] not in _HOSTS:
            return _text(403, "This page answers requests for 127.0.0.1 and localhost only.\n")
        origin = request.headers.get("Origin")
        if origin is not None and origin != f"http://{request.host}":
            return _text(403, _OTHER)
        if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin") and request.path != "/":
            return _text(403, _OTHER)
        if request.method != "GET" and (request.method, request.path) != ("POST", "/what-if"):
            return _text(405, "Nothing can be changed here.\n")
        token = request.query.get("token", "")
        if token and self.token and secrets.compare_digest(token.encode(), self.token.encode()):
            return self._exchanged(request)
        cookie = request.cookies.get(_cookie(request), "").encode()
        if not any(secrets.compare_digest(cookie, session.encode()) for session in self._sessions):
            return _text(403, f"{self._again}\n")
        # A form of another page can neither send this type nor omit the origin.
        if request.method == "POST" and (origin is None or request.content_type != _MANIFEST):
            return _text(403, _OTHER)
        return None

    def _exchanged(self, request: web.Request) -> web.Response:
        session, self.token = secrets.token_urlsafe(32), ""
        self._sessions.append(session)
        if self._renewed is not None:
            self.token = secrets.token_urlsafe(32)
            self._renewed(self.token)
        response = web.Response(status=303, headers={"Location": "/"})
        response.set_cookie(_cookie(request), session, httponly=True, samesite="Strict", path="/")
        return response

    async def _index(self, _: web.Request) -> web.Response:
        return web.Response(text=_read("index.html"), content_type="text/html")

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in _FILES:
            raise web.HTTPNotFound
        return web.Response(text=_read(name), content_type=_TYPES[name.rpartition(".")[2]])

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """The board as server-sent events. An event `alive` has the time; it comes first, and after SILENT_S."""
        if self._streams >= MOST_BROWSERS:
            return _text(503, f"{MOST_BROWSERS} pages are open: close one and try again.\n")
        response = web.StreamResponse(headers={**_HEADERS, "Content-Type": "text/event-stream"})
        self._streams += 1
        try:
            await response.prepare(request)
            await response.write(self._alive())
            async with aclosing(self._board.follow(silent_s=SILENT_S)) as lines:
                async for line in lines:
                    await response.write(b"data: %b\n\n" % line if line else self._alive())
        except ConnectionResetError:
            # The browser has disconnected, as it may at any time.
            pass
        finally:
            self._streams -= 1
        return response

    def _alive(self) -> bytes:
        """An event that tells a browser that the page lives, and the time, from which its own clock may differ."""
        return b"event: alive\ndata: %.3f\n\n" % self._now()

    async def _try(self, request: web.Request) -> web.Response:
        """The outcome of the manifests in the request."""
        try:
            manifests = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return _text(413, f"The manifest is larger than {MOST_BYTES >> 20} MiB: try a part of it.\n")
        return _json(await self._what_if.tried(manifests))

    async def _helps(self, request: web.Request) -> web.Response:
        """What would help a group."""
        return _json(await self._what_if.helps(request.match_info["namespace"], request.match_info["name"]))


def _host(request: web.Request) -> str | None:
    """The host that the request names; None if it is invalid."""
    try:
        return request.url.host
    except ValueError:
        return None


def _cookie(request: web.Request) -> str:
    """The name of the page's cookie. Browsers send cookies to all ports of a host, so it contains the port."""
    return f"gangsched_page_{request.url.port}"


def _json(body: dict[str, object]) -> web.Response:
    return web.Response(body=msgspec.json.encode(body), content_type="application/json")


def _read(name: str) -> str:
    return _STATIC.joinpath(name).read_text(encoding="utf-8")


def _text(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=text)
