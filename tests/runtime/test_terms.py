"""Terms of leadership, with the real machine, engine and executor; the mandate and the API server are the test's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial

import pytest

from gangsched.core.machine import Machine
from gangsched.core.objects.effects import BindPod, Effect
from gangsched.core.objects.events import Event, GroupSeen, NodeSeen, PodGone, PodSeen
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import BindRefused, PodBound, Refused
from gangsched.kube.client.errors import ApiError, ApiUnreachable, Garbled
from gangsched.kube.writing.write_results import Outcome, WriteResult
from gangsched.runtime.engine import Engine
from gangsched.runtime.executor import Executor
from gangsched.runtime.inbox import Inbox
from gangsched.runtime.leadership_terms import Terms
from gangsched.runtime.metrics import Metrics
from tests.builders import group, node, pod, pods
from tests.runtime.fake_table import answer_with, table_of

_REST_S = 0.005
UNHEARD = ApiUnreachable("no answer")


class World:
    """A process that leads when the test says so, and a server that answers bindings when the test says so."""

    def __init__(self, *, slots: int = 2) -> None:
        self.term = 1
        self.leads = False
        self.given, self.lost = asyncio.Event(), asyncio.Event()
        self.prepared = asyncio.Event()
        self.prepared.set()
        self.sent: list[tuple[int, str]] = []
        self.in_flight: dict[str, asyncio.Future[PodBound | BindRefused]] = {}
        self.outcomes: dict[str, list[Event | Exception | None]] = {}
        self.looked_up: list[str] = []
        self.inbox = Inbox()
        self.metrics = Metrics()
        self.engine = Engine(partial(Machine, Policy()), self.inbox, now=lambda: 1000.0, metrics=self.metrics)
        self.executors: list[Executor] = []
        self.lasting: list[Callable[[], bool]] = []
        self.slots = slots
        self.table = table_of(self._send, self.outcome)
        self.terms = Terms(
            self.engine,
            mandate=self,
            make_executor=self._make_executor,
            prepare=self.prepared.wait,  # type: ignore[arg-type]
            post=self.inbox.post,
        )

    # The mandate

    def held(self) -> bool:
        return self.leads

    async def acquire(self) -> None:
        await self.given.wait()
        self.given.clear()
        self.leads = True

    async def keep(self) -> str:
        await self.lost.wait()
        self.lost.clear()
        self.leads = False
        self.term += 1
        return "the test says so"

    async def change_leader(self) -> None:
        """The lease is lost, and after a while won again."""
        self.lost.set()
        await settle()
        self.given.set()
        await settle()

    # The API server

    def _make_executor(self, lasting: Callable[[], bool]) -> Executor:
        made = Executor(self.table, self.inbox.post, metrics=self.metrics, slots=self.slots, allowed=lasting)
        self.executors.append(made)
        self.lasting.append(lasting)
        return made

    async def _send(self, effect: Effect) -> WriteResult:
        if not isinstance(effect, BindPod):
            return WriteResult(Outcome.WRITTEN)
        self.sent.append((self.term, effect.name))
        self.in_flight[effect.name] = asyncio.get_running_loop().create_future()
        return answer_with(await self.in_flight[effect.name])

    async def outcome(self, effect: BindPod) -> Event | None:
        self.looked_up.append(effect.name)
        found = self.outcomes.get(effect.name, [None]).pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def names(self, term: int) -> list[str]:
        return sorted(name for sent_in, name in self.sent if sent_in == term)


async def settle() -> None:
    """Let every task finish its work, of which the pauses of the engine take the most time.

    Where the process is starved, pauses end together, so that a chain of pauses needs as many here.
    """
    for _ in range(10):
        await asyncio.sleep(0.5 * _REST_S)


@asynccontextmanager
async def running(*events: Event, slots: int = 2) -> AsyncIterator[World]:
    world = World(slots=slots)
    world.inbox.post(events)
    tasks = [asyncio.create_task(world.engine.run()), asyncio.create_task(world.terms.run())]
    await settle()
    try:
        yield world
        assert not any(task.done() for task in tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def gang(name: str, size: int) -> Iterable[Event]:
    return [GroupSeen(group(name, min_member=size)), *map(PodSeen, pods(name, size))]


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr("gangsched.runtime.leadership_terms._RETRY_S", 0.001)
    monkeypatch.setattr("gangsched.runtime.engine._REST_S", _REST_S)
    for what in ("freeze", "unfreeze", "collect"):
        monkeypatch.setattr(f"gangsched.runtime.engine.gc.{what}", lambda *_: None)


async def test_nothing_is_decided_before_everything_is_up_to_date():
    async with running(NodeSeen(node()), *gang("a", 2)) as world:
        world.prepared.clear()
        assert world.executors == []
        world.given.set()
        await settle()
        assert (world.sent, world.engine.synced) == ([], False)
        world.prepared.set()
        await settle()
        assert (world.names(term=1), world.engine.synced) == (["a-0", "a-1"], True)
        assert world.looked_up == []


async def test_nothing_of_a_term_is_sent_after_it_and_the_next_decides_anew():
    """Steps: of four bindings two are in flight when the lease is lost; one of the pods is gone when it is won again.

    The bindings in flight are given up and read back.
    """
    async with running(NodeSeen(node()), *gang("a", 4)) as world:
        world.given.set()
        await settle()
        first = world.names(term=1)
        assert len(first) == 2
        world.leads = False
        world.in_flight[first[0]].set_result(PodBound(f"uid-{first[0]}", "n1"))
        await settle()
        assert world.names(term=1) == first, "a binding that waited was sent without the lease"
        world.lost.set()
        await settle()
        assert world.in_flight[first[1]].cancelled()
        assert not world.engine.synced
        world.inbox.post([PodGone(pod("default/a-3").uid), *gang("b", 2)])
        await settle()
        assert len(world.sent) == 2
        world.given.set()
        await settle()
        assert world.looked_up == [first[1]]
        assert world.names(term=2) == ["b-0", "b-1"]
        assert [lasts() for lasts in world.lasting] == [False, True]


@pytest.mark.parametrize(
    "failures", [[], [UNHEARD, ApiError(403, "Forbidden", "no"), ApiError(500, "x", "y"), Garbled("half")]]
)
async def test_a_binding_without_an_answer_is_read_back_before_anything_is_decided(failures):
    """Steps: two bindings reach the server, which answers neither; the lease is lost and won; no watch shows them."""
    async with running(NodeSeen(node()), *gang("a", 2)) as world:
        world.given.set()
        await settle()
        unheard = BindRefused(uid=pod("a-0").uid, node="n1", why=Refused.UNAVAILABLE, message="no answer")
        world.in_flight["a-0"].set_result(unheard)
        await settle()
        world.outcomes = {
            "a-0": [*failures, PodBound(pod("a-0").uid, "n1")],
            "a-1": [PodBound(pod("a-1").uid, "n1")],
        }
        sent_before = len(world.sent)
        await world.change_leader()
        assert set(world.looked_up) == {"a-0", "a-1"}
        assert world.looked_up.count("a-0") == len(failures) + 1
        assert world.engine.synced
        assert len(world.sent) == sent_before, "a bound pod was bound again"


async def test_while_the_pod_cannot_be_read_nothing_is_decided_and_the_next_term_asks_again():
    async with running(NodeSeen(node()), *gang("a", 1)) as world:
        world.given.set()
        await settle()
        world.outcomes = {"a-0": [UNHEARD] * 10_000}
        await world.change_leader()
        assert not world.engine.synced
        world.outcomes = {"a-0": [UNHEARD] * 10_000}
        await world.change_leader()
        assert not world.engine.synced
        world.outcomes = {"a-0": [PodBound(pod("a-0").uid, "n1")]}
        await settle()
        assert world.engine.synced
        assert world.sent == [(1, "a-0")]


async def test_a_pod_that_is_still_not_bound_is_bound_and_one_that_is_gone_is_forgotten():
    async with running(NodeSeen(node()), *gang("a", 1), *gang("b", 1)) as world:
        world.given.set()
        await settle()
        gone = BindRefused(uid=pod("b-0").uid, node="n1", why=Refused.GONE, message="the pod no longer exists")
        world.outcomes = {"a-0": [None], "b-0": [gone]}
        world.inbox.post([PodGone(pod("b-0").uid)])
        await world.change_leader()
        assert world.names(term=2) == ["a-0"]


async def test_without_an_executor_it_only_decides():
    world = World()
    terms = Terms(
        world.engine,
        mandate=world,
        make_executor=None,
        prepare=world.prepared.wait,  # type: ignore[arg-type]
        post=world.inbox.post,
    )
    world.inbox.post([NodeSeen(node()), *gang("a", 2)])
    tasks = [asyncio.create_task(world.engine.run()), asyncio.create_task(terms.run())]
    world.given.set()
    await settle()
    assert world.engine.synced
    assert world.sent == []
    assert b'gangsched_effects_total{kind="BindPod"} 2.0' in world.metrics.render()
    assert await terms.drain(1.0, informing_s=0.5) == 0
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_fault_of_our_own_in_a_write_ends_it():
    world = World()
    world.inbox.post([NodeSeen(node()), *gang("a", 1)])
    engine, terms = asyncio.create_task(world.engine.run()), asyncio.create_task(world.terms.run())
    world.given.set()
    await settle()
    world.in_flight["a-0"].set_exception(AssertionError("a bug"))
    with pytest.raises(ExceptionGroup) as raised:
        await asyncio.wait_for(terms, 10)
    assert raised.group_contains(AssertionError, match="a bug")
    engine.cancel()
    await asyncio.gather(engine, return_exceptions=True)
