"""The order in which decided writes are sent.

Priority
    A binding takes any free slot. So does a conditional status write: it is a reservation, and bindings wait for it.
    Evictions, the look-ups of owners before them, pre-bindings and their removal, and the creation of PodGroups come
    next: some roll back gangs and have a deadline, and bindings wait for the others. Together they take at most a
    quarter of the slots.
    Other status patches, pod conditions, Demand objects and Events only inform people and autoscalers. They take at
    most half of the slots, so that new bindings always find free ones, and two slots while a binding is in flight.
    During a burst, until QUIET_S after the last moment at which BURST bindings were in flight, they wait, so that the
    bindings have the API server to themselves; meanwhile a newer status of a group replaces the older one, which is
    never sent. Once they have waited for `informing_patience_s`, they take up to a quarter of the slots all the same.
    While a binding waits, the last two classes take no slot. To prevent starvation under a constant stream of bindings,
    a write that has waited for `patience_s` or `informing_patience_s` may still take one of two slots of its class.
    Bindings of members above their gang's minimum wait behind the other bindings in the same way, so that thousands of
    them do not delay a gang.

Concurrency
    It starts at AT_FIRST and grows by one with every second result while it is fully used. It falls back when a binding
    fails because the server is overloaded or unreachable. It never exceeds the number of workers.

Writes that are not sent
    Of several writes with one key (status patches of one group, conditions of one pod, writes of one Demand) only the
    newest waits, and at most one is in flight. A write drops the waiting write that it overrules: a binding drops the
    condition of its pod. If the overruled write is in flight, the new one waits for its result, and the overruled one
    is not retried. A waiting binding can be withdrawn. A write of the lane ACTION is not added if one with its key
    waits or is in flight: one result serves both.
    Events wait in a bounded queue that drops the oldest.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator

from gangsched.runtime.write import BINDINGS, INFORMING, SENT_AT_THE_END, Job, Lane

AT_FIRST = 64
"""Initial number of concurrent writes. A thousand would open a thousand connections, which share the processor until
all of them time out, and an unresponsive server would receive a thousand requests."""
BURST = 4
"""The number of bindings in flight that makes a burst. A steady flow of single bindings must not delay statuses."""
QUIET_S = 0.05
"""The time after a burst of bindings after which writes that inform people are sent."""
EVENTS_YIELD_S = 5.0
"""Seconds: statuses and conditions that are decided up to this much later than an Event are sent before it."""


class Backlog:
    """The waiting writes and those in flight. No I/O and no clock: times are passed in.

    A job waits in its lane, where the head can always be sent, behind a job in flight with its key, or behind a job in
    flight that it overrules.
    """

    def __init__(
        self,
        *,
        slots: int,
        patience_s: float,
        informing_patience_s: float,
        events_limit: int,
        on_event_dropped: Callable[[], None],
    ) -> None:
        self._most: float = AT_FIRST
        self._quarter = max(1, slots // 4)
        self._half = max(1, slots // 2)
        self._trickle_slots = min(2, self._quarter)
        self._patience_s = patience_s
        self._informing_patience_s = informing_patience_s
        self._events_limit = events_limit
        self._on_event_dropped = on_event_dropped
        self._lanes: dict[Lane, OrderedDict[Hashable, Job]] = {lane: OrderedDict() for lane in Lane}
        self._lane_of: dict[Hashable, Lane] = {}
        self._behind: dict[Hashable, Job] = {}
        self._overruling: dict[Hashable, Job] = {}
        self._flying: set[Hashable] = set()
        self._flying_in = dict.fromkeys(Lane, 0)
        self._informing = 0
        self._in_flight = 0
        self._quiet_from = float("-inf")
        self._ending = False

    @property
    def in_flight(self) -> int:
        """Number of jobs in flight: taken by `next` and not yet `done`."""
        return self._in_flight

    @property
    def acting(self) -> int:
        """Number of jobs in flight that change the cluster rather than inform people."""
        return self._in_flight - self._informing

    def waiting(self, kind: type[object]) -> int:
        """Number of waiting writes of this kind."""
        return sum(type(job.effect) is kind for job in self._all_waiting())

    @property
    def empty(self) -> bool:
        """Whether nothing waits; something may still be in flight."""
        return not (self._lane_of or self._behind or self._overruling)

    def add(self, job: Job) -> None:
        """Add a new decision. It replaces an older one with its key and the one that it overrules."""
        if job.overrules is not None:
            self._forget(job.overrules)
            if job.overrules in self._flying:
                self._overruling[job.overrules] = job
                return
        self._enter(job)

    def withdraw(self, key: Hashable) -> Job | None:
        """Remove and return the job that waits under this key; None if it was sent or never decided."""
        overruled = next((other for other, job in self._overruling.items() if job.key == key), None)
        return self._forget(key) or self._overruling.pop(overruled, None)

    def superseded(self, job: Job) -> bool:
        """Whether a newer decision replaces this job in flight."""
        return job.key in self._behind or job.key in self._overruling

    def add_again(self, job: Job) -> None:
        """Queue a failed job for a retry. It must not be superseded."""
        self._enter(job._replace(attempt=job.attempt + 1))

    def next(self, now: float) -> Job | None:
        """Take the next job to send; None if none may be sent until another one is done or added."""
        if self._in_flight >= self._most:
            return None
        lane = self._next_lane(now)
        if lane is None:
            return None
        key, job = self._lanes[lane].popitem(last=False)
        del self._lane_of[key]
        self._flying.add(key)
        self._flying_in[lane] += 1
        self._informing += lane in INFORMING
        self._in_flight += 1
        self._note_burst(now)
        return job

    def due(self, now: float) -> float:
        """The next time at which a write that yields to bindings may be sent, if nothing happens before; inf if none.

        `now` must be the time at which `next` found nothing: the clock may reach a time between two looks at it.
        """
        oldest = self._oldest_informing()
        if oldest is None:
            return float("inf")
        times = oldest.since + self._informing_patience_s, self._quiet_from
        return min((time for time in times if time > now), default=float("inf"))

    def done(self, job: Job, now: float) -> None:
        """Record that a job in flight has a result, successful or not."""
        self._note_burst(now)
        self._in_flight -= 1
        if self._in_flight < self._most:
            self._most = max(AT_FIRST, min(self._most + 0.5, 2 * self._in_flight))
        self._flying_in[job.lane] -= 1
        self._informing -= job.lane in INFORMING
        self._flying.discard(job.key)
        for followers in (self._behind, self._overruling):
            if job.key in followers:
                self._enter(followers.pop(job.key))

    def slow_down(self) -> None:
        """Fall back to the initial concurrency, because the server or the network is overloaded."""
        self._most = AT_FIRST

    def close(self) -> Counter[str]:
        """Drop the waiting jobs that are not sent at shutdown; count, by kind, those that would change the cluster."""
        self._ending = True
        dropped = [job for job in self._all_waiting() if job.lane not in SENT_AT_THE_END]
        for job in dropped:
            self.withdraw(job.key)
        return Counter(job.kind for job in dropped if job.lane not in INFORMING)

    def clear(self) -> int:
        """Drop all waiting jobs; return their number."""
        unsent = len(self._lane_of) + len(self._behind) + len(self._overruling)
        for queue in (*self._lanes.values(), self._behind, self._overruling):
            queue.clear()
        self._lane_of.clear()
        return unsent

    def _all_waiting(self) -> Iterator[Job]:
        for queue in (*self._lanes.values(), self._behind, self._overruling):
            yield from queue.values()

    def _enter(self, job: Job) -> None:
        key, lane = job.key, job.lane
        current = self._lane_of.get(key)
        if job.served_by_others and (current is not None or key in self._flying):
            return
        if key in self._flying:
            older = self._behind.get(key)
            self._behind[key] = job if older is None else job._replace(since=older.since)
            return
        queue = self._lanes[lane]
        if current is lane:
            # The new job keeps the place and the age of the replaced one, so that frequent changes cause no delay.
            job = job._replace(since=queue[key].since)
        elif current is not None:
            del self._lanes[current][key]
        elif lane is Lane.EVENT and len(queue) >= self._events_limit:
            del self._lane_of[queue.popitem(last=False)[0]]
            self._on_event_dropped()
        queue[key] = job
        self._lane_of[key] = lane

    def _forget(self, key: Hashable) -> Job | None:
        lane = self._lane_of.pop(key, None)
        return self._lanes[lane].pop(key) if lane is not None else self._behind.pop(key, None)

    def _next_lane(self, now: float) -> Lane | None:
        lanes = self._lanes
        if lanes[Lane.RESERVATION]:
            return Lane.RESERVATION
        if lanes[Lane.BINDING] or lanes[Lane.ABOVE]:
            return self._overdue(now) or self._binding_lane(now)
        if lanes[Lane.ACTION] and self._flying_in[Lane.ACTION] < self._quarter:
            return Lane.ACTION
        oldest = self._oldest_informing()
        if oldest is None:
            return None
        return oldest.lane if self._informing < self._most_informing(oldest, now) else None

    def _most_informing(self, oldest: Job, now: float) -> int:
        """The number of slots for writes that inform people while no binding waits."""
        binds = self._binds()
        if self._ending or not (binds or now < self._quiet_from):
            return self._half
        if self._is_overdue(oldest, now):
            return self._quarter
        return 0 if binds >= BURST or now < self._quiet_from else self._trickle_slots

    def _is_overdue(self, informing: Job, now: float) -> bool:
        return informing.since + self._informing_patience_s <= now

    def _binds(self) -> int:
        """The number of bindings in flight."""
        return sum(self._flying_in[lane] for lane in BINDINGS)

    def _note_burst(self, now: float) -> None:
        if self._binds() >= BURST:
            self._quiet_from = now + QUIET_S

    def _binding_lane(self, now: float) -> Lane:
        above = self._lanes[Lane.ABOVE]
        overdue = (
            above and self._flying_in[Lane.ABOVE] < self._trickle_slots and _head(above).since <= now - self._patience_s
        )
        return Lane.ABOVE if overdue or not self._lanes[Lane.BINDING] else Lane.BINDING

    def _overdue(self, now: float) -> Lane | None:
        """The lane whose head has waited too long behind bindings; None if there is none."""
        actions = self._lanes[Lane.ACTION]
        if (
            actions
            and self._flying_in[Lane.ACTION] < self._trickle_slots
            and _head(actions).since <= now - self._patience_s
        ):
            return Lane.ACTION
        if self._informing < self._trickle_slots:
            informing = self._oldest_informing()
            if informing is not None and self._is_overdue(informing, now):
                return informing.lane
        return None

    def _oldest_informing(self) -> Job | None:
        heads = [_head(queue) for lane in (Lane.STATUS, Lane.DETAIL, Lane.EVENT) if (queue := self._lanes[lane])]
        return min(heads, key=_turn, default=None)


def _head(queue: OrderedDict[Hashable, Job]) -> Job:
    return next(iter(queue.values()))


def _turn(job: Job) -> float:
    """Sort key of the writes that inform people: the oldest first, but Events yield to statuses and conditions."""
    return job.since + EVENTS_YIELD_S if job.lane is Lane.EVENT else job.since
