from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aiohttp
import kopf
import pytest
from aiohttp import web

from gangsched.core.model import Group
from gangsched.operator.handlers import make_registry, report_gaps

LISTING = "/apis/gangsched.io/v1alpha1/podgroups"


class FakeFeed:
    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def seen(self, group: Group) -> None:
        self.told.append(("seen", str(group.key)))

    def gone(self, group: Group) -> None:
        self.told.append(("gone", str(group.key)))


def podgroup(name: str = "train") -> Mapping[str, Any]:
    return {
        "apiVersion": "gangsched.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"uid-{name}",
            "resourceVersion": "5",
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"minMember": 2},
    }


def registry_for(feed: FakeFeed, make_client=aiohttp.ClientSession) -> kopf.OperatorRegistry:
    return make_registry(feed, server="https://api:6443", make_client=make_client)


def only_handler(registry: kopf.OperatorRegistry, kind: str):
    (handler,) = getattr(registry, kind).get_all_handlers()
    return handler


@pytest.mark.parametrize(
    ("event_type", "told"), [(None, "seen"), ("ADDED", "seen"), ("MODIFIED", "seen"), ("DELETED", "gone")]
)
async def test_each_event_becomes_one_call_and_nothing_is_written(event_type, told):
    feed = FakeFeed()
    handler = only_handler(registry_for(feed), "_watching")
    result = await handler.fn(event={"type": event_type, "object": podgroup()})
    assert feed.told == [(told, "team/train")]
    assert result is None, "kopf would write a result into the object's status"


async def test_a_podgroup_that_cannot_be_read_is_told_too():
    feed = FakeFeed()
    handler = only_handler(registry_for(feed), "_watching")
    await handler.fn(event={"type": "ADDED", "object": {**podgroup(), "spec": {"minMember": "many"}}})
    assert feed.told == [("seen", "team/train")]


def test_only_our_own_podgroups_are_watched_and_no_handler_makes_kopf_write():
    registry = registry_for(FakeFeed())
    selector = only_handler(registry, "_watching").selector
    assert (selector.group, selector.version, selector.any_name) == ("gangsched.io", "v1alpha1", "podgroups")
    for writing in ("_changing", "_spawning", "_indexing", "_webhooks"):
        assert list(getattr(registry, writing).get_all_handlers()) == []


async def test_kopf_gets_a_new_session_of_its_own_at_each_login():
    made: list[aiohttp.ClientSession] = []

    def make_client() -> aiohttp.ClientSession:
        made.append(aiohttp.ClientSession())
        return made[-1]

    handler = only_handler(registry_for(FakeFeed(), make_client), "_activities")
    logins = [await handler.fn(), await handler.fn()]
    assert [login.server for login in logins] == ["https://api:6443"] * 2
    assert [login.aiohttp_session for login in logins] == made
    for client in made:
        await client.close()


@pytest.fixture
async def api_url():
    async def answer(_: web.Request) -> web.Response:
        return web.json_response({})

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    app.router.add_patch("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


LIST, PAGE, WATCH = LISTING, f"{LISTING}?limit=500&continue=x", f"{LISTING}?watch=true&resourceVersion=7"


@pytest.mark.parametrize(
    ("requests", "gaps"),
    [
        ([LIST], 0),
        ([LIST, WATCH], 1),
        ([LIST, PAGE, WATCH], 1),
        ([LIST, WATCH, WATCH], 1),
        ([LIST, WATCH, WATCH, LIST, WATCH], 2),
        ([LIST, "/apis/gangsched.io/v1alpha1", "/api/v1/namespaces?watch=true", WATCH], 1),
        (["/apis/other.io/v1alpha1/podgroups", "/apis/other.io/v1alpha1/podgroups?watch=true"], 0),
        ([WATCH], 0),
    ],
)
async def test_a_watch_that_begins_after_a_list_is_a_gap(api_url, requests, gaps):
    reported: list[None] = []
    async with aiohttp.ClientSession() as client:
        report_gaps(client, lambda: reported.append(None))
        for path in requests:
            await client.get(api_url + path)
        await client.patch(api_url + LIST)
    assert len(reported) == gaps
