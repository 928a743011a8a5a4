from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.demands import DemandKey, DemandObject, PoolDemand
from gangsched.core.objects.effects import (
    BindPod,
    Effect,
    EmitEvent,
    EvictPod,
    LookUpOwner,
    MakeGroup,
    PatchPodCondition,
    PatchStatus,
    PutDemand,
    WithdrawBinding,
)
from gangsched.core.objects.events import Event
from gangsched.core.objects.podgroup import GroupSpec
from gangsched.core.objects.results import (
    BindRefused,
    EvictionRefused,
    GroupNotMade,
    OwnerSeen,
    PodBound,
    PodEvicted,
    Refused,
    Spared,
    StatusRefused,
    StatusWritten,
)
from gangsched.core.objects.status import GroupStatus
from gangsched.core.objects.workload import Reference
from gangsched.kube.writing.write_results import Outcome, WriteResult
from gangsched.runtime.backlog import AT_FIRST, BURST, QUIET_S
from gangsched.runtime.executor import Executor
from gangsched.runtime.metrics import Metrics
from tests.runtime.fake_table import answer_with, table_of

SLOTS = 4
KEY = GroupKey("ns", "g")
WRITTEN = WriteResult(Outcome.WRITTEN)
UNAVAILABLE = WriteResult(Outcome.UNAVAILABLE, message="503")
STORED = WriteResult(Outcome.WRITTEN, StatusWritten(key=KEY, resource_version="9"))
NOT_STORED = StatusRefused(key=KEY, stale=False)
STATUS_UNAVAILABLE = WriteResult(Outcome.UNAVAILABLE, NOT_STORED, message="503")


def bind(uid: str) -> BindPod:
    return BindPod(uid=uid, namespace="ns", name=uid, node="n1")


def evict(uid: str) -> EvictPod:
    return EvictPod(uid=uid, namespace="ns", name=uid)


def status(members: int, resource_version: str = "") -> PatchStatus:
    return PatchStatus(key=KEY, uid="u", status=GroupStatus(members=members), resource_version=resource_version)


def condition(reason: str) -> PatchPodCondition:
    return PatchPodCondition(uid="p", namespace="ns", name="p", reason=reason, message="")


def put(name: str, *, zone: str = "") -> PutDemand:
    pool = PoolDemand(instance_group="batch", units=(), zone=zone)
    return PutDemand(DemandObject(DemandKey("ns", name), "p", "u", pool))


LOOK_UP = LookUpOwner(uid="j", namespace="ns", name="job")
MAKE = MakeGroup(key=KEY, spec=GroupSpec(min_member=5), owner=Reference("v1", "Pod", "driver", "d"))
EVENT = EmitEvent(kind="Pod", namespace="ns", name="p", uid="p", type="Normal", reason="R", action="A", note="")


@dataclass
class Call:
    """A write that is in flight until the test answers it."""

    effect: Effect
    answer: asyncio.Future


@dataclass
class FakeTimer:
    delay_s: float
    action: Callable[[], None]
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


@dataclass
class Rig:
    """An executor whose writes the test answers."""

    calls: asyncio.Queue[Call] = field(default_factory=asyncio.Queue)
    posted: list[Event] = field(default_factory=list)
    timers: list[FakeTimer] = field(default_factory=list)
    slots: int = SLOTS
    attempts: int = 3
    mono: float = 1000.0
    tick_s: float = 0.0
    may_write: bool = True
    asked_before: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.metrics = Metrics()
        self.changed = asyncio.Event()
        self.executor = Executor(
            table_of(self._call, self._look_up),
            self._post,
            metrics=self.metrics,
            slots=self.slots,
            attempts=self.attempts,
            backoff_s=0.5,
            allowed=self._allowed,
            monotonic=self._monotonic,
            jitter=lambda: 1.0,
            later=self._later,
        )

    def _monotonic(self) -> float:
        self.mono += self.tick_s
        return self.mono

    def _allowed(self) -> bool:
        self.asked_before.append(self.calls.qsize())
        return self.may_write

    def _post(self, events: Iterable[Event]) -> None:
        self.posted.extend(events)
        self.changed.set()

    def _later(self, delay_s: float, action: Callable[[], None]) -> FakeTimer:
        self.timers.append(FakeTimer(delay_s, action))
        return self.timers[-1]

    async def time_passes(self) -> None:
        """Let the newest timer expire, unless it was cancelled."""
        await self.settle()
        timer = self.timers[-1]
        if not timer.cancelled:
            timer.action()
        await self.settle()

    async def _call(self, effect: Effect):
        call = Call(effect, asyncio.get_running_loop().create_future())
        self.calls.put_nowait(call)
        answer = await call.answer
        return answer if isinstance(answer, WriteResult) else answer_with(answer)

    async def _look_up(self, effect: BindPod) -> Event | None:
        return PodBound(effect.uid, effect.node)

    async def looked_up(self) -> list[str]:
        """The UIDs of the pods whose writes may have taken effect without a result."""
        found = [await look_up() for look_up in self.executor.unanswered()]
        return [event.uid for event in found if isinstance(event, PodBound)]

    async def sent(self) -> Call:
        return await asyncio.wait_for(self.calls.get(), 10)

    async def sent_and_answered(self, answer: Event | WriteResult) -> Effect:
        call = await self.sent()
        call.answer.set_result(answer)
        return call.effect

    async def settle(self) -> None:
        """Let every runnable task run."""
        for _ in range(10):
            await asyncio.sleep(0)

    async def until_posted(self, count: int) -> None:
        while len(self.posted) < count:
            self.changed.clear()
            await asyncio.wait_for(self.changed.wait(), 10)


@asynccontextmanager
async def running(*, slots: int = SLOTS) -> AsyncIterator[Rig]:
    rig = Rig(slots=slots)
    task = asyncio.create_task(rig.executor.run())
    try:
        yield rig
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


SEEN = OwnerSeen(uid="j", why="it says so")
NOT_MADE = GroupNotMade(KEY, "forbidden")
STALE = StatusRefused(key=KEY, stale=True)
VERSIONED = status(1, resource_version="5")


def unbound(why: Refused) -> BindRefused:
    return BindRefused(uid="a", node="n1", why=why, message="no")


def spared(why: Spared) -> EvictionRefused:
    return EvictionRefused(uid="a", why=why, message="no")


ANSWERS: list[tuple[Effect, Event | WriteResult, str, Sequence[Event], list[str]]] = [
    (MAKE, WRITTEN, "Written", [], ["created a PodGroup that records a group's reservation"]),
    (MAKE, WriteResult(Outcome.STALE), "Stale", [], []),
    (
        MAKE,
        WriteResult(Outcome.REFUSED, NOT_MADE, message="forbidden"),
        "Refused",
        [NOT_MADE],
        ["creating a PodGroup failed"],
    ),
    (bind("a"), PodBound(uid="a", node="n1"), "Bound", [PodBound(uid="a", node="n1")], []),
    *(
        (bind("a"), unbound(why), why.value, [unbound(why)], ["binding refused"])
        for why in (Refused.GONE, Refused.UNAVAILABLE)
    ),
    (evict("a"), PodEvicted(uid="a"), "Evicted", [PodEvicted(uid="a")], ["evicted"]),
    *((evict("a"), spared(why), why.value, [spared(why)], ["eviction refused"]) for why in Spared),
    (LOOK_UP, SEEN, "Seen", [SEEN], []),
    (VERSIONED, STORED, "Written", [StatusWritten(key=KEY, resource_version="9")], []),
    (VERSIONED, WriteResult(Outcome.STALE, STALE), "Stale", [STALE], []),
    (VERSIONED, WriteResult(Outcome.GONE, NOT_STORED), "Gone", [NOT_STORED], []),
    *(
        (effect, WriteResult(Outcome.REFUSED, message="forbidden"), "Refused", [], ["write given up"])
        for effect in (condition("Unschedulable"), EVENT)
    ),
    (condition("Unschedulable"), WriteResult(Outcome.GONE), "Gone", [], []),
]
OF_ITS_OWN: dict[type, str] = {BindPod: "gangsched_bindings_total{", EvictPod: "gangsched_evictions_total{"}
"""The metrics of those effects that have one of their own."""


@pytest.mark.parametrize(("effect", "answer", "result", "posted", "lines"), ANSWERS)
async def test_an_answer_is_posted_counted_and_logged_and_nothing_is_sent_again(
    effect, answer, result, posted, lines, caplog
):
    caplog.set_level(logging.INFO, "gangsched")
    async with running() as rig:
        rig.executor.submit([effect, effect] if not isinstance(effect, BindPod | EmitEvent) else [effect])
        assert await rig.sent_and_answered(answer) == effect
        await rig.settle()
        assert rig.calls.empty()
        assert rig.timers == []
        assert rig.posted == posted
        kind = type(effect)
        series = OF_ITS_OWN.get(kind, f'gangsched_writes_total{{kind="{kind.__name__}",')
        assert f'{series}result="{result}"}} 1.0' in rig.metrics.render().decode()
        assert [record.message for record in caplog.records] == lines


async def test_that_demands_may_not_be_written_is_logged_once_until_one_is(caplog):
    refused = WriteResult(Outcome.REFUSED, message="403")
    async with running() as rig:
        for answer, logged in ((refused, 1), (refused, 1), (WRITTEN, 1), (refused, 2)):
            rig.executor.submit([put("d")])
            await rig.sent_and_answered(answer)
            await rig.settle()
            assert [record.message for record in caplog.records] == ["write given up"] * logged
        assert vars(caplog.records[0])["object"] == "ns/d"


class TestBindings:
    async def test_no_more_are_in_flight_than_there_are_slots(self):
        async with running() as rig:
            rig.executor.submit([bind(str(number)) for number in range(SLOTS + 2)])
            await rig.settle()
            assert rig.calls.qsize() == SLOTS
            assert b'gangsched_effects_queued{kind="BindPod"} 2.0' in rig.metrics.render()
            await rig.sent_and_answered(PodBound(uid="0", node="n1"))
            await rig.settle()
            assert rig.calls.qsize() == SLOTS

    async def test_more_are_in_flight_while_answers_come_and_fewer_once_the_server_has_too_much_to_do(self):
        async with running(slots=2 * AT_FIRST) as rig:
            rig.executor.submit([bind(str(number)) for number in range(300)])
            await rig.settle()
            assert rig.calls.qsize() == AT_FIRST
            for _ in range(20):
                await rig.sent_and_answered(PodBound(uid="x", node="n1"))
            await rig.settle()
            assert rig.calls.qsize() == AT_FIRST + 10
            await rig.sent_and_answered(BindRefused(uid="x", node="n1", why=Refused.UNAVAILABLE, message="429"))
            for _ in range(10):
                await rig.sent_and_answered(PodBound(uid="x", node="n1"))
                await rig.settle()
            assert rig.calls.qsize() <= AT_FIRST + 1

    async def test_what_was_to_be_said_of_the_pod_is_not_tried_again(self):
        async with running() as rig:
            rig.executor.submit([condition("Unschedulable")])
            await rig.sent_and_answered(UNAVAILABLE)
            await rig.settle()
            rig.executor.submit([bind("p")])
            assert await rig.sent_and_answered(PodBound(uid="p", node="n1")) == bind("p")
            await rig.time_passes()
            assert rig.calls.empty()


BURST_OF_BINDINGS = [bind(str(number)) for number in range(BURST)]


class TestInforming:
    async def bound(self, rig: Rig) -> None:
        for call in [await rig.sent() for _ in range(BURST)]:
            assert isinstance(call.effect, BindPod)
            call.answer.set_result(PodBound(uid=call.effect.uid, node="n1"))
        await rig.settle()

    async def test_a_status_is_sent_a_moment_after_a_burst_of_bindings_though_nothing_else_happens(self):
        async with running() as rig:
            rig.executor.submit([*BURST_OF_BINDINGS, status(1)])
            await self.bound(rig)
            assert rig.calls.empty()
            assert rig.timers[-1].delay_s == pytest.approx(QUIET_S)
            rig.mono += QUIET_S
            await rig.time_passes()
            assert (await rig.sent()).effect == status(1)

    async def test_a_pause_that_ends_while_a_worker_looks_for_work_is_noticed(self):
        """The clock advances between the check for effects that are due and the timer for those due later."""
        async with running() as rig:
            rig.executor.submit([*BURST_OF_BINDINGS, status(1)])
            rig.tick_s = 0.6 * QUIET_S
            await self.bound(rig)
            assert rig.timers[-1].delay_s < QUIET_S
            await rig.time_passes()
            assert (await rig.sent()).effect == status(1)


class TestWithdrawing:
    async def test_a_binding_that_waits_is_answered_as_withdrawn_and_never_sent(self):
        async with running() as rig:
            rig.executor.submit([bind(str(number)) for number in range(SLOTS + 2)])
            await rig.settle()
            rig.executor.submit([WithdrawBinding(uid=str(SLOTS), node="n1")])
            said = "it was withdrawn before it was sent"
            assert rig.posted == [BindRefused(uid=str(SLOTS), node="n1", why=Refused.WITHDRAWN, message=said)]
            sent = [await rig.sent_and_answered(PodBound(uid="", node="n1")) for _ in range(SLOTS + 1)]
            await rig.settle()
            assert rig.calls.empty()
            assert bind(str(SLOTS)) not in sent
            assert b'gangsched_bindings_total{result="Withdrawn"} 1.0' in rig.metrics.render()

    async def test_a_binding_in_flight_answers_as_it_would_have(self):
        async with running() as rig:
            rig.executor.submit([bind("a")])
            call = await rig.sent()
            rig.executor.submit([WithdrawBinding(uid="a", node="n1")])
            assert rig.posted == []
            call.answer.set_result(PodBound(uid="a", node="n1"))
            await rig.until_posted(1)
            assert rig.posted == [PodBound(uid="a", node="n1")]

    async def test_a_retry_of_what_was_to_be_said_of_the_pod_goes_on(self):
        async with running() as rig:
            rig.executor.submit([condition("X")])
            await rig.sent_and_answered(UNAVAILABLE)
            await rig.settle()
            rig.executor.submit([WithdrawBinding(uid="p", node="n1")])
            await rig.time_passes()
            assert (await rig.sent()).effect == condition("X")


class TestOwners:
    async def test_it_is_asked_until_there_is_an_answer_and_told_once_that_this_takes_long(self, caplog):
        async with running() as rig:
            rig.executor.submit([LOOK_UP])
            for _ in range(rig.attempts + 5):
                assert await rig.sent_and_answered(UNAVAILABLE) == LOOK_UP
                await rig.time_passes()
            assert rig.posted == []
            assert [timer.delay_s for timer in rig.timers] == [0.5, 1, 2, 4, 8, 16, 30, 30]
            assert await rig.sent_and_answered(OwnerSeen(uid="j")) == LOOK_UP
            await rig.until_posted(1)
            assert [record.message for record in caplog.records] == ["reading a Job failed; it is retried"]

    async def test_a_long_outage_does_not_make_the_delay_too_large_a_number(self):
        """Steps: the server answers 503 for half a day; 0.5 s times 2 to the power of 1,100 overflows a float."""
        async with running() as rig:
            rig.executor.submit([LOOK_UP])
            for _ in range(1100):
                await rig.sent_and_answered(UNAVAILABLE)
                await rig.time_passes()
            assert await rig.sent_and_answered(OwnerSeen(uid="j")) == LOOK_UP

    async def test_the_servers_wish_when_to_come_again_is_kept(self):
        async with running() as rig:
            rig.executor.submit([LOOK_UP])
            await rig.sent_and_answered(WriteResult(Outcome.UNAVAILABLE, retry_after_s=7.0, message="429"))
            await rig.settle()
            assert [timer.delay_s for timer in rig.timers] == [7.0]

    async def test_asking_again_while_a_retry_waits_does_not_hurry_it(self):
        async with running() as rig:
            rig.executor.submit([LOOK_UP])
            await rig.sent_and_answered(UNAVAILABLE)
            await rig.settle()
            rig.executor.submit([LOOK_UP])
            await rig.settle()
            assert rig.calls.empty()
            await rig.time_passes()
            assert (await rig.sent()).effect == LOOK_UP
            await rig.settle()
            assert rig.calls.empty()


class TestTheRightToWrite:
    @pytest.mark.parametrize(
        "effect", [bind("a"), evict("a"), LOOK_UP, MAKE, status(1), condition("X"), EVENT, put("d")]
    )
    async def test_without_it_nothing_is_sent_or_posted_and_it_is_said_once(self, effect, caplog):
        async with running() as rig:
            rig.may_write = False
            rig.executor.submit([effect])
            await rig.settle()
            rig.executor.submit([effect])
            await rig.settle()
            assert rig.calls.empty()
            assert rig.posted == []
            assert rig.timers == []
            kind = type(effect).__name__
            assert f'gangsched_writes_withheld_total{{kind="{kind}"}} 2.0' in rig.metrics.render().decode()
            [record] = caplog.records
            assert record.levelno == logging.WARNING

    async def test_it_is_asked_for_immediately_before_each_write(self):
        """Steps: more bindings are decided than there are slots; the right is lost while the first are in flight."""
        async with running() as rig:
            rig.executor.submit([bind(str(number)) for number in range(SLOTS + 2)])
            await rig.settle()
            assert rig.asked_before == list(range(SLOTS))
            rig.may_write = False
            for number in range(SLOTS):
                await rig.sent_and_answered(PodBound(uid=str(number), node="n1"))
            await rig.until_posted(SLOTS)
            await rig.settle()
            assert rig.calls.empty()
            assert b'gangsched_writes_withheld_total{kind="BindPod"} 2.0' in rig.metrics.render()

    async def test_a_retry_asks_for_it_too(self):
        async with running() as rig:
            rig.executor.submit([status(1)])
            await rig.sent_and_answered(UNAVAILABLE)
            await rig.settle()
            rig.may_write = False
            await rig.time_passes()
            assert rig.calls.empty()
            assert rig.posted == []

    async def test_what_is_withheld_does_not_hold_up_the_end(self):
        async with running() as rig:
            rig.executor.submit([*(bind(str(number)) for number in range(SLOTS)), status(1), EVENT])
            await rig.settle()
            rig.may_write = False
            draining = asyncio.create_task(rig.executor.drain(10, informing_s=5))
            for number in range(SLOTS):
                await rig.sent_and_answered(PodBound(uid=str(number), node="n1"))
            assert await draining == 0
            assert rig.calls.empty()


class TestStatus:
    async def test_it_is_retried_while_the_server_is_unavailable_and_given_up_in_the_end(self, caplog):
        async with running() as rig:
            rig.executor.submit([status(1)])
            for _ in range(rig.attempts - 1):
                assert await rig.sent_and_answered(STATUS_UNAVAILABLE) == status(1)
                await rig.time_passes()
                assert rig.posted == []
            assert await rig.sent_and_answered(STATUS_UNAVAILABLE) == status(1)
            await rig.until_posted(1)
            assert [timer.delay_s for timer in rig.timers] == [0.5, 1.0]
            assert rig.posted == [StatusRefused(key=KEY, stale=False)]
            (record,) = caplog.records
            assert (record.message, vars(record)["object"], vars(record)["attempts"]) == ("write given up", "ns/g", 3)

    async def test_a_newer_one_is_sent_at_once_instead_of_a_retry(self):
        async with running() as rig:
            rig.executor.submit([status(1)])
            await rig.sent_and_answered(STATUS_UNAVAILABLE)
            await rig.settle()
            rig.executor.submit([status(2)])
            assert await rig.sent_and_answered(STORED) == status(2)
            await rig.until_posted(1)
            await rig.time_passes()
            assert rig.calls.empty()
            assert rig.posted == [StatusWritten(key=KEY, resource_version="9")]

    async def test_an_older_one_is_never_written_over_a_newer_one_by_its_retry(self):
        async with running() as rig:
            rig.executor.submit([status(1)])
            call = await rig.sent()
            rig.executor.submit([status(2)])
            call.answer.set_result(STATUS_UNAVAILABLE)
            assert await rig.sent_and_answered(STORED) == status(2)
            await rig.until_posted(1)
            assert rig.timers == []
            assert rig.posted == [StatusWritten(key=KEY, resource_version="9")]


class TestInformingWrites:
    @pytest.mark.parametrize("effect", [condition("Unschedulable"), EVENT])
    async def test_it_is_retried_while_the_server_is_unavailable(self, effect):
        async with running() as rig:
            rig.executor.submit([effect])
            assert await rig.sent_and_answered(UNAVAILABLE) == effect
            await rig.time_passes()
            assert await rig.sent_and_answered(WRITTEN) == effect
            await rig.settle()
            assert rig.posted == []
            kind = type(effect).__name__
            assert f'gangsched_writes_total{{kind="{kind}",result="Unavailable"}} 1.0' in rig.metrics.render().decode()


class TestDrain:
    async def test_bindings_in_flight_end_and_those_that_wait_are_not_sent(self):
        async with running() as rig:
            rig.executor.submit([bind(str(number)) for number in range(SLOTS + 3)])
            await rig.settle()
            draining = asyncio.create_task(rig.executor.drain(10, informing_s=5))
            for number in range(SLOTS):
                await rig.settle()
                assert not draining.done()
                await rig.sent_and_answered(PodBound(uid=str(number), node="n1"))
            assert await draining == 0
            assert rig.calls.empty()
            assert len(rig.posted) == SLOTS
            assert b'gangsched_bindings_total{result="Dropped"} 3.0' in rig.metrics.render()

    async def test_statuses_and_events_that_wait_are_still_sent(self):
        async with running() as rig:
            rig.executor.submit([*(bind(str(number)) for number in range(SLOTS)), status(1), EVENT, condition("X")])
            await rig.settle()
            draining = asyncio.create_task(rig.executor.drain(10, informing_s=5))
            for number in range(SLOTS):
                await rig.sent_and_answered(PodBound(uid=str(number), node="n1"))
            assert {type(await rig.sent_and_answered(WRITTEN)) for _ in range(2)} == {PatchStatus, EmitEvent}
            assert await draining == 0
            assert rig.calls.empty()

    async def test_nothing_is_retried_or_accepted_any_more(self):
        async with running() as rig:
            rig.executor.submit([status(1)])
            call = await rig.sent()
            draining = asyncio.create_task(rig.executor.drain(10, informing_s=5))
            await rig.settle()
            rig.executor.submit([bind("late")])
            call.answer.set_result(UNAVAILABLE)
            assert await draining == 0
            assert rig.timers == []
            assert rig.calls.empty()

    async def test_a_retry_that_waits_is_forgotten(self):
        async with running() as rig:
            rig.executor.submit([status(1)])
            await rig.sent_and_answered(UNAVAILABLE)
            await rig.settle()
            assert await rig.executor.drain(10, informing_s=5) == 0
            await rig.time_passes()
            assert rig.calls.empty()

    async def test_what_does_not_end_in_time_is_counted(self):
        async with running() as rig:
            rig.executor.submit([bind("a"), bind("b")])
            await rig.settle()
            assert await rig.executor.drain(0.001, informing_s=0.0) == 2

    async def test_thousands_of_statuses_that_nobody_answers_do_not_hold_up_the_end(self, caplog):
        """Steps: a binding is in flight, 3,000 statuses wait; the process ends; only the binding is answered."""
        caplog.set_level(logging.INFO, "gangsched")
        async with running() as rig:
            informing = [replace(status(1), key=GroupKey("ns", f"g{number}")) for number in range(3000)]
            rig.executor.submit([bind("a"), *informing, EVENT])
            call = await rig.sent()
            await rig.settle()
            draining = asyncio.create_task(rig.executor.drain(10, informing_s=0.01))
            await asyncio.sleep(0.05)
            assert not draining.done()
            call.answer.set_result(PodBound(uid="a", node="n1"))
            assert await asyncio.wait_for(draining, 1) == 0
            assert rig.calls.qsize() == SLOTS // 2
            assert [vars(record)["count"] for record in caplog.records] == [3001 - SLOTS // 2]


class TestUnanswered:
    async def test_what_may_have_happened_without_our_knowing_is_remembered(self):
        """The bindings: one each without an answer, bound, refused, in flight, and waiting to be sent."""
        async with running() as rig:
            flying = [f"flies {number}" for number in range(SLOTS)]
            rig.executor.submit(bind(uid) for uid in ("lost", "bound", "refused", *flying, "waits"))
            for why in (Refused.UNAVAILABLE, None, Refused.FORBIDDEN):
                call = await rig.sent()
                assert isinstance(call.effect, BindPod)
                uid = call.effect.uid
                call.answer.set_result(
                    PodBound(uid, "n1") if why is None else BindRefused(uid=uid, node="n1", why=why, message="")
                )
                await rig.settle()
            assert await rig.looked_up() == ["lost", *flying]

    async def test_what_was_sent_long_ago_has_been_shown_by_the_watch(self):
        async with running() as rig:
            for mono, uid in enumerate(("a", "b", "a", "c")):
                rig.mono = 9.0 * mono
                rig.executor.submit([bind(uid)])
                refused = BindRefused(uid=uid, node="n1", why=Refused.UNAVAILABLE, message="")
                await rig.sent_and_answered(refused)
                await rig.settle()
            assert await rig.looked_up() == ["a", "c"]
