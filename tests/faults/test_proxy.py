"""What the proxy does to requests and watches, before a tiny server of the test's own."""

from __future__ import annotations

import asyncio
import errno
import gzip
import json
import time

import aiohttp
import pytest
from yarl import URL

from tests.faults.plan import Fault, Rates, Rule, only
from tests.faults.server import OUTAGE
from tests.faults.upstream import BINDING, LIST, Stand, standing

LONG_S = 30.0


def event(name: str, version: int, kind: str = "MODIFIED") -> bytes:
    meta = {"name": name, "namespace": "n", "resourceVersion": str(version)}
    return json.dumps({"type": kind, "object": {"metadata": meta}}).encode() + b"\n"


async def until(condition, within_s: float = 5.0) -> None:
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 - several kinds of condition
            await asyncio.sleep(0.005)


async def test_in_calm_weather_a_request_and_its_answer_pass_unchanged() -> None:
    async with standing() as stand:
        path = "/api/v1/namespaces/a%2Fb/pods?fieldManager=x%20y&fieldManager=z"
        headers = {"Authorization": "Bearer of-somebody", "Content-Type": "application/merge-patch+json"}
        async with stand.client.patch(URL(stand.server.url + path, encoded=True), data=b"\x00{") as _:
            pass
        async with stand.client.patch(LIST, data=b"{}", headers=headers) as answer:
            told = await answer.json()

        assert stand.upstream.asked[0][1:3] == (path, b"\x00{")
        assert {name: stand.upstream.asked[1][3][name] for name in headers} == headers
        assert (answer.status, told) == (201, {"kind": "Status", "status": "Success"})
        assert not stand.server.injected


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
async def test_in_calm_weather_compressed_and_chunked_lists_pass_whole(encoding: str) -> None:
    async with (
        standing() as stand,
        stand.client.get(LIST, headers={"Accept-Encoding": encoding}) as answer,
    ):
        body = await answer.read()

        assert answer.headers.get("Content-Encoding", "identity") == encoding
        assert len(json.loads(gzip.decompress(body) if encoding == "gzip" else body)["items"]) == 200


async def test_in_calm_weather_requests_do_not_wait_for_each_other() -> None:
    async with standing() as stand:
        stand.upstream.delay_s = 0.2
        began = time.monotonic()
        answers = await asyncio.gather(*(stand.post(f"/api/v1/namespaces/n/pods/p{n}/binding") for n in range(100)))

        assert answers == [201] * 100
        assert time.monotonic() - began < 100 * 0.2 / 4


async def test_in_calm_weather_a_watch_passes_line_by_line_as_it_comes_and_ends_as_it_ends() -> None:
    async with standing() as stand, stand.watch() as answer:
        for number in range(5):
            line = event(f"p{number}", number, "ADDED") if number else event("x" * 200_000, 1)
            stand.upstream.events.put_nowait(line[:10])
            stand.upstream.events.put_nowait(line[10:])
            assert await answer.content.readuntil() == line
        stand.upstream.events.put_nowait(None)

        assert await answer.read() == b""


async def test_a_watch_that_its_client_leaves_is_left_at_the_server_too() -> None:
    async with standing() as stand:
        async with stand.watch():
            await until(lambda: stand.upstream.watching == 1)
        await until(lambda: stand.upstream.watching == 0)


@pytest.mark.parametrize(
    ("fault", "reaches_the_server"), [(Fault.RESET_BEFORE, False), (Fault.RESET_AFTER, True)], ids=str
)
async def test_a_reset_comes_before_or_after_the_server_acts(fault: Fault, reaches_the_server: bool) -> None:  # noqa: FBT001
    async with standing(fault) as stand:
        with pytest.raises((ConnectionResetError, aiohttp.ClientOSError)) as failure:
            await stand.post()

        assert getattr(failure.value, "errno", None) == errno.ECONNRESET, "a reset is no orderly end"
        assert stand.upstream.count("POST") == reaches_the_server
        assert stand.server.injected == {fault: 1}


@pytest.mark.parametrize(
    ("fault", "status", "reason", "reaches_the_server"),
    [
        (Fault.CONFLICT, 409, "Conflict", False),
        (Fault.THROTTLED, 429, "TooManyRequests", False),
        (Fault.ERROR, 500, "InternalError", False),
        (Fault.UNAVAILABLE, 503, "ServiceUnavailable", False),
        (Fault.TIMEOUT, 504, "Timeout", False),
        (Fault.ERROR_AFTER, 500, "InternalError", True),
        (Fault.UNAVAILABLE_AFTER, 503, "ServiceUnavailable", True),
        (Fault.TIMEOUT_AFTER, 504, "Timeout", True),
    ],
    ids=str,
)
async def test_a_refusal_is_a_status_object(fault: Fault, status: int, reason: str, reaches_the_server: bool) -> None:  # noqa: FBT001
    async with standing(fault, retry_after_s=7) as stand, stand.client.post(BINDING) as answer:
        told = await answer.json()

        assert (answer.status, told["kind"], told["code"], told["reason"]) == (status, "Status", status, reason)
        assert answer.headers.get("Retry-After") == ("7" if status == 429 else None)
        assert stand.upstream.count("POST") == reaches_the_server
        assert stand.server.injected == {fault: 1}


@pytest.mark.parametrize(
    ("fault", "reaches_the_server"), [(Fault.DELAY_BEFORE, False), (Fault.DELAY_AFTER, True)], ids=str
)
async def test_a_delay_lasts_until_the_weather_calms(fault: Fault, reaches_the_server: bool) -> None:  # noqa: FBT001
    async with standing(fault, delay_s=(LONG_S, LONG_S)) as stand:
        asking = asyncio.create_task(stand.post())
        await until(lambda: stand.server.injected[fault] == 1)
        reached = stand.upstream.count("POST")
        delayed = not asking.done()
        stand.server.calm()

        async with asyncio.timeout(5):
            assert await asking == 201
        assert delayed
        assert reached == reaches_the_server
        assert await stand.post() == 201
        assert stand.server.injected == {fault: 1}


async def test_a_delayed_request_reaches_the_server_although_its_sender_gave_up() -> None:
    async with standing(Fault.DELAY_BEFORE, delay_s=(LONG_S, LONG_S)) as stand:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await stand.post()
        before = stand.upstream.count("POST")
        stand.server.calm()

        await until(lambda: stand.upstream.count("POST") == 1)
        assert before == 0


async def test_a_truncated_body_breaks_off_in_the_middle() -> None:
    async with standing(Fault.TRUNCATED) as stand, stand.client.get(LIST) as answer:
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.read()

        assert answer.status == 200
        assert stand.server.injected == {Fault.TRUNCATED: 1}


async def test_a_consistent_list_is_never_older_than_its_request_only_late() -> None:
    async with standing(Fault.STALE_LIST, delay_s=(0.2, 0.2)) as stand:
        versions = []
        for _ in range(3):
            began = time.monotonic()
            versions.append(await stand.version(limit="500"))
            assert time.monotonic() - began >= 0.19

        assert versions == [1, 2, 3]


async def test_a_list_of_any_version_may_be_one_given_before_and_one_not_older_than_a_version_is_not_older() -> None:
    async with standing() as stand:
        for _ in range(3):
            await stand.version(resourceVersion="0")
        stand.server.storm(Rates(of=only(Fault.STALE_LIST, rate=1.0), delay_s=(0.0, 0.0)))
        any_version = {await stand.version(resourceVersion="0") for _ in range(30)}
        not_older = {await stand.version(resourceVersion="2") for _ in range(30)}
        exact = await stand.version(resourceVersion="2", resourceVersionMatch="Exact")
        other = await stand.version(resourceVersion="0", labelSelector="a=b")

        assert any_version == {1, 2, 3}
        assert not_older == {2, 3}
        assert (exact, other) == (4, 5)


async def test_a_watch_and_a_continued_list_can_be_expired_from_the_start() -> None:
    async with standing(Fault.EXPIRED) as stand:
        async with stand.watch() as watch:
            told = await watch.json()
        async with stand.client.get(LIST, params={"continue": "x"}) as page:
            pass
        first_page = await stand.version()

        assert (watch.status, told["reason"], page.status, first_page) == (410, "Expired", 410, 1)
        assert stand.upstream.count("GET") == 1


async def received(stand: Stand, *events: bytes | None) -> tuple[list[bytes], Exception | None]:
    """The lines of a watch, and how it failed."""
    lines: list[bytes] = []
    try:
        async with asyncio.timeout(5), stand.watch() as answer:
            for each in events:
                stand.upstream.events.put_nowait(each)
            async for line in answer.content:
                lines.append(line)  # noqa: PERF401 - those that came before the failure count
    except (aiohttp.ClientError, OSError) as error:
        return lines, error
    return lines, None


async def test_a_watch_can_bring_an_error_410_after_some_events() -> None:
    async with standing(Fault.EXPIRED_LATER, watch_s=(LONG_S, LONG_S), watch_events=3) as stand:
        events = [event(f"p{number}", number) for number in range(5)]
        lines, failure = await received(stand, *events)

        assert failure is None
        *passed, last = map(json.loads, lines)
        assert passed == [json.loads(line) for line in events[: len(passed)]]
        assert (last["type"], last["object"]["code"], last["object"]["reason"]) == ("ERROR", 410, "Expired")


async def test_a_watch_can_end_in_good_order_while_the_server_goes_on() -> None:
    async with standing(Fault.WATCH_ENDS, watch_s=(0.1, 0.2)) as stand:
        lines, failure = await received(stand)

        assert (lines, failure) == ([], None)
        assert stand.server.injected == {Fault.WATCH_ENDS: 1}


async def test_a_silent_watch_brings_nothing_until_calm_ends_it() -> None:
    async with standing(Fault.WATCH_SILENT, watch_s=(0.0, 0.0)) as stand, stand.watch() as answer:
        await until(lambda: stand.server.injected[Fault.WATCH_SILENT] == 1)
        stand.upstream.events.put_nowait(event("p", 1))
        await until(stand.upstream.events.empty)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await answer.content.readany()
        stand.server.calm()

        async with asyncio.timeout(5):
            assert await answer.read() == b""


async def test_a_duplicate_follows_its_original_at_once() -> None:
    async with standing(Fault.WATCH_DUPLICATES) as stand:
        events = [event(f"p{number % 3}", number) for number in range(40)]
        lines, failure = await received(stand, *events, None)

        assert failure is None
        assert list(dict.fromkeys(lines)) == events, "the order is as it was"
        assert all(lines.count(line) in (1, 2) for line in events)
        assert stand.server.injected == {Fault.WATCH_DUPLICATES: len(lines) - 40}
        assert len(lines) > 40


async def test_a_watch_can_bring_events_of_different_objects_in_another_order() -> None:
    async with standing(Fault.WATCH_REORDERS) as stand, stand.watch() as answer:
        events = [event(f"p{number % 5}", number) for number in range(20)]
        stand.upstream.events.put_nowait(b"".join(events))
        lines = [await answer.content.readuntil() for _ in events]

        assert lines != events
        assert sorted(lines) == sorted(events)
        assert lines[-1] == events[-1]
        assert stand.server.injected == {Fault.WATCH_REORDERS: 1}


async def test_a_lagging_watch_brings_everything_in_order_but_late() -> None:
    async with standing(Fault.WATCH_LAGS, delay_s=(0.2, 0.2)) as stand:
        began = time.monotonic()
        events = [event(f"p{number}", number) for number in range(10)]
        lines, failure = await received(stand, *events, None)

        assert (lines, failure) == (events, None)
        assert time.monotonic() - began >= 0.19


async def test_a_cut_watch_is_reset_in_the_middle_of_an_event() -> None:
    async with standing(Fault.WATCH_CUT, watch_s=(LONG_S, LONG_S), watch_events=3) as stand:
        events = [event(f"p{number}", number) for number in range(5)]
        lines, failure = await received(stand, *events)

        assert failure is not None
        whole = [line for line in lines if line.endswith(b"\n")]
        assert whole == events[: len(whole)]
        assert stand.server.injected == {Fault.WATCH_CUT: 1}


async def test_a_storm_ends_watches_so_that_new_ones_meet_its_faults() -> None:
    async with standing() as stand, stand.watch() as answer:
        await until(lambda: stand.upstream.watching == 1)
        stand.server.storm(Rates(of=only(Fault.EXPIRED, rate=1.0)))
        async with asyncio.timeout(5):
            assert await answer.read() == b""
        async with stand.watch() as second:
            assert second.status == 410


async def test_in_an_outage_every_connection_is_reset_until_it_ends() -> None:
    async with standing() as stand, stand.watch() as answer:
        stand.upstream.delay_s = 0.5
        asking = asyncio.create_task(stand.post())
        await until(lambda: stand.upstream.count("POST") == 1)
        stand.server.block()
        with pytest.raises((aiohttp.ClientError, OSError)):
            await answer.read()
        with pytest.raises((aiohttp.ClientError, OSError)):
            await asking
        with pytest.raises((aiohttp.ClientError, OSError)):
            await stand.post()
        reached = stand.upstream.count("POST")
        stand.server.unblock()

        assert await stand.post() == 201
        assert reached == 1
        assert stand.server.injected[OUTAGE] >= 1


async def test_a_fault_can_be_ordered_for_the_third_binding_of_a_group_and_the_one_after() -> None:
    async with standing() as stand:
        stand.server.calm()
        stand.server.next(
            Rule(fault=Fault.ERROR_AFTER, method="POST", path_contains=("/pods/g-", "/binding"), after=2, times=2)
        )
        paths = [
            f"/api/v1/namespaces/n/pods/{name}/binding" for name in ("g-0", "h-0", "g-1", "g-2", "h-1", "g-3", "g-4")
        ]
        answers = [await stand.post(path) for path in paths]

        assert answers == [201, 201, 201, 500, 201, 500, 201]


async def test_a_fault_that_was_ordered_can_be_called_off() -> None:
    async with standing() as stand:
        stand.server.calm()
        stand.server.next(Rule(fault=Fault.ERROR, method="POST", times=2))
        assert await stand.post() == 500
        stand.server.forget()
        assert await stand.post() == 201


async def test_an_unreachable_server_looks_unreachable_through_the_proxy() -> None:
    async with standing() as stand:
        stand.server._upstream = "http://127.0.0.1:1"  # noqa: SLF001
        with pytest.raises((aiohttp.ClientError, OSError)):
            await stand.post()
