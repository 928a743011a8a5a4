"""kopf in its thread, against a minimal API server that runs on the test's event loop."""

from __future__ import annotations

import asyncio
import copy
import gc
import json
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, pairwise
from typing import Any, cast

import pytest
from aiohttp import web

from gangsched.api.custom_resource import crd
from gangsched.api.podgroup_names import NAME
from gangsched.config.pod_groups import MOST_A_SECOND
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.events import GroupExpired
from gangsched.kube.client.credentials import Connection
from gangsched.kube.client.session import ApiSession
from gangsched.operator.finished import SELECTOR
from gangsched.operator.kopf_thread import PAUSE_S, KopfThread, note_left_error
from gangsched.operator.memo import Deletion
from tests.operator.groups import podgroup

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PODGROUPS = "/apis/gangsched.io/v1alpha1/podgroups"
LACKING = "spec.minMember"


def test_the_settings_keep_kopf_from_writing_and_from_ending_the_process():
    from gangsched.operator.kopf_settings import make_settings

    settings = make_settings()
    assert settings.posting.enabled is False
    assert settings.peering.standalone is True
    assert settings.scanning.disabled is True
    assert settings.process.ultimate_exiting_timeout is None
    assert settings.persistence.finalizer == "gangsched.io/none", "kopf removes a finalizer of this name"


def test_nothing_of_an_object_is_copied_to_find_differences():
    import kopf

    from gangsched.operator.kopf_settings import make_settings

    storage, group = make_settings().persistence.diffbase_storage, kopf.Body(cast("kopf.RawBody", podgroup()))
    patch = kopf.Patch(body=group)
    storage.store(body=group, patch=patch, essence=storage.build(body=group))
    assert (storage.build(body=group, extra_fields=["spec"]), storage.fetch(body=group), dict(patch)) == ({}, None, {})


def test_an_outage_of_the_api_server_is_outlasted():
    from gangsched.operator.kopf_settings import make_settings

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
    """Serves CustomResourceDefinitions and PodGroups, each with its own `Kind`. `writes` are requests to write."""

    def __init__(self) -> None:
        self.crds = Kind(f"metadata.name={NAME}", [installed(5, old=True)])
        self.groups = Kind(SELECTOR, [])
        self.asked: list[str] = []

    def app(self) -> web.Application:
        app = web.Application()
        for path, answer in {
            "/api": {"versions": ["v1"]},
            "/api/v1": _resources(("namespaces", "Namespace"), ("events", "Event")),
            "/apis": {"groups": [_group("apiextensions.k8s.io", "v1"), _group("gangsched.io", "v1alpha1")]},
            "/apis/apiextensions.k8s.io/v1": _resources(("customresourcedefinitions", "CustomResourceDefinition")),
            "/apis/gangsched.io/v1alpha1": _resources(("podgroups", "PodGroup")),
        }.items():
            app.router.add_get(path, partial(self._static, answer))
        app.router.add_get(CRDS, self.crds.answer)
        app.router.add_get(PODGROUPS, self.groups.answer)
        app.router.add_route("*", "/{path:.*}", self._other)
        return app

    async def _static(self, answer: dict, _: web.Request) -> web.Response:
        return web.json_response(answer)

    async def _other(self, request: web.Request) -> web.Response:
        self.asked.append(f"{request.method} {request.path}")
        return _status(404)


@dataclass
class Kind:
    """A kind of objects. `lists` and `watches` hold the next answers that are no success; `lines` those of watches."""

    selector: str
    items: list[dict[str, Any]]
    lists: deque[int] = field(default_factory=deque)
    watches: deque[int | bytes] = field(default_factory=deque)
    asked: list[str] = field(default_factory=list)
    lines: asyncio.Queue[bytes] = field(default_factory=asyncio.Queue)
    knows_field: bool = True

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("limit") == "1":
            return web.json_response({"items": []}) if self.knows_field else _status(400)
        assert request.query.get("fieldSelector") == (self.selector if self.knows_field else None)
        if "watch" not in request.query:
            self.asked.append("list")
            return (
                _status(self.lists.popleft())
                if self.lists
                else web.json_response({"metadata": {"resourceVersion": "7"}, "items": self.items})
            )
        self.asked.append("watch")
        refused = self.watches.popleft() if self.watches else None
        if isinstance(refused, int):
            return _status(refused)
        answer = web.StreamResponse()
        await answer.prepare(request)
        if refused is not None:
            await answer.write(refused + b"\n")
            return answer
        while line := await self.lines.get():
            await answer.write(line + b"\n")
        return answer


def _group(name: str, version: str) -> dict:
    served = {"groupVersion": f"{name}/{version}", "version": version}
    return {"name": name, "versions": [served], "preferredVersion": served}


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
async def framed(
    api: FakeApi | None,
    told: Callable[[list[str]], None] = lambda _: None,
    deletion: Deletion | None = None,
    pause_s: float = 0.05,
) -> AsyncIterator[None]:
    server, runner = "http://127.0.0.1:1", None
    if api is not None:
        runner = web.AppRunner(api.app(), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        server = f"http://127.0.0.1:{runner.addresses[0][1]}"
    made = partial(ApiSession, Connection(server=server, authorization=_nobody))
    thread = KopfThread(made, on_crd=told, deletion=deletion, pause_s=pause_s)
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
        api.crds.lines.put_nowait(json.dumps({"type": "MODIFIED", "object": installed(8)}).encode())
        await until(lambda: told[1:] == [[]])
        api.crds.lines.put_nowait(json.dumps({"type": "DELETED", "object": installed(9, old=True)}).encode())
        await until(lambda: told[2:] == [[]])
    await until(lambda: not alive())
    assert api.asked == []
    assert api.groups.asked == []


def error(code: int, reason: str) -> bytes:
    return json.dumps({"type": "ERROR", "object": {"kind": "Status", "code": code, "reason": reason}}).encode()


ERROR_500, ERROR_410, GARBAGE = error(500, "InternalError"), error(410, "Expired"), b"{no json"
FAULTS = {
    **{str(code): ([code], []) for code in (401, 403, 404, 410, 500)},
    **{f"watch {code}": ([], [code]) for code in (401, 403, 404, 410, 500)},
    "ERROR 500": ([], [ERROR_500]),
    "ERROR 410": ([], [ERROR_410]),
    "garbage": ([], [GARBAGE]),
}


@pytest.mark.parametrize(("lists", "watches"), FAULTS.values(), ids=FAULTS)
@pytest.mark.slow
async def test_whatever_the_server_answers_kopf_is_begun_again(lists, watches, caplog):
    api = FakeApi()
    told: list[list[str]] = []
    api.crds.lists.extend(lists)
    api.crds.watches.extend(watches)
    async with framed(api, told.append) as _:
        await until(lambda: not api.crds.lists and not api.crds.watches and told[:1] == [[LACKING]])
        known = len(told)
        api.crds.lines.put_nowait(json.dumps({"type": "MODIFIED", "object": installed(99)}).encode())
        await until(lambda: len(told) > known and told[-1] == [])
        assert alive()
    assert api.asked == []
    ended = [record for record in caplog.records if record.message.startswith("kopf has ended")]
    assert len(ended) <= 1, "the same failure is told once"


@pytest.mark.parametrize(("lists", "watches"), FAULTS.values(), ids=FAULTS)
@pytest.mark.slow
async def test_whatever_ends_kopf_finished_groups_go_on_being_reported(lists, watches):
    api, posted = FakeApi(), list[GroupExpired]()
    api.groups.lists.extend(lists)
    api.groups.watches.extend(watches)
    api.groups.items = [podgroup("a", ttl="1s")]
    deletion = Deletion(default_ttl_s=None, leads=lambda: True, post=posted.extend)
    began = time.monotonic()
    async with framed(api, deletion=deletion, pause_s=PAUSE_S):
        await until(lambda: not api.groups.lists and not api.groups.watches and bool(posted))
        api.groups.lines.put_nowait(json.dumps({"type": "ADDED", "object": podgroup("b", ttl="1s")}).encode())
        await until(lambda: any(each.key.name == "b" for each in posted))
        # The bar of an idle machine is 15 s.
        assert time.monotonic() - began < 30
    assert api.asked == [], "kopf has written"


@pytest.mark.slow
async def test_a_server_that_does_not_know_the_field_gets_the_watch_without():
    api, posted = FakeApi(), list[GroupExpired]()
    api.groups.knows_field = False
    api.groups.items = [podgroup("a"), podgroup("b", phase="Running"), podgroup("c", phase=None)]
    async with framed(api, deletion=Deletion(default_ttl_s=1.0, leads=lambda: True, post=posted.extend)):
        await until(lambda: bool(posted))
    assert posted == [GroupExpired(GroupKey("team", "a"), "uid-a", "7")]


@pytest.mark.slow
async def test_many_at_once_cost_no_more_than_a_share_of_the_time_and_go_at_a_limited_rate():
    api, posted = FakeApi(), list[tuple[float, int]]()
    api.groups.items = [podgroup(f"g{number}") for number in range(200)]

    def post(expired: list[GroupExpired]) -> None:
        posted.append((time.monotonic(), len(expired)))

    async with framed(api, deletion=Deletion(default_ttl_s=1.0, leads=lambda: True, post=post)):
        await until(lambda: sum(count for _, count in posted) >= 3 * MOST_A_SECOND)
    assert max(count for _, count in posted) == MOST_A_SECOND
    assert all(after - before >= 0.9 for (before, _), (after, _) in pairwise(posted))


@pytest.mark.slow
async def test_without_a_server_it_waits_and_still_ends():
    told: list[list[str]] = []
    async with framed(None, told.append) as _:
        await asyncio.sleep(0.5)
        assert alive()
    assert told == []


async def test_it_begins_after_a_pause_in_which_it_can_be_stopped() -> None:
    """Its import and start would take processor time just when all groups wait for bindings."""
    tried: list[float] = []

    def open_session() -> ApiSession:
        tried.append(time.monotonic())
        raise OSError("no")

    for pause_s, least in ((60.0, 0), (0.2, 1)):
        thread = KopfThread(open_session, on_crd=lambda _: None, pause_s=pause_s)
        began = time.monotonic()
        thread.start()
        await until(lambda: len(tried) >= least)  # noqa: B023 - called at once
        await thread.stop()
        assert time.monotonic() - began < 10
        assert all(at - began >= pause_s for at in tried)
    assert tried


@pytest.mark.slow
def test_the_import_of_the_operator_does_not_wait_for_kopf():
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

    thread = KopfThread(open_session, on_crd=lambda _: None, pause_s=0.01)
    thread.start()
    await until(tried.is_set)
    await thread.stop()
    assert [vars(record)["error"] for record in caplog.records] == ["RuntimeError: a\\nbug", "OSError: another"]


async def test_the_error_of_a_task_that_kopf_has_left_is_no_error_in_the_log(caplog):
    """Regression: where the API server died twice, "Task exception was never retrieved" was logged with a traceback."""

    async def fail() -> None:
        raise OSError("the connection is lost")

    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    loop.set_exception_handler(note_left_error)
    try:
        left = asyncio.create_task(fail())
        await asyncio.wait({left})
        del left
        gc.collect()
        told = [record.levelname for record in caplog.records]
        loop.call_exception_handler({"message": "a callback has failed"})
    finally:
        loop.set_exception_handler(before)
    assert "ERROR" not in told
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == ["a callback has failed"]
