from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from gangsched.core.events import Event, GroupGone, GroupSeen, GroupsReplaced
from gangsched.core.model import Group
from gangsched.runtime.groups import GroupFeed
from gangsched.runtime.metrics import Metrics
from tests.builders import group, key


class Unavailable(Exception):  # noqa: N818
    pass


def version(number: int, *, uid: str = "first", name: str = "ns/a") -> Group:
    return group(name, uid=uid, resource_version=str(number))


@dataclass
class Lists:
    """A server whose lists are answered by the test, one by one."""

    posted: list[Event] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.asked: asyncio.Queue[asyncio.Future[Sequence[Group]]] = asyncio.Queue()
        self.changed = asyncio.Event()
        self.metrics = Metrics()
        self.feed = GroupFeed(
            self._list, self._post, metrics=self.metrics, failures=(Unavailable,), sleep=self._sleep,
            jitter=lambda: 1.0,
        )  # fmt: skip

    async def _list(self) -> Sequence[Group]:
        answer: asyncio.Future[Sequence[Group]] = asyncio.get_running_loop().create_future()
        self.asked.put_nowait(answer)
        return await answer

    def _post(self, events: Iterable[Event]) -> None:
        self.posted.extend(events)
        self.changed.set()

    async def until_posted(self, count: int) -> None:
        while len(self.posted) < count:
            self.changed.clear()
            await self.changed.wait()

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)

    async def answer(self, *groups: Group) -> None:
        answer = await self.asked.get()
        before = len(self.posted)
        answer.set_result(groups)
        await self.until_posted(before + 1)


@asynccontextmanager
async def running() -> AsyncIterator[Lists]:
    lists = Lists()
    task = asyncio.create_task(lists.feed.run())
    try:
        async with asyncio.timeout(10):
            yield lists
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_the_first_list_is_posted_at_once_and_makes_it_synced():
    async with running() as lists:
        assert not lists.feed.synced.is_set()
        await lists.answer(version(1))
        assert lists.posted == [GroupsReplaced(groups=(version(1),))]
        await asyncio.wait_for(lists.feed.synced.wait(), 10)
        assert lists.slept == []


async def test_news_are_posted_at_once():
    async with running() as lists:
        await lists.answer()
        lists.feed.seen(version(1))
        lists.feed.gone(version(2))
        assert lists.posted[1:] == [GroupSeen(group=version(1)), GroupGone(key=key("ns/a"))]


async def test_what_was_seen_while_a_list_was_on_its_way_is_told_again_behind_it():
    async with running() as lists:
        await lists.answer()
        lists.feed.relist("Gap")
        answer = await lists.asked.get()
        lists.feed.seen(version(7))
        lists.posted.clear()
        answer.set_result([])
        await lists.until_posted(2)
        assert lists.posted == [GroupsReplaced(groups=()), GroupSeen(group=version(7))]


async def test_what_a_list_already_holds_in_a_newer_version_is_not_told_again():
    async with running() as lists:
        answer = await lists.asked.get()
        lists.feed.seen(version(7))
        lists.posted.clear()
        answer.set_result([version(8)])
        await lists.feed.synced.wait()
        assert lists.posted == [GroupsReplaced(groups=(version(8),))]


async def test_the_end_of_a_podgroup_told_after_its_successor_was_seen_does_not_end_the_successor():
    async with running() as lists:
        await lists.answer(version(1, uid="first"))
        lists.feed.seen(version(5, uid="second"))
        lists.feed.gone(version(4, uid="first"))
        lists.feed.seen(version(3, uid="first"))
        assert lists.posted[1:] == [GroupSeen(group=version(5, uid="second"))]


async def test_the_end_of_a_podgroup_that_a_list_already_replaced_does_not_end_the_successor():
    async with running() as lists:
        answer = await lists.asked.get()
        lists.feed.gone(version(4, uid="first"))
        lists.posted.clear()
        answer.set_result([version(5, uid="second")])
        await lists.feed.synced.wait()
        assert lists.posted == [GroupsReplaced(groups=(version(5, uid="second"),))]


async def test_a_version_that_is_no_number_is_never_taken_for_old():
    async with running() as lists:
        await lists.answer(version(9))
        odd = group("ns/a", uid="first", resource_version="abc")
        lists.feed.seen(odd)
        assert lists.posted[1:] == [GroupSeen(group=odd)]


async def test_the_same_version_seen_again_is_not_told_again():
    async with running() as lists:
        await lists.answer(version(1))
        lists.feed.seen(version(1))
        assert lists.posted[1:] == []


async def test_many_requests_for_a_list_become_one():
    async with running() as lists:
        await lists.answer()
        for _ in range(5):
            lists.feed.relist("Gone")
        await lists.answer(version(3))
        assert lists.asked.empty()
        assert lists.slept == [0.2]
        assert b'gangsched_relists_total{cause="Gone",resource="podgroups"} 5.0' in lists.metrics.render()


async def test_a_list_asked_for_while_one_is_on_its_way_is_taken_after_it():
    async with running() as lists:
        answer = await lists.asked.get()
        lists.feed.relist("Gap")
        answer.set_result([])
        await lists.feed.synced.wait()
        await lists.answer(version(2))
        assert lists.posted == [GroupsReplaced(groups=()), GroupsReplaced(groups=(version(2),))]


async def test_a_list_that_fails_is_tried_again_with_growing_pauses():
    async with running() as lists:
        for _ in range(3):
            (await lists.asked.get()).set_exception(Unavailable("503"))
        await lists.answer(version(1))
        assert lists.slept == [2.0, 4.0, 8.0]


async def test_whoever_needs_the_newest_waits_for_a_list_that_was_begun_after_asking():
    async with running() as lists:
        await lists.answer(version(1))
        lists.feed.relist("Gap")
        begun_before = await lists.asked.get()
        newest = asyncio.create_task(lists.feed.renew("Leading"))
        await asyncio.sleep(0)
        begun_before.set_result([version(2)])
        await lists.until_posted(2)
        assert not newest.done()
        await lists.answer(version(3))
        await newest
        assert lists.posted[-1] == GroupsReplaced(groups=(version(3),))
