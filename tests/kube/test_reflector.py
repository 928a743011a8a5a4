from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from aiohttp import web

from gangsched.core.objects.events import NodesReplaced, PodGone, PodSeen, PodsReplaced
from gangsched.kube.client.errors import AccessDenied, NotServed
from gangsched.kube.client.reflector import Reflector, Timing
from gangsched.kube.client.resource import Resource
from gangsched.kube.reading.watched_resources import NODES, PODS
from tests.kube.fake_api import FakeApi, Inbox, dropped, page, serving, status, stream

AT_ONCE = Timing(backoff_s=0.0, short_s=0.0)
HANG = stream(then="hang")


class Pods(Inbox):
    """The events of a watch of pods."""

    @property
    def lists(self) -> list[list[str]]:
        return [[pod.name for pod in event.pods] for event in self.events if isinstance(event, PodsReplaced)]

    @property
    def seen(self) -> list[str]:
        return [event.pod.name for event in self.events if isinstance(event, PodSeen)]


async def until(holds: Callable[[], bool]) -> None:
    """Poll for a state of a server or reflector that no event announces."""
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


@asynccontextmanager
async def reflecting(
    api: FakeApi, *, timing: Timing = AT_ONCE, resource: Resource[Any] = PODS
) -> AsyncIterator[tuple[Reflector[Any], Pods]]:
    inbox = Pods()
    async with serving(api) as session:
        running = Reflector(session, resource, inbox.post, observer=inbox, timing=timing)
        task = asyncio.create_task(running.run())
        try:
            yield running, inbox
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def pod(name: str, version: int, **metadata: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": str(version), **metadata}
    return {"metadata": meta, "spec": {"containers": []}}


def event(kind: str, name: str, version: int, **metadata: Any) -> dict[str, Any]:
    return {"type": kind, "object": pod(name, version, **metadata)}


def of_pods(lists: list[Any], watches: list[Any]) -> FakeApi:
    """An API server with these answers to lists and watches of pods, in order."""
    api = FakeApi.answering("GET", PODS.path, *lists)
    api.answer("WATCH", PODS.path, *watches)
    return api


def versions(api: FakeApi) -> list[str]:
    return [asked.query["resourceVersion"] for asked in api.of("WATCH")]


async def test_a_list_is_posted_whole_and_the_watch_begins_at_its_version() -> None:
    api = of_pods(
        [page([pod("a", 5), pod("b", 7)], 9)], [stream(event("ADDED", "c", 11), event("DELETED", "a", 12), then="hang")]
    )
    async with reflecting(api) as (running, inbox):
        assert not running.synced.is_set()
        assert running.last_heard == float("-inf")
        await inbox.until(lambda: PodGone(uid="uid-a") in inbox.events)
        assert running.synced.is_set()
        assert running.last_heard > 0
    assert inbox.lists == [["a", "b"]]
    assert inbox.seen == ["c"]
    assert inbox.counted == {"pods": 2}
    [watch] = api.of("WATCH")
    assert watch.query["resourceVersion"] == "9"
    assert watch.query["allowWatchBookmarks"] == "true"
    assert 240 <= int(watch.query["timeoutSeconds"]) <= 480
    assert inbox.relists == []


async def test_an_ordinary_end_is_followed_by_a_watch_from_the_last_version_seen() -> None:
    api = FakeApi.answering("GET", PODS.path, page([], 9))
    api.answer(
        "WATCH",
        PODS.path,
        stream(event("ADDED", "a", 11), event("MODIFIED", "a", 12)),
        stream(event("DELETED", "a", 13)),
        stream(event("ADDED", "b", 14), then="hang"),
    )
    async with reflecting(api, timing=Timing(backoff_s=1000.0)) as (_, inbox):
        await inbox.until(lambda: inbox.seen == ["a", "a", "b"])
    assert versions(api) == ["9", "12", "13"]
    assert len(api.of("GET")) == 1


async def test_a_bookmark_moves_the_version_and_tells_the_core_nothing() -> None:
    api = FakeApi.answering("GET", PODS.path, page([], 9))
    bookmark = {"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {"resourceVersion": "500"}}}
    api.answer("WATCH", PODS.path, stream(bookmark), stream(event("ADDED", "a", 501), then="hang"))
    async with reflecting(api) as (_, inbox):
        await inbox.until(lambda: inbox.seen == ["a"])
    assert versions(api) == ["9", "500"]
    assert len(inbox.events) == 2


@pytest.mark.parametrize(
    "expired",
    [
        status(410, "too old resource version", reason="Expired"),
        stream({"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}, then="hang"),
    ],
    ids=["as the answer", "as an event"],
)
async def test_a_version_that_is_gone_leads_to_a_list_without_what_vanished_meanwhile(expired: Any) -> None:
    api = of_pods([page([pod("a", 1), pod("b", 2)], 9), page([pod("b", 2)], 900)], [expired, HANG])
    async with reflecting(api) as (_, inbox):
        await inbox.until(lambda: len(inbox.lists) == 2)
        assert inbox.lists == [["a", "b"], ["b"]]
        assert inbox.relists == [("pods", "Expired")]
    assert all("resourceVersion" not in asked.query for asked in api.of("GET"))


async def test_a_silent_stream_is_left_and_resumed() -> None:
    api = of_pods(
        [page([], 9)], [stream(event("ADDED", "a", 10), then="hang"), stream(event("ADDED", "b", 11), then="hang")]
    )
    async with reflecting(api, timing=Timing(backoff_s=0.0, silent_s=0.5)) as (_, inbox):
        await inbox.until(lambda: "b" in inbox.seen)
    assert versions(api)[:2] == ["9", "10"]
    assert inbox.seen == ["a", "b"]


async def test_a_lost_connection_resumes_behind_the_last_whole_line() -> None:
    api = FakeApi.answering("GET", PODS.path, page([], 9))
    cut = b'{"type":"ADDED","object":{"metadata":{"name":"b","resourceVers'
    api.answer("WATCH", PODS.path, stream(event("ADDED", "a", 10), cut, then="drop"))
    api.answer("WATCH", PODS.path, stream(event("ADDED", "b", 11), cut, then="end"))
    api.answer("WATCH", PODS.path, stream(event("ADDED", "c", 12), then="hang"))
    async with reflecting(api) as (_, inbox):
        await inbox.until(lambda: "c" in inbox.seen)
    assert versions(api)[-1] == "11"
    assert inbox.seen[-2:] == ["b", "c"]
    assert inbox.relists == []


async def test_a_reader_cut_off_for_being_slow_misses_nothing_and_posts_small_batches() -> None:
    flood = [event("MODIFIED", f"p{version}", version) for version in range(10, 1010)]
    api = of_pods([page([], 9)], [stream(*flood[:600]), stream(*flood[600:], then="hang")])
    async with reflecting(api) as (_, inbox):
        await inbox.until(lambda: len(inbox.seen) >= 1000)
    assert inbox.seen == [f"p{version}" for version in range(10, 1010)]
    assert versions(api) == ["9", "609"]
    assert max(map(len, inbox.batches)) <= 200


async def test_others_run_between_the_batches_of_a_flood() -> None:
    api = FakeApi()
    lines = b"".join(
        b'{"type":"ADDED","object":{"metadata":{"uid":"u","resourceVersion":"10"}}}\n' for _ in range(2000)
    )
    api.answer("GET", PODS.path, page([], 9))
    api.answer("WATCH", PODS.path, stream(lines, then="hang"))
    turns: list[int] = []
    async with reflecting(api) as (_, inbox):

        async def count() -> None:
            while inbox.counted["pods"] < 2000:
                turns.append(inbox.counted["pods"])
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        await inbox.until(lambda: inbox.counted["pods"] == 2000)
        await counting
    steps = sorted(set(turns))
    assert max(later - earlier for earlier, later in pairwise(steps)) <= 200


async def test_a_long_list_comes_in_pages_and_is_posted_once() -> None:
    api = FakeApi.answering("GET", PODS.path, page([pod("a", 1)], 9, more="one"), page([pod("b", 2)], 9, more="two/+="))
    api.answer("GET", PODS.path, page([pod("c", 3)], 9))
    api.answer("WATCH", PODS.path, HANG)
    async with reflecting(api) as (_, inbox):
        await inbox.until(lambda: bool(inbox.lists))
    assert inbox.lists == [["a", "b", "c"]]
    assert [(asked.query["limit"], asked.query.get("continue")) for asked in api.of("GET")] == [
        ("500", None),
        ("500", "one"),
        ("500", "two/+="),
    ]


async def test_an_expired_continue_token_begins_the_list_anew() -> None:
    api = FakeApi()
    api.answer("GET", PODS.path, page([pod("a", 1)], 9, more="one"), status(410, "token is too old", reason="Expired"))
    api.answer("GET", PODS.path, page([pod("b", 2)], 20))
    api.answer("WATCH", PODS.path, HANG)
    async with reflecting(api) as (_, inbox):
        await inbox.until(lambda: bool(inbox.lists))
    assert inbox.lists == [["b"]]
    assert [asked.query.get("continue") for asked in api.of("GET")] == [None, "one", None]
    assert inbox.relists == [("pods", "ListExpired")]


ERROR_500 = stream({"type": "ERROR", "object": {"kind": "Status", "code": 500, "reason": "InternalError"}})
ERROR_504 = stream({"type": "ERROR", "object": {"kind": "Status", "code": 504, "reason": "Timeout"}})
DENIED = status(403, 'pods is forbidden: User "x" cannot watch resource "pods" in API group ""', reason="Forbidden")
FAILURES = {
    "refused": status(503, "etcd is on fire"),
    "reset": dropped(),
    "cut": stream(b'{"type":"AD', then="drop"),
    "denied": DENIED,
    "wrong token": status(401, "Unauthorized", reason="Unauthorized"),
    "429": status(429, "too many requests"),
    "500": status(500, "it failed"),
    "504": status(504, "in time nothing came"),
    "error event 500": ERROR_500,
    "error event 504": ERROR_504,
    "no status": stream(b"<html>", then="end"),
    "ended at once": stream(),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES.keys())
async def test_an_outage_costs_no_list_and_misses_nothing(failure: Any) -> None:
    """Ten watches fail in a row; events not delivered during the outage arrive once the server is back."""
    api = FakeApi.answering("GET", PODS.path, page([pod("a", 1)], 9))
    # A lost GET may be sent twice: aiohttp repeats it once itself if the connection had been kept alive.
    api.answer("WATCH", PODS.path, *[failure] * 10, stream(event("ADDED", "b", 10), then="hang"))
    async with reflecting(api, timing=Timing(backoff_s=0.0, short_s=60.0)) as (_, inbox):
        await inbox.until(lambda: inbox.seen == ["b"])
    assert inbox.relists == []
    assert len(api.of("GET")) == 1
    assert set(versions(api)) == {"9"}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES.keys())
async def test_what_lasts_is_a_problem_though_each_watch_begins_well(failure: Any) -> None:
    """Steps: for the whole test, each watch is answered 200 and delivers an ERROR, or is not answered."""
    api = of_pods([page([pod("a", 1)], 9)], [stream(event("ADDED", "b", 10)), *[failure] * 400])
    async with reflecting(api, timing=Timing(backoff_s=0.001, backoff_max_s=0.001, short_s=60.0)) as (running, inbox):
        await inbox.until(lambda: inbox.seen == ["b"])
        await until(lambda: len(versions(api)) >= 5)
        assert running.problem
        since = running.interrupted_at
        while len(versions(api)) < 20:
            await asyncio.sleep(0.001)
            assert running.problem
        assert running.interrupted_at == since < time.monotonic()


async def test_a_problem_is_over_once_something_comes_or_the_watch_has_lasted_for_a_while(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "gangsched")
    api = of_pods(
        [status(500), page([pod("a", 1)], 9)],
        [ERROR_500, ERROR_500, stream(event("ADDED", "b", 10)), ERROR_500, ERROR_500, HANG],
    )
    async with reflecting(api, timing=Timing(backoff_s=0.001, short_s=0.1)) as (running, inbox):
        await inbox.until(lambda: inbox.seen == ["b"])
        await until(lambda: len(versions(api)) >= 6)
        assert running.problem
        await until(lambda: not running.problem)
        assert running.interrupted_at == math.inf
    assert [record.message for record in caplog.records] == ["watch interrupted; retrying", "watch resumed"] * 3


GARBLED = {
    "no JSON": stream(b"not JSON\n"),
    "an unknown type": stream({"type": "SURPRISE", "object": {"metadata": {}}}),
    "an object that is none": stream({"type": "ADDED", "object": [1]}),
    "too deep": stream(b'{"type":"ADDED","object":' + b"[" * 100_000 + b"\n"),
    "no text": stream(b'{"type":"ADDED","object":{"metadata":{"name":"\xff","uid":"u"}}}\n'),
}


@pytest.mark.parametrize("garbled", GARBLED.values(), ids=GARBLED.keys())
async def test_what_cannot_be_read_twice_at_the_same_version_is_listed_anew(garbled: Any) -> None:
    api = of_pods([page([pod("a", 1)], 9), page([pod("b", 2)], 30)], [garbled, status(500), garbled, HANG])
    async with reflecting(api) as (_, inbox):
        await inbox.until(lambda: len(inbox.lists) == 2)
        await until(lambda: len(versions(api)) >= 4)
    assert inbox.lists == [["a"], ["b"]]
    assert inbox.relists == [("pods", "Garbled")]
    assert versions(api) == ["9", "9", "9", "30"]


async def test_what_cannot_be_read_once_is_read_again_at_the_same_version() -> None:
    api = FakeApi.answering("GET", PODS.path, page([], 9))
    bad = stream(b"not JSON\n")
    for version in (10, 11):
        api.answer("WATCH", PODS.path, bad, stream(event("ADDED", f"p{version}", version)))
    api.answer("WATCH", PODS.path, bad, HANG)
    async with reflecting(api) as (_, inbox):
        await until(lambda: len(versions(api)) >= 6)
        assert inbox.seen == ["p10", "p11"]
        assert inbox.relists == []
    assert versions(api) == ["9", "9", "10", "10", "11", "11"]


async def test_a_kind_that_vanishes_is_listed_once_it_is_back_and_meanwhile_its_remedy_is_told() -> None:
    """Steps: the CustomResourceDefinition is deleted and installed again."""
    kind = replace(PODS, if_missing="install it")
    api = of_pods([page([pod("a", 1)], 9), *[status(404)] * 5, page([pod("b", 2)], 3)], [status(404), HANG])
    async with reflecting(api, resource=kind, timing=Timing(backoff_s=0.02, short_s=0.0)) as (running, inbox):
        await until(lambda: len(api.of("GET")) >= 4)
        assert running.problem == "The API server does not serve pods: install it."
        assert not running.going.is_set()
        await inbox.until(lambda: len(inbox.lists) == 2)
        assert inbox.lists == [["a"], ["b"]]
        assert inbox.relists == [("pods", "NotServed")]


class TestOptional:
    """A kind of another system, which may be neither served nor readable."""

    KIND = replace(PODS, optional=True)

    async def _ends(self, *watches: Any, lists: tuple[Any, ...]) -> Exception:
        api, inbox = FakeApi(), Pods()
        api.answer("GET", PODS.path, *lists)
        api.answer("WATCH", PODS.path, *watches)
        async with serving(api) as session:
            timing = Timing(backoff_s=0.001, short_s=0.0)
            running = Reflector(session, self.KIND, inbox.post, observer=inbox, timing=timing)
            with pytest.raises((AccessDenied, NotServed)) as raised:
                await asyncio.wait_for(running.run(), 10)
            return raised.value

    @pytest.mark.parametrize("lists", [(status(404),), (status(500), status(404))])
    async def test_one_that_is_not_served_ends_it(self, lists: tuple[Any, ...]) -> None:
        assert str(await self._ends(lists=lists)) == "The API server does not serve pods."

    async def test_one_that_vanishes_ends_it(self) -> None:
        assert isinstance(await self._ends(status(404), lists=(page([], 9),)), NotServed)

    async def test_one_that_could_never_be_read_ends_it_at_once(self) -> None:
        assert "may not list and watch pods: 403" in str(await self._ends(lists=(DENIED,)))

    async def test_one_that_may_not_be_read_any_more_ends_it(self) -> None:
        assert isinstance(await self._ends(DENIED, lists=(page([], 9),)), AccessDenied)

    async def test_a_wrong_token_is_no_missing_right(self) -> None:
        wrong = status(401, "Unauthorized", reason="Unauthorized")
        api = of_pods([*[wrong] * 5, page([], 9)], [*[wrong] * 5, stream(event("ADDED", "a", 10), then="hang")])
        timing = Timing(backoff_s=0.001, short_s=0.0)
        async with reflecting(api, resource=self.KIND, timing=timing) as (_, inbox):
            await inbox.until(lambda: inbox.seen == ["a"])


class TestRenew:
    async def _renewed(self, api: FakeApi, before: Callable[[Pods], bool], *, timing: Timing = AT_ONCE) -> Pods:
        async with reflecting(api, timing=timing) as (running, inbox):
            await until(lambda: before(inbox))
            lists = len(inbox.lists)
            async with asyncio.timeout(5):
                await asyncio.gather(running.renew("Leading"), running.renew("Leading"))
            assert len(inbox.lists) == lists + 1
            return inbox

    async def test_while_it_watches(self) -> None:
        api = of_pods([page([pod("a", 1)], 9), page([pod("b", 2)], 30)], [HANG, HANG])
        inbox = await self._renewed(api, lambda _: len(versions(api)) == 1)
        assert inbox.lists == [["a"], ["b"]]
        assert inbox.relists == [("pods", "Leading")]

    async def test_while_it_pauses_after_a_failure(self) -> None:
        api = of_pods([page([pod("a", 1)], 9), page([pod("b", 2)], 30)], [status(500), HANG])
        long = Timing(backoff_s=1000.0, backoff_max_s=1000.0)
        inbox = await self._renewed(api, lambda _: len(versions(api)) == 1, timing=long)
        assert inbox.lists == [["a"], ["b"]]

    async def test_a_list_that_was_begun_before_does_not_count(self) -> None:
        api = of_pods([stream(then="hang"), page([pod("b", 2)], 30)], [HANG])
        inbox = await self._renewed(api, lambda _: len(api.of("GET")) == 1)
        assert inbox.lists == [["b"]]

    async def test_a_list_that_fails_is_waited_for(self) -> None:
        api = of_pods([page([], 9), DENIED, status(500), dropped(), dropped(), page([pod("b", 2)], 30)], [HANG, HANG])
        inbox = await self._renewed(api, lambda _: len(versions(api)) == 1)
        assert inbox.lists[-1] == ["b"]

    @pytest.mark.parametrize("turns", range(12))
    async def test_in_the_very_moment_in_which_a_watch_ends(self, turns: int) -> None:
        """The list is made whatever the event loop runs first."""
        ended = asyncio.Event()

        async def answer(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            await ended.wait()
            return response

        api = of_pods([page([pod("a", 1)], 9), page([pod("b", 2)], 30)], [answer, HANG, HANG])
        async with reflecting(api) as (running, inbox):
            await inbox.until(lambda: len(inbox.lists) == 1)
            await until(lambda: bool(versions(api)))
            ended.set()
            for _ in range(turns):
                await asyncio.sleep(0)
            await asyncio.wait_for(running.renew("Leading"), 5)
            assert inbox.lists == [["a"], ["b"]]


async def test_a_quiet_watch_that_ends_in_its_time_is_no_failure() -> None:
    api = of_pods([page([], 9)], [*[stream()] * 5, stream(event("ADDED", "a", 10), then="hang")])
    async with reflecting(api, timing=Timing(backoff_s=1000.0, short_s=0.0)) as (_, inbox):
        await inbox.until(lambda: inbox.seen == ["a"])
    assert versions(api) == ["9"] * 6


async def test_what_came_before_an_unreadable_line_is_posted_and_not_asked_for_again() -> None:
    api = of_pods(
        [page([], 9)],
        [
            stream(event("ADDED", "a", 10), b"{]\n", event("ADDED", "never", 99)),
            stream(event("ADDED", "b", 11), then="hang"),
        ],
    )
    async with reflecting(api) as (_, inbox):
        await inbox.until(lambda: inbox.seen == ["a", "b"])
    assert versions(api) == ["9", "10"]


async def test_a_pod_of_an_unknown_form_is_neither_dropped_nor_an_obstacle() -> None:
    strange = {"metadata": {"name": "s", "uid": "uid-s", "resourceVersion": "10"}, "spec": {"containers": "none"}}
    api = of_pods([page([strange, pod("a", 1)], 9)], [stream({"type": "MODIFIED", "object": strange}, then="hang")])
    async with reflecting(api) as (_, inbox):
        await inbox.until(lambda: inbox.seen == ["s"])
    assert inbox.lists == [["s", "a"]]
    [first, *_] = [event for event in inbox.events if isinstance(event, PodSeen)]
    assert first.pod.shape.unsupported == (
        "a field that cannot be read (Expected `array | null`, got `str` - at `$.spec.containers`)",
    )


async def test_the_pause_grows_with_every_failure_and_is_never_shorter_than_the_server_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api = FakeApi()
    later, much_later = ({"Retry-After": wish} for wish in ("7", "9" * 400))
    api.answer("GET", PODS.path, *[status(500)] * 4, status(429, headers=later), status(429, headers=much_later))
    api.answer("GET", PODS.path, page([], 9))
    api.answer("WATCH", PODS.path, HANG)
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def pause(delay_s: float) -> None:
        if delay_s:
            pauses.append(delay_s)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", pause)
    inbox = Pods()
    async with serving(api) as session:
        timing = Timing(backoff_s=1.0, backoff_max_s=4.0)
        running = Reflector(session, PODS, inbox.post, observer=inbox, timing=timing, jitter=lambda: 0.5)
        task = asyncio.create_task(running.run())
        await inbox.until(lambda: bool(inbox.lists))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert pauses == [0.5, 1.0, 2.0, 2.0, 7.0, 30.0]
    assert Timing().backoff_max_s == 5.0


async def test_a_line_may_be_of_any_length() -> None:
    api = of_pods([page([], 9)], [stream(event("ADDED", "a", 10, annotations={"x": "y" * (5 << 20)}), then="hang")])
    async with reflecting(api) as (_, inbox):
        await inbox.until(lambda: inbox.seen == ["a"])


async def test_nodes_are_posted_as_nodes() -> None:
    api = FakeApi()
    api.answer("GET", NODES.path, page([{"metadata": {"name": "n1"}, "status": {"allocatable": {"pods": "3"}}}], 9))
    api.answer("WATCH", NODES.path, HANG)
    async with reflecting(api, resource=NODES) as (_, inbox):
        await inbox.until(lambda: bool(inbox.events))
    [listed] = inbox.events
    assert isinstance(listed, NodesReplaced)
    assert [(node.name, node.allocatable) for node in listed.nodes] == [("n1", (("pods", 3),))]


async def test_a_list_that_is_not_whole_yet_is_no_news() -> None:
    """After an interruption: a waiter for `going` must not decide on a partial list."""
    api = FakeApi.answering("GET", PODS.path, page([], 9))
    api.answer("WATCH", PODS.path, status(410), HANG)
    looked = asyncio.Event()

    async def held_back(request: web.Request) -> web.StreamResponse:
        await looked.wait()
        return await page([pod("b", 2)], 9)(request)

    api.answer("GET", PODS.path, page([pod("a", 1)], 9, more="one"), held_back)
    async with reflecting(api) as (running, inbox):
        async with asyncio.timeout(10):
            await until(lambda: not running.going.is_set() and bool(inbox.relists))
            looked.set()
            await running.going.wait()
        assert inbox.lists == [[], ["a", "b"]]


async def test_a_watch_that_resumes_is_news_once_it_has_lasted() -> None:
    """After an API server restart older versions have expired, which a watch reports only after it was accepted."""
    expired = stream({"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}, then="hang")
    api = of_pods([page([pod("a", 1)], 9), page([pod("b", 2)], 20)], [status(503), expired, HANG])
    async with reflecting(api, timing=Timing(backoff_s=0.01, short_s=0.05)) as (running, inbox):
        await until(lambda: bool(inbox.lists) and not running.going.is_set())
        await running.going.wait()
        assert inbox.lists == [["a"], ["b"]]


async def test_a_watch_that_resumes_without_a_list_is_current_again() -> None:
    api = of_pods([page([pod("a", 1)], 9)], [status(503), HANG])
    async with reflecting(api, timing=Timing(backoff_s=0.01, short_s=0.05)) as (running, inbox):
        await until(lambda: bool(inbox.lists) and not running.going.is_set())
        await asyncio.wait_for(running.going.wait(), 10)
        assert inbox.lists == [["a"]]
