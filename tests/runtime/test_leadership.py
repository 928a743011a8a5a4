"""Leader election in operation, on an in-memory Lease whose calls fail as the test wants and on the test's clock."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections import deque
from dataclasses import dataclass, field

import pytest

from gangsched.kube.client.errors import ApiError, ApiUnreachable, Garbled
from gangsched.kube.client.lease import Lease, LeaseSpec
from gangsched.runtime.election import Timing
from gangsched.runtime.leadership import Leadership, new_identity, since_boot
from gangsched.runtime.metrics import Metrics

WALL = 1_767_225_600.0
OTHER = LeaseSpec(holder_identity="other", lease_duration_seconds=15, renew_time="x", lease_transitions=1)
FREE = LeaseSpec(holder_identity="", lease_duration_seconds=1, renew_time="y", lease_transitions=1)
UNREACHABLE = ApiUnreachable("the network is down")


class Lost(Exception):  # noqa: N818
    """The write was made, but its result is lost."""


@dataclass
class World:
    """The API server's Lease and the only clock. Each call fails with the next of `faults`; None: it succeeds."""

    lease: Lease | None = None
    now: float = 1000.0
    answers_take_s: deque[float] = field(default_factory=deque)
    written_after_reads: deque[LeaseSpec] = field(default_factory=deque)
    faults: deque[Exception | None] = field(default_factory=deque)
    calls: list[str] = field(default_factory=list)
    timeouts: list[float] = field(default_factory=list)
    sleeps: list[float] = field(default_factory=list)
    ends_after_s: float = 100.0

    def __post_init__(self) -> None:
        self.metrics = Metrics()
        self.began = self.now

    def __str__(self) -> str:
        return "sys/gangsched"

    def replica(self, identity: str = "me") -> Leadership:
        return Leadership(
            self,
            identity=identity,
            timing=Timing(),
            metrics=self.metrics,
            monotonic=lambda: self.now,
            wall=lambda: WALL,
            sleep=self._sleep,
            chance=lambda: 0.0,
        )

    def write(self, spec: LeaseSpec) -> None:
        """Write the Lease as another replica."""
        self.lease = Lease(str(int(self.lease.version) + 1 if self.lease else 1), spec)

    @property
    def holder(self) -> str | None:
        return self.lease.spec.holder_identity if self.lease is not None else None

    def metric(self, name: str) -> float:
        [value] = re.findall(rf"^{name} (\S+)$", self.metrics.render().decode(), re.MULTILINE)
        return float(value)

    async def _sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)
        if self.now > self.began + self.ends_after_s:
            raise TimeoutError("the test's end")

    async def get(self, *, timeout_s: float) -> Lease | None:
        self._answer("get", timeout_s)
        read = self.lease
        if self.written_after_reads:
            self.write(self.written_after_reads.popleft())
        return read

    async def create(self, spec: LeaseSpec, *, timeout_s: float) -> Lease:
        return self._write("create", "", spec, timeout_s)

    async def update(self, spec: LeaseSpec, *, version: str, timeout_s: float) -> Lease:
        return self._write("update", version, spec, timeout_s)

    def _write(self, what: str, version: str, spec: LeaseSpec, timeout_s: float) -> Lease:
        lost = self._answer(what, timeout_s)
        if self.lease is None and version:
            raise ApiError(404, "NotFound", "gone")
        if version != (self.lease.version if self.lease is not None else ""):
            raise ApiError(409, "Conflict", "somebody was faster")
        self.write(spec)
        if lost:
            raise UNREACHABLE
        assert self.lease is not None
        return self.lease

    def _answer(self, what: str, timeout_s: float) -> bool:
        self.calls.append(what)
        self.timeouts.append(timeout_s)
        fault = self.faults.popleft() if self.faults else None
        self.now += timeout_s if fault is UNREACHABLE else self.answers_take_s.popleft() if self.answers_take_s else 0.0
        if fault is not None and not isinstance(fault, Lost):
            raise fault
        return fault is not None


async def leading(world: World) -> Leadership:
    made = world.replica()
    await made.acquire()
    world.calls.clear()
    world.sleeps.clear()
    return made


async def keep_for(world: World, made: Leadership, seconds: float) -> None:
    """Check that the lease is kept for this many seconds."""
    world.ends_after_s = seconds
    with pytest.raises(TimeoutError):
        await made.keep()


class TestAcquire:
    async def test_a_standby_says_whom_it_waits_for_once_and_takes_over_when_the_lease_expires(self, caplog):
        caplog.set_level(logging.INFO, "gangsched")
        world = World()
        world.write(OTHER)
        made = world.replica()
        await made.acquire()
        assert made.held()
        assert world.now == pytest.approx(1015.0)
        assert [record.message for record in caplog.records] == ["standby; another replica leads", "leading"]
        assert vars(caplog.records[0])["leader"] == "other"
        assert set(world.sleeps[:-1]) == {2.0}
        assert world.metric("gangsched_lease_transitions") == 2

    async def test_of_two_that_try_at_once_the_slower_becomes_standby(self):
        world = World(written_after_reads=deque([OTHER]), ends_after_s=5)
        world.write(FREE)
        made = world.replica()
        with pytest.raises(TimeoutError):
            await made.acquire()
        assert not made.held()
        assert made.leader == "other"
        assert made.standby

    async def test_while_the_api_server_is_away_it_tries_on_and_says_so_once(self, caplog):
        world = World(faults=deque([UNREACHABLE, UNREACHABLE]))
        made = world.replica()
        await made.acquire()
        assert made.held()
        assert made.problem == ""
        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        assert "the network is down" in str(vars(caplog.records[0])["error"])

    async def test_a_claim_whose_answer_is_lost_is_recognised(self):
        world = World(faults=deque([None, Lost()]))
        made = world.replica()
        await made.acquire()
        assert world.calls == ["get", "create", "get", "update"]
        assert made.held()

    async def test_an_answer_that_comes_after_the_deadline_is_not_acted_on(self):
        world = World(answers_take_s=deque([0.0, 11.0]))
        made = world.replica()
        await made.acquire()
        assert made.held()
        assert world.calls[-1] == "update"

    @pytest.mark.parametrize(
        "answers",
        [
            [ApiError(403, "Forbidden", "no")],
            [ApiError(401, "Unauthorized", "no")],
            [ApiError(500, "InternalError", "no"), ApiError(429, "TooManyRequests", "later")],
            [Garbled("half a Lease")],
            [None, ApiError(403, "Forbidden", "no")],
            [None, ApiError(422, "Invalid", "no")],
            [None, ApiError(404, "NotFound", "the namespace is not there")],
        ],
        ids=["denied", "wrong token", "failing", "garbled", "may not create", "refused", "no namespace"],
    )
    async def test_whatever_the_server_answers_is_tried_again_every_retry_period(self, answers):
        world = World(faults=deque(answers))
        made = world.replica()
        await made.acquire()
        assert made.held()
        assert made.problem == ""
        assert set(world.sleeps) == {2.0}
        assert len(world.sleeps) == sum(answer is not None for answer in answers)


class TestKeep:
    async def test_renewals_are_one_write_each_a_retry_period_apart(self):
        world = World()
        made = await leading(world)
        await keep_for(world, made, 60)
        assert set(world.calls) == {"update"}
        assert set(world.sleeps) == {2.0}
        assert made.held()
        assert world.metric("gangsched_lease_renewal_failures_total") == 0

    async def test_without_an_answer_the_right_to_act_ends_with_the_deadline_and_so_does_the_leader(self):
        world = World()
        made = await leading(world)
        world.timeouts.clear()
        world.faults.extend([UNREACHABLE] * 100)
        assert await made.keep() == "the Lease sys/gangsched was not renewed for 10 s: the network is down"
        assert not made.held()
        assert world.timeouts[0] == 5.0
        assert sum(world.timeouts) <= 10.0
        assert world.now == pytest.approx(1010.0)
        assert world.metric("gangsched_lease_renewal_failures_total") >= 2
        assert world.metric("gangsched_leases_lost_total") == 1

    async def test_a_renewal_whose_answer_is_lost_is_read_and_compared(self):
        world = World()
        made = await leading(world)
        world.faults.append(Lost())
        await keep_for(world, made, 8)
        assert world.calls[:3] == ["update", "get", "update"]
        assert made.held()

    async def test_somebody_who_labels_the_lease_does_not_depose_the_leader(self):
        world = World()
        made = await leading(world)
        assert world.lease is not None
        world.write(world.lease.spec)
        await keep_for(world, made, 3)
        assert world.calls[:3] == ["update", "get", "update"]
        assert world.metric("gangsched_lease_renewal_failures_total") == 0

    async def test_a_lease_that_another_holds_is_lost_at_once(self):
        world = World()
        made = await leading(world)
        world.write(OTHER)
        assert "has another holder: other" in await made.keep()
        assert not made.held()
        assert world.holder == "other"

    async def test_a_lease_that_was_deleted_is_created_again(self):
        world = World()
        made = await leading(world)
        world.lease = None
        await keep_for(world, made, 3)
        assert world.calls[:3] == ["update", "get", "create"]
        assert world.holder == "me"

    async def test_a_term_that_has_lapsed_while_the_lease_was_read_is_not_taken_up_again(self):
        """Steps: a renewal fails; the machine sleeps while the Lease is read. The decision is dropped."""
        world = World()
        made = await leading(world)
        world.faults.append(UNREACHABLE)
        world.answers_take_s.append(20.0)
        assert "was not renewed for 10 s" in await made.keep()
        assert world.calls == ["update", "get"]

    async def test_a_process_that_was_stopped_asks_for_nothing_when_it_goes_on(self):
        world = World()
        made = await leading(world)
        world.now += 60.0
        assert not made.held()
        assert "this process was stopped for that time" in await made.keep()
        assert world.calls == []

    @pytest.mark.parametrize(
        "answers",
        [
            [UNREACHABLE],
            [ApiError(500, "InternalError", "etcd is slow")],
            [ApiError(403, "Forbidden", "no")] * 2,
            [ApiError(401, "Unauthorized", "no")] * 2,
            [ApiError(422, "Invalid", "no"), Garbled("half a Lease")],
        ],
        ids=["unreachable", "failing", "denied", "wrong token", "refused"],
    )
    async def test_no_answer_but_the_deadline_and_another_holder_depose_the_leader(self, answers):
        world = World()
        made = await leading(world)
        world.faults.extend(answers)
        await keep_for(world, made, 30)
        assert made.held()
        assert world.metric("gangsched_lease_renewal_failures_total") == len(answers)


class TestTheNextTerm:
    async def test_a_lease_that_was_lost_is_waited_for_like_anybodys_under_another_name(self, caplog):
        """Steps: we lead, the server is unreachable for 10 s, no other replica wants the lease.

        A binding sent at second 9 may still arrive, so the lease has to expire before we act again.
        """
        caplog.set_level(logging.INFO, "gangsched")
        world = World()
        made = await leading(world)
        world.faults.extend([UNREACHABLE] * 2)
        await made.keep()
        assert (made.held(), made.term, world.holder) == (False, 2, "me")
        await made.acquire()
        assert made.held()
        assert world.holder == "me-2"
        assert world.now == pytest.approx(1015.0)
        assert not made.handed_over
        assert "standby; waiting until the lost lease expires" in caplog.messages

    async def test_one_that_another_has_taken_meanwhile_is_left_to_it_and_read_anew(self):
        world = World()
        made = await leading(world)
        world.write(OTHER)
        await made.keep()
        world.calls.clear()
        world.ends_after_s = 10
        with pytest.raises(TimeoutError):
            await made.acquire()
        assert not made.held()
        assert (made.leader, made.standby) == ("other", True)
        assert set(world.calls) == {"get"}

    async def test_what_the_last_term_held_is_not_released_by_the_next(self):
        """Its bindings may still be in flight."""
        world = World()
        made = await leading(world)
        world.now += 60.0
        await made.keep()
        world.calls.clear()
        await made.release()
        assert world.calls == []
        assert world.holder == "me"


class TestRelease:
    async def test_a_released_lease_has_no_holder_and_we_may_not_act(self, caplog):
        world = World()
        made = await leading(world)
        with caplog.at_level(logging.INFO, "gangsched"):
            await made.release()
        assert [record.message for record in caplog.records] == ["lease released"]
        assert not made.held()
        assert world.lease is not None
        assert world.lease.spec == LeaseSpec(
            holder_identity="",
            lease_duration_seconds=1,
            acquire_time="2026-01-01T00:00:00.000000Z",
            renew_time="2026-01-01T00:00:00.000000Z",
            lease_transitions=0,
        )
        successor = world.replica("successor")
        await successor.acquire()
        assert world.now == 1000.0
        assert successor.handed_over

    async def test_a_renewal_that_was_on_its_way_does_not_prevent_it(self):
        world = World()
        made = await leading(world)
        assert world.lease is not None
        world.write(world.lease.spec)
        await made.release()
        assert world.holder == ""

    async def test_what_another_holds_is_left_alone(self, caplog):
        world = World()
        made = await leading(world)
        world.write(OTHER)
        with caplog.at_level(logging.INFO, "gangsched"):
            await made.release()
        assert not caplog.records
        assert world.holder == "other"

    async def test_a_standby_releases_nothing_and_asks_nothing(self):
        world = World()
        await world.replica().release()
        assert world.calls == []

    async def test_a_claim_whose_answer_is_not_known_is_released_too(self):
        world = World(faults=deque([None, Lost()]), ends_after_s=0)
        made = world.replica()
        with pytest.raises(TimeoutError):
            await made.acquire()
        assert world.holder == "me"
        await made.release()
        assert world.holder == ""

    async def test_a_release_that_fails_is_told_and_no_error(self, caplog):
        world = World()
        made = await leading(world)
        world.faults.append(UNREACHABLE)
        await made.release()
        assert [record.message for record in caplog.records] == ["releasing the lease failed; it will expire"]
        assert not made.held()


def test_no_two_processes_have_the_same_identity():
    assert new_identity() != new_identity()


def test_the_clock_runs_on_while_the_machine_sleeps(monkeypatch):
    monkeypatch.setattr(time, "CLOCK_BOOTTIME", 7, raising=False)
    monkeypatch.setattr(time, "clock_gettime", {7: 42.0}.get)
    assert since_boot() == 42.0


def test_without_such_a_clock_the_monotonic_one_serves(monkeypatch):
    monkeypatch.delattr(time, "CLOCK_BOOTTIME", raising=False)
    monkeypatch.setattr(time, "monotonic", lambda: 43.0)
    assert since_boot() == 43.0
