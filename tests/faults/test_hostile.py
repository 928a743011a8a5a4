"""Five thousand odd objects go through the shell's readers into the machine: nothing fails, no healthy group waits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from random import Random
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from gangsched.api.conversion import group_from_object
from gangsched.api.status_conversion import status_to_object
from gangsched.core.machine import Machine
from gangsched.core.objects.effects import BindPod, Effect, EmitEvent, PatchPodCondition, PatchStatus
from gangsched.core.objects.events import Event, GroupSeen, Synced, TimePassed
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import PodBound, StatusWritten
from gangsched.kube.client.resource import Resource
from gangsched.kube.reading.disruption_values import BUDGETS
from gangsched.kube.reading.watched_resources import NAMESPACES, NODES, PODS, PRIORITY_CLASSES, STORAGE
from gangsched.kube.writing.event_writes import event_object
from testbed.nodes import node
from testbed.workloads import member, pod_group
from tests.effort import examples, seeded
from tests.faults.hostile import Hostility, Odd

OBJECTS = min(5_000, examples(5_000))
BATCH = 100
HEALTHY = "healthy.example/slot"
SIZE = 5
LONGEST_S = 1.0
MOST_CALLS = 20

Json = dict[str, Any]


class World:
    """The machine between the shell's readers and the bodies that the shell would write, and a store of manifests.

    Writes are stored and come back with the next delivery, as a watch would deliver them. `slowest` has the CPU seconds
    of every call of the machine, with its subject; `longest` is the largest number of calls for one delivery.
    """

    def __init__(self) -> None:
        self.machine = Machine(Policy())
        self.now = 1_000_000.0
        self.objects: dict[tuple[str, str, str], Json] = {}
        self.slowest: list[tuple[float, str]] = []
        self.longest = 0
        self._back: list[Event] = [Synced()]
        self._version = 0

    def deliver(self, manifests: Iterable[Json], *, why: str = "") -> list[Effect]:
        """Give the machine these objects and the results of earlier decisions; call it until it has nothing to do."""
        events = self._back + [self._seen(manifest) for manifest in manifests] or [TimePassed()]
        self._back = []
        effects: list[Effect] = []
        calls = 0
        while events:
            calls += 1
            began = time.process_time()
            effects += self.machine.handle(events, self.now)
            self.slowest.append((time.process_time() - began, why))
            due = self.machine.next_deadline()
            events = [TimePassed()] if due is not None and due <= self.now else []
        self.longest = max(self.longest, calls)
        for effect in effects:
            self._carry_out(effect)
        return effects

    def wait(self, seconds: float) -> None:
        """Advance the clock, stopping at every deadline that the machine sets on the way."""
        end = self.now + seconds
        while True:
            deadline = self.machine.next_deadline()
            if not self._back and (deadline is None or deadline > end):
                break
            if not self._back and deadline is not None:
                self.now = max(self.now, deadline)
            self.deliver([], why=f"time at {self.now}")
        self.now = end

    def _seen(self, manifest: Json) -> Event:
        self._version += 1
        meta = manifest["metadata"]
        meta |= {"uid": meta.get("uid") or f"uid-{self._version}", "resourceVersion": str(self._version)}
        meta.setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
        self.objects[manifest["kind"], meta.get("namespace", ""), meta["name"]] = manifest
        if manifest["kind"] == "PodGroup":
            return GroupSeen(group_from_object(manifest))
        resource: Resource[Any] = PODS if manifest["kind"] == "Pod" else NODES
        return resource.seen(resource.read(Raw(msgspec.json.encode(manifest)))[1])

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case BindPod():
                pod = self.objects["Pod", effect.namespace, effect.name]
                pod["spec"]["nodeName"] = effect.node
                self._back += [PodBound(effect.uid, effect.node), self._seen(pod)]
            case PatchStatus(key, _, status, _):
                group = self.objects["PodGroup", key.namespace, key.name]
                group["status"] = msgspec.json.decode(msgspec.json.encode(status_to_object(status)["status"]))
                self._back.append(self._seen(group))
                self._back.append(StatusWritten(key, str(self._version), status.reservation is not None))
            case PatchPodCondition():
                pod = self.objects["Pod", effect.namespace, effect.name]
                condition = {"type": "PodScheduled", "status": "False", "reason": effect.reason}
                pod.setdefault("status", {})["conditions"] = [condition | {"message": effect.message}]
                self._back.append(self._seen(pod))
            case EmitEvent():
                msgspec.json.encode(event_object(effect, now=self.now, reporting_instance="x"))


def healthy_nodes() -> list[Json]:
    """Room for every healthy group, of a resource that no odd object requests."""
    return [node(f"healthy-{number}", extra={HEALTHY: "1000"}, pods="100000", ready=True) for number in range(3)]


def healthy_group(number: int) -> list[Json]:
    name = f"healthy-{number}"
    members = [member(f"{name}-{index}", name, requests={HEALTHY: "1"}) for index in range(SIZE)]
    made = [pod_group(name, min_member=SIZE), *members]
    for manifest in made:
        manifest["metadata"]["namespace"] = "healthy"
    return made


@seeded(2)
@pytest.mark.slow
def test_odd_objects_neither_stop_the_machine_nor_delay_a_healthy_group(seed: int) -> None:
    """Each batch of odd objects contains a healthy group, which must be bound before the machine runs out of work.

    One call may use a second of CPU, as the engine calls the machine again at once, and a batch may take few calls.
    """
    world, hostility, random = World(), Hostility(seed, served=False), Random(seed)
    world.deliver(healthy_nodes())
    for number in range(OBJECTS // BATCH):
        odds = [hostility.any() for _ in range(BATCH)]
        manifests = [odd.manifest for odd in odds]
        for manifest in healthy_group(number):
            manifests.insert(random.randrange(len(manifests) + 1), manifest)
        effects = world.deliver(manifests, why=f"batch {number} of seed {seed}")
        bound = [effect for effect in effects if isinstance(effect, BindPod) and effect.namespace == "healthy"]
        assert len(bound) == SIZE, f"batch {number}: {odds}"
        world.now += 0.2
        if number % 10 == 0:
            assert world.machine.validate() == []
    world.wait(5)
    assert world.machine.validate() == []
    assert max(world.slowest)[0] < LONGEST_S, sorted(world.slowest)[-5:]
    assert world.longest < MOST_CALLS


WRONG: tuple[Any, ...] = (
    None,
    1,
    -1,
    2**70,
    1.5,
    1e300,
    "",
    "x",
    "1e99999999",
    "9" * 5000,
    True,
    [],
    [None],
    {},
    {"a": None},
    [[{}]],
)


def stored(_: Hostility) -> Odd:
    """One object with the fields of all storage objects."""
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}], "matchFields": []}]
    meta = {
        "name": "x",
        "namespace": "default",
        "labels": {"topology.kubernetes.io/zone": "a__b"},
        "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        "ownerReferences": [{"uid": "u", "controller": True}],
    }
    spec = {
        "volumeName": "x",
        "storageClassName": "x",
        "accessModes": ["ReadWriteOncePod"],
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        "csi": {"driver": "d", "volumeHandle": "h"},
        "gcePersistentDisk": {"pdName": "d"},
        "drivers": [{"name": "d", "allocatable": {"count": 1}}],
        "storageCapacity": True,
    }
    rest: Json = {"status": {"phase": "Bound"}, "provisioner": "d", "volumeBindingMode": "Immediate"}
    rest |= {"storageClassName": "x", "nodeTopology": {"matchLabels": {"zone": "a"}}, "capacity": "1Gi"}
    rest["maximumVolumeSize"] = 1
    return Odd("", (), {"metadata": meta, "spec": spec} | rest)


@pytest.mark.parametrize(
    ("make", "resource"),
    [
        pytest.param(Hostility.pod, PODS, id="pods"),
        pytest.param(Hostility.node, NODES, id="nodes"),
        pytest.param(Hostility.node, NAMESPACES, id="namespaces"),
        pytest.param(Hostility.node, PRIORITY_CLASSES, id="PriorityClasses"),
        pytest.param(Hostility.node, BUDGETS, id="PodDisruptionBudgets"),
        *(pytest.param(stored, each, id=each.name) for each in STORAGE.values()),
    ],
)
def test_what_no_api_server_would_send_becomes_an_event_or_the_error_that_reflectors_catch(
    make: Callable[[Hostility], Odd], resource: Resource[Any]
) -> None:
    hostility, random, machine = Hostility(3, served=False), Random(3), Machine(Policy())
    machine.handle([Synced()], 1.0)
    read = 0
    spoilt = examples(1000)
    for number in range(spoilt):
        manifest = make(hostility).manifest
        manifest["metadata"] |= {"uid": f"u{number}", "resourceVersion": "1"}
        for _ in range(random.randint(1, 3)):
            _spoil(random, manifest)
        try:
            _, value = resource.read(Raw(msgspec.json.encode(manifest)))
        except msgspec.DecodeError:
            continue
        machine.handle([resource.seen(value)], float(number))
        read += 1
    assert read > spoilt // 10


def test_a_podgroup_of_any_content_becomes_a_group() -> None:
    hostility, random, machine = Hostility(5, served=False), Random(5), Machine(Policy())
    machine.handle([Synced()], 1.0)
    for number in range(examples(2000)):
        manifest = hostility.group().manifest
        for _ in range(random.randint(1, 3)):
            _spoil(random, manifest)
        group = group_from_object(manifest)
        assert (group.spec is None) == bool(group.error)
        for effect in machine.handle([GroupSeen(group)], float(number)):
            if isinstance(effect, PatchStatus):
                msgspec.json.encode(status_to_object(effect.status))


def _spoil(random: Random, manifest: Json) -> None:
    """Put something wrong anywhere in the manifest."""
    holder, key = random.choice(list(_places(manifest)))
    holder[key] = deepcopy(random.choice(WRONG))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every entry of every mapping and list; only the first few of a long one."""
    keys = list(value)[:8] if isinstance(value, dict) else range(min(len(value), 8)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])
