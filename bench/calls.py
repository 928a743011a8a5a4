"""The longest call of `Machine.handle` under a tenant's demanding workloads. A call blocks the whole process.

Events are passed in batches, as in the engine, and the machine is called again while work is left. The garbage
collector runs as in the operator. Times are processor times.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from random import Random

from msgspec.structs import replace

from bench.lab import Figures
from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import Declaration, GroupKey, Topology
from gangsched.core.objects.effects import BindPod
from gangsched.core.objects.events import Event, GroupSeen, NodesReplaced, PodGone, PodSeen, Synced, TimePassed
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import Group, GroupSpec
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import PodBound
from gangsched.core.objects.shape import Amounts, Shape
from gangsched.runtime.engine import MOST_EVENTS, avoid_full_collections
from gangsched.runtime.inbox import Inbox

ROOM: Amounts = (("cpu", 32_000), ("memory", 256 << 30), ("pods", 110))
_ANSWERS = 50
_PER_RACK = 10
_PASS_S = 0.02
_TIME_OUT_S = 600.0


class Calls:
    """A synced machine, and the duration of each call to it."""

    def __init__(self, nodes: Sequence[Node], pods: Sequence[Pod] = (), groups: Sequence[Group] = ()) -> None:
        self.machine = Machine(Policy())
        listed = [NodesReplaced(tuple(nodes)), *map(GroupSeen, groups), *map(PodSeen, pods)]
        self.machine.handle([*listed, Synced()], 1.0)
        self.now = 10.0
        self.took: list[float] = []
        gc.collect()
        gc.freeze()

    def hand_over(self, events: Sequence[Event], *, most: int = MOST_EVENTS) -> list[BindPod]:
        """Pass these events in batches of `most`, then run all work that is due at once; returns the bindings."""
        found: list[BindPod] = []
        inbox = Inbox()
        inbox.post(events)
        while len(inbox):
            found += self._call(inbox.take(most))
        return [*found, *self.wait(0.0)]

    def wait(self, seconds: float) -> list[BindPod]:
        """Advance the clock and run all work that falls due on the way; returns the bindings."""
        found: list[BindPod] = []
        end = self.now + seconds
        while (due := self.machine.next_deadline()) is not None and due <= max(end, self.now):
            self.now = max(self.now, due)
            found += self._call([TimePassed()])
        self.now = max(self.now, end)
        return found

    def figures(self) -> Figures:
        """The longest and the total duration of the calls, and their number."""
        gc.unfreeze()
        return {"longest_ms": 1000 * max(self.took), "cpu_ms": 1000 * sum(self.took), "calls": float(len(self.took))}

    def _call(self, events: Sequence[Event]) -> Iterator[BindPod]:
        began = time.process_time()
        effects = self.machine.handle(events, self.now)
        self.took.append(time.process_time() - began)
        avoid_full_collections()
        self.now += _PASS_S
        return (effect for effect in effects if isinstance(effect, BindPod))


def members(number: int = 25_000, nodes: int = 5000) -> Figures:
    """One group of minimum 1 with thousands of members, from their creation until their bindings are seen."""
    calls = Calls([node_of(at) for at in range(nodes)])
    key = GroupKey("default", "a")
    pods = {pod.uid: pod for pod in (pod_of(key, at, cpu=1000) for at in range(number))}
    bound = calls.hand_over([GroupSeen(group_of(key, 1)), *map(PodSeen, pods.values())])
    bound += calls.wait(5.0)
    calls.hand_over([PodBound(each.uid, each.node) for each in bound], most=_ANSWERS)
    calls.hand_over([PodSeen(replace(pods[each.uid], node=each.node)) for each in bound], most=_ANSWERS)
    calls.wait(60.0)
    if {each.uid for each in bound} != pods.keys():
        raise RuntimeError(f"only {len(bound)} of {number} members were bound")
    return calls.figures()


def parked(gangs: int = 20_000, nodes: int = 500) -> Figures:
    """Gangs of two are refused, get that status and time out, while pods end: each pod frees room for half a gang."""
    running = [pod_of(GroupKey("other", "old"), at, cpu=1000, node=f"n{at % nodes}") for at in range(32 * nodes)]
    calls = Calls([node_of(at) for at in range(nodes)], running)
    keys = [GroupKey("default", f"g{at}") for at in range(gangs)]
    calls.hand_over([GroupSeen(group_of(key, 2)) for key in keys])
    calls.hand_over([PodSeen(pod_of(key, at, cpu=1000)) for key in keys for at in range(2)])
    calls.wait(90.0)
    before = sum(calls.took)
    freed = running[: min(20, gangs)]
    bound = [effect for pod in freed for effect in calls.hand_over([PodGone(pod.uid)])]
    took = sum(calls.took) - before
    calls.wait(_TIME_OUT_S)
    if len(bound) != len(freed):
        raise RuntimeError(f"{len(bound)} members were bound where {len(freed)} pods had ended")
    return calls.figures() | {"freed_ms": 1000 * took / len(freed)}


def racks(number: int = 500, gangs: int = 3, size: int = 22) -> Figures:
    """Gangs with members of two sizes that must share a rack: every rack has enough in total, none fits both sizes."""
    random = Random(1)  # noqa: S311 - the same racks in every run
    nodes = [replace(node_of(at), labels=(("rack", f"r{at // _PER_RACK}"),)) for at in range(number * _PER_RACK)]
    running = [
        pod_of(GroupKey("other", "old"), at, cpu=1000 * random.randint(1, 6), node=node.name)
        for at, node in enumerate(nodes)
    ]
    calls = Calls(nodes, running)
    for gang in range(gangs):
        key = GroupKey("default", f"g{gang}")
        cpus = [15_000, 11_000 + gang]
        pods = [pod_of(key, at, cpu=cpus[at % 2]) for at in range(size)]
        bound = calls.hand_over([GroupSeen(group_of(key, size, Topology("rack"))), *map(PodSeen, pods)])
        bound += calls.wait(2.0)
        if bound or calls.machine.stats().parked <= gang:
            raise RuntimeError(f"{key} was to be refused by every rack")
    return calls.figures()


def node_of(at: int) -> Node:
    """The node of this number."""
    return Node(f"n{at}", ROOM)


def group_of(key: GroupKey, minimum: int, topology: Topology | None = None) -> Group:
    """A PodGroup of this minimum that waits for ten minutes."""
    spec = GroupSpec(min_member=minimum, topology=topology, max_schedule_time_s=_TIME_OUT_S)
    return Group(key, key.name, "1", 1, 0.0, spec)


def pod_of(key: GroupKey, at: int, *, cpu: int, node: str = "") -> Pod:
    """The member of this number; a waiting one without `node`."""
    name = f"{key.name}-{at}"
    shape = Shape(requests=(("cpu", cpu),))
    uid = f"{key.namespace}/{name}"
    return Pod(uid, key.namespace, name, shape, 0.0, "gangsched", node=node, declaration=Declaration(key.name))
