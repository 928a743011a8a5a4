"""The longest call of `Machine.handle`, found by search. `python -m bench.shapes SEED WORLDS` prints it for each world.

A world is drawn at the limits that the scheduler promises (15,000 nodes, 25,000 members, 10,000 misspelt pods), and
what happens in it is drawn too: each happening is handed over in batches as in the engine, and each call is measured.
The search begins with random worlds and then changes the worst one, one property at a time. One hand-made case asks
only what its author has thought of (`bench.calls` has three).
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from random import Random

from msgspec.structs import replace as changed

from bench.calls import Calls, group_of, node_of, pod_of
from bench.lab import Figures
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.effects import BindPod
from gangsched.core.objects.events import GroupSeen, NodeGone, NodeSeen, PodGone, PodSeen
from gangsched.core.objects.node import Taint
from gangsched.core.objects.pod import Pod, PodPhase
from gangsched.core.objects.results import PodBound

_BATCH = 500
_HAPPENINGS = 5
_CHOICES: dict[str, Sequence[int]] = {
    "nodes": (500, 5000, 15_000),
    "gangs": (1, 5, 100, 1250, 12_500),
    "members": (5000, 25_000),
    "minimum_percent": (0, 50, 100),
    "bound_percent": (0, 90, 100),
    "misspelt": (0, 500, 10_000),
    "misspelt_groups": (1, 100, 10_000),
    "strangers": (0, 1, 500),
}
"""What each property of a world may be. `strangers` are pods of another scheduler that name the first gang."""


@dataclass(frozen=True)
class World:
    """A cluster and its workloads; the properties of the same names in `_CHOICES`, and the `order` of happenings."""

    nodes: int
    gangs: int
    members: int
    minimum_percent: int
    bound_percent: int
    misspelt: int
    misspelt_groups: int
    strangers: int
    order: int


class _Story:
    """What happens in a world; `bindings` are on their way, `pods` are the members as they were last seen."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.random = Random(world.order)  # noqa: S311 - the same story in every run
        self.size = max(1, world.members // world.gangs)
        self.keys = [GroupKey("default", f"g{at}") for at in range(world.gangs)]
        minimum = max(1, self.size * world.minimum_percent // 100)
        pods = [pod_of(key, at, cpu=1000) for key in self.keys for at in range(self.size)]
        bound = len(pods) * world.bound_percent // 100
        room = world.nodes * 32
        self.pods = {
            pod.uid: changed(pod, node=f"n{at % world.nodes}", phase=PodPhase.RUNNING) if at < min(bound, room) else pod
            for at, pod in enumerate(pods)
        }
        self.nodes = {f"n{at}": node_of(at) for at in range(world.nodes)}
        groups = [group_of(key, minimum) for key in self.keys]
        self.calls = Calls([*self.nodes.values()], [*self.pods.values()], groups)
        self.bindings: list[BindPod] = []
        self.made = 0

    def hand_over(self, events: Sequence[object]) -> None:
        self.bindings += self.calls.hand_over(events)  # type: ignore[arg-type]

    def some(self, number: int = _BATCH) -> list[Pod]:
        return self.random.sample([*self.pods.values()], min(number, len(self.pods)))

    # What happens

    def time_passes(self) -> None:
        self.bindings += self.calls.wait(self.random.choice((0.0, 1.0, 21.0, 65.0)))

    def misspelt_pods_come(self) -> None:
        """They are looked at again when nobody has reacted to them."""
        world = self.world
        keys = [GroupKey("default", f"m{at % world.misspelt_groups}") for at in range(world.misspelt)]
        pods = (pod_of(key, self.made + at, cpu=1000) for at, key in enumerate(keys))
        self.made += world.misspelt
        self.hand_over([PodSeen(changed(pod, scheduler="gang-sched")) for pod in pods])
        self.bindings += self.calls.wait(25.0)

    def strangers_come(self) -> None:
        pods = (
            pod_of(self.keys[0], self.size + self.made + at, cpu=10, node="n0") for at in range(self.world.strangers)
        )
        self.made += self.world.strangers
        self.hand_over([PodSeen(changed(pod, scheduler="other")) for pod in pods])

    def bindings_are_answered(self) -> None:
        sent, self.bindings = self.bindings[:_BATCH], self.bindings[_BATCH:]
        self.hand_over([PodBound(each.uid, each.node) for each in sent])
        for each in sent:
            if each.uid in self.pods:
                self.pods[each.uid] = changed(self.pods[each.uid], node=each.node)
        self.hand_over([PodSeen(self.pods[each.uid]) for each in sent if each.uid in self.pods])

    def nodes_change(self) -> None:
        self._change_nodes(lambda at: {"labels": (("seen", str(at)),)})

    def nodes_are_closed(self) -> None:
        self._change_nodes(lambda _: {"taints": (Taint(key="x", effect="NoSchedule"),)})

    def _change_nodes(self, fields_of: Callable[[int], dict[str, object]]) -> None:
        self.made += 1
        for name in self.random.sample([*self.nodes], min(_BATCH, len(self.nodes))):
            self.nodes[name] = changed(self.nodes[name], **fields_of(self.made))
        self.hand_over([NodeSeen(node) for node in [*self.nodes.values()][:_BATCH]])

    def nodes_go(self) -> None:
        gone = self.random.sample([*self.nodes], min(50, len(self.nodes) // 10))
        self.hand_over([NodeGone(name) for name in gone])
        for name in gone:
            del self.nodes[name]

    def members_change(self) -> None:
        self.made += 1
        found = [changed(pod, labels=(("seen", str(self.made)),)) for pod in self.some()]
        self.pods |= {pod.uid: pod for pod in found}
        self.hand_over([PodSeen(pod) for pod in found])

    def members_go_and_come(self) -> None:
        found = self.some()
        self.hand_over([PodGone(pod.uid) for pod in found])
        for pod in found:
            del self.pods[pod.uid]
        again = [changed(pod, uid=f"{pod.uid}+", node="", phase=PodPhase.PENDING) for pod in found]
        self.pods |= {pod.uid: pod for pod in again}
        self.hand_over([PodSeen(pod) for pod in again])

    def statuses_are_seen(self) -> None:
        """The watch shows our own statuses while members change."""
        gangs = self.calls.machine.gangs
        for key in self.random.sample(self.keys, min(20, len(self.keys))):
            group = gangs[key].observed.group if key in gangs else None
            status = gangs[key].written.status if key in gangs else None
            if group is not None and status is not None:
                self.made += 1
                seen = changed(group, status=status, resource_version=f"s{self.made}")
                self.hand_over([GroupSeen(seen), *map(PodSeen, self._relabelled(5))])

    def _relabelled(self, number: int) -> list[Pod]:
        found = [changed(pod, labels=(("seen", f"r{self.made}"),)) for pod in self.some(number)]
        self.pods |= {pod.uid: pod for pod in found}
        return found


_HAPPENING: Sequence[Callable[[_Story], None]] = (
    _Story.time_passes,
    _Story.misspelt_pods_come,
    _Story.strangers_come,
    _Story.bindings_are_answered,
    _Story.nodes_change,
    _Story.nodes_are_closed,
    _Story.nodes_go,
    _Story.members_change,
    _Story.members_go_and_come,
    _Story.statuses_are_seen,
)


@dataclass(frozen=True)
class Found:
    """The longest call in a world, in milliseconds, and what happened before it."""

    longest_ms: float
    happening: str
    world: World


def longest(random: Random, worlds: int) -> Iterator[Found]:
    """The longest call of each of so many worlds; the second half are changed from the worst of those before."""
    worst: Found | None = None
    for number in range(worlds):
        drawn = {name: random.choice(values) for name, values in _CHOICES.items()}
        world = World(**drawn, order=number)
        if number >= worlds // 2 and worst is not None:
            name = random.choice([each.name for each in fields(World)])
            world = replace(worst.world, **({"order": number} if name == "order" else {name: drawn[name]}))
        found = _measured(world)
        yield found
        worst = max(filter(None, (worst, found)), key=lambda each: each.longest_ms)


def _measured(world: World) -> Found:
    """Everything happens once, and then some of it again, in an order drawn for the world."""
    story = _Story(world)
    story.bindings += story.calls.wait(0.0)
    worst = Found(1000 * max(story.calls.took, default=0.0), "the first lists", world)
    order = [*_HAPPENING, *story.random.choices(_HAPPENING, k=_HAPPENINGS)]
    story.random.shuffle(order)
    for happening in order:
        before = len(story.calls.took)
        happening(story)
        took = 1000 * max(story.calls.took[before:], default=0.0)
        if took > worst.longest_ms:
            worst = Found(took, happening.__name__, world)
    gc.unfreeze()
    del story
    gc.collect()
    return worst


def searched(worlds: int = 4) -> Figures:
    """The longest call in any world, and the properties of that one."""
    found = longest(Random(1), worlds)  # noqa: S311 - the same worlds in every run
    worst = max(found, key=lambda each: each.longest_ms)
    shape = {each.name: float(getattr(worst.world, each.name)) for each in fields(World)}
    return {"longest_ms": worst.longest_ms, **shape}


if __name__ == "__main__":
    seed, number = (int(text) for text in (*sys.argv[1:], "1", "10")[:2])
    for each in longest(Random(seed), number):  # noqa: S311 - printed, so that it can be repeated
        print(f"{each.longest_ms:6.0f} ms, {each.happening}: {each.world}", flush=True)
