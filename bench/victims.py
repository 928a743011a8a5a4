"""The search for the units that must leave for a gang that matters more: the longest call and all calls together."""

from __future__ import annotations

import gc
import time
from random import Random

from msgspec.structs import replace

from bench.lab import Figures
from gangsched.core.cluster.cache import Cluster
from gangsched.core.objects.declaration import Topology
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import Amounts, PodTerm, Requirement, Shape, Spread
from gangsched.core.planning.after import After, NoWay
from gangsched.core.planning.ask import Ask
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.leaving import Search
from gangsched.core.planning.removable import Removable
from gangsched.core.planning.unit_table import Unit

ROOM: Amounts = (("cpu", 32_000), ("memory", 256 << 30), ("pods", 110))
NODES, LEVELS, PER_RACK = 5000, 5, 20
_PODS_PER_NODE = 10
_SIZES = (4, 8, 16, 32)
REQUESTS = (1000, 2000, 3000, 4000)
_DAY_S = 86_400.0


def searched(*, cpus: int = 16, racks: bool = False) -> Figures:
    """A gang of 100 members on full nodes: 40,000 pods in gangs of 4 to 32 and 10,000 plain pods, of five priorities.

    `racks`: the gang must be in one of 250 racks. `first_ms` includes the indexing of the units, which later searches
    on the same units share.
    """
    cluster, several = _full()
    members = [Pod(f"a{at}", "default", f"a{at}", shape_of(1000 * cpus), 0.0, "gangsched") for at in range(100)]
    if racks:
        members = members[: 2 * PER_RACK * 3 // 4]
    ask = Ask(members=members, need=len(members), topology=Topology("rack", required=True) if racks else None)
    gc.collect()
    gc.freeze()
    began = time.process_time()
    removable = Removable.of(cluster, several)
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


def spread(*, nodes: int = 60, members: int = 50) -> Figures:
    """A gang whose members must be on different nodes, by their spread, each on half a node; all pods may leave."""
    cluster, several = _full(nodes)
    terms = (PodTerm("kubernetes.io/hostname", (Requirement("app", "In", ("a",)),), ("default",)),)
    shape = replace(shape_of(16_000), spread=tuple(Spread(term, max_skew=1) for term in terms))
    names, labels = [f"a{at}" for at in range(members)], (("app", "a"),)
    pods = [Pod(name, "default", name, shape, 0.0, "gangsched", labels=labels) for name in names]
    search, took = Search(Ask(members=pods, need=members), Removable.of(cluster, several), {}), list[float]()
    found: After | NoWay | None = None
    while found is None:
        snapshot, began = Snapshot(cluster), time.process_time()
        found = search.go_on(snapshot)
        took.append(1000 * (time.process_time() - began))
    if not isinstance(found, After):
        raise TypeError(f"no units make room for the gang of the benchmark: {found}")
    return {"longest_ms": max(took), "all_ms": sum(took), "trials": search.trials, "units": len(found.leaving)}


def hopeless() -> Figures:
    """The same for a gang of 100 whole nodes, if only units of the lowest priority may leave."""
    cluster, several = _full()
    members = [Pod(f"a{at}", "default", f"a{at}", shape_of(32_000), 0.0, "gangsched") for at in range(100)]
    ask, removable = Ask(members=members, need=len(members)), Removable.of(cluster, several)
    took = []
    for _ in range(2):
        snapshot = Snapshot(cluster)
        began = time.process_time()
        found = Search(ask, removable, {}, below=1).go_on(snapshot)
        took.append(1000 * (time.process_time() - began))
        if found != NoWay(hopeless=True):
            raise TypeError(f"a gang for which there is too little was not hopeless: {found}")
    return {"refused_ms": took[-1]}


def _full(nodes: int = NODES) -> tuple[Cluster, list[Unit]]:
    """Nodes with ten pods each, all of which may leave; those of a gang are on nodes that follow each other."""
    random, cluster = Random(34), Cluster()  # noqa: S311 - not for secrets
    for number in range(nodes):
        labels = (("kubernetes.io/hostname", f"n{number}"), ("rack", f"r{number // PER_RACK}"))
        cluster.set_node(Node(f"n{number}", ROOM, labels=labels))
    several, first = [], 0
    for number, size in enumerate(sizes_of(random, _PODS_PER_NODE * nodes)):
        shape, names = shape_of(random.choice(REQUESTS)), [f"p{at}" for at in range(first, first + size)]
        for at, name in enumerate(names, first):
            cluster.set_pod(Pod(name, "default", name, shape, 0.0, "gangsched", node=f"n{at % nodes}"))
        claims = tuple(cluster.ledger.claims[name] for name in names)
        lost_s, level = random.uniform(60.0, _DAY_S), random.randrange(LEVELS)
        several.append(Unit(f"u{number}", level, claims, (-lost_s,) * size, _DAY_S - lost_s, whole=size > 1))
        first += size
    return cluster, several


def sizes_of(random: Random, pods: int) -> list[int]:
    """The sizes of gangs that have four fifths of the pods, and a one for each of the other pods, in any order."""
    sizes = [1] * (pods // 5)
    while sum(sizes) < pods:
        sizes.append(min(random.choice(_SIZES), pods - sum(sizes)))
    random.shuffle(sizes)
    return sizes


def shape_of(cpus: int) -> Shape:
    """What a pod requests that has so many thousandths of a CPU."""
    return Shape(requests=(("cpu", cpus), ("memory", cpus << 20)))
