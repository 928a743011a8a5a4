"""Deleted objects leave nothing behind: every container of machine and executor shrinks back to its former size."""

from __future__ import annotations

import asyncio
import gc
import importlib
import itertools
import pkgutil
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest
from msgspec import Struct
from msgspec.structs import replace

import gangsched
from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.effects import BindPod, Effect, EvictPod, LookUpOwner, PatchPodCondition, PatchStatus
from gangsched.core.objects.events import (
    Event,
    GroupGone,
    GroupSeen,
    NodeGone,
    NodeSeen,
    PodGone,
    PodSeen,
    Synced,
    TimePassed,
)
from gangsched.core.objects.pod import Owner, Pod, PodPhase
from gangsched.core.objects.podgroup import Group
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import BindRefused, PodBound, PodEvicted, Refused, StatusRefused, StatusWritten
from gangsched.core.objects.shape import PodTerm, Requirement
from gangsched.kube.writing.write_results import Outcome, WriteResult
from gangsched.runtime.executor import Executor
from gangsched.runtime.metrics import Metrics
from tests.builders import group, node, pod, pods
from tests.runtime.fake_table import answer_with, table_of

ROUNDS = 45
LATEST = 10
"""Number of latest rounds whose remains may be cleaned up only by the following rounds."""
BOUNDED = {
    "Agenda._heaps": 700,
    "Capacity.columns": 64,
    # A column forgets values that no row has once it knows twice as many as it has rows, which are 16 at first;
    # names and taints differ from node to node here, and the taints are in three columns: two filters and a score.
    "Column._values": 4 * 2 * 33,
    "Column._numbers": 4 * 2 * 33,
    "Column._values[]": 4 * 2 * 33,
}
"""Caches and other containers that are pruned periodically, with their largest permitted size here."""

RESULTS = (PodBound, BindRefused, PodEvicted, StatusWritten)


class Rig:
    """A leader and a standby with an in-memory API server: both see the watches, one acts."""

    def __init__(self) -> None:
        self.leader, self.standby = Machine(Policy()), Machine(Policy())
        self.leader.handle([Synced()], 1.0)
        self.now = 1000.0
        self.pods: dict[str, Pod] = {}
        self.groups: dict[GroupKey, Group] = {}
        self.bound = 0
        self._version = 0
        self._arrived: list[Event] = []
        metrics = Metrics()
        # Each reading of the clock is a second after the last one, so that writes do not wait for a pause.
        ticks = itertools.count()
        self.executor = Executor(
            table_of(self._send), self._post, metrics=metrics, slots=4, monotonic=lambda: float(next(ticks))
        )

    def add(self, *things: Pod | Group) -> None:
        for thing in things:
            if isinstance(thing, Pod):
                self.pods[thing.uid] = thing
                self._post([PodSeen(thing)])
            else:
                self._version += 1
                self.groups[thing.key] = replace(thing, resource_version=str(self._version))
                self._post([GroupSeen(self.groups[thing.key])])

    def report(self, *events: Event) -> None:
        self._post(events)

    async def settle(self) -> None:
        """Run until nothing more arrives and every deadline of the next minutes has passed."""
        for _ in range(100):
            for _ in range(20):
                await asyncio.sleep(0)
            events, self._arrived = self._arrived, []
            if not events:
                deadline = self.leader.next_deadline()
                if deadline is None or deadline > self.now + 100:
                    return
                self.now = max(self.now, deadline)
                events = [TimePassed()]
            self.executor.submit(self.leader.handle(events, self.now))
            self.leader.take_measured()
            self.leader.take_rivals()
            self.standby.handle([event for event in events if not isinstance(event, RESULTS)], self.now)

    async def clear(self) -> None:
        """End and delete everything."""
        for each in list(self.pods.values()):
            self.add(replace(each, phase=PodPhase.SUCCEEDED if each.node else each.phase))
        await self.settle()
        for uid in list(self.pods):
            del self.pods[uid]
            self._post([PodGone(uid)])
        for key in list(self.groups):
            del self.groups[key]
            self._post([GroupGone(key)])
        await self.settle()

    def _post(self, events: Iterable[Event]) -> None:
        self._arrived.extend(events)

    async def _send(self, effect: Effect) -> WriteResult:
        match effect:
            case BindPod():
                return answer_with(self._bind(effect))
            case EvictPod(uid=uid):
                self.pods.pop(uid, None)
                self._post([PodGone(uid)])
                return answer_with(PodEvicted(uid))
            case LookUpOwner():
                return WriteResult(Outcome.UNAVAILABLE, message="nobody knows")
            case PatchStatus(key=key) if key in self.groups:
                self.add(replace(self.groups[key], status=effect.status))
                return WriteResult(Outcome.WRITTEN, StatusWritten(key, str(self._version)))
            case PatchStatus(key=key):
                return WriteResult(Outcome.GONE, StatusRefused(key, stale=False))
            case PatchPodCondition(uid=uid) if uid in self.pods:
                self.add(replace(self.pods[uid], condition_reason=effect.reason, condition_message=effect.message))
        return WriteResult(Outcome.WRITTEN)

    def _bind(self, effect: BindPod) -> PodBound | BindRefused:
        found = self.pods.get(effect.uid)
        if found is None:
            return BindRefused(effect.uid, effect.node, Refused.GONE, "gone")
        if found.name.startswith("refused"):
            return BindRefused(effect.uid, effect.node, Refused.FORBIDDEN, "no")
        self.bound += 1
        self.add(replace(found, node=effect.node))
        return PodBound(effect.uid, effect.node)


def load(number: int) -> list[Pod | Group]:
    """One object of each kind, under names that are never reused."""
    term = PodTerm("host", (Requirement("app", "In", (f"v{number}",)),), namespaces=("default",))
    job = Owner("Job", f"job-{number}", f"job-{number}", "batch")
    own = f"{number}"
    return [
        group(f"fits-{own}", min_member=3),
        *pods(f"fits-{own}", 3, owner=job),
        group(f"large-{own}", min_member=3, max_schedule_time_s=5.0),
        *pods(f"large-{own}", 3, cpu=99),
        group(f"few-{own}", min_member=3),
        *pods(f"few-{own}", 2),
        *pods(f"undeclared-{own}", 2),
        group(f"nobody-{own}", min_member=1),
        group(f"barred-{own}", min_member=1),
        pod(f"refused-{own}", group=f"barred-{own}"),
        pod(f"plain-{own}", group=""),
        pod(f"waits-{own}", group="", node_selector={"own": own}),
        pod(f"stranger-{own}", group=f"fits-{own}", scheduler=f"other-{own}"),
        pod(f"there-{own}", group="", scheduler="x", node="n1", anti_affinity=[term], cpu=0, host_ports=[number + 1]),
        pod(f"nominated-{own}", group="", scheduler="x", nominated_node="n1", cpu=0, priority=1),
        pod(f"absent-{own}", group="", scheduler="x", node=f"absent-{own}"),
        pod(f"rival-{own}", group="", node="n2"),
    ]


@pytest.mark.slow
async def test_what_came_and_went_leaves_nothing_behind_in_a_leader_and_a_standby() -> None:
    rig = Rig()
    working = asyncio.create_task(rig.executor.run())
    rig.report(*(NodeSeen(node(f"n{number}", labels={"host": f"h{number}"})) for number in (1, 2)))
    await rig.settle()
    before: dict[str, Counter[str]] = {}
    for number in range(ROUNDS):
        rig.report(
            NodeSeen(node(f"own-{number}", extra={f"own-{number}.example/dev": 1}, taints=[f"t{number}:NoExecute"]))
        )
        rig.add(*load(number))
        await rig.settle()
        await rig.clear()
        rig.report(NodeGone(f"own-{number}"))
        await rig.settle()
        if number == LATEST:
            before = measured(rig)
    after = measured(rig)
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)

    assert rig.bound >= 4 * ROUNDS
    assert rig.leader.validate() == []
    assert rig.standby.validate() == []
    grown = {
        (part, path): (before[part][path], size)
        for part, found in after.items()
        for path, size in found.items()
        if size > BOUNDED.get(path, before[part][path] + LATEST)
    }
    assert grown == {}, f"more after {ROUNDS} rounds than after {LATEST}"


def measured(rig: Rig) -> dict[str, Counter[str]]:
    gc.collect()
    parts = {"leader": rig.leader, "standby": rig.standby, "executor": rig.executor}
    return {name: Counter(sizes(part)) for name, part in parts.items()}


def sizes(root: object) -> dict[str, int]:
    """The size of every container that the object holds, directly or indirectly, by class and attribute."""
    found: Counter[str] = Counter()
    seen: set[int] = set()
    left: list[tuple[str, object]] = [("", root)]
    while left:
        path, value = left.pop()
        if id(value) in seen or isinstance(value, str | bytes | int | float | None | Struct | Metrics | np.ndarray):
            continue
        seen.add(id(value))
        if isinstance(value, dict | list | set | frozenset | tuple | deque):
            found[path] += len(value)
            entries = [*value.keys(), *value.values()] if isinstance(value, dict) else value
            left += [(f"{path}[]", entry) for entry in entries]
        elif type(value).__module__.startswith("gangsched"):
            left += [(f"{type(value).__name__}.{name}", each) for name, each in attributes(value)]
    return dict(found)


def attributes(value: object) -> Iterator[tuple[str, Any]]:
    names = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    for name in [*names, *getattr(value, "__dict__", ())]:
        if hasattr(value, name):
            yield name, getattr(value, name)


def test_every_cache_of_a_function_is_bounded() -> None:
    caches = {}
    for module in pkgutil.walk_packages(gangsched.__path__, "gangsched."):
        if module.name.endswith("__main__"):
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            if hasattr(value, "cache_info"):
                caches[f"{module.name}.{name}"] = value.cache_info().maxsize
    assert len(caches) >= 5
    assert all(size is not None and size <= 10_000 for size in caches.values()), caches
