"""kopf in its thread, against a minimal API server that runs on the test's event loop."""

from __future__ import annotations

import asyncio
import copy
import json
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice
from typing import Any

import pytest
from aiohttp import web

from gangsched.api.crd import NAME, crd
from gangsched.kube.client.credentials import Connection
from gangsched.kube.client.session import ApiSession
from gangsched.operator.kopf_thread import KopfThread

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
LACKING = "spec.minMember"


def test_the_settings_keep_kopf_from_writing_and_from_ending_the_process():
    from gangsched.operator.handlers import make_settings

    settings = make_settings()
    assert settings.posting.enabled is False
    assert settings.peering.standalone is True
    assert settings.scanning.disabled is True
    assert settings.queueing.worker_limit is None
    assert settings.process.ultimate_exiting_timeout is None


def test_an_outage_of_the_api_server_is_outlasted():
    from gangsched.operator.handlers import make_settings

    backoffs = make_settings().networking.error_backoffs
    assert not isinstance(backoffs, float | int)
    assert sum(islice(backoffs, 1000)) > 3600
    assert sum(islice(backoffs, 3)) < 10, "every request begins anew with short pauses"


def installed(version: int, *, old: bool = False) -> dict[str, Any]:
    """Our CustomResourceDefinition; an old one lacks a field."""
    found = copy.deepcopy(crd())
    found["metadata"] |= {"uid": "u", "resourceVersion": str(version)}
    if old:
        del found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["minMember"]
    return found


class FakeApi:
    """Serves CustomResourceDefinitions. `lists` and `watches` hold the next refusals; later calls succeed."""

    def __init__(self) -> None:
        self.lists: deque[int] = deque()
        self.watches: deque[int | dict] = deque()
        self.asked: list[str] = []
        self.lines: asyncio.Queue[bytes] = asyncio.Queue()

    def app(self) -> web.Application:
        app = web.Application()
        group = {"groupVersion": "apiextensions.k8s.io/v1", "version": "v1"}
        for path, answer in {
            "/api": {"versions": ["v1"]},
            "/api/v1": _resources(("namespaces", "Namespace"), ("events", "Event")),
            "/apis": {"groups": [{"name": "apiextensions.k8s.io", "versions": [group], "preferredVersion": group}]},
            "/apis/apiextensions.k8s.io/v1": _resources(("customresourcedefinitions", "CustomResourceDefinition")),
        }.items():
            app.router.add_get(path, partial(self._static, answer))
        app.router.add_get(CRDS, self._crds)
        app.router.add_route("*", "/{path:.*}", self._other)
        return app

    async def _static(self, answer: dict, _: web.Request) -> web.Response:
        return web.json_response(answer)

    async def _other(self, request: web.Request) -> web.Response:
        self.asked.append(f"{request.method} {request.path}")
        return _status(404)

    async def _crds(self, request: web.Request) -> web.StreamResponse:
        assert request.query["fieldSelector"] == f"metadata.name={NAME}"
        if "watch" not in request.query:
            self.asked.append("list")
            return (
                _status(self.lists.popleft())
                if self.lists
                else web.json_response({"metadata": {"resourceVersion": "7"}, "items": [installed(5, old=True)]})
            )
        self.asked.append("watch")
        refused = self.watches.popleft() if self.watches else None
        if isinstance(refused, int):
            return _status(refused)
        answer = web.StreamResponse()
        await answer.prepare(request)
        if refused is not None:
            await answer.write(json.dumps(refused).encode() + b"\n")
            return answer
        while line := await self.lines.get():
            await answer.write(line + b"\n")
        return answer


def _resources(*names: tuple[str, str]) -> dict:
    verbs = ["get", "list", "watch", "patch", "create"]
    return {
        "resources": [
            {"name": plural, "singularName": kind.lower(), "kind": kind, "namespaced": False, "verbs": verbs}
            for plural, kind in names
        ]
    }


def _status(code: int) -> web.Response:
    return web.json_response({"kind": "Status", "code": code, "message": "no"}, status=code)


async def _nobody() -> str | None:
    return None


@asynccontextmanager
async def framed(api: FakeApi | None, told: Callable[[list[str]], None]) -> AsyncIterator[None]:
    server, runner = "http://127.0.0.1:1", None
    if api is not None:
        runner = web.AppRunner(api.app(), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        server = f"http://127.0.0.1:{runner.addresses[0][1]}"
    made = partial(ApiSession, Connection(server=server, authorization=_nobody))
    thread = KopfThread(made, on_crd=told, begin_s=0.0, pause_s=0.05)
    thread.start()
    try:
        yield
    finally:
        began = time.monotonic()
        await thread.stop()
        took_s = time.monotonic() - began
        if runner is not None:
            await runner.cleanup()
        assert took_s < 10


def alive() -> bool:
    return any(thread.name == "kopf" for thread in threading.enumerate())


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - it is another thread that is waited for
            await asyncio.sleep(0.02)


async def test_it_tells_what_is_installed_writes_nothing_and_ends():
    api = FakeApi()
    told: list[list[str]] = []
    async with framed(api, told.append) as _:
        await until(lambda: told == [[LACKING]])
        api.lines.put_nowait(json.dumps({"type": "MODIFIED", "object": installed(8)}).encode())
        await until(lambda: told[1:] == [[]])
        api.lines.put_nowait(json.dumps({"type": "DELETED", "object": installed(9, old=True)}).encode())
        await until(lambda: told[2:] == [[]])
    await until(lambda: not alive())
    assert set(api.asked) == {"list", "watch"}


ERROR_500 = {"type": "ERROR", "object": {"kind": "Status", "code": 500, "reason": "InternalError"}}
ERROR_410 = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}


@pytest.mark.parametrize(
    ("lists", "watches"),
    [
        *(([code], []) for code in (401, 403, 404, 500)),
        *(([], [answer]) for answer in (403, 404, ERROR_500, ERROR_410)),
    ],
    ids=["401", "403", "404", "500", "watch 403", "watch 404", "ERROR 500", "ERROR 410"],
)
@pytest.mark.slow
async def test_whatever_the_server_answers_kopf_is_begun_again(lists, watches, caplog):
    api = FakeApi()
    told: list[list[str]] = []
    api.lists.extend(lists)
    api.watches.extend(watches)
    async with framed(api, told.append) as _:
        await until(lambda: not api.lists and not api.watches and told[:1] == [[LACKING]])
        known = len(told)
        api.lines.put_nowait(json.dumps({"type": "MODIFIED", "object": installed(99)}).encode())
        await until(lambda: len(told) > known and told[-1] == [])
        assert alive()
    assert set(api.asked) <= {"list", "watch"}
    ended = [record for record in caplog.records if record.message.startswith("the watch of our Custom")]
    assert len(ended) <= 1, "the same failure is told once"


@pytest.mark.slow
async def test_without_a_server_it_waits_and_still_ends():
    told: list[list[str]] = []
    async with framed(None, told.append) as _:
        await asyncio.sleep(0.5)
        assert alive()
    assert told == []


async def test_it_begins_some_time_after_the_start_and_ends_at_once_before_it():
    tried = threading.Event()

    def open_session() -> ApiSession:
        tried.set()
        raise OSError("no")

    soon, later = (KopfThread(open_session, on_crd=lambda _: None, begin_s=begin_s) for begin_s in (0.2, 60.0))
    began = time.monotonic()
    later.start()
    soon.start()
    await until(tried.is_set)
    assert time.monotonic() - began >= 0.2
    tried.clear()
    await later.stop()
    await soon.stop()
    assert time.monotonic() - began < 10
    assert not tried.is_set()


@pytest.mark.slow
def test_until_then_it_is_not_even_imported():
    code = "import sys, gangsched.app; sys.exit('kopf' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_a_fault_in_it_is_told_and_ends_nobody(caplog):
    failures = iter([RuntimeError("a\nbug"), RuntimeError("a\nbug"), OSError("another")])
    tried = threading.Event()

    def open_session() -> ApiSession:
        try:
            raise next(failures)
        except StopIteration:
            tried.set()
            raise OSError("another") from None

    thread = KopfThread(open_session, on_crd=lambda _: None, begin_s=0.0, pause_s=0.01)
    thread.start()
    await until(tried.is_set)
    await thread.stop()
    assert [vars(record)["error"] for record in caplog.records] == ["RuntimeError: a\\nbug", "OSError: another"]
