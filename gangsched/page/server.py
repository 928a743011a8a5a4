"""Answers a browser on this machine, and nobody else.

The address that is opened first carries a token, which is good for one exchange against a cookie. Requests for another
host are refused, because a name that somebody else controls may lead here (DNS rebinding), and so are requests that
another page has caused. Nothing can be changed.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from importlib.resources import files

from aiohttp import web

from gangsched.page.board import Board

SILENT_S = 15.0
"""A browser hears something at least this often, so that it notices an end."""
_COOKIE = "gangsched_page"
_FILES = {"page.css": "text/css", "page.js": "text/javascript"}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_AGAIN = (
    "Open the address that gangsched dashboard has printed. It is good for one browser: start it again for another.\n"
)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Page:
    """The page of a board. `token` is part of the address that is opened first, until it has been."""

    def __init__(self, board: Board) -> None:
        self.token = secrets.token_urlsafe(32)
        self._session = ""
        self._board = board

    def application(self) -> web.Application:
        """What serves it."""
        application = web.Application(middlewares=[self._guard], client_max_size=0)
        application.router.add_get("/", self._index)
        application.router.add_get("/events", self._events)
        application.router.add_get("/{name}", self._file)
        return application

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            answer = self._refusal(request) or await handler(request)
        except web.HTTPException as error:
            answer = _text(error.status, f"{error.reason}\n")
        if not answer.prepared:
            answer.headers.update(_HEADERS)
        return answer

    def _refusal(self, request: web.Request) -> web.Response | None:
        """Why the request is not answered, or the exchange of the token; None if it is to be answered."""
        port = request.url.port
        hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        transport = request.transport
        own = transport.get_extra_info("sockname") if transport is not None else None
        if request.host not in hosts or own is None or own[1] != port:
            return _text(403, "This page answers requests for 127.0.0.1 and localhost only.\n")
        origin = request.headers.get("Origin")
        if origin is not None and origin != f"http://{request.host}":
            return _text(403, "This page answers no requests of other pages.\n")
        if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin") and request.path != "/":
            return _text(403, "This page answers no requests of other pages.\n")
        if request.method != "GET":
            return _text(405, "Nothing can be changed here.\n")
        given = request.query.get("token", "")
        if given and self.token and secrets.compare_digest(given.encode(), self.token.encode()):
            self.token, self._session = "", secrets.token_urlsafe(32)
            answer = web.Response(status=303, headers={"Location": "/"})
            answer.set_cookie(_COOKIE, self._session, httponly=True, samesite="Strict", path="/")
            return answer
        known = request.cookies.get(_COOKIE, "")
        if not self._session or not secrets.compare_digest(known.encode(), self._session.encode()):
            return _text(403, _AGAIN)
        return None

    async def _index(self, _: web.Request) -> web.Response:
        return web.Response(text=_read("index.html"), content_type="text/html")

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in _FILES:
            raise web.HTTPNotFound
        return web.Response(text=_read(name), content_type=_FILES[name])

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """The board as server-sent events; a comment where nothing has changed for a while."""
        answer = web.StreamResponse(headers={**_HEADERS, "Content-Type": "text/event-stream"})
        await answer.prepare(request)
        try:
            async for view in self._board.follow(silent_s=SILENT_S):
                await answer.write(f"data: {view}\n\n".encode() if view else b": nothing new\n\n")
        except ConnectionResetError:
            # The browser has gone, as it may at any time.
            pass
        return answer


def _read(name: str) -> str:
    return files("gangsched.page").joinpath("static", name).read_text(encoding="utf-8")


def _text(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=text)
