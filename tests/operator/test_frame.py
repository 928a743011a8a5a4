from __future__ import annotations

import asyncio
import json
import signal
from functools import partial
from itertools import islice

import aiohttp
import kopf
import pytest
from aiohttp import web

from gangsched.core.model import Group
from gangsched.operator.frame import WatchEnded, make_settings, run_kopf
from gangsched.operator.handlers import make_registry, report_gaps


def test_the_settings_keep_kopf_from_writing_and_from_throttling_new_podgroups():
    settings = make_settings()
    assert settings.posting.enabled is False
    assert settings.peering.standalone is True
    assert settings.scanning.disabled is True
    assert settings.queueing.worker_limit is None


def test_an_outage_of_the_api_server_is_outlasted():
    backoffs = make_settings().networking.error_backoffs
    assert not isinstance(backoffs, float | int)
    assert sum(islice(backoffs, 1000)) > 3600
    assert sum(islice(backoffs, 3)) < 10, "every request begins anew with short pauses"


async def test_whatever_ends_kopf_is_told_as_the_end_of_the_watch(monkeypatch):
    async def operator(**_: object) -> None:
        raise RuntimeError("404 page not found")

    monkeypatch.setattr(kopf, "operator", operator)
    with pytest.raises(WatchEnded, match=r"podgroups.gangsched.io has ended \(RuntimeError: 404 page not found\)"):
        await run_kopf(kopf.OperatorRegistry(), ready=asyncio.Event(), stop=asyncio.Event())


class FakeApi:
    """As much of an API server as kopf needs to watch PodGroups; the test says what the watch brings."""

    def __init__(self) -> None:
        self.watch: asyncio.Queue[bytes] = asyncio.Queue()
        self.written: list[str] = []

    def app(self) -> web.Application:
        app = web.Application()
        group = {"groupVersion": "gangsched.io/v1alpha1", "version": "v1alpha1"}
        for path, answer in {
            "/api": {"versions": ["v1"]},
            "/api/v1": _resources(("namespaces", "Namespace"), ("events", "Event")),
            "/apis": {"groups": [{"name": "gangsched.io", "versions": [group], "preferredVersion": group}]},
            "/apis/gangsched.io/v1alpha1": _resources(("podgroups", "PodGroup")),
        }.items():
            app.router.add_get(path, partial(self._static, answer))
        app.router.add_get("/apis/gangsched.io/v1alpha1/podgroups", self._podgroups)
        app.router.add_route("*", "/{path:.*}", self._other)
        return app

    async def _static(self, answer: dict, _: web.Request) -> web.Response:
        return web.json_response(answer)

    async def _other(self, request: web.Request) -> web.Response:
        if request.method != "GET":
            self.written.append(f"{request.method} {request.path}")
        return web.json_response({"code": 404}, status=404)

    async def _podgroups(self, request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return web.json_response({"metadata": {"resourceVersion": "7"}, "items": [podgroup("listed")]})
        answer = web.StreamResponse()
        await answer.prepare(request)
        while line := await self.watch.get():
            await answer.write(line + b"\n")
        return answer

    def bring(self, kind: str, name: str) -> None:
        self.watch.put_nowait(json.dumps({"type": kind, "object": podgroup(name)}).encode())


def _resources(*names: tuple[str, str]) -> dict:
    verbs = ["get", "list", "watch", "patch", "create"]
    return {
        "resources": [
            {"name": plural, "singularName": kind.lower(), "kind": kind, "namespaced": True, "verbs": verbs}
            for plural, kind in names
        ]
    }


def podgroup(name: str) -> dict:
    return {
        "apiVersion": "gangsched.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "team", "uid": f"uid-{name}", "resourceVersion": "5"},
        "spec": {"minMember": 2},
    }


class Feed:
    def __init__(self) -> None:
        self.told: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    def seen(self, group: Group) -> None:
        self.told.put_nowait(("seen", group.key.name))

    def gone(self, group: Group) -> None:
        self.told.put_nowait(("gone", group.key.name))

    async def next(self) -> tuple[str, str]:
        return await asyncio.wait_for(self.told.get(), 20)


async def test_kopf_tells_what_it_sees_writes_nothing_and_ends_when_told_to_without_touching_older_tasks():
    api, feed, gaps = FakeApi(), Feed(), asyncio.Event()
    runner = web.AppRunner(api.app(), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()

    def make_client() -> aiohttp.ClientSession:
        client = aiohttp.ClientSession()
        report_gaps(client, gaps.set)
        return client

    survivor = asyncio.create_task(asyncio.Event().wait())
    await asyncio.sleep(0)
    ready, stop = asyncio.Event(), asyncio.Event()
    server = f"http://127.0.0.1:{runner.addresses[0][1]}"
    registry = make_registry(feed, server=server, make_client=make_client)
    running = asyncio.create_task(run_kopf(registry, ready=ready, stop=stop))
    try:
        await asyncio.wait_for(ready.wait(), 20)
        assert await feed.next() == ("seen", "listed")
        await asyncio.wait_for(gaps.wait(), 20)
        api.bring("ADDED", "new")
        assert await feed.next() == ("seen", "new")
        api.bring("DELETED", "new")
        assert await feed.next() == ("gone", "new")
        api.watch.put_nowait(b"")
    finally:
        # The server's connections are tasks too, and kopf would wait for them.
        await runner.cleanup()
        stop.set()
        await asyncio.wait_for(running, 30)
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().remove_signal_handler(number)
    assert api.written == []
    assert not survivor.done()
    survivor.cancel()
    await asyncio.gather(survivor, return_exceptions=True)
