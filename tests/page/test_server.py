"""Who is answered by the page, and with what."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

import aiohttp
import pytest
from aiohttp import web

from gangsched.page.board import Board
from gangsched.page.server import Page

VIEW = json.dumps({"groups": [], "nodes": [], "summary": "0 groups", "hidden": None, "trouble": None})


@dataclass
class Served:
    board: Board
    page: Page
    client: aiohttp.ClientSession
    port: int

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def get(self, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.client.request(method, self.base + path, headers=named, allow_redirects=False) as answer:
            return answer.status, await answer.text()

    async def enter(self) -> None:
        assert (await self.get(f"/?token={self.page.token}"))[0] == 303


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    board = Board()
    board.show(VIEW)
    page = Page(board)
    runner = web.AppRunner(page.application(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
        yield Served(board, page, client, runner.addresses[0][1])
    await runner.cleanup()


@pytest.mark.parametrize("path", ["/", "/page.js", "/page.css", "/events", "/?token=", "/?token=wrong", "/?token=é"])
async def test_without_the_token_nothing_is_shown(served, path):
    status, text = await served.get(path)
    assert status == 403
    assert "Open the address that gangsched dashboard has printed" in text


async def test_the_token_is_good_for_one_exchange(served):
    token = served.page.token
    await served.enter()
    served.client.cookie_jar.clear()
    assert (await served.get(f"/?token={token}"))[0] == 403
    assert served.page.token == ""


async def test_after_the_exchange_the_page_its_files_and_its_events_are_there(served):
    await served.enter()
    for path, begins in (("/", "<!doctype html>"), ("/page.css", ":root"), ("/page.js", '"use strict";')):
        status, text = await served.get(path)
        assert status == 200
        assert text.startswith(begins)
    async with served.client.get(f"{served.base}/events") as events:
        assert events.content_type == "text/event-stream"
        assert await events.content.readuntil(b"\n\n") == f"data: {VIEW}\n\n".encode()
        served.board.show("{}")
        assert await events.content.readuntil(b"\n\n") == b"data: {}\n\n"


@pytest.mark.parametrize(
    "path", ["/../server.py", "/server.py", "/static/page.js", "/%2e%2e%2fboard.py", "/etc/passwd"]
)
async def test_no_other_file_is_there(served, path):
    await served.enter()
    assert (await served.get(path))[0] == 404


@pytest.mark.parametrize("host", ["evil.example.com", "evil.example.com:80", "127.0.0.1", "127.0.0.1:1", "[::1]:80"])
async def test_a_request_for_another_host_is_refused(served, host):
    await served.enter()
    assert (await served.get("/", Host=host))[0] == 403


@pytest.mark.parametrize("origin", ["http://evil.example.com", "null", "https://127.0.0.1", "http://localhost:1"])
async def test_a_request_of_another_page_is_refused(served, origin):
    await served.enter()
    assert (await served.get("/events", Origin=origin))[0] == 403
    assert (await served.get("/page.js", Sec_Fetch_Site="cross-site"))[0] == 403


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
async def test_nothing_can_be_changed(served, method):
    await served.enter()
    assert (await served.get("/events", method))[0] == 405


@pytest.mark.parametrize("path", ["/", "/page.js", "/events", "/nothing", "/?token=wrong"])
async def test_every_answer_carries_the_policy(served, path):
    if "wrong" not in path:
        await served.enter()
    async with served.client.get(served.base + path) as answer:
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none';")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cache-Control"] == "no-store"


async def test_the_cookie_is_out_of_reach_of_scripts_and_of_other_pages(served):
    async with served.client.get(f"{served.base}/?token={served.page.token}", allow_redirects=False) as answer:
        cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie


async def test_who_follows_hears_something_though_nothing_changes():
    board = Board()
    board.show("1")
    heard = board.follow(silent_s=0.01)
    assert [await anext(heard), await anext(heard)] == ["1", ""]
    board.show("1")
    assert await anext(heard) == ""
    board.show("2")
    assert await anext(heard) == "2"


async def test_who_is_slow_misses_what_is_outdated_and_nothing_else():
    board = Board()
    heard = board.follow(silent_s=60)
    board.show("1")
    assert await anext(heard) == "1"
    board.show("2")
    board.show("3")
    assert await asyncio.wait_for(anext(heard), 5) == "3"
