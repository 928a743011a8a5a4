"""Preemption in a whole machine: groups that wait for others to leave, beside a cluster that is full of those.

The machine is answered at once, as an API server without latency would, and pods that were evicted use their whole
grace period. The clock is simulated; times of calls are processor times.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from functools import partial
from itertools import count
from random import Random

from msgspec.structs import replace

from bench.lab import Figures
from bench.victims import LEVELS, NODES, PER_RACK, REQUESTS, ROOM, shape_of, sizes_of
from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import Declaration, GroupKey, Topology
from gangsched.core.objects.effects import BindPod, Effect, EvictPod, PatchPodCondition, PatchStatus
from gangsched.core.objects.events import (
    BudgetsReplaced,
    Event,
    GroupSeen,
    GroupsReplaced,
    NodesReplaced,
    PodGone,
    PodSeen,
    PodsReplaced,
    PriorityClassesReplaced,
    Synced,
    TimePassed,
)
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Owner, Pod, PodPhase
from gangsched.core.objects.podgroup import Group, GroupSpec
from gangsched.core.objects.policy import Policy, Preemption
from gangsched.core.objects.priority_class import PriorityClass
from gangsched.core.objects.results import PodBound, PodEvicted, StatusWritten
from gangsched.core.objects.shape import Shape
from gangsched.runtime.engine import avoid_full_collections
from gangsched.whatif.eviction_api import Evictions

BEGAN, _DAY_S = 1_000_000.0, 86_400.0
_PASS_S = 0.005
_POLICY = Policy(preemption=Preemption(victims_per_minute=1_000_000))
_OWNER = Owner("StatefulSet", "s", "set-s", "apps")
_HIGH, _PRIORITY = "high", 1000


class Contended:
    """A synced machine on full nodes, the duration of each call, and when each plan was opened and each group bound."""

    def __init__(
        self,
        pods: Sequence[Pod],
        groups: Sequence[Group],
        *,
        nodes: int = NODES,
        policy: Policy = _POLICY,
    ) -> None:
        self.now = BEGAN
        self.took: list[float] = []
        self.opened: dict[GroupKey, float] = {}
        self.calls: dict[GroupKey, int] = {}
        self.left: dict[GroupKey, float] = {}
        self.bound: dict[GroupKey, float] = {}
        self.machine = Machine(policy)
        self._pods = {pod.uid: pod for pod in pods}
        self._evictions = Evictions()
        self._waits_for: dict[str, GroupKey] = {}
        classes = tuple({f"l{at}": PriorityClass(at) for at in range(LEVELS)}.items())
        listed = [
            PriorityClassesReplaced((*classes, (_HIGH, PriorityClass(_PRIORITY)))),
            BudgetsReplaced(()),
            NodesReplaced(tuple(map(_node, range(nodes)))),
            GroupsReplaced(tuple(groups)),
            PodsReplaced(tuple(pods)),
        ]
        self.run([*listed, Synced()], 60.0)
        gc.collect()
        gc.freeze()
        self.took.clear()

    def run(self, events: Sequence[Event], seconds: float) -> None:
        """Handle these events, and all that happens within so many seconds."""
        end, waiting = self.now + seconds, [*events]
        while True:
            due = self.machine.next_deadline()
            at = min(float("inf") if due is None else due, self._evictions.next_end())
            if not waiting and at > end:
                break
            self.now = max(self.now, self.now if waiting else at)
            for uid in self._evictions.take_ended(self.now):
                del self._pods[uid]
                if uid in self._waits_for:
                    self.left[self._waits_for[uid]] = self.now
                waiting.append(PodGone(uid))
            began = time.process_time()
            effects = self.machine.handle(waiting or [TimePassed()], self.now)
            self.took.append(time.process_time() - began)
            self.now += max(_PASS_S, self.took[-1])
            avoid_full_collections()
            self._note_plans()
            waiting = [event for effect in effects for event in self._answers(effect)]
        self.now = max(self.now, end)

    def known(self, pods: Sequence[Pod]) -> list[Event]:
        """These pods were created or have changed."""
        self._pods.update((pod.uid, pod) for pod in pods)
        return [*map(PodSeen, pods)]

    def _note_plans(self) -> None:
        for key, plan in self.machine.plans.items():
            if key not in self.opened:
                self.opened[key], self.calls[key] = self.now, len(self.took)
                self._waits_for.update(dict.fromkeys(plan.leaving, key))

    def _answers(self, effect: Effect) -> list[Event]:
        """What the API server's answer and its watches show."""
        if isinstance(effect, BindPod):
            shown = {"node": effect.node, "bound_at": self.now, "condition_reason": "", "condition_message": ""}
            pod = self._pods[effect.uid] = replace(self._pods[effect.uid], **shown)
            if pod.declaration is not None:
                self.bound[GroupKey(pod.namespace, pod.declaration.group)] = self.now
            return [PodBound(effect.uid, effect.node), PodSeen(pod)]
        if isinstance(effect, PatchStatus):
            return [StatusWritten(effect.key, "1", effect.status.is_relied_on)]
        if isinstance(effect, PatchPodCondition) and effect.uid in self._pods:
            waiting = self._pods[effect.uid]
            nominated = waiting.nominated_node if effect.nominated is None else effect.nominated
            said = {"condition_reason": effect.reason, "condition_message": effect.message, "nominated_node": nominated}
            return self.known([replace(waiting, **said)])
        if isinstance(effect, EvictPod):
            left, events = self._evictions.evict(self._pods[effect.uid], self.now)
            if left is None:
                return [PodEvicted(effect.uid)]
            self._pods[effect.uid] = left
            return events
        return []


def searched(*, racks: bool = False) -> Figures:
    """A gang of 100 arrives, and after its plan was opened another one; `racks`: each must be in one of 250 racks.

    The calls from a group's last member to its plan count.
    """
    contended = Contended(*full())
    figures: Figures = {}
    for which in ("first", "second"):
        size = 2 * PER_RACK * 3 // 4 if racks else 100
        group, pods = holder(which, size, cpus=16, rack=racks)
        contended.run([GroupSeen(group), *contended.known(pods[:-1])], 5.0)
        contended.took.clear()
        contended.run(contended.known(pods[-1:]), 2.0)
        if group.key not in contended.opened:
            raise RuntimeError(f"no plan was opened for {group.key}")
        took = contended.took[: contended.calls[group.key]]
        figures |= {f"{which}_all_ms": 1000 * sum(took), f"{which}_longest_ms": 1000 * max(took)}
    gc.unfreeze()
    return figures


def resting(holders: int = 1000, seconds: float = 300.0) -> Figures:
    """Groups for which not enough can leave: the share of a core that they take beyond the same without them.

    Time passes, and every second two pods come and go, first on nodes that they do not accept (`elsewhere`), then on
    others (`beside`), where they may leave for them.
    """
    pods, groups = full()
    spent: dict[str, list[float]] = {}
    for number in (0, holders):
        contended = Contended(pods, groups)
        events: list[Event] = []
        for at in range(number):
            group, members = holder(f"h{at}", 4, cpus=28 + at % 5, level="l1", shelf="a")
            events += [GroupSeen(group), *contended.known(members)]
        contended.run(events, 120.0)
        for title, node in (("elsewhere", f"n{NODES - 1}"), ("beside", "n0")):
            contended.took.clear()
            for at in range(int(seconds)):
                there = [running(f"{title}{at}-{each}", "", 1, node=node, priority=0) for each in range(2)]
                contended.run(contended.known(there), 0.5)
                contended.run([PodGone(pod.uid) for pod in there], 0.5)
            spent.setdefault(title, []).append(sum(contended.took) / seconds)
        gc.unfreeze()
    return {f"{title}_cores": found - least for title, (least, found) in spent.items()}


def at_once(holders: int = 100, size: int = 20, nodes: int = NODES) -> Figures:
    """So many groups of this size come at once: when the last plan is open, and how long after the last of its victims
    has left each is bound at most. The clock goes on by the processor time of each call.
    """
    contended = Contended(*full(nodes), nodes=nodes)
    events: list[Event] = []
    for at in range(holders):
        group, members = holder(f"h{at}", size, cpus=16)
        events += [GroupSeen(group), *contended.known(members)]
    began = contended.now
    contended.run(events, 300.0)
    gc.unfreeze()
    if len(contended.bound) < holders:
        raise RuntimeError(f"only {len(contended.bound)} of {holders} groups were bound")
    waits = [contended.bound[key] - contended.left[key] for key in contended.opened if key in contended.left]
    return {
        "opened_s": max(contended.opened.values()) - began,
        "bound_after_s": max(waits),
        "plans": len(contended.opened),
        "cpu_s": sum(contended.took),
        "longest_ms": 1000 * max(contended.took),
    }


def full(nodes: int = NODES) -> tuple[list[Pod], list[Group]]:
    """Pods that fill so many nodes, ten on each: gangs of 4 to 32 and pods without a group, of five priorities."""
    random, pods, groups = Random(34), list[Pod](), list[Group]()  # noqa: S311 - not for secrets
    place = partial(next, count())
    for number, size in enumerate(sizes_of(random, 10 * nodes)):
        name = f"g{number}" if size > 1 else ""
        cpu, level, age_s = random.choice(REQUESTS), random.randrange(LEVELS), random.uniform(60.0, _DAY_S)
        if name:
            spec = GroupSpec(min_member=size, priority_class=f"l{level}")
            groups.append(Group(GroupKey("default", name), f"uid-{name}", "1", 1, BEGAN - age_s, spec))
        for member in range(size):
            node = f"n{place() % nodes}"
            pods.append(running(f"p{number}-{member}", name, cpu, node=node, priority=level, age_s=age_s))
    return pods, groups


def running(name: str, group: str, cpu: int, *, node: str, priority: int, age_s: float = 60.0) -> Pod:
    return Pod(
        name,
        "default",
        name,
        shape_of(cpu),
        BEGAN - age_s,
        "gangsched",
        node=node,
        bound_at=BEGAN - age_s,
        phase=PodPhase.RUNNING,
        priority=priority,
        owner=_OWNER,
        declaration=Declaration(group) if group else None,
    )


def holder(
    name: str, size: int, *, cpus: int, level: str = _HIGH, rack: bool = False, **where: str
) -> tuple[Group, list[Pod]]:
    """A group that others may leave for."""
    key = GroupKey("default", name)
    topology = Topology("rack", required=True) if rack else None
    spec = GroupSpec(min_member=size, priority_class=level, topology=topology, max_schedule_time_s=9999.0)
    shape = Shape(shape_of(1000 * cpus).requests, node_selector=tuple(where.items()))
    said, names = Declaration(name), [f"{name}-{at}" for at in range(size)]
    pods = [Pod(each, "default", each, shape, BEGAN, "gangsched", owner=_OWNER, declaration=said) for each in names]
    return Group(key, f"uid-{name}", "1", 1, BEGAN, spec), pods


def _node(at: int) -> Node:
    return Node(f"n{at}", ROOM, labels=(("rack", f"r{at // PER_RACK}"), ("shelf", "ab"[at >= NODES - 10])))
