"""Who leads: the rules of leader election by Lease, without I/O and without a clock.

The protocol is the one of Kubernetes' own components. The holder renews the Lease every `retry_s`. Everybody else reads
it as often and takes it over once its holder has let go (an empty holder) or has not renewed it for the duration that
it wrote into it. Every write is conditional on the version that was read, so at most one of two candidates succeeds.

Why two never act at once
    Times written by another machine are never compared with our own clock. A candidate counts the lease's duration from
    the moment at which it saw the last change of the Lease, on its own monotonic clock; that is later than the moment
    at which the holder *sent* that change, from which the holder counts. The holder may act (`held`) only for
    `renew_s` from there, so between the last moment at which the old holder sends anything and the first at which a
    new one may act lie at least `lease_s - renew_s`: 5 s by default. A binding carries `?timeout=4s`, so the API server
    is done with the last one before the new holder's first. The settings demand these 5 s.

    A process that has lost the lease campaigns again under another identity: to its next term its last one is a
    stranger, whose lease must expire like any other's, so that no request of that term is still on its way.

    What no client can exclude: a process or a network that stops between the question whether the lease is held and
    the arrival of the request. Such a late binding is what the next leader finds as a foreign pod, counts, and repairs.

What is written when the wall clock misbehaves
    Others see a renewal by the changed Lease. Each of our writes therefore adds some microseconds of its own to the
    time: with a clock that stands still, one `renewTime` would look like the next and a live holder like a dead one.
"""

from __future__ import annotations

from dataclasses import dataclass

from gangsched.api.times import format_time
from gangsched.config.settings import LeaderElection
from gangsched.core.objects.duration import parse_duration
from gangsched.kube.lease import Lease, LeaseSpec

_NEVER = float("-inf")
_RELEASED_S = 1
_STEP_S = 2e-6
_STEPS = 1000
_SPREAD = 0.2


@dataclass(frozen=True, kw_only=True)
class Timing:
    """All in seconds: how long a lease lasts, for how long its holder acts on it, how often it is renewed and read."""

    lease_s: float = 15.0
    renew_s: float = 10.0
    retry_s: float = 2.0

    @classmethod
    def of(cls, settings: LeaderElection) -> Timing:
        """As the settings say."""
        return cls(
            lease_s=parse_duration(settings.lease_duration),
            renew_s=parse_duration(settings.renew_deadline),
            retry_s=parse_duration(settings.retry_period),
        )


class Election:
    """What one replica knows of the Lease. Times called `now` are of one monotonic clock, `wall` is epoch seconds."""

    def __init__(self, identity: str, timing: Timing) -> None:
        self.identity = identity
        self.timing = timing
        self.term = 1
        """Counts the campaigns of this process, each of which has an identity of its own."""
        self._process = identity
        self.handed_over = False
        """Whether the lease that we took last had been released by its holder, so that it acted until just now."""
        self._lease: Lease | None = None
        self._there = False
        self._changed_at = _NEVER
        self._writes = 0
        self._held_until = _NEVER

    @property
    def holder(self) -> str:
        """Who was last seen to hold the lease, which may have expired since; empty if nobody."""
        return (self._lease.spec.holder_identity or "") if self._lease is not None else ""

    @property
    def transitions(self) -> int:
        """How often the lease has changed hands, as it says itself."""
        return (self._lease.spec.lease_transitions or 0) if self._lease is not None else 0

    def held(self, now: float) -> bool:
        """Whether we may act."""
        return now < self._held_until

    def held_for_s(self, now: float) -> float:
        """For how many more seconds we may act without another renewal; 0 if we may not."""
        return max(0.0, self._held_until - now)

    def saw(self, lease: Lease | None, *, now: float) -> None:
        """The Lease was read and is this; None if it does not exist.

        One that has vanished still counts until it expires: its holder may not know yet.
        """
        self._there = lease is not None
        if lease is None:
            return
        if self._lease is None or lease.spec != self._lease.spec:
            self._changed_at = now
        self._lease = lease
        if self.holder != self.identity:
            self._held_until = _NEVER

    def free_in_s(self, now: float) -> float:
        """After how many seconds the lease may be claimed if it is not renewed; 0 if it may be now."""
        if self.holder in ("", self.identity) or self._lease is None:
            return 0.0
        lasts_s = self._lease.spec.lease_duration_seconds or self.timing.lease_s
        return max(0.0, self._changed_at + lasts_s - now)

    def claim(self, *, now: float, wall: float) -> tuple[LeaseSpec, str] | None:
        """What to write so as to take or renew the lease, and the version to replace; None while another holds it.

        The version is empty where the Lease must be created.
        """
        if self.free_in_s(now) > 0:
            return None
        if self._lease is None:
            return self._spec(wall, acquired=format_time(wall), transitions=0), ""
        known = self._lease.spec
        if self.holder == self.identity:
            acquired, transitions = known.acquire_time or format_time(wall), self.transitions
        else:
            acquired, transitions = format_time(wall), self.transitions + 1
        return self._spec(wall, acquired=acquired, transitions=transitions), self._lease.version if self._there else ""

    def wrote(self, lease: Lease, *, sent: float, now: float) -> None:
        """A claim that was sent at `sent` has succeeded, and the Lease is this now."""
        if self.holder != self.identity:
            self.handed_over = self._lease is not None and not self.holder
        self.saw(lease, now=now)
        if self.holder == self.identity:
            self._held_until = sent + self.timing.renew_s

    def begin_again(self) -> None:
        """The lease is lost: campaign anew, as somebody else."""
        self._held_until = _NEVER
        self.handed_over = False
        self.term += 1
        self.identity = f"{self._process}-{self.term}"

    def ours(self, holder: str) -> bool:
        """Whether this process holds or held the lease under this name."""
        return holder == self._process or holder.startswith(f"{self._process}-")

    def let_go(self, *, wall: float) -> tuple[LeaseSpec, str] | None:
        """Stop acting; what to write so that another replica need not wait, None if the lease is not ours."""
        self._held_until = _NEVER
        if self._lease is None or not self._there or self.holder != self.identity:
            return None
        released = LeaseSpec(
            holder_identity="",
            lease_duration_seconds=_RELEASED_S,
            acquire_time=format_time(wall),
            renew_time=format_time(wall),
            lease_transitions=self.transitions,
        )
        return released, self._lease.version

    def wait_s(self, *, began: float, now: float, chance: float) -> float:
        """Seconds until the next attempt, after one that began at `began`; `chance` is a random number from 0 to 1.

        The spread keeps replicas apart; a candidate is never later than the moment at which the lease is free.
        """
        due = began + self.timing.retry_s * (1.0 - _SPREAD * chance)
        free_in_s = self.free_in_s(now)
        wait_s = max(0.0, due - now)
        return min(wait_s, free_in_s) if free_in_s > 0 else wait_s

    def _spec(self, wall: float, *, acquired: str, transitions: int) -> LeaseSpec:
        self._writes = (self._writes + 1) % _STEPS
        return LeaseSpec(
            holder_identity=self.identity,
            lease_duration_seconds=round(self.timing.lease_s),
            acquire_time=acquired,
            renew_time=format_time(wall + self._writes * _STEP_S),
            lease_transitions=transitions,
        )
