"""Random full clusters and a gang for which others must leave; each is determined by its seed."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from random import Random

from gangsched.core.cluster.cache import Cluster
from gangsched.core.objects.arrays import Floats
from gangsched.core.objects.declaration import Topology
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import Shape
from gangsched.core.planning.ask import Ask
from gangsched.core.planning.budget import Budget
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.counted import Counted
from gangsched.core.planning.placement import fits
from gangsched.core.planning.removable import Removable
from gangsched.core.planning.unit_table import Unit

RACK = "rack"
_NODES = ((16, 64), (16, 64), (32, 128), (64, 256))
"""CPUs and memory in GiB of a kind of node."""
_GANGS = (1, 1, 2, 3, 4, 6)
_SURPLUS = (0, 0, 1, 2)
_LEVELS = 3
_GIB = 1 << 30
_WORKED_S = (60.0, 86_400.0)
_PLENTY = 1 << 40


@dataclass(frozen=True)
class Crowded:
    """A full cluster, the units that may leave, and what a gang asks for that fits nowhere before some leave."""

    seed: int
    cluster: Cluster
    removable: Removable
    ask: Ask

    @property
    def units(self) -> Sequence[Unit]:
        """The units by number."""
        return self.removable.units

    @cached_property
    def costs(self) -> Floats:
        """The work that is lost with each unit: the share of the cluster that it has of what lacks × seconds."""
        return Counted(Snapshot(self.cluster), self.ask, self.removable, 0.0).costs

    def suffices(self, leaving: Collection[int]) -> bool:
        """Whether the gang is placed once these have left."""
        snapshot = Snapshot(self.cluster, budget=Budget(_PLENTY))
        snapshot.leave(self.removable.claims(leaving))
        return fits(snapshot, self.ask)

    def level(self, leaving: Collection[int]) -> int:
        """The highest level of these."""
        return max((self.units[at].level for at in leaving), default=-1)

    def lost(self, leaving: Collection[int]) -> float:
        """The work that is lost with these."""
        return float(sum(self.costs[at] for at in leaving))

    def pods(self, leaving: Collection[int]) -> int:
        """The number of pods that are evicted with these."""
        return sum(len(self.units[at].claims) for at in leaving)


def crowded(seed: int) -> Crowded:
    """The instance of this seed."""
    for attempt in count():
        dice = Random(1000 * seed + attempt)  # noqa: S311 - chance that can be repeated
        cluster, units = _full(dice)
        found = Crowded(seed, cluster, Removable.of(cluster, units), _asked(dice))
        if not found.suffices(()) and found.suffices(range(len(units))):
            return found
    raise AssertionError


def _full(dice: Random) -> tuple[Cluster, list[Unit]]:
    """A cluster of three to eight nodes, and its pods: gangs, some of them with members above their minimum."""
    cluster, free = Cluster(), dict[str, list[int]]()
    kind = dice.choice(_NODES)
    for at in range(dice.randint(3, 8)):
        cpus, memory = kind if dice.random() < 0.7 else dice.choice(_NODES)  # noqa: PLR2004 - a share
        free[f"n{at}"] = [cpus, memory]
        room = (("cpu", 1000 * cpus), ("memory", memory * _GIB), ("pods", 110))
        labels = (("kubernetes.io/hostname", f"n{at}"), (RACK, f"r{at % 2}"))
        cluster.set_node(Node(f"n{at}", room, labels=labels))
    units, names = list[Unit](), (f"u{at:03}" for at in count())
    while (left := sum(cpus for cpus, _ in free.values())) > len(free) and len(units) < left + 40:
        size, cpus = dice.choice(_GANGS), dice.randint(1, 6)
        memory = cpus * dice.choice((1, 2, 4))
        places = [_place(dice, free, cpus, memory) for _ in range(size)]
        units += _gang(dice, cluster, next(names), [each for each in places if each], _shape(cpus, memory))
    return cluster, units


def _place(dice: Random, free: dict[str, list[int]], cpus: int, memory: int) -> str:
    """A node with room for a pod, which it takes; empty if there is none."""
    fitting = [name for name, (left, gib) in free.items() if left >= cpus and gib >= memory]
    if not fitting:
        return ""
    name = dice.choice(fitting)
    free[name] = [free[name][0] - cpus, free[name][1] - memory]
    return name


def _gang(dice: Random, cluster: Cluster, name: str, places: Sequence[str], shape: Shape) -> list[Unit]:
    """A gang, or a single pod, as units."""
    if not places:
        return []
    pods = [Pod(f"{name}-{at}", "default", f"{name}-{at}", shape, 0.0, "s", node=on) for at, on in enumerate(places)]
    for pod in pods:
        cluster.set_pod(pod)
    claims = [cluster.ledger.claims[pod.uid] for pod in pods]
    level, began = dice.randrange(_LEVELS), -math.exp(dice.uniform(*map(math.log, _WORKED_S)))
    more = min(dice.choice(_SURPLUS), len(pods) - 1) if len(pods) > 1 else 0
    surplus = [Unit(f"{name}-{at}", level, (claims.pop(),), (began,), began) for at in range(more)]
    along, began_each = tuple(unit.name for unit in surplus), (began,) * len(claims)
    whole = Unit(name, level, tuple(claims), began_each, began, whole=len(pods) > 1, along=along)
    return [*surplus, whole]


def _asked(dice: Random) -> Ask:
    """One to six members of one size or two; a quarter of gangs must be in one rack."""
    sizes = [_shape(cpus, cpus * dice.choice((1, 4))) for cpus in dice.sample(range(2, 13), dice.choice((1, 1, 1, 2)))]
    pods = [Pod(f"a{at}", "default", f"a{at}", dice.choice(sizes), 0.0, "s") for at in range(dice.randint(1, 6))]
    topology = Topology(RACK, required=True) if dice.random() < 0.25 else None  # noqa: PLR2004 - a share
    return Ask(members=pods, need=len(pods), topology=topology)


def _shape(cpus: int, memory: int) -> Shape:
    return Shape(requests=(("cpu", 1000 * cpus), ("memory", memory * _GIB)))
