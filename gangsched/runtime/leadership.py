"""The I/O of leader election: campaign for the Lease, renew it while this replica leads, release it at the end.

The rules are in `gangsched.runtime.election`; this module makes the calls, waits and writes the log. It retries after
every error of the API server: a replica that cannot get the lease, or loses it, is a standby.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import secrets
import socket
import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Protocol

from gangsched.kube.client.errors import ApiError, KubeError
from gangsched.kube.client.lease import Lease, LeaseSpec
from gangsched.runtime.election import Election, Timing
from gangsched.runtime.metrics import Metrics

_log = logging.getLogger(__name__)


class Leases(Protocol):
    """The parts of `kube.lease.LeaseClient` that this module uses. The calls raise its errors."""

    async def get(self, *, timeout_s: float) -> Lease | None:
        """The Lease as it is now."""
        ...

    async def create(self, spec: LeaseSpec, *, timeout_s: float) -> Lease:
        """Create it."""
        ...

    async def update(self, spec: LeaseSpec, *, version: str, timeout_s: float) -> Lease:
        """Change it if it still has this version."""
        ...


def new_identity() -> str:
    """A unique holder name: no other process, not even a crashed predecessor on the same host, has the same one."""
    return f"{socket.gethostname()}_{secrets.token_hex(8)}"


def since_boot() -> float:
    """A monotonic clock in seconds. It also runs while the machine sleeps if the system has such a clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class Leadership:
    """One replica in the election. Call `acquire`, then `keep` until the lease is lost, repeat; end with `release`.

    `problem` says why the last attempt to read or write the Lease failed; empty if it succeeded. `standby`: this
    replica has seen another leader and waits to replace it.
    """

    elected = True
    """Whether another replica may have led before."""

    def __init__(
        self,
        leases: Leases,
        *,
        identity: str,
        timing: Timing,
        metrics: Metrics,
        monotonic: Callable[[], float] = since_boot,
        wall: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._leases = leases
        self._election = Election(identity, timing)
        self._metrics = metrics
        self._monotonic = monotonic
        self._wall = wall
        self._sleep = sleep
        self._chance = chance
        self._current = False
        self._claimed = False
        self._began = 0.0
        self.problem = ""
        self.standby = False
        self._logged_leader: str | None = None

    def held(self) -> bool:
        """Whether this replica may act. Callers ask before each write: the check is cheap and never stale."""
        return self._election.held(self._monotonic())

    @property
    def term(self) -> int:
        """Number of this process's campaigns so far, won or not, from 1. It grows when the lease is lost."""
        return self._election.term

    @property
    def handed_over(self) -> bool:
        """Whether the last holder released the lease, and therefore acted until just before we took it."""
        return self._election.handed_over

    @property
    def leader(self) -> str:
        """Identity of the last leader seen; empty if none."""
        return self._election.holder

    def role(self, *, decides: bool) -> str:
        """The role of this replica, as /readyz shows it."""
        return "leading" if decides else f"standby; the leader is {self.leader or 'not known'}"

    async def acquire(self) -> None:
        """Campaign until this replica holds the lease."""
        while True:
            try:
                led = await self._attempt(self._request_timeout_s())
            except KubeError as error:
                self._say(f"the Lease {self._leases} cannot be used: {error}")
            else:
                self._say("")
                if led and self.held():
                    _log.info("leading", extra={"lease": self._leases, "identity": self._election.identity})
                    return
                self._log_standby()
            await self._pause()

    async def keep(self) -> str:
        """Renew the lease until it is lost, and return the reason. From then on `held` is false.

        The next `acquire` campaigns under a new identity.
        """
        election = self._election
        while True:
            await self._pause(at_most_s=election.held_for_s(self._monotonic()))
            left_s = election.held_for_s(self._monotonic())
            if left_s == 0.0:
                why = self.problem or "this process was stopped for that time"
                return self._lost(f"the Lease {self._leases} was not renewed for {election.timing.renew_s:g} s: {why}")
            try:
                # The requests' own time-outs do not bound several requests in a row or the renewal of credentials.
                async with asyncio.timeout(left_s):
                    renewed = await self._attempt(min(self._request_timeout_s(), left_s), renewing=True)
            except (KubeError, TimeoutError) as error:
                self._metrics.renewal_failed()
                self._say(str(error) or "no answer in time")
            else:
                self._say("")
                if not renewed and election.holder != election.identity:
                    return self._lost(f"the Lease {self._leases} has another holder: {self.leader or 'none'}")

    def _lost(self, why: str) -> str:
        self._metrics.lease_lost()
        self._election.begin_again()
        self._current = self._claimed = self.standby = False
        self._logged_leader = None
        return why

    async def release(self, *, timeout_s: float = 3.0) -> None:
        """Release the lease if this replica holds it, so that another one leads at once; if that fails, it expires.

        All requests that were sent under the lease must have ended before.
        """
        election = self._election
        election.let_go(wall=self._wall())
        if not self._claimed:
            return
        try:
            async with asyncio.timeout(timeout_s):
                released = await self._write_release(timeout_s)
        except (KubeError, TimeoutError) as error:
            _log.warning("releasing the lease failed; it will expire", extra={"error": str(error) or "no answer"})
        else:
            if released:
                _log.info("lease released", extra={"lease": self._leases})

    async def _write_release(self, timeout_s: float) -> bool:
        """Release the lease, and retry if an earlier renewal of ours arrived in between; False if it is not ours."""
        while True:
            if not self._current:
                self._election.saw(await self._leases.get(timeout_s=timeout_s), now=self._monotonic())
            written = self._election.let_go(wall=self._wall())
            if written is None:
                return False
            spec, version = written
            try:
                await self._leases.update(spec, version=version, timeout_s=timeout_s)
            except ApiError as error:
                if error.status != HTTPStatus.CONFLICT or not self._current:
                    raise
                self._current = False
            else:
                return True

    async def _attempt(self, timeout_s: float, *, renewing: bool = False) -> bool:
        """Take or renew the lease. False if another replica holds it or was faster, or if a renewal is too late."""
        self._began = self._monotonic()
        election = self._election
        # A conflict may come from an earlier write of ours whose result was lost. The second read then shows our own.
        for _ in range(2):
            if not self._current:
                election.saw(await self._leases.get(timeout_s=timeout_s), now=self._monotonic())
                self._metrics.lease_transitions(election.transitions)
            claim = election.claim(now=self._monotonic(), wall=self._wall())
            if claim is None or (renewing and not self.held()):
                # A renewal is too late if the machine slept: pending writes were dropped, and the term is over.
                return False
            spec, version = claim
            self._current, self._claimed = False, True
            sent = self._monotonic()
            try:
                if version:
                    lease = await self._leases.update(spec, version=version, timeout_s=timeout_s)
                else:
                    lease = await self._leases.create(spec, timeout_s=timeout_s)
            except ApiError as error:
                if error.status == HTTPStatus.CONFLICT or (version and error.status == HTTPStatus.NOT_FOUND):
                    continue
                raise
            election.wrote(lease, sent=sent, now=self._monotonic())
            self._metrics.lease_transitions(election.transitions)
            self._current = True
            return True
        return False

    async def _pause(self, *, at_most_s: float = math.inf) -> None:
        wait_s = self._election.wait_s(began=self._began, now=self._monotonic(), chance=self._chance())
        await self._sleep(min(wait_s, at_most_s))

    def _request_timeout_s(self) -> float:
        """Half of the deadline, so that an unanswered request leaves time for a second one."""
        return self._election.timing.renew_s / 2

    def _say(self, problem: str) -> None:
        if problem and problem != self.problem:
            _log.warning("leader election has a problem", extra={"error": problem})
        self.problem = problem

    def _log_standby(self) -> None:
        self.standby = True
        if self.leader == self._logged_leader:
            return
        self._logged_leader = self.leader
        if self._election.ours(self.leader):
            _log.info("standby; waiting until the lost lease expires", extra={"lease": self._leases})
        else:
            _log.info("standby; another replica leads", extra={"leader": self.leader, "lease": self._leases})
