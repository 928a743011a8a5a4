"""The core without a cluster: the processor time of a plan, an event and a wake-up, and the memory of an object."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial

from msgspec import Raw
from msgspec.structs import replace

from bench import calls, contended, replays, reserved, shapes, telling, victims, volumes
from bench.lab import Figures
from gangsched.core.cluster.cache import Cluster
from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import Declaration, GroupKey
from gangsched.core.objects.effects import BindPod, Effect
from gangsched.core.objects.events import (
    Event,
    GroupsReplaced,
    NodesReplaced,
    PodGone,
    PodSeen,
    PodsReplaced,
    Synced,
    TimePassed,
)
from gangsched.core.objects.node import Node, Taint
from gangsched.core.objects.pod import Pod, PodPhase
from gangsched.core.objects.podgroup import Group, GroupSpec
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import PodBound
from gangsched.core.objects.shape import Amounts, HostPort, PodTerm, Requirement, Shape, Spread, Toleration
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.placement import Ask, Placement, place
from gangsched.kube.reading.watched_resources import PODS
from testbed.workloads import member

_ROOM: Amounts = (("cpu", 32_000), ("memory", 256 << 30), ("pods", 110))
_SHAPE = Shape(requests=(("cpu", 1000),))
_BATCH = 50
_EVENTS_PER_S = 1500
_SIGNATURES = 10
_ZONES = 4

Benchmark = tuple[str, Callable[[], Figures]]


def benchmarks(*, quick: bool) -> Iterator[Benchmark]:
    """The title and the measurement of each benchmark."""
    yield "core: plan 5,000 nodes × 1,000 identical", partial(plan_identical, 5000, 1000)
    yield "core: plan 5,000 nodes × 100 of 10 signatures", partial(plan_mixed, 5000, 100)
    yield "core: plan 5,000 nodes × 100 spread by zone, apart by hostname", partial(plan_dependent, 5000, 100)
    yield "core: 1,000 of 50,000 pods leave a plan", partial(leave, 5000, 50_000, 1000)
    yield "core: 1,000 parked groups without GPUs, a CPU pod ends", wake_without_gpu
    yield "core: 1,000 parked groups without CPUs, a small pod ends", wake_without_cpu
    yield "core: pod events, gangs of 20", partial(pod_events, 50, 20)
    yield "core: life of gangs of 20, 5,000 nodes against 500", life_of_more_nodes
    yield "core: simulate 700 gangs on 50 nodes", partial(telling.simulated, 700)
    yield "core: victims for a gang of 100 on 5,000 nodes", victims.searched
    yield "core: no victims suffice for a gang of 100 on 5,000 nodes", victims.hopeless
    if quick:
        return
    yield "core: victims for a gang of 100 whole nodes", partial(victims.searched, cpus=30)
    yield "core: victims for a gang that must be in one of 250 racks", partial(victims.searched, racks=True)
    yield "core: victims for members that are spread over 60 nodes", victims.spread
    yield "core: victims, from the last member to the plan", contended.searched
    yield (
        "core: victims, from the last member in one rack to the plan",
        partial(contended.searched, racks=True),
    )
    yield "core: 1,000 groups for which no victims suffice, at rest", contended.resting
    yield "core: victims for 100 groups of 20 at once", contended.at_once
    yield "core: places for later for a gang of 100 on 5,000 nodes with 50,000 pods", reserved.reserving
    yield "core: a pod ends where places are reserved, 10,000 groups wait", reserved.beside
    yield "core: expected starts of 1,000 groups on 5,000 nodes with 50,000 pods", reserved.foretold
    yield "core: simulate 5,000 gangs on 50 nodes", partial(telling.simulated, 5000)
    yield "core: list, explain and page with 10,000 gangs", partial(telling.answered, 10_000)
    yield "core: longest call, 25,000 members of minimum 1", calls.members
    yield "core: longest call, 20,000 parked gangs", calls.parked
    yield "core: longest call, 500 racks that all fail", calls.racks
    yield "core: longest call, found by search", shapes.searched
    yield "core: pod events, gangs of 5,000", partial(pod_events, 1, 5000)
    yield "core: life of a gang of 5,000 on 5,000 nodes", partial(life, 5000, 1, 5000)
    yield "core: memory of 5,000 nodes and 50,000 pods", memory
    yield "core: memory of 5,000 nodes with 10 volumes each", volumes.memory
    for title, load in replays.LOADS.items():
        yield title, partial(replays.replayed, load)
    for nodes in (500, 5000, 15_000):
        for members in (20, 1000, 5000):
            if (nodes, members) != (5000, 1000):
                yield f"core: plan {nodes:,} nodes × {members:,} identical", partial(plan_identical, nodes, members)
        if nodes != 5000:  # noqa: PLR2004 - that one is above
            yield f"core: plan {nodes:,} nodes × 100 of 10 signatures", partial(plan_mixed, nodes, 100)


# Plans


def plan_identical(nodes: int, members: int) -> Figures:
    """One class of members on empty nodes; the first plan starts with no cached results of the filters."""
    cluster = _cluster(nodes)
    return _plan(cluster, [_pod(GroupKey("default", "a"), number) for number in range(members)])


def plan_mixed(nodes: int, members: int) -> Figures:
    """Ten classes in one gang: each has its own requests and port, a zone, and a taint that it tolerates."""
    cluster = _cluster(nodes, mixed=True)
    shapes = [
        Shape(
            requests=(("cpu", 1000 + 100 * number), ("memory", (1 + number) << 30)),
            node_selector=(("zone", f"z{number % _ZONES}"),),
            tolerations=(Toleration(key="pool", operator="Equal", value=f"p{number % 3}", effect="NoSchedule"),),
            host_ports=(HostPort(port=9000 + number),),
        )
        for number in range(_SIGNATURES)
    ]
    key = GroupKey("default", "a")
    return _plan(cluster, [_pod(key, number, shape=shapes[number % _SIGNATURES]) for number in range(members)])


def plan_dependent(nodes: int, members: int) -> Figures:
    """One class of members with spread and anti-affinity: each placement changes every node's result for the next."""
    app = (Requirement("app", "In", ("a",)),)
    zone, host = (PodTerm(key, app, ("default",)) for key in ("zone", "kubernetes.io/hostname"))
    shape = replace(_SHAPE, spread=(Spread(zone, max_skew=1),), anti_affinity=(host,))
    key = GroupKey("default", "a")
    several = [replace(_pod(key, number, shape=shape), labels=(("app", "a"),)) for number in range(members)]
    cluster = _cluster(0)
    for number in range(nodes):
        cluster.set_node(replace(_mixed_node(number), taints=()))
    return _plan(cluster, several)


def _plan(cluster: Cluster, members: list[Pod]) -> Figures:
    ask = Ask(members=members, need=len(members))
    began = time.process_time()
    found = place(Snapshot(cluster), ask)
    cold = time.process_time()
    again = place(Snapshot(cluster), ask)
    warm = time.process_time()
    if not isinstance(found, Placement) or found != again:
        raise TypeError(f"the gang of the benchmark has no place: {found}")
    return {"first_ms": 1000 * (cold - began), "again_ms": 1000 * (warm - cold)}


def leave(nodes: int, pods: int, leaving: int) -> Figures:
    """Pods leave a snapshot and come back, on different nodes, once nothing is computed for the first time any more."""
    cluster = _cluster(nodes)
    for number in range(pods):
        cluster.set_pod(_pod(GroupKey("default", "a"), number, node=f"n{number % nodes}"))
    claims = [cluster.ledger.claims[f"default/a-{number}"] for number in range(0, pods, pods // leaving)]
    snapshot, figures = Snapshot(cluster), {}
    for _ in range(2):
        mark, began = snapshot.mark(), time.process_time()
        snapshot.leave(claims)
        left = time.process_time()
        snapshot.undo(mark)
        figures = {"leave_ms": 1000 * (left - began), "undo_ms": 1000 * (time.process_time() - left)}
    return figures


# Wake-ups


def wake_without_gpu() -> Figures:
    """Parked groups request GPUs that no node has; a pod without GPUs ends."""
    return _wake(Shape(requests=(("cpu", 1000), ("nvidia.com/gpu", 1))), ending=1000)


def wake_without_cpu() -> Figures:
    """Parked groups request more CPUs than are free; the pod that ends frees too little for any member."""
    return _wake(Shape(requests=(("cpu", 4000),)), ending=1000)


def _wake(wanted: Shape, *, ending: int) -> Figures:
    machine = Machine(Policy())
    nodes = 100
    keys = [GroupKey("default", f"g{number}") for number in range(1000)]
    full = [
        _pod(GroupKey("other", "old"), number, shape=Shape(requests=(("cpu", ending),)), node=f"n{number % nodes}")
        for number in range(nodes * 32)
    ]
    waiting = [_pod(key, number, shape=wanted) for key in keys for number in range(4)]
    machine.handle([_nodes(nodes), _groups(keys, 4), PodsReplaced((*full, *waiting)), Synced()], 1.0)
    for now in (2.0, 3.0, 40.0):
        _rest(machine, now)
    began = time.process_time()
    machine.handle([PodGone(full[0].uid)], 41.0)
    _rest(machine, 41.0)
    took = time.process_time() - began
    return {"cpu_ms": 1000 * took}


# Events


def pod_events(gangs: int, size: int) -> Figures:
    """From a line of a watch to the state: running pods of scheduled gangs change, in batches of fifty and singly.

    The last events (`unchanged_event_us`) change only fields that the core does not read.
    """
    machine, pods = _scheduled(gangs, size)
    lines = [Raw(json.dumps(_wire(pod, restarts=1)).encode()) for pod in pods]
    fewer = pods[: 10 * _BATCH]
    changed = [Raw(json.dumps(_wire(pod, restarts=2, label="new")).encode()) for pod in fewer]
    unknown = [Raw(json.dumps(_wire(pod, restarts=3, label="new")).encode()) for pod in fewer]
    began = time.process_time()
    for start in range(0, len(lines), _BATCH):
        machine.handle([_seen(line) for line in lines[start : start + _BATCH]], 10.0 + start / _EVENTS_PER_S)
    batches = time.process_time()
    for at, line in enumerate(changed):
        machine.handle([_seen(line)], 20.0 + at / _EVENTS_PER_S)
    singles = time.process_time()
    for at, line in enumerate(unknown):
        machine.handle([_seen(line)], 30.0 + at / _EVENTS_PER_S)
    ended = time.process_time()
    return {
        "event_us": 1e6 * (batches - began) / len(lines),
        "single_event_us": 1e6 * (singles - batches) / len(changed),
        "unchanged_event_us": 1e6 * (ended - singles) / len(unknown),
    }


def life(nodes: int, gangs: int, size: int) -> Figures:
    """All the machine's work for a pod, from its creation until its binding is seen, in batches of fifty events.

    Events arrive as fast as a bare API server binds, so the result also depends on how often a gang is evaluated.
    """
    machine = Machine(Policy())
    keys = [GroupKey("default", f"g{number}") for number in range(gangs)]
    machine.handle([_nodes(nodes), _groups(keys, size), Synced()], 1.0)
    pods = {pod.uid: pod for key in keys for pod in (_pod(key, number) for number in range(size))}
    began = time.process_time()
    bindings = _feed(machine, [PodSeen(pod) for pod in pods.values()], 10.0)
    planned = time.process_time()
    _feed(machine, [PodBound(each.uid, each.node) for each in bindings], 20.0)
    _feed(machine, [PodSeen(replace(pods[each.uid], node=each.node)) for each in bindings], 30.0)
    _feed(machine, [], 40.0)
    ended = time.process_time()
    if len(bindings) != len(pods):
        raise RuntimeError(f"only {len(bindings)} of {len(pods)} pods were bound")
    return {"cpu_us_per_pod": 1e6 * (ended - began) / len(pods), "to_decision_us": 1e6 * (planned - began) / len(pods)}


def life_of_more_nodes() -> Figures:
    """The growth of the cost per pod from 500 to 5,000 nodes, for the same gangs."""
    few, many = life(500, 250, 20), life(5000, 250, 20)
    return {
        "few_us_per_pod": few["cpu_us_per_pod"],
        "many_us_per_pod": many["cpu_us_per_pod"],
        "cpu_ratio": many["cpu_us_per_pod"] / few["cpu_us_per_pod"],
    }


def _feed(machine: Machine, events: list[Event], now: float) -> list[BindPod]:
    found: list[BindPod] = []
    for start in range(0, len(events), _BATCH):
        effects = machine.handle(events[start : start + _BATCH], now + start / _EVENTS_PER_S)
        found += [effect for effect in effects if isinstance(effect, BindPod)]
    effects = _rest(machine, now + 9.0)
    return [*found, *(effect for effect in effects if isinstance(effect, BindPod))]


def _rest(machine: Machine, now: float) -> list[Effect]:
    """Run all work that is due in the machine."""
    effects = machine.handle([TimePassed()], now)
    while (due := machine.next_deadline()) is not None and due <= now:
        effects += machine.handle([TimePassed()], now)
    return effects


def _seen(line: Raw) -> PodSeen:
    _, pod = PODS.read(line)
    return PodSeen(pod)


# Memory


def memory() -> Figures:
    """The memory that the machine holds per node and per pod, as tracemalloc counts it."""
    tracemalloc.start()
    try:
        machine = Machine(Policy())
        empty = tracemalloc.get_traced_memory()[0]
        machine.handle([NodesReplaced(tuple(_node(f"n{number}") for number in range(5000)))], 1.0)
        nodes = tracemalloc.get_traced_memory()[0]
        lines = (json.dumps(_wire(pod, restarts=0)).encode() for pod in _members(2500, 20, nodes=5000))
        machine.handle([PodsReplaced(tuple(PODS.read(Raw(line))[1] for line in lines))], 1.0)
        pods = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    return {"node_bytes": (nodes - empty) / 5000, "pod_bytes": (pods - nodes) / 50_000}


# Values


def _scheduled(gangs: int, size: int) -> tuple[Machine, list[Pod]]:
    machine = Machine(Policy())
    pods = _members(gangs, size, nodes=500)
    keys = [GroupKey("default", f"g{number}") for number in range(gangs)]
    machine.handle([_nodes(500), _groups(keys, size), PodsReplaced(tuple(pods)), Synced()], 1.0)
    for now in (2.0, 3.0, 4.0):
        _rest(machine, now)
    return machine, pods


def _members(gangs: int, size: int, *, nodes: int) -> list[Pod]:
    """Running members, spread over the nodes."""
    keys = [GroupKey("default", f"g{number}") for number in range(gangs)]
    return [
        replace(_pod(key, number, node=f"n{(gang * size + number) % nodes}"), phase=PodPhase.RUNNING)
        for gang, key in enumerate(keys)
        for number in range(size)
    ]


def _wire(pod: Pod, *, restarts: int, label: str = "") -> dict[str, object]:
    """The pod as the API server sends it, with the status that a kubelet reports."""
    manifest = member(pod.name, pod.declaration.group if pod.declaration else "", nodeName=pod.node)
    manifest["metadata"]["labels"] |= {"changed": label} if label else {}
    manifest["metadata"] |= {
        "namespace": pod.namespace,
        "uid": pod.uid,
        "resourceVersion": "12345",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    times = {"lastProbeTime": None, "lastTransitionTime": "2026-01-01T00:00:01Z"}
    types = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    manifest["status"] = {
        "phase": "Running",
        "conditions": [{"type": each, "status": "True", **times} for each in types],
        "hostIP": "10.0.0.1",
        "podIP": "10.1.0.1",
        "startTime": "2026-01-01T00:00:01Z",
        "containerStatuses": [
            {
                "name": "main",
                "ready": True,
                "restartCount": restarts,
                "image": "registry.invalid/sleep",
                "imageID": "",
                "state": {"running": {"startedAt": "2026-01-01T00:00:01Z"}},
            }
        ],
        "qosClass": "Burstable",
    }
    return manifest


def _cluster(nodes: int, *, mixed: bool = False) -> Cluster:
    cluster = Cluster()
    for number in range(nodes):
        cluster.set_node(_mixed_node(number) if mixed else _node(f"n{number}"))
    return cluster


def _mixed_node(number: int) -> Node:
    taints = (Taint(key="pool", effect="NoSchedule", value=f"p{number % 3}"),) if number % 2 else ()
    labels = (("kubernetes.io/hostname", f"n{number}"), ("zone", f"z{number % _ZONES}"))
    return Node(f"n{number}", _ROOM, labels=labels, taints=taints)


def _node(name: str) -> Node:
    return Node(name, _ROOM, labels=(("kubernetes.io/hostname", name),))


def _nodes(count: int) -> NodesReplaced:
    return NodesReplaced(tuple(_node(f"n{number}") for number in range(count)))


def _groups(keys: list[GroupKey], size: int) -> GroupsReplaced:
    return GroupsReplaced(tuple(Group(key, key.name, "1", 1, 0.0, GroupSpec(min_member=size)) for key in keys))


def _pod(key: GroupKey, number: int, *, shape: Shape = _SHAPE, node: str = "") -> Pod:
    name = f"{key.name}-{number}"
    return Pod(
        f"{key.namespace}/{name}",
        key.namespace,
        name,
        shape,
        0.0,
        "gangsched",
        node=node,
        declaration=Declaration(key.name),
    )
