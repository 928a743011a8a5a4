"""Which requests the page answers, and how."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from gangsched.page.board import Board
from gangsched.page.listener import Listener
from gangsched.page.server import MOST_BROWSERS, MOST_BYTES, Page

HEAD = {"head": b'{"summary":"0 groups"}'}
NOW = 1_795_167_660.5
AGAIN = "Open the printed address."


class Echo:
    async def tried(self, manifests: bytes) -> dict[str, object]:
        return {"bytes": len(manifests)}

    async def helps(self, namespace: str, name: str) -> dict[str, object]:
        return {"of": [namespace, name]}


@dataclass
class Served:
    board: Board
    page: Page
    client: aiohttp.ClientSession
    port: int

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def get(self, path: str, method: str = "GET", body: bytes = b"", **headers: str) -> tuple[int, str]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.client.request(
            method, self.base + path, headers=named, data=io.BytesIO(body) if body else None, allow_redirects=False
        ) as answer:
            return answer.status, await answer.text()

    async def enter(self) -> None:
        assert (await self.get(f"/?token={self.page.token}"))[0] == 303


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    board = Board()
    board.show(HEAD)
    page = Page(board, again=AGAIN, what_if=Echo(), now=lambda: NOW)
    listener = Listener(page)
    port = await listener.start(0)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
        yield Served(board, page, client, port)
    await listener.close()


async def line(events: aiohttp.ClientResponse) -> dict[str, Any]:
    said = b""
    while not said.startswith(b"data: "):
        said = await asyncio.wait_for(events.content.readuntil(b"\n\n"), 5)
    found: dict[str, Any] = json.loads(said.removeprefix(b"data: "))
    return found


@pytest.mark.parametrize("path", ["/", "/main.js", "/page.css", "/events", "/?token=", "/?token=wrong", "/?token=é"])
async def test_without_the_token_nothing_is_shown(served, path):
    status, text = await served.get(path)
    assert status == 403
    assert text == f"{AGAIN}\n"


async def test_the_token_is_good_for_one_exchange(served):
    token = served.page.token
    await served.enter()
    served.client.cookie_jar.clear()
    assert (await served.get(f"/?token={token}"))[0] == 403
    assert served.page.token == ""


async def test_after_the_exchange_the_page_its_files_and_its_events_are_there(served):
    await served.enter()
    for path, begins in (("/", "<!doctype html>"), ("/page.css", "/* One"), ("/main.js", "// Starts")):
        status, text = await served.get(path)
        assert status == 200
        assert text.startswith(begins)
    async with served.client.get(f"{served.base}/events") as events:
        assert events.content_type == "text/event-stream"
        assert await line(events) == {"whole": True, "set": {"head": {"summary": "0 groups"}}, "gone": []}
        served.board.show({**HEAD, "node/a": b"1"})
        assert await line(events) == {"whole": False, "set": {"node/a": 1}, "gone": []}


async def test_a_browser_hears_that_the_page_lives_though_nothing_changes(served, monkeypatch):
    monkeypatch.setattr("gangsched.page.server.SILENT_S", 0.05)
    await served.enter()
    async with served.client.get(f"{served.base}/events") as events:
        first = await events.content.readuntil(b"\n\n")
        await line(events)
        for said in (first, await events.content.readuntil(b"\n\n")):
            kind, data = said.decode().split("\n", 1)
            assert (kind, float(data.removeprefix("data: "))) == ("event: alive", NOW)


@pytest.mark.parametrize(
    "path", ["/../server.py", "/server.py", "/static/main.js", "/%2e%2e%2fboard.py", "/etc/passwd"]
)
async def test_no_other_file_is_there(served, path):
    await served.enter()
    assert (await served.get(path))[0] == 404


@pytest.mark.parametrize(
    "host", ["evil.example.com", "evil.example.com:80", "127.0.0.1", "[::1]:80", "127.0.0.1.evil.example.com:80"]
)
async def test_a_request_for_another_host_is_refused(served, host):
    await served.enter()
    assert (await served.get("/", Host=host))[0] == 403


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1:99999\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x00\x1b[2J\r\n\r\n",
    ],
)
async def test_what_is_no_request_is_refused_and_not_logged(served, sent, caplog):
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(sent)
    async with asyncio.timeout(10):
        assert (await reader.readline()).split()[1] in (b"400", b"403")
    writer.close()
    assert not [record for record in caplog.records if record.name != "asyncio"]


async def test_a_failure_of_ours_is_logged_and_told(served, caplog, monkeypatch):
    await served.enter()
    monkeypatch.setattr("gangsched.page.server._read", lambda _: 1 / 0)
    assert await served.get("/") == (500, "The request failed, which is a bug: see the log.\n")
    assert "an answer of the page failed" in caplog.text


async def test_what_a_browser_does_not_wait_for_any_more_is_given_up(served, monkeypatch):
    given_up = asyncio.Event()

    async def helps(*_: str) -> dict[str, object]:
        try:
            await asyncio.sleep(60)
        finally:
            given_up.set()
        return {}

    monkeypatch.setattr(served.page, "_what_if", type("Slow", (), {"helps": staticmethod(helps)}))
    await served.enter()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(served.get("/helps/team/a"), 0.5)
    await asyncio.wait_for(given_up.wait(), 10)


async def test_connections_beyond_the_most_are_closed_at_once():
    """A user who may forward the operator's ports must not exhaust its file descriptors."""
    listener = Listener(Page(Board(), again=AGAIN, what_if=Echo()), most_connections=3)
    port = await listener.start(0)
    silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
    await asyncio.sleep(0.1)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    assert await asyncio.wait_for(reader.read(), 5) == b""
    writer.close()
    for _, each in silent:
        each.close()
    await asyncio.sleep(0.1)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    assert (await asyncio.wait_for(reader.readline(), 5)).split()[1] == b"403"
    writer.close()
    await listener.close()


@pytest.mark.parametrize("origin", ["http://evil.example.com", "null", "https://127.0.0.1", "http://localhost:1"])
async def test_a_request_of_another_page_is_refused(served, origin):
    await served.enter()
    assert (await served.get("/events", Origin=origin))[0] == 403
    assert (await served.get("/main.js", Sec_Fetch_Site="cross-site"))[0] == 403


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
async def test_nothing_can_be_changed(served, method):
    await served.enter()
    assert (await served.get("/events", method))[0] == 405


@pytest.mark.parametrize("path", ["/", "/main.js", "/events", "/nothing", "/?token=wrong"])
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


async def test_a_manifest_is_tried_for_this_page_alone(served):
    good = {"Origin": served.base, "Content_Type": "application/yaml"}
    assert (await served.get("/what-if", "POST", b"kind: Pod", **good))[0] == 403
    await served.enter()
    assert await served.get("/what-if", "POST", b"kind: Pod", **good) == (200, '{"bytes":9}')
    for wrong in ({"Origin": "http://evil.example.com"}, {"Content_Type": "text/plain"}):
        assert (await served.get("/what-if", "POST", b"kind: Pod", **{**good, **wrong}))[0] == 403
    del good["Origin"]
    assert (await served.get("/what-if", "POST", b"kind: Pod", **good))[0] == 403


async def test_what_would_help_a_group_is_asked_by_its_name(served):
    assert (await served.get("/helps/team/a"))[0] == 403
    await served.enter()
    assert await served.get("/helps/team/a%2Fb%22") == (200, '{"of":["team","a/b\\""]}')


async def test_a_manifest_that_is_too_large_is_refused_with_a_sentence(served):
    await served.enter()
    large = b"#" * (MOST_BYTES + 1)
    status, text = await served.get("/what-if", "POST", large, Origin=served.base, Content_Type="application/yaml")
    assert (status, text) == (413, "The manifest is larger than 1 MiB: try a part of it.\n")


async def test_a_page_whose_token_is_renewed_is_good_for_further_browsers(served):
    told: list[str] = []
    served.page = page = Page(served.board, again=AGAIN, what_if=Echo(), renewed=told.append)
    listener = Listener(page)
    port = await listener.start(0)
    served.port = port
    first = page.token
    await served.enter()
    assert told == [page.token]
    assert page.token not in ("", first)
    assert (await served.get("/"))[0] == 200
    served.client.cookie_jar.clear()
    assert (await served.get(f"/?token={first}"))[0] == 403
    await served.enter()
    assert (await served.get("/"))[0] == 200
    await listener.close()


async def test_no_more_pages_follow_than_the_process_can_bear(served):
    await served.enter()
    streams = [await served.client.get(f"{served.base}/events") for _ in range(MOST_BROWSERS)]
    assert {stream.status for stream in streams} == {200}
    assert (await served.get("/events")) == (503, f"{MOST_BROWSERS} pages are open: close one and try again.\n")
    for stream in streams:
        stream.close()
    async with asyncio.timeout(5):
        while (await served.get("/page.css"))[0] != 200 or served.board.followers:
            served.board.note("tick", str(asyncio.get_running_loop().time()).encode())
            await asyncio.sleep(0.02)
