"""The proxy's effect on requests and watches, in front of a tiny server of the test's own."""

from __future__ import annotations

import asyncio
import errno
import json

import aiohttp
import pytest

from tests.faults.plan import Fault
from tests.faults.upstream import BINDING, LIST, Stand, standing

LONG_S = 30.0


def event(name: str, version: int, kind: str = "MODIFIED") -> bytes:
    meta = {"name": name, "namespace": "n", "resourceVersion": str(version)}
    return json.dumps({"type": kind, "object": {"metadata": meta}}).encode() + b"\n"


async def until(condition, within_s: float = 5.0) -> None:
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 - several kinds of condition
            await asyncio.sleep(0.005)


@pytest.mark.parametrize(
    ("fault", "status", "reaches_the_server"),
    [
        (Fault.CONFLICT, 409, False),
        (Fault.THROTTLED, 429, False),
        (Fault.ERROR, 500, False),
        (Fault.UNAVAILABLE, 503, False),
        (Fault.TIMEOUT, 504, False),
        (Fault.ERROR_AFTER, 500, True),
        (Fault.UNAVAILABLE_AFTER, 503, True),
        (Fault.TIMEOUT_AFTER, 504, True),
        (Fault.RESET_BEFORE, None, False),
        (Fault.RESET_AFTER, None, True),
    ],
    ids=str,
)
async def test_a_request_is_refused_or_reset_before_or_after_the_server_acts(
    fault: Fault, status: int | None, *, reaches_the_server: bool
) -> None:
    async with standing(fault, retry_after_s=7) as stand:
        if status is None:
            with pytest.raises((ConnectionResetError, aiohttp.ClientOSError)) as failure:
                await stand.post()
            assert getattr(failure.value, "errno", None) == errno.ECONNRESET, "a reset is no orderly end"
        else:
            async with stand.client.post(BINDING) as answer:
                assert (answer.status, (await answer.json())["code"]) == (status, status)
                assert answer.headers.get("Retry-After") == ("7" if status == 429 else None)

        assert stand.upstream.asked["POST"] == reaches_the_server
        assert stand.server.injected == {fault: 1}


@pytest.mark.parametrize(
    ("fault", "reaches_the_server"), [(Fault.DELAY_BEFORE, False), (Fault.DELAY_AFTER, True)], ids=str
)
async def test_a_delay_lasts_until_the_weather_calms(fault: Fault, *, reaches_the_server: bool) -> None:
    async with standing(fault, delay_s=(LONG_S, LONG_S)) as stand:
        asking = asyncio.create_task(stand.post())
        await until(lambda: stand.server.injected[fault] == 1)
        reached = stand.upstream.asked["POST"]
        assert not asking.done()
        stand.server.calm()

        async with asyncio.timeout(5):
            assert await asking == 201
        assert reached == reaches_the_server
        assert await stand.post() == 201
        assert stand.server.injected == {fault: 1}


async def test_a_truncated_body_breaks_off_in_the_middle() -> None:
    async with standing(Fault.TRUNCATED) as stand, stand.client.get(LIST) as answer:
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.read()

        assert answer.status == 200
        assert stand.server.injected == {Fault.TRUNCATED: 1}


async def test_a_watch_and_a_continued_list_can_be_expired_from_the_start() -> None:
    async with standing(Fault.EXPIRED) as stand:
        async with stand.watch() as watch:
            told = await watch.json()
        async with stand.client.get(LIST, params={"continue": "x"}) as page:
            pass
        first_page = await stand.version()

        assert (watch.status, told["reason"], page.status, first_page) == (410, "Expired", 410, 1)
        assert stand.upstream.asked["GET"] == 1


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


@pytest.mark.parametrize("fault", [Fault.EXPIRED_LATER, Fault.WATCH_ENDS, Fault.WATCH_CUT], ids=str)
async def test_a_watch_can_end_after_some_events_with_an_error_410_in_good_order_or_in_the_middle_of_one(
    fault: Fault,
) -> None:
    async with standing(fault, watch_s=(LONG_S, LONG_S), watch_events=3) as stand:
        events = [event(f"p{number}", number) for number in range(5)]
        lines, failure = await received(stand, *events)

    assert (failure is not None) == (fault is Fault.WATCH_CUT)
    whole = [line for line in lines if line.endswith(b"\n")]
    if fault is Fault.EXPIRED_LATER:
        last = json.loads(whole.pop())
        assert (last["type"], last["object"]["code"], last["object"]["reason"]) == ("ERROR", 410, "Expired")
    assert whole == events[: len(whole)]
    assert len(whole) <= 3
    assert stand.server.injected == {fault: 1}
