from __future__ import annotations

import asyncio
import time

from gangsched.core.objects.events import Event, NodeSeen, PodGone
from gangsched.core.objects.node import Node
from gangsched.runtime.inbox import Inbox

A, B, C = (PodGone(uid=uid) for uid in "abc")


async def drain(inbox: Inbox, timeout_s: float, most: int) -> list[Event]:
    """Drain the inbox as the engine does between two cycles."""
    await inbox.arrival(timeout_s)
    return inbox.take(most)


async def test_what_was_posted_is_drained_once_and_in_order():
    inbox = Inbox()
    inbox.post((A, B))
    inbox.post((C,))
    assert await drain(inbox, 60, 9) == [A, B, C]
    assert await drain(inbox, 0, 9) == []


async def test_a_drainer_wakes_when_something_is_posted_and_gets_the_rest_of_the_burst():
    inbox = Inbox()
    drained = asyncio.create_task(drain(inbox, 60, 9))
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    async def post_another() -> None:
        inbox.post((B,))

    asyncio.get_running_loop().call_soon(inbox.post, (A,))
    another = asyncio.create_task(post_another())
    assert await drained == [A, B]
    await another


async def test_nothing_posted_gives_an_empty_list_after_the_timeout():
    assert await drain(Inbox(), 0.001, 9) == []


async def test_posting_nothing_does_not_wake_the_drainer():
    inbox = Inbox()
    inbox.post(())
    assert await drain(inbox, 0.001, 9) == []


async def test_draining_a_full_inbox_lets_other_tasks_run():
    inbox = Inbox()
    ran: list[str] = []

    async def other() -> None:
        ran.append("other")

    task = asyncio.create_task(other())
    inbox.post((A,))
    await drain(inbox, 60, 9)
    assert ran == ["other"]
    await task


async def test_of_more_than_are_wanted_the_rest_is_drained_next_time_without_waiting():
    inbox = Inbox()
    inbox.post((A, B, C))
    assert await drain(inbox, 60, 2) == [A, B]
    assert await drain(inbox, 60, 2) == [C]
    assert await drain(inbox, 0, 2) == []


async def test_a_rest_ends_at_once_with_what_is_urgent_but_not_before_its_least_time():
    inbox = Inbox()
    inbox.call_on_post(lambda event: event is B)
    began = time.monotonic()
    resting = asyncio.create_task(inbox.rest(0.05, 60))
    await asyncio.sleep(0)
    inbox.post((A, B))
    await resting
    assert 0.05 <= time.monotonic() - began < 30


async def test_what_is_not_urgent_or_was_taken_out_leaves_a_rest_alone():
    inbox = Inbox()
    inbox.call_on_post(lambda event: event is B)
    inbox.post((B,))
    inbox.take(1)
    inbox.post((A, C))
    began = time.monotonic()
    await inbox.rest(0, 0.05)
    assert time.monotonic() - began >= 0.05


async def test_a_rest_that_is_over_already_takes_no_time():
    began = time.monotonic()
    await Inbox().rest(-50.0, -10.0)
    assert time.monotonic() - began < 5


async def test_fewer_events_of_nodes_than_of_pods_are_drained_at_once():
    inbox = Inbox()
    changes = [NodeSeen(Node(f"n{at}")) for at in range(9)]
    inbox.post((A, *changes, B))
    assert await drain(inbox, 60, 31) == [A, *changes[:3]]
    assert await drain(inbox, 60, 100) == [*changes[3:], B]
    inbox.post((A, *changes, B))
    assert inbox.clear() == [A, *changes, B]
