"""The machine with a tiny API server in memory, stepped by hand: every effect is carried out and reported back.

Bindings, status and conditions are applied to the objects as the real API server would; their watch events come back in
the next step. The clock moves only when a test moves it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

from msgspec.structs import replace

from gangsched.core.effects import BindPod, Effect, EmitEvent, PatchPodCondition, PatchStatus
from gangsched.core.events import (
    BindRefused,
    Event,
    GroupGone,
    GroupSeen,
    NodeGone,
    NodeSeen,
    PodBound,
    PodGone,
    PodSeen,
    StatusRefused,
    StatusWritten,
    Synced,
    TimePassed,
)
from gangsched.core.gang import Gang
from gangsched.core.machine import Machine
from gangsched.core.model import Condition, Group, GroupKey, GroupStatus, Node, Pod, PodPhase
from gangsched.core.policy import Policy

START = 1_000_000.0


class Harness:
    """A cluster in memory. `pods`, `nodes`, `groups` are what the API server holds; `emitted` every Event so far."""

    def __init__(self, policy: Policy | None = None, *, seed: int | None = None) -> None:
        self.policy = policy or Policy()
        self.machine = Machine(self.policy)
        self.now = START
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}
        self.groups: dict[GroupKey, Group] = {}
        self.emitted: list[EmitEvent] = []
        self.effects: list[Effect] = []
        self.bound_log: list[tuple[str, str]] = []
        self.refuse_bind: Callable[[BindPod], BindRefused | None] = lambda _: None
        self.refuse_status: Callable[[PatchStatus], StatusRefused | None] = lambda _: None
        self._inbox: list[Event] = [Synced()]
        self._random = Random(seed) if seed is not None else None
        self._version = 0

    # What users and other controllers do

    def add(self, *things: Pod | Node | Group) -> None:
        """Create or replace objects; their watch events arrive with the next step."""
        for thing in things:
            if isinstance(thing, Pod):
                self.pods[thing.uid] = thing
                self._inbox.append(PodSeen(thing))
            elif isinstance(thing, Node):
                self.nodes[thing.name] = thing
                self._inbox.append(NodeSeen(thing))
            else:
                self._version += 1
                self.groups[thing.key] = replace(thing, resource_version=str(self._version))
                self._inbox.append(GroupSeen(self.groups[thing.key]))

    def change(self, name: str, **fields: object) -> None:
        """Change a pod, by namespace/name."""
        self.add(replace(self.pod(name), **fields))

    def change_spec(self, name: str, **fields: object) -> None:
        """Change a PodGroup's spec, by namespace/name."""
        group = self.group(name)
        assert group.spec is not None
        self.add(replace(group, generation=group.generation + 1, spec=replace(group.spec, **fields)))

    def delete(self, *names: str) -> None:
        """Delete pods, by namespace/name."""
        for name in names:
            pod = self.pod(name)
            del self.pods[pod.uid]
            self._inbox.append(PodGone(pod.uid))

    def delete_node(self, name: str) -> None:
        del self.nodes[name]
        self._inbox.append(NodeGone(name))

    def delete_group(self, name: str) -> None:
        key = self.group(name).key
        del self.groups[key]
        self._inbox.append(GroupGone(key))

    def run_pods(self, phase: PodPhase = PodPhase.RUNNING, *, prefix: str = "") -> None:
        """Let bound pods reach the phase, as a kubelet would."""
        for pod in list(self.pods.values()):
            if pod.node and not pod.terminal and f"{pod.namespace}/{pod.name}".startswith(prefix):
                self.add(replace(pod, phase=phase))

    # Time

    def settle(self, *, rounds: int = 50) -> None:
        """Step until nothing happens any more at this moment."""
        for _ in range(rounds):
            deadline = self.machine.next_deadline()
            if not self._inbox and (deadline is None or deadline > self.now):
                return
            self.step()
        raise AssertionError(f"no rest after {rounds} rounds")

    def step(self) -> list[Effect]:
        """Hand over what has arrived, carry out what is decided."""
        events: list[Event] = self._inbox or [TimePassed()]
        self._inbox = []
        if self._random is not None:
            events = self._shuffled(events)
        effects = self.machine.handle(events, self.now)
        self.effects += effects
        for effect in effects:
            self._carry_out(effect)
        assert self.machine.validate() == []
        self.check_capacity()
        return effects

    def wait(self, seconds: float) -> None:
        """Let time pass, stopping at every deadline that the machine names on the way."""
        end = self.now + seconds
        self.settle()
        while (deadline := self.machine.next_deadline()) is not None and deadline <= end:
            self.now = max(self.now, deadline)
            self.settle()
        self.now = end
        self.settle()

    def restart(self) -> None:
        """Replace the machine by a new one that knows only what the API server holds."""
        self.machine = Machine(self.policy)
        self._inbox = [
            *map(NodeSeen, self.nodes.values()),
            *map(GroupSeen, self.groups.values()),
            *map(PodSeen, self.pods.values()),
            Synced(),
        ]

    # What can be seen

    def pod(self, name: str) -> Pod:
        return next(pod for pod in self.pods.values() if f"{pod.namespace}/{pod.name}" == name)

    def group(self, name: str) -> Group:
        return self.groups[GroupKey(*name.split("/"))]

    def gang(self, name: str) -> Gang:
        return self.machine.gangs[GroupKey(*name.split("/"))]

    def status(self, name: str) -> GroupStatus:
        return self.group(name).status

    def condition(self, name: str, type_: str = "Scheduled") -> Condition:
        return next(condition for condition in self.status(name).conditions if condition.type == type_)

    def bound(self, prefix: str = "") -> list[str]:
        """Names of pods that have a node and have not ended."""
        return sorted(
            f"{pod.namespace}/{pod.name}"
            for pod in self.pods.values()
            if pod.node and not pod.terminal and f"{pod.namespace}/{pod.name}".startswith(prefix)
        )

    def events(self, reason: str) -> list[EmitEvent]:
        return [event for event in self.emitted if event.reason == reason]

    def check_capacity(self) -> None:
        """No node holds more than it can give."""
        for node in self.nodes.values():
            given = dict(node.allocatable)
            there = [pod for pod in self.pods.values() if pod.node == node.name and not pod.terminal]
            taken: dict[str, int] = {"pods": len(there)}
            for pod in there:
                for resource, amount in pod.shape.requests:
                    taken[resource] = taken.get(resource, 0) + amount
            for resource, amount in taken.items():
                assert amount <= given.get(resource, 0), f"{node.name} holds {amount} {resource}"

    # The API server

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case BindPod():
                self._bind(effect)
            case PatchStatus(key, uid, status, version):
                self._patch_status(effect, key, uid, status, version)
            case PatchPodCondition(uid, _, _, reason, message):
                if uid in self.pods:
                    self.add(replace(self.pods[uid], told_reason=reason, told_message=message))
            case EmitEvent():
                self.emitted.append(effect)

    def _bind(self, effect: BindPod) -> None:
        refusal = self.refuse_bind(effect)
        if refusal is not None:
            self._inbox.append(refusal)
            return
        pod = self.pods[effect.uid]
        assert not pod.node, f"{pod.name} is bound twice"
        assert not pod.gated
        self.bound_log.append((f"{pod.namespace}/{pod.name}", effect.node))
        self.add(replace(pod, node=effect.node, told_reason="", told_message=""))
        self._inbox.append(PodBound(effect.uid, effect.node))

    def _patch_status(self, effect: PatchStatus, key: GroupKey, uid: str, status: GroupStatus, version: str) -> None:
        refusal = self.refuse_status(effect)
        group = self.groups.get(key)
        if refusal is not None or group is None or group.uid != uid:
            self._inbox.append(refusal or StatusRefused(key, stale=False))
        elif version and version != group.resource_version:
            self._inbox.append(StatusRefused(key, stale=True))
        else:
            self.add(replace(group, status=status))
            reserved = status.reservation is not None
            self._inbox.append(StatusWritten(key, self.groups[key].resource_version, reserved))

    def _shuffled(self, events: Iterable[Event]) -> list[Event]:
        """Another order across objects, the same for each object, as a set of watches may deliver them."""
        assert self._random is not None
        queues: dict[object, list[Event]] = {}
        for event in events:
            queues.setdefault(_object_of(event), []).append(event)
        mixed = []
        while queues:
            which = self._random.choice(sorted(queues, key=repr))
            mixed.append(queues[which].pop(0))
            if not queues[which]:
                del queues[which]
        return mixed


def _object_of(event: Event) -> object:
    match event:
        case PodSeen(pod):
            return ("pod", pod.uid)
        case PodGone(uid) | PodBound(uid) | BindRefused(uid):
            return ("pod", uid)
        case NodeSeen(node):
            return ("node", node.name)
        case NodeGone(name):
            return ("node", name)
        case GroupSeen(group):
            return ("group", group.key)
        case GroupGone(key) | StatusWritten(key) | StatusRefused(key):
            return ("group", key)
        case _:
            return "rest"
