"""The one task that owns the machine: it drains the inbox, lets the machine decide and submits the decisions."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.effects import BindPod, Effect, EmitEvent, EvictPod
from gangsched.core.objects.events import Event, PodSeen, Synced, TimePassed
from gangsched.core.objects.faults import Fault, Omitted, Rebuilt, SetAside
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.results import PodBound, Result
from gangsched.core.objects.stats import Measured, Stats
from gangsched.core.status import pod_events
from gangsched.runtime.inbox import Inbox
from gangsched.runtime.metrics import Metrics
from gangsched.runtime.rivals import Rivals
from gangsched.runtime.watch_lag import WatchLag

_log = logging.getLogger(__name__)

_BEAT_S = 5.0
_REST_S = 0.02
"""Longest rest between two scheduling cycles, in seconds. One cycle handles all events of a rest for little more than
the cost of one event. An event that arrives later than this after the last cycle does not wait."""
_LEAST_REST_S = 0.003
"""Shortest rest, in seconds, even if the last member of a gang has arrived, so that many small gangs share a cycle."""
_LEAST_WAIT_S = 0.001
"""Rest in seconds between two scheduling cycles if the first has left work, so that other tasks that are ready run
first. It also keeps a machine whose deadline stays due from blocking the event loop."""
MOST_EVENTS = 500
"""Largest number of events in one scheduling cycle. Applying them takes about as long as the machine's own budget for a
call."""
_PASSES = 10
"""Number of collections of the young generation after which the middle generation is collected too."""
_MOST_SHOWN = 10
"""Largest number of contradictions in the accounts that one log line lists."""
_COLLECTIONS = 5
"""Number of collections of the middle generation after which all objects are frozen. After ten of them the next one
would be full; one call may cause several, so this is lower."""


class Machine(Protocol):
    """The parts of `core.machine.Machine` that the engine uses."""

    def handle(self, events: Sequence[Event], now: float) -> list[Effect]:
        """Apply the events and decide."""
        ...

    def take_measured(self) -> Measured:
        """The measurements since the last call."""
        ...

    def take_rivals(self) -> list[tuple[str, str]]:
        """("NAMESPACE/POD", node) of each pod of ours that another process has bound since the last call."""
        ...

    def take_faults(self) -> list[Fault | Omitted | Rebuilt | SetAside]:
        """Faults in the logic of single groups, or over single objects, since the last call."""
        ...

    def set_aside(self) -> list[str]:
        """The objects that are set aside after such faults, each in a few words."""
        ...

    def next_deadline(self) -> float | None:
        """Time, in epoch seconds, at which the machine needs a `TimePassed`; None if it needs none."""
        ...

    def lacking(self, pod: Pod) -> tuple[GroupKey, int] | None:
        """The gang of this new pod and how many members it lacks; None if it is not known to lack any."""
        ...

    def facts(self) -> list[Event]:
        """The observed state of the cluster, as events for a new machine."""
        ...

    def stats(self) -> Stats:
        """The numbers that metrics show."""
        ...


class Engine:
    """The only caller of `Machine.handle`.

    It starts as a standby, which observes the cluster and decides nothing. After `lead` it decides and passes the
    decisions to `submit`. Without `submit`, as in a dry run, it only logs and counts them, and a process that binds our
    pods is no rival. `stand_down` makes it a standby again. The machine confines a bug in the logic of one group to
    that group, and one over an object of no group to that object; the engine logs it. Any other exception ends `run`:
    the process ends, restarts and rebuilds its state from the cluster.
    """

    def __init__(
        self,
        make_machine: Callable[[], Machine],
        inbox: Inbox,
        *,
        now: Callable[[], float],
        metrics: Metrics,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make_machine = make_machine
        self._machine = make_machine()
        self._inbox = inbox
        self._coming: Counter[GroupKey] = Counter()
        inbox.call_on_post(self._completes)
        self._submit: Callable[[Iterable[Effect]], None] | None = None
        self._now = now
        self._metrics = metrics
        self._monotonic = monotonic
        self._turned = monotonic()
        self._passed = float("-inf")
        self._passed_now = float("-inf")
        self._lag = WatchLag(metrics.watch_lagged)
        self._rivals = Rivals(metrics, monotonic=monotonic)
        self._synced = False
        metrics.read_stats_from(self._stats)

    @property
    def synced(self) -> bool:
        """Whether the machine decides: everything is listed and, with leader election, this replica leads."""
        return self._synced

    def lead(self, submit: Callable[[Iterable[Effect]], None] | None) -> None:
        """Decide from now on, and pass the decisions to `submit`. Everything must be listed before."""
        self._submit = submit
        self._inbox.post((Synced(),))

    def stand_down(self) -> None:
        """Stop deciding and discard all decisions: a new machine takes over the observed state, as after a restart.

        Results of earlier writes are dropped, except the fact that a pod is bound.
        """
        facts = self._machine.facts()
        meanwhile = [
            event
            for event in self._inbox.clear()
            if isinstance(event, PodBound) or not isinstance(event, Result | Synced)
        ]
        self._submit = None
        self._synced = False
        self._metrics.deciding(False)
        self._rivals.forget()
        self._machine = self._make_machine()
        self._inbox.post((*facts, *meanwhile))
        # `_begin` has frozen the old machine, so the collector does not see it.
        gc.unfreeze()
        gc.collect()

    def facts(self) -> list[Event]:
        """The observed state of the cluster, as events for a separate machine."""
        return self._machine.facts()

    def set_aside(self) -> list[str]:
        """The objects that do not count because the scheduler's logic failed over them, each in a few words."""
        return self._machine.set_aside()

    def rivals_problem(self) -> str:
        """The problem if another process binds our pods; empty otherwise."""
        return self._rivals.problem()

    def silent_s(self) -> float:
        """Seconds since the loop last turned. A live loop turns at least every five seconds."""
        return self._monotonic() - self._turned

    async def run(self) -> None:
        """Step until cancelled. Only a bug ends it otherwise, with an exception."""
        while True:
            await self.step()

    async def step(self) -> list[Effect]:
        """Wait for an event, a deadline or the heartbeat; handle it; return the decisions."""
        deadline = self._machine.next_deadline()
        if len(self._inbox) >= MOST_EVENTS or (deadline is not None and deadline <= self._passed_now):
            await asyncio.sleep(_LEAST_WAIT_S)
        else:
            wait_s = _BEAT_S if deadline is None else min(max(deadline - self._now(), _LEAST_WAIT_S), _BEAT_S)
            await self._inbox.arrival(wait_s)
            since_s = self._monotonic() - self._passed
            await self._inbox.rest(_LEAST_REST_S - since_s, _REST_S - since_s)
        events = self._inbox.take(MOST_EVENTS)
        self._coming.clear()
        self._turned = self._monotonic()
        now = self._now()
        if deadline is not None and deadline <= now:
            events.append(TimePassed())
        return self._pass(events, now) if events else []

    def _completes(self, event: Event) -> bool:
        """Whether this pod, with those that arrived since the last scheduling cycle, completes a gang."""
        lacking = self._machine.lacking(event.pod) if isinstance(event, PodSeen) else None
        if lacking is None:
            return False
        key, count = lacking
        self._coming[key] += 1
        return self._coming[key] >= count

    def _pass(self, events: list[Event], now: float) -> list[Effect]:
        inputs = Counter(type(event).__name__ for event in events)
        began = self._monotonic()
        try:
            effects = self._machine.handle(events, now)
        except Exception:
            counts = ", ".join(f"{name} {count}" for name, count in sorted(inputs.items()))
            _log.critical("the scheduler's core failed; this is a bug", extra={"events": counts})
            raise
        finally:
            self._log_faults()
        self._passed = self._monotonic()
        self._passed_now = now
        self._metrics.passed(self._passed - began, inputs)
        self._metrics.measured(self._machine.take_measured())
        self._lag.observe(events, self._passed)
        rivals = self._machine.take_rivals()
        if self._submit is not None:
            self._rivals.seen(rivals)
        for effect in effects:
            self._metrics.decided(type(effect).__name__)
        self._log_decisions(effects)
        if self._submit is not None:
            self._submit(effects)
        if not self._synced and "Synced" in inputs:
            self._begin()
        if self._synced and effects:
            avoid_full_collections()
        return effects

    def _begin(self) -> None:
        self._synced = True
        self._metrics.deciding(True)
        # The objects just listed live long. Freezing them keeps the pauses of the garbage collector short. A collection
        # before that would pause the process for a tenth of a second, just when all groups wait for bindings.
        gc.freeze()

    def _stats(self) -> Stats:
        """The numbers of the current machine. Each term has a new one."""
        return self._machine.stats()

    def _log_faults(self) -> None:
        """Log exceptions that the machine has contained with their tracebacks, so that people can report them."""
        for fault in self._machine.take_faults():
            about: dict[str, object]
            if isinstance(fault, Rebuilt):
                self._metrics.rebuilt()
                sentence = "the accounts contradicted each other and were rebuilt"
                about = {"found": "; ".join(fault.contradictions[:_MOST_SHOWN])}
            elif isinstance(fault, SetAside):
                sentence = (
                    "the scheduler failed over an object, which is a bug: it counts as not there until it changes"
                )
                about = {"object": fault.name}
            elif isinstance(fault, Omitted):
                sentence = "a part of the scheduler that decides nothing failed, which is a bug: it rests for some time"
                about = {"part": fault.part, "pause_s": fault.pause_s}
            else:
                self._metrics.group_failed(fault.step)
                sentence = "the logic of a group failed, which is a bug: the group is parked, other groups continue"
                story = "; ".join(f"{at:.3f} {step}" for at, step in fault.story)
                about = {"group": fault.gang, "step": fault.step.value, "parked_s": fault.parked_s, "story": story}
            _log.error(sentence, extra=about, exc_info=fault.error)

    def _log_decisions(self, effects: Iterable[Effect]) -> None:
        binding = "would bind (dry run)" if self._submit is None else "binding"
        evicting = "would evict (dry run)" if self._submit is None else "evicting"
        for effect in effects:
            if isinstance(effect, BindPod):
                _log.info(binding, extra={"pod": f"{effect.namespace}/{effect.name}", "node": effect.node})
            elif isinstance(effect, EvictPod):
                _log.warning(evicting, extra={"pod": f"{effect.namespace}/{effect.name}"})
            elif isinstance(effect, EmitEvent) and effect.type == "Warning" and effect.action != pod_events.ACTION:
                about = {"kind": effect.kind, "object": f"{effect.namespace}/{effect.name}".lstrip("/")}
                _log.info("refused", extra={**about, "reason": effect.reason, "why": effect.note})


def avoid_full_collections() -> None:
    """Avoid full garbage collections: with tens of thousands of groups one takes half a second.

    Before a full collection is due, all surviving objects are frozen, as after the first lists. Reference counting
    still frees them, unless they are part of a reference cycle. Young objects are collected after every scheduling
    cycle that decided something: the collector counts allocations minus deallocations, so it would not run while the
    values of thousands of groups are replaced.
    """
    _, middle, old = gc.get_count()
    gc.collect(1 if middle >= _PASSES else 0)
    if old >= _COLLECTIONS:
        gc.freeze()
