"""Planners that solve an instance: gangsched itself with each strategy, and others that place pod by pod.

The others use the same feasible nodes as gangsched, keep the same order of gangs (contract rule 6) and admit whole
gangs only. They choose a node for one member after the other, by the node order that a peer documents.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from bench.quality.instances import Gang, Instance
from bench.quality.outcomes import Outcome, Placed
from gangsched.core.cluster.cache import Cluster
from gangsched.core.machine import Machine
from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.effects import BindPod, Effect
from gangsched.core.objects.events import GroupsReplaced, NodesReplaced, PodSeen, PodsReplaced, Synced, TimePassed
from gangsched.core.objects.pod import Pod, role_of
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import PodBound
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.filling import classify
from gangsched.core.planning.search import Slots
from gangsched.core.planning.strategies import STRATEGIES

Planner = Callable[[Instance], Outcome]
Floats = npt.NDArray[np.float64]
Order = Callable[[Snapshot, Pod, IntArray], Floats]
"""The cost of placing the pod on each of these rows; the lowest wins, and the first by name among equals."""


def gangsched(strategy: str) -> Planner:
    """The whole core: all gangs exist when it starts, and every binding succeeds at once."""

    def plan(instance: Instance) -> Outcome:
        machine = Machine(Policy())
        groups = [gang.group() for gang in instance.gangs]
        named = [replace(each, spec=replace(each.spec, strategy=strategy)) for each in groups if each.spec]
        pods = {pod.uid: pod for gang in instance.gangs for pod in gang.pods()}
        events = [
            NodesReplaced(tuple(instance.nodes)),
            GroupsReplaced(tuple(named)),
            PodsReplaced((*instance.standing, *pods.values())),
            Synced(),
        ]
        bound: list[tuple[Pod, str]] = []
        now, effects = 100.0, machine.handle(events, 100.0)
        while True:
            effects += _rest(machine, now)
            found = [(pods[each.uid], each.node) for each in effects if isinstance(each, BindPod)]
            if not found:
                return Outcome(instance, _placed(bound))
            bound += found
            now += 1.0
            seen = [PodSeen(replace(pod, node=node)) for pod, node in found]
            effects = machine.handle([*(PodBound(pod.uid, node) for pod, node in found), *seen], now)

    return plan


def _rest(machine: Machine, now: float) -> list[Effect]:
    effects = machine.handle([TimePassed()], now)
    while (due := machine.next_deadline()) is not None and due <= now:
        effects += machine.handle([TimePassed()], now)
    return effects


def pod_by_pod(order: Order) -> Planner:
    """Place members one by one, each on the best node by `order`; a gang that misses its minimum gets no nodes."""

    def plan(instance: Instance) -> Outcome:
        cluster = Cluster()
        for node in instance.nodes:
            cluster.set_node(node)
        left = {gang.name: gang.pods() for gang in instance.gangs}
        for pod in (*instance.standing, *(pod for pods in left.values() for pod in pods)):
            cluster.set_pod(pod)
        snapshot = Snapshot(cluster)
        bound: list[tuple[Pod, str]] = []
        admitted = []
        for gang in instance.gangs:
            mark = snapshot.mark()
            found = _quorum(snapshot, gang, left[gang.name], order)
            if found is None:
                snapshot.undo(mark)
            else:
                bound += found
                admitted.append((gang, {pod.uid for pod, _ in found}))
        for gang, there in admitted:
            more = [pod for pod in left[gang.name] if pod.uid not in there]
            bound += [(pod, name) for pod in more if (name := _put(snapshot, pod, order))]
        return Outcome(instance, _placed(bound))

    return plan


def _quorum(snapshot: Snapshot, gang: Gang, pods: list[Pod], order: Order) -> list[tuple[Pod, str]] | None:
    slots = Slots.of(gang.need, {kind.role: kind.least for kind in gang.kinds})
    found = []
    for pod in pods:
        if slots.open_to(role_of(pod)) and (name := _put(snapshot, pod, order)):
            found.append((pod, name))
            slots = slots.without(role_of(pod), 1)
    return found if not slots.number else None


def _put(snapshot: Snapshot, pod: Pod, order: Order) -> str:
    """Place the pod on its best node and return its name; empty if no node is feasible."""
    member = classify(snapshot, [pod])[pod.uid]
    rows = np.flatnonzero(snapshot.caps(member))
    if not len(rows):
        return ""
    row = int(rows[np.argmin(order(snapshot, pod, rows))])
    snapshot.take(row, member, 1)
    return snapshot.name(row)


def first_fit(_: Snapshot, __: Pod, rows: IntArray) -> Floats:
    """The first node by its name."""
    return rows.astype(np.float64)


def fullest(snapshot: Snapshot, pod: Pod, rows: IntArray) -> Floats:
    """Highest use of the requested resources, the pod included: binpack of Volcano, KAI and YuniKorn."""
    return -emptiest(snapshot, pod, rows)


def emptiest(snapshot: Snapshot, pod: Pod, rows: IntArray) -> Floats:
    """Lowest use of the requested resources: LeastAllocated of kube-scheduler and Volcano, fair of YuniKorn."""
    shares: Floats = _used(snapshot, pod, rows).mean(axis=1)
    return shares


def _used(snapshot: Snapshot, pod: Pod, rows: IntArray) -> Floats:
    """The share in use of each requested resource, the pod included."""
    capacity = snapshot.cluster.capacity
    columns = np.array([capacity.column(resource) for resource, _ in pod.shape.requests], dtype=np.intp)
    asked = np.array([amount for _, amount in pod.shape.requests], dtype=np.float64)
    given = capacity.allocatable[rows[:, None], columns].astype(np.float64)
    free = snapshot.free[rows[:, None], columns]
    shares: Floats = (given - free + asked) / np.maximum(given, 1.0)
    return shares


def _placed(bound: Iterable[tuple[Pod, str]]) -> Placed:
    placed: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for pod, node in bound:
        gang = pod.declaration.group if pod.declaration else ""
        placed[gang, role_of(pod)][node] += 1
    return placed


FIRST_FIT = "first fit"
DEFAULT = "gangsched, Pack"
PLANNERS: dict[str, Planner] = {
    **{f"gangsched, {name}": gangsched(name) for name in STRATEGIES},
    FIRST_FIT: pod_by_pod(first_fit),
    "fullest node first": pod_by_pod(fullest),
    "emptiest node first": pod_by_pod(emptiest),
}
