"""Which write is sent next: the order among everything that the machine has decided and nobody has sent yet.

Who goes first
    A binding takes any free slot, and so does a conditional status write: it is a reservation, and bindings wait for
    it. Next are evictions and the look-ups of owners before them, which undo gangs and have a deadline, and PodGroups
    to be made, for which bindings wait: they take at most a quarter of the slots. The other status patches, pod
    conditions, Demand objects and Events only tell people and autoscalers: they take at most half, so that a burst of
    bindings always finds slots, and, before they have waited for `telling_patience_s`, two while a binding is in
    flight, so that a gang's bindings have the API server to themselves. Neither takes any while a binding waits. So
    that they never starve under an endless stream of bindings, one that has waited for `patience_s`, or
    `telling_patience_s`, may even then take one of two slots of its sort. Bindings of members above their gang's
    minimum wait behind the other bindings in the same way: thousands of them must not delay a gang.

How many at once
    AT_FIRST, and one more with every second answer to so many, until a binding is not taken because the server has too
    much to do or cannot be reached; never more than there are workers.

What is never sent
    Of several status patches of one group, conditions of one pod or writes of one Demand, only the newest waits, and at
    most one is in flight. A binding drops the condition that waits for its pod, and waits for one in flight, which is
    not tried again: written later it would call a bound pod unscheduled.
    A binding that still waits can be withdrawn. An eviction of a pod, a look-up of an owner or a PodGroup to be made
    that waits or is in flight already is not added again: its answer serves both.
    Events wait in a bounded queue that drops its oldest.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import NamedTuple

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.effects import (
    BindPod,
    DropDemand,
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

AT_FIRST = 64
"""A thousand writes at once would open as many connections, which share the processor until none of them is in time;
and what a server does not answer it need not be asked a thousand times."""
EVENTS_YIELD_S = 5.0
"""An Event lets statuses and conditions go first that were decided at most so much later."""


class Job(NamedTuple):
    """A write that waits: since when (seconds of any monotonic clock) and how often it was tried before."""

    effect: Effect
    since: float
    attempt: int = 0


class Dropped(NamedTuple):
    """How many decisions of each kind that waited were forgotten."""

    bindings: int
    evictions: int


def _turn(job: Job) -> float:
    """Whose turn it is among what tells people: the oldest's, but Events yield to what people and programs wait for."""
    return job.since + EVENTS_YIELD_S if isinstance(job.effect, EmitEvent) else job.since


class _Newest:
    """Keeps the newest waiting job of each key and hides it while another of that key is in flight."""

    def __init__(self) -> None:
        self.ready: dict[Hashable, Job] = {}
        self._behind: dict[Hashable, Job] = {}
        self._in_flight: set[Hashable] = set()

    def __len__(self) -> int:
        return len(self.ready) + len(self._behind)

    def __contains__(self, key: Hashable) -> bool:
        return key in self.ready or key in self._behind

    def add(self, key: Hashable, job: Job) -> None:
        waiting = self._behind if key in self._in_flight else self.ready
        older = waiting.get(key)
        # A replaced job keeps its place and its age: a group that changes often is not told later for it.
        waiting[key] = job._replace(since=older.since) if older is not None else job

    def take(self, key: Hashable) -> Job:
        job = self.ready.pop(key)
        self._in_flight.add(key)
        return job

    def done(self, key: Hashable) -> None:
        self._in_flight.discard(key)
        if key in self._behind:
            self.ready[key] = self._behind.pop(key)

    def flies(self, key: Hashable) -> bool:
        return key in self._in_flight

    def drop(self, key: Hashable) -> None:
        self.ready.pop(key, None)
        self._behind.pop(key, None)

    def waiting(self, kind: type[Effect]) -> int:
        jobs = (*self.ready.values(), *self._behind.values())
        return sum(isinstance(job.effect, kind) for job in jobs)

    def clear(self) -> None:
        self.ready.clear()
        self._behind.clear()


class Backlog:
    """Everything decided and not sent, and what is in flight. No I/O and no clock: times are passed in."""

    def __init__(
        self,
        *,
        slots: int,
        patience_s: float,
        telling_patience_s: float,
        events_limit: int,
        on_event_dropped: Callable[[], None],
    ) -> None:
        self._most: float = AT_FIRST
        self._undoing_slots = max(1, slots // 4)
        self._telling_slots = max(1, slots // 2)
        self._trickle_slots = min(2, self._undoing_slots)
        self._patience_s = patience_s
        self._telling_patience_s = telling_patience_s
        self._events_limit = events_limit
        self._on_event_dropped = on_event_dropped
        self._bindings: OrderedDict[tuple[str, str], Job] = OrderedDict()
        self._above: OrderedDict[tuple[str, str], Job] = OrderedDict()
        self._above_in_flight = 0
        self._bindings_behind: dict[str, Job] = {}
        self._undoing: OrderedDict[EvictPod | LookUpOwner | MakeGroup, Job] = OrderedDict()
        self._undoing_in_flight: set[EvictPod | LookUpOwner | MakeGroup] = set()
        self._reservations: dict[GroupKey, None] = {}
        self._statuses = _Newest()
        self._conditions = _Newest()
        self._demands = _Newest()
        self._events: deque[Job] = deque()
        self._telling = 0
        self._binding = 0
        self._in_flight = 0

    @property
    def in_flight(self) -> int:
        """How many jobs were taken and are not done."""
        return self._in_flight

    @property
    def acting(self) -> int:
        """How many of those change the cluster rather than tell people."""
        return self._in_flight - self._telling

    def waiting(self, kind: type[Effect]) -> int:
        """How many writes of this kind wait."""
        if kind is BindPod:
            return len(self._bindings) + len(self._above) + len(self._bindings_behind)
        if kind in (EvictPod, LookUpOwner, MakeGroup):
            return sum(isinstance(effect, kind) for effect in self._undoing)
        if kind is PatchStatus:
            return len(self._statuses)
        if kind in (PutDemand, DropDemand):
            return self._demands.waiting(kind)
        return len(self._conditions) if kind is PatchPodCondition else len(self._events)

    @property
    def empty(self) -> bool:
        """Whether nothing waits; something may still be in flight."""
        return not (
            self._bindings
            or self._above
            or self._bindings_behind
            or self._undoing
            or len(self._statuses)
            or len(self._conditions)
            or len(self._demands)
            or self._events
        )

    def add(self, effect: Effect, now: float) -> None:
        """A new decision; it replaces an older one about the same status or condition."""
        match effect:
            case BindPod(uid=uid, node=node):
                self._conditions.drop(uid)
                if self._conditions.flies(uid):
                    self._bindings_behind[uid] = Job(effect, now)
                else:
                    self._lane(effect)[uid, node] = Job(effect, now)
            case EvictPod() | LookUpOwner() | MakeGroup():
                if effect not in self._undoing_in_flight:
                    self._undoing.setdefault(effect, Job(effect, now))
            case PatchStatus(key=key):
                self._statuses.add(key, Job(effect, now))
                if effect.resource_version:
                    self._reservations[key] = None
                else:
                    self._reservations.pop(key, None)
            case PatchPodCondition(uid=uid):
                self._conditions.add(uid, Job(effect, now))
            case PutDemand(key=key) | DropDemand(key=key):
                self._demands.add(key, Job(effect, now))
            case EmitEvent():
                self._append_event(Job(effect, now))

    def withdraw(self, effect: WithdrawBinding) -> bool:
        """Forget this binding if it waits; False if it does not: it has been sent, or was never decided."""
        match self._bindings_behind.get(effect.uid):
            case Job(effect=BindPod(node=node)) if node == effect.node:
                del self._bindings_behind[effect.uid]
                return True
        lanes = (self._bindings, self._above)
        return any(lane.pop((effect.uid, effect.node), None) is not None for lane in lanes)

    def superseded(self, effect: Effect) -> bool:
        """Whether a newer decision about the same status or condition waits."""
        match effect:
            case PatchStatus(key=key):
                return key in self._statuses
            case PatchPodCondition(uid=uid):
                return uid in self._conditions or uid in self._bindings_behind
            case PutDemand(key=key) | DropDemand(key=key):
                return key in self._demands
            case _:
                return False

    def add_again(self, job: Job) -> None:
        """Put a job back that failed for now and has not been superseded."""
        again = job._replace(attempt=job.attempt + 1)
        match job.effect:
            case EvictPod() | LookUpOwner() | MakeGroup() as effect:
                self._undoing[effect] = again
            case PatchStatus(key=key):
                self._statuses.add(key, again)
                if job.effect.resource_version:
                    self._reservations[key] = None
            case PatchPodCondition(uid=uid):
                self._conditions.add(uid, again)
            case PutDemand(key=key) | DropDemand(key=key):
                self._demands.add(key, again)
            case _:
                self._append_event(again)

    def next(self, now: float) -> Job | None:
        """Take the job to send now, or None if nothing may be sent before another one is done or added."""
        if self._in_flight >= self._most:
            return None
        job = self._next_binding(now) or self._next_undoing() or self._next_telling(now)
        if job is not None:
            self._in_flight += 1
        return job

    def done(self, job: Job) -> None:
        """A taken job has been answered, whatever the answer."""
        self._in_flight -= 1
        if self._in_flight < self._most:
            self._most = max(AT_FIRST, min(self._most + 0.5, 2 * self._in_flight))
        match job.effect:
            case BindPod(above=above):
                self._binding -= 1
                self._above_in_flight -= above
                return
            case EvictPod() | LookUpOwner() | MakeGroup() as effect:
                self._undoing_in_flight.discard(effect)
                return
            case PatchStatus(key=key):
                self._statuses.done(key)
                if job.effect.resource_version:
                    return
            case PatchPodCondition(uid=uid):
                self._conditions.done(uid)
                match self._bindings_behind.pop(uid, None):
                    case Job(effect=BindPod(node=node) as binding) as behind:
                        self._lane(binding)[uid, node] = behind
            case PutDemand(key=key) | DropDemand(key=key):
                self._demands.done(key)
        self._telling -= 1

    def slow_down(self) -> None:
        """The server, or the way to it, has more than it can do: no more at once than at first."""
        self._most = AT_FIRST

    def close(self) -> Dropped:
        """Forget what waits and would change the cluster, and what speaks of single pods or to autoscalers."""
        dropped = Dropped(bindings=self.waiting(BindPod), evictions=self.waiting(EvictPod))
        self._bindings.clear()
        self._above.clear()
        self._bindings_behind.clear()
        self._undoing.clear()
        self._conditions.clear()
        self._demands.clear()
        return dropped

    def clear(self) -> int:
        """Forget the statuses and Events that wait; give how many there were."""
        untold = len(self._statuses) + len(self._events)
        self._statuses.clear()
        self._reservations.clear()
        self._events.clear()
        return untold

    def _append_event(self, job: Job) -> None:
        if len(self._events) >= self._events_limit:
            self._events.popleft()
            self._on_event_dropped()
        self._events.append(job)

    def _next_binding(self, now: float) -> Job | None:
        for key in self._reservations:
            if key in self._statuses.ready:
                del self._reservations[key]
                return self._statuses.take(key)
        if not (self._bindings or self._above):
            return None
        overdue = self._next_overdue(now)
        if overdue is not None:
            return overdue
        self._binding += 1
        if self._bindings and not self._above_is_overdue(now):
            return self._bindings.popitem(last=False)[1]
        self._above_in_flight += 1
        return self._above.popitem(last=False)[1]

    def _above_is_overdue(self, now: float) -> bool:
        if not self._above or self._above_in_flight >= self._trickle_slots:
            return False
        return next(iter(self._above.values())).since <= now - self._patience_s

    def _lane(self, effect: BindPod) -> OrderedDict[tuple[str, str], Job]:
        return self._above if effect.above else self._bindings

    def _next_overdue(self, now: float) -> Job | None:
        """What has waited too long, although bindings wait."""
        if self._undoing and len(self._undoing_in_flight) < self._trickle_slots:
            effect, oldest = next(iter(self._undoing.items()))
            if oldest.since <= now - self._patience_s:
                return self._take_undoing(effect)
        if self._telling < self._trickle_slots:
            told = self._oldest_telling()
            if told is not None and told.since <= now - self._telling_patience_s:
                return self._take_telling(told)
        return None

    def _next_undoing(self) -> Job | None:
        if not self._undoing or len(self._undoing_in_flight) >= self._undoing_slots:
            return None
        return self._take_undoing(next(iter(self._undoing)))

    def _take_undoing(self, effect: EvictPod | LookUpOwner | MakeGroup) -> Job:
        self._undoing_in_flight.add(effect)
        return self._undoing.pop(effect)

    def _next_telling(self, now: float) -> Job | None:
        oldest = self._oldest_telling()
        if oldest is None:
            return None
        yields = self._binding and oldest.since > now - self._telling_patience_s
        if self._telling >= (self._trickle_slots if yields else self._telling_slots):
            return None
        return self._take_telling(oldest)

    def _oldest_telling(self) -> Job | None:
        kept = (self._statuses, self._conditions, self._demands)
        heads = [next(iter(waiting.ready.values())) for waiting in kept if waiting.ready]
        if self._events:
            heads.append(self._events[0])
        return min(heads, key=_turn, default=None)

    def _take_telling(self, job: Job) -> Job:
        self._telling += 1
        match job.effect:
            case PatchStatus(key=key):
                return self._statuses.take(key)
            case PatchPodCondition(uid=uid):
                return self._conditions.take(uid)
            case PutDemand(key=key) | DropDemand(key=key):
                return self._demands.take(key)
            case _:
                return self._events.popleft()
