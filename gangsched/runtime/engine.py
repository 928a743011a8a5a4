"""The one task that owns the machine: it drains the inbox, lets the machine decide and hands on what it decided."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.effects import BindPod, Effect, EvictPod
from gangsched.core.objects.events import Event, PodSeen, Synced, TimePassed
from gangsched.core.objects.faults import Fault, Rebuilt
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.results import Answer, PodBound
from gangsched.runtime.inbox import Inbox
from gangsched.runtime.metrics import Metrics, Stats
from gangsched.runtime.rivals import Rivals

_log = logging.getLogger(__name__)

_BEAT_S = 5.0
_REST_S = 0.01
"""Between two passes: what happens meanwhile is dealt with at once for little more than the price of one event. Whoever
comes while nothing happens does not wait."""
_LEAST_REST_S = 0.003
"""So long rests also who has the last member of a gang to deal with: many small gangs still share a pass."""
_LEAST_WAIT_S = 0.001
"""Between two passes where the first has left work, so that what is ready on the event loop goes first. Nor may a
machine whose deadline stays due keep the loop busy for ever."""
MOST_EVENTS = 500
"""At a time: applying them takes about as long as the machine's own budget for a call."""
_PASSES = 10
"""After so many what has survived the looks at what is young is looked at once more."""
_MOST_SHOWN = 10
"""So many contradictions in the accounts are logged."""
_COLLECTIONS = 5
"""After ten of the collector's middle generation the next one looks at everything; one call may cause several."""


class Machine(Protocol):
    """What the engine needs of `core.machine.Machine`."""

    def handle(self, events: Sequence[Event], now: float) -> list[Effect]:
        """Apply the events and decide."""
        ...

    def take_waits(self) -> list[float]:
        """Seconds from complete to bound of the groups scheduled since the last call."""
        ...

    def take_rivals(self) -> list[tuple[str, str]]:
        """("NAMESPACE/POD", node) of pods of ours that somebody else has bound since the last call."""
        ...

    def take_faults(self) -> list[Fault | Rebuilt]:
        """What has failed over single groups since the last call."""
        ...

    def next_deadline(self) -> float | None:
        """When, in epoch seconds, the machine wants a `TimePassed`; None if never."""
        ...

    def lacking(self, pod: Pod) -> tuple[GroupKey, int] | None:
        """The gang that this new pod belongs to and how many members it lacks; None if it is not known to lack any."""
        ...

    def facts(self) -> list[Event]:
        """All that was seen of the cluster, as events for a successor."""
        ...

    def stats(self) -> Stats:
        """The numbers that metrics show."""
        ...


class Engine:
    """The only caller of `Machine.handle`.

    It begins as a standby, which learns and decides nothing. `lead` has it decide, and hand what it decides to
    `submit`; without one, as in a dry run, that is only logged and counted, and whoever binds pods meanwhile is no
    rival. `stand_down` makes it a standby again. A bug in the logic of one group is contained by the machine, and is
    logged here. Any other ends `run` with the exception: the process ends, is started again and rebuilds its state from
    the cluster.
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
        inbox.heed(self._completes)
        self._submit: Callable[[Iterable[Effect]], None] | None = None
        self._now = now
        self._metrics = metrics
        self._monotonic = monotonic
        self._turned = monotonic()
        self._passed = float("-inf")
        self._passed_now = float("-inf")
        self._rivals = Rivals(metrics, monotonic=monotonic)
        self._synced = False
        metrics.read_stats_from(self._stats)

    @property
    def synced(self) -> bool:
        """Whether the machine has been told to decide: everything is listed and, with election, this replica leads."""
        return self._synced

    def lead(self, submit: Callable[[Iterable[Effect]], None] | None) -> None:
        """Decide from now on, and hand what is decided to `submit`. Everything must be listed."""
        self._submit = submit
        self._inbox.post((Synced(),))

    def stand_down(self) -> None:
        """Decide no more, and forget all that was decided: a new machine learns what is there, as after a restart.

        What the API server answers to what was sent before concerns nobody any more, but that a pod is bound is so.
        """
        facts = self._machine.facts()
        meanwhile = [
            event
            for event in self._inbox.clear()
            if isinstance(event, PodBound) or not isinstance(event, Answer | Synced)
        ]
        self._submit = None
        self._synced = False
        self._metrics.deciding(False)
        self._machine = self._make_machine()
        self._inbox.post((*facts, *meanwhile))
        # `lead` has put the old machine out of the collector's sight.
        gc.unfreeze()
        gc.collect()

    def rivals_problem(self) -> str:
        """What is wrong if somebody else binds our pods; empty if nobody does."""
        return self._rivals.problem()

    def silent_s(self) -> float:
        """For how many seconds the loop has not turned; it turns at least every five while it lives."""
        return self._monotonic() - self._turned

    async def run(self) -> None:
        """Step for ever. Only a bug ends it, by raising."""
        while True:
            await self.step()

    async def step(self) -> list[Effect]:
        """Wait until something happens, a deadline is due or the heart must beat; handle it; give what was decided."""
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
        """Whether this pod and those that have come since the last pass are what a gang lacks."""
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
        for waited_s in self._machine.take_waits():
            self._metrics.gang_waited(waited_s)
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
            spare_what_lives_long()
        return effects

    def _begin(self) -> None:
        self._synced = True
        self._metrics.deciding(True)
        # What was just listed lives long: moving it out of the collector's sight keeps its pauses short. Collecting
        # first would be one pause of a tenth of a second, in the very moment in which everybody waits for bindings.
        gc.freeze()

    def _stats(self) -> Stats:
        """What the machine knows that decides now: there is another one in the next term."""
        return self._machine.stats()

    def _log_faults(self) -> None:
        """Tell of exceptions over single groups, with their tracebacks: people are to report them."""
        for fault in self._machine.take_faults():
            if isinstance(fault, Rebuilt):
                self._metrics.rebuilt()
                found = "; ".join(fault.contradictions[:_MOST_SHOWN])
                _log.error("the accounts contradicted each other and were made anew", extra={"found": found})
                continue
            self._metrics.group_failed(fault.step)
            _log.error(
                "the logic of a group failed, which is a bug: the group is parked, others go on",
                extra={"group": fault.gang, "step": fault.step.value, "parked_s": fault.parked_s},
                exc_info=fault.error,
            )

    def _log_decisions(self, effects: Iterable[Effect]) -> None:
        binding = "would bind (dry run)" if self._submit is None else "binding"
        evicting = "would evict (dry run)" if self._submit is None else "evicting"
        for effect in effects:
            if isinstance(effect, BindPod):
                _log.info(binding, extra={"pod": f"{effect.namespace}/{effect.name}", "node": effect.node})
            elif isinstance(effect, EvictPod):
                _log.warning(evicting, extra={"pod": f"{effect.namespace}/{effect.name}"})


def spare_what_lives_long() -> None:
    """Keep the garbage collector from looking at everything: with tens of thousands of groups that takes half a second.

    What has survived until now is moved out of its sight, as after the first lists; it is still freed when nothing
    refers to it any more, as long as it is in no cycle. What is young is looked at after every pass that decided
    something: the collector counts what was made less what was freed, and would wait while thousands of groups' values
    are replaced by others.
    """
    _, middle, old = gc.get_count()
    gc.collect(1 if middle >= _PASSES else 0)
    if old >= _COLLECTIONS:
        gc.freeze()
