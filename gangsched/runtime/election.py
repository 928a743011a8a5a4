"""The rules of leader election by Lease, without I/O and without a clock.

The protocol is that of Kubernetes' own components. The holder renews the Lease every `retry_s`. A standby reads it as
often. It takes the Lease over when the holder has released it (an empty holder) or has not renewed it for the duration
that the Lease states. Every write is conditional on the version that was read, so at most one of two candidates
succeeds.

Why two replicas never act at once
    A replica never compares times written by another machine with its own clock. A candidate measures the lease
    duration on its own monotonic clock, from the moment at which it saw the last change of the Lease. The holder
    measures from the moment at which it *sent* that change, which is earlier, and may act (`held`) only for `renew_s`
    from there. At least `lease_s - renew_s`, 5 s by default, therefore pass between the last request of the old holder
    and the first of the new one. A binding carries `?timeout=4s`, so the API server has finished the last one by then.
    The settings require these 5 s.

    A process that has lost the lease campaigns again under a new identity. It must wait until the lease of its own last
    term expires, as for any other holder, so that no request of that term is still in flight.

    No client can exclude that a process or a network stops between the check of the lease and the arrival of the
    request. The next leader sees such a late binding as a foreign pod, counts it, and repairs the gang.

Renewals when the wall clock stands still
    A standby sees a renewal because the Lease changes. Each write therefore adds a different number of microseconds to
    the time. Otherwise, if the clock stood still, two renewals would have the same `renewTime`, and a live holder would
    look dead.
"""

from __future__ import annotations

from dataclasses import dataclass

from gangsched.api.times import format_time
from gangsched.config.settings import LeaderElection
from gangsched.core.objects.duration import parse_duration
from gangsched.kube.client.lease import Lease, LeaseSpec

_NEVER = float("-inf")
_RELEASED_S = 1
_STEP_S = 2e-6
_STEPS = 1000
_SPREAD = 0.2


@dataclass(frozen=True, kw_only=True)
class Timing:
    """In seconds: how long a lease lasts, how long its holder acts on it, and how often it is renewed and read."""

    lease_s: float = 15.0
    renew_s: float = 10.0
    retry_s: float = 2.0

    @classmethod
    def of(cls, settings: LeaderElection) -> Timing:
        """The timing from the settings."""
        return cls(
            lease_s=parse_duration(settings.lease_duration),
            renew_s=parse_duration(settings.renew_deadline),
            retry_s=parse_duration(settings.retry_period),
        )


class Election:
    """What one replica knows about the Lease. `now` is a time of one monotonic clock; `wall` is in epoch seconds."""

    def __init__(self, identity: str, timing: Timing) -> None:
        self.identity = identity
        self.timing = timing
        self.term = 1
        """Counts the campaigns of this process. Each campaign has its own identity."""
        self._process = identity
        self.handed_over = False
        """Whether the previous holder released the lease that we took last, and so acted until just now."""
        self._lease: Lease | None = None
        self._exists = False
        self._changed_at = _NEVER
        self._writes = 0
        self._held_until = _NEVER

    @property
    def holder(self) -> str:
        """The last holder seen, empty if none. Its lease may have expired since."""
        return (self._lease.spec.holder_identity or "") if self._lease is not None else ""

    @property
    def transitions(self) -> int:
        """How often the lease has changed hands, according to the Lease."""
        return (self._lease.spec.lease_transitions or 0) if self._lease is not None else 0

    def held(self, now: float) -> bool:
        """Whether we may act."""
        return now < self._held_until

    def held_for_s(self, now: float) -> float:
        """Seconds for which we may still act without another renewal; 0 if we may not act."""
        return max(0.0, self._held_until - now)

    def saw(self, lease: Lease | None, *, now: float) -> None:
        """Take note of the Lease that was read; None if it does not exist.

        A deleted Lease still counts until it expires, because its holder may not know yet.
        """
        self._exists = lease is not None
        if lease is None:
            return
        if self._lease is None or lease.spec != self._lease.spec:
            self._changed_at = now
        self._lease = lease
        if self.holder != self.identity:
            self._held_until = _NEVER

    def free_in_s(self, now: float) -> float:
        """Seconds until the lease may be claimed if it is not renewed; 0 if it may be claimed now."""
        if self.holder in ("", self.identity) or self._lease is None:
            return 0.0
        lasts_s = self._lease.spec.lease_duration_seconds or self.timing.lease_s
        return max(0.0, self._changed_at + lasts_s - now)

    def claim(self, *, now: float, wall: float) -> tuple[LeaseSpec, str] | None:
        """The spec that takes or renews the lease and the version to replace; None while another replica holds it.

        The version is empty if the Lease must be created.
        """
        if self.free_in_s(now) > 0:
            return None
        if self._lease is None:
            return self._spec(wall, acquired=format_time(wall), transitions=0), ""
        spec = self._lease.spec
        if self.holder == self.identity:
            acquired, transitions = spec.acquire_time or format_time(wall), self.transitions
        else:
            acquired, transitions = format_time(wall), self.transitions + 1
        return self._spec(wall, acquired=acquired, transitions=transitions), self._lease.version if self._exists else ""

    def wrote(self, lease: Lease, *, sent: float, now: float) -> None:
        """Take note that the claim sent at `sent` succeeded and resulted in this Lease."""
        if self.holder != self.identity:
            self.handed_over = self._lease is not None and not self.holder
        self.saw(lease, now=now)
        if self.holder == self.identity:
            self._held_until = sent + self.timing.renew_s

    def begin_again(self) -> None:
        """Start a new campaign under a new identity, because the lease is lost."""
        self._held_until = _NEVER
        self.handed_over = False
        self.term += 1
        self.identity = f"{self._process}-{self.term}"

    def ours(self, holder: str) -> bool:
        """Whether this process holds or held the lease under this name."""
        return holder == self._process or holder.startswith(f"{self._process}-")

    def let_go(self, *, wall: float) -> tuple[LeaseSpec, str] | None:
        """Stop acting. Returns the spec that releases the lease, and its version; None if the lease is not ours."""
        self._held_until = _NEVER
        if self._lease is None or not self._exists or self.holder != self.identity:
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
        """Seconds until the next attempt after one that began at `began`; `chance` is a random number from 0 to 1.

        The random spread keeps replicas apart. A candidate never waits past the moment at which the lease is free.
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
