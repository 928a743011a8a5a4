"""The search for the units that must leave for a gang that matters more: the longest call and all calls together."""

from __future__ import annotations

import gc
import time
from random import Random

from bench.lab import Figures
from gangsched.core.cluster.cache import Cluster
from gangsched.core.objects.declaration import Topology
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import Amounts, Shape
from gangsched.core.planning.after import After, NoWay
from gangsched.core.planning.ask import Ask
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.leaving import Search
from gangsched.core.planning.removable import Removable, Unit

_ROOM: Amounts = (("cpu", 32_000), ("memory", 256 << 30), ("pods", 110))
_NODES, _PODS, _PLAIN, _LEVELS = 5000, 50_000, 10_000, 5
_SIZES = (4, 8, 16, 32)
_PER_RACK = 20
_REQUESTS = (1000, 2000, 3000, 4000)
_DAY_S = 86_400.0


def searched(*, cpus: int = 16, racks: bool = False) -> Figures:
    """A gang of 100 members on full nodes: 40,000 pods in gangs of 4 to 32 and 10,000 plain pods, of five priorities.

    `racks`: the gang must be in one of 250 racks. `first_ms` includes the indexing of the units, which later searches
    on the same units share.
    """
    cluster, several = _full()
    members = [Pod(f"a{at}", "default", f"a{at}", _shape(1000 * cpus), 0.0, "gangsched") for at in range(100)]
    if racks:
        members = members[: 2 * _PER_RACK * 3 // 4]
    ask = Ask(members=members, need=len(members), topology=Topology("rack", required=True) if racks else None)
    gc.collect()
    gc.freeze()
    began = time.process_time()
    removable = Removable(cluster, several)
    indexed = time.process_time() - began
    Search(ask, removable, {}).go_on(Snapshot(cluster))
    search, took = Search(ask, removable, {}), list[float]()
    found: After | NoWay | None = None
    while found is None:
        snapshot = Snapshot(cluster)
        began = time.process_time()
        found = search.go_on(snapshot)
        took.append(1000 * (time.process_time() - began))
    if not isinstance(found, After):
        raise TypeError(f"no units make room for the gang of the benchmark: {found}")
    return {
        "longest_ms": max(took),
        "all_ms": sum(took),
        "calls": len(took),
        "index_ms": 1000 * indexed,
        "units": len(found.leaving),
        "pods": sum(len(unit.claims) for unit in found.leaving),
    }


def hopeless() -> Figures:
    """The same for a gang of 100 whole nodes, if only units of the lowest priority may leave."""
    cluster, several = _full()
    members = [Pod(f"a{at}", "default", f"a{at}", _shape(32_000), 0.0, "gangsched") for at in range(100)]
    ask, removable = Ask(members=members, need=len(members)), Removable(cluster, several)
    took = []
    for _ in range(2):
        snapshot = Snapshot(cluster)
        began = time.process_time()
        found = Search(ask, removable, {}, below=1).go_on(snapshot)
        took.append(1000 * (time.process_time() - began))
        if found != NoWay(hopeless=True):
            raise TypeError(f"a gang for which there is too little was not hopeless: {found}")
    return {"refused_ms": took[-1]}


def _full() -> tuple[Cluster, list[Unit]]:
    """Nodes with ten pods each, all of which may leave; those of a gang are on nodes that follow each other."""
    random, cluster = Random(34), Cluster()  # noqa: S311 - not for secrets
    for number in range(_NODES):
        labels = (("kubernetes.io/hostname", f"n{number}"), ("rack", f"r{number // _PER_RACK}"))
        cluster.set_node(Node(f"n{number}", _ROOM, labels=labels))
    sizes = [1] * _PLAIN
    while sum(sizes) < _PODS:
        sizes.append(min(random.choice(_SIZES), _PODS - sum(sizes)))
    random.shuffle(sizes)
    several, first = [], 0
    for number, size in enumerate(sizes):
        shape, names = _shape(random.choice(_REQUESTS)), [f"p{at}" for at in range(first, first + size)]
        for at, name in enumerate(names, first):
            cluster.set_pod(Pod(name, "default", name, shape, 0.0, "gangsched", node=f"n{at % _NODES}"))
        claims = tuple(cluster.ledger.claims[name] for name in names)
        lost_s, level = random.uniform(60.0, _DAY_S), random.randrange(_LEVELS)
        several.append(Unit(f"u{number}", level, claims, (lost_s,) * size, _DAY_S - lost_s, whole=size > 1))
        first += size
    return cluster, several


def _shape(cpus: int) -> Shape:
    return Shape(requests=(("cpu", cpus), ("memory", cpus << 20)))
