"""Replicas race for one Lease over a network that delays and loses messages: never do two act at a time."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from gangsched.kube.client.lease import Lease, LeaseSpec
from gangsched.runtime.election import Election, Timing
from tests.effort import examples

TIMING = Timing()
GAP_S = TIMING.lease_s - TIMING.renew_s
GIVEN_UP_S = 5.0
Claim = tuple[LeaseSpec, str]


@dataclass
class Replica:
    """One of several lives of a replica, with its own monotonic clock and a wall clock that stands still.

    A life has several terms: a replica that has lost the lease campaigns again.
    """

    number: int
    clock: float
    wall: float
    life: int = 0
    attempt: int = 0
    sure: bool = False
    """Whether the resource version for its next write comes from its last call."""
    acts_until: float = float("-inf")
    """The last moment, in true time, at which this or an earlier life may have sent a write."""
    terms: int = 0
    acted_in: tuple[int, int] = (0, 0)
    """The life and term in which it last acted."""
    election: Election = field(init=False)

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self.life += 1
        self.attempt += 1
        self.sure = False
        self.election = Election(f"replica-{self.number}-{self.life}", TIMING)

    @property
    def term(self) -> tuple[int, int]:
        return self.life, self.terms

    def begin_again(self) -> None:
        self.terms += 1
        self.attempt += 1
        self.sure = False
        self.election.begin_again()


class World:
    """True time, the API server and the messages in flight; `chance` decides every delay."""

    def __init__(self, chance: Random, *, calm: float) -> None:
        self.chance = chance
        self.calm = calm
        self.now = 0.0
        self.lease: Lease | None = None
        self.grants = 0
        self.takeovers = 0
        self._versions = count(1)
        self._order = count()
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self.replicas = [Replica(n, chance.uniform(0, 1e6), chance.uniform(0, 4e9)) for n in range(3)]
        for replica in self.replicas:
            self.later(chance.uniform(0, 3), partial(self.attempt, replica))

    def run(self, until_s: float) -> None:
        while self._due[0][0] < until_s:
            at, _, action = heapq.heappop(self._due)
            self.now = at
            action()
            self.check()

    def check(self) -> None:
        acting = [each.number for each in self.replicas if each.election.held(self.local(each))]
        assert len(acting) <= 1, f"{acting} act at {self.now}"

    def local(self, replica: Replica) -> float:
        return self.now + replica.clock

    def later(self, delay_s: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._due, (self.now + delay_s, next(self._order), action))

    def delay(self) -> float:
        """The delay of a request, a result or a process: usually short, otherwise anything."""
        return self.chance.uniform(0, 0.5) if self.chance.random() < self.calm else self.chance.uniform(0, 25)

    def attempt(self, replica: Replica) -> None:
        election = replica.election
        if self.chance.random() > self.calm and self.chance.random() < 0.3:
            self.let_go_or_crash(replica)
        elif replica.acted_in == replica.term and not election.held(self.local(replica)):
            replica.begin_again()
        replica.attempt += 1
        began = self.now
        if replica.sure and election.held(self.local(replica)):
            self.claim(replica, began)
        else:
            self.call(replica, None, began)

    def let_go_or_crash(self, replica: Replica) -> None:
        if self.chance.random() < 0.5:
            # A replica releases the lease only after all its writes have ended.
            replica.acts_until = float("-inf")
            written = replica.election.let_go(wall=replica.wall)
            if written is not None:
                self.later(self.delay(), partial(self.arrive, written))
        replica.begin()

    def call(self, replica: Replica, write: Claim | None, began: float) -> None:
        """Send a read or a write. Its result is delivered unless the replica has given up waiting."""
        number, sent = replica.attempt, self.now

        def arrive() -> None:
            answer = self.lease if write is None else self.act(write)
            self.later(self.delay(), lambda: hear(answer))

        def hear(answer: Lease | None) -> None:
            if replica.attempt != number:
                return
            replica.attempt += 1
            self.heard(replica, write, answer, sent)
            if write is None and (claimed := self.claimed(replica)) is not None:
                self.call(replica, claimed, began)
            else:
                self.rest(replica, began)

        def give_up() -> None:
            if replica.attempt == number:
                replica.attempt += 1
                replica.sure = False
                self.rest(replica, began)

        self.later(self.delay(), arrive)
        self.later(GIVEN_UP_S, give_up)

    def claimed(self, replica: Replica) -> Claim | None:
        return replica.election.claim(now=self.local(replica), wall=replica.wall)

    def claim(self, replica: Replica, began: float) -> None:
        claimed = self.claimed(replica)
        assert claimed is not None
        self.call(replica, claimed, began)

    def arrive(self, write: Claim) -> None:
        """A write arrives whose result is no longer awaited."""
        self.act(write)

    def act(self, write: Claim) -> Lease | None:
        """Apply a write at the server; None stands for its 409."""
        spec, version = write
        if version != (self.lease.version if self.lease is not None else ""):
            return None
        # An update that changes nothing keeps the resource version.
        if self.lease is None or spec != self.lease.spec:
            self.lease = Lease(str(next(self._versions)), spec)
        return self.lease

    def heard(self, replica: Replica, write: Claim | None, answer: Lease | None, sent: float) -> None:
        election, local = replica.election, self.local(replica)
        replica.sure = write is None or answer is not None
        if write is None:
            election.saw(answer, now=local)
        elif answer is not None:
            renewal = election.held(local)
            election.wrote(answer, sent=sent + replica.clock, now=local)
            if election.held(local):
                self.grants += 1
                self.takeovers += not renewal
                for other in self.replicas:
                    goes_on = renewal or (other is replica and other.acted_in == other.term)
                    assert goes_on or other.acts_until + GAP_S <= self.now + 1e-6
                replica.acted_in = replica.term
                replica.acts_until = self.now + election.held_for_s(local)

    def rest(self, replica: Replica, began: float) -> None:
        wait_s = replica.election.wait_s(
            began=began + replica.clock, now=self.local(replica), chance=self.chance.random()
        )
        pause_s = 0.0 if self.chance.random() < self.calm else self.delay()
        self.later(wait_s + pause_s, lambda: self.attempt(replica))


@settings(max_examples=examples(400), deadline=None)
@given(seed=st.integers(0, 2**32), calm=st.sampled_from((0.5, 0.7, 0.9, 0.98)))
def test_at_most_one_replica_acts_and_a_new_one_only_once_the_old_ones_last_binding_is_over(seed, calm):
    World(Random(seed), calm=calm).run(until_s=300)


def test_the_race_is_one_in_which_the_lease_changes_hands_often():
    worlds = [World(Random(seed), calm=0.9) for seed in range(20)]
    for world in worlds:
        world.run(until_s=300)
    assert sum(world.takeovers for world in worlds) > 60
    assert sum(world.grants for world in worlds) > 600
    assert sum(replica.terms for world in worlds for replica in world.replicas) > 60
