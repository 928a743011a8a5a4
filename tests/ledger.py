"""The inputs and requests of one deciding machine, from its events and effects: its own state is never read."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.effects import BindPod, Effect
from gangsched.core.objects.events import (
    Event,
    ForeignGroupGone,
    ForeignGroupSeen,
    ForeignGroupsReplaced,
    GroupGone,
    GroupSeen,
    GroupsReplaced,
    NodeGone,
    NodeSeen,
    NodesReplaced,
    PodGone,
    PodSeen,
    PodsReplaced,
)
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import ForeignGroup, Group
from gangsched.core.objects.results import BindRefused, PodBound
from tests.faults.objects import excess


class Told:
    """The cluster as one machine has seen it: a watch event older than the result of a binding unbinds no pod."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}
        self.groups: dict[GroupKey, Group] = {}
        self.foreign: dict[tuple[str, GroupKey], ForeignGroup] = {}

    def hear(self, event: Event) -> None:
        """Record what the machine receives."""
        match event:
            case PodSeen(pod):
                self._see(pod)
            case PodGone(uid):
                self.pods.pop(uid, None)
            case PodsReplaced(pods):
                self.pods = {pod.uid: self.pods[pod.uid] for pod in pods if pod.uid in self.pods}
                for pod in pods:
                    self._see(pod)
            case PodBound(uid, node) if uid in self.pods and not self.pods[uid].node:
                self.pods[uid] = replace(self.pods[uid], node=node)
            case NodeSeen(node):
                self.nodes[node.name] = node
            case NodeGone(name):
                self.nodes.pop(name, None)
            case NodesReplaced(nodes):
                self.nodes = {node.name: node for node in nodes}
            case GroupSeen(group):
                self.groups[group.key] = group
            case GroupGone(key):
                self.groups.pop(key, None)
            case GroupsReplaced(groups):
                self.groups = {group.key: group for group in groups}
            case ForeignGroupSeen(foreign):
                self.foreign[foreign.dialect, foreign.key] = foreign
            case ForeignGroupGone(dialect, key):
                self.foreign.pop((dialect, key), None)
            case ForeignGroupsReplaced(dialect, groups):
                self.foreign = {known: each for known, each in self.foreign.items() if known[0] != dialect}
                self.foreign |= {(each.dialect, each.key): each for each in groups}

    def _see(self, pod: Pod) -> None:
        known = self.pods.get(pod.uid)
        behind = known is not None and known.node and not pod.node
        self.pods[pod.uid] = replace(pod, node=known.node) if known is not None and behind else pod


class Ledger:
    """The requests and inputs of one deciding machine: no pod is bound twice, no node is filled beyond its capacity.

    A refused binding no longer counts; if it takes effect later after all, it counts like one of another scheduler.
    `unanswered` holds the bindings in flight, `tried` the pods that the machine ever wanted to bind.
    """

    def __init__(self) -> None:
        self.told = Told()
        self.unanswered: dict[str, str] = {}
        self.tried: set[str] = set()
        self._confirmed: set[str] = set()
        self._sent: dict[str, str] = {}

    def hear(self, events: Iterable[Event]) -> None:
        """Record what the machine receives."""
        for event in events:
            self.told.hear(event)
            if isinstance(event, PodBound | BindRefused):
                self.unanswered.pop(event.uid, None)
            if isinstance(event, PodBound):
                self._confirmed.add(event.uid)
                self._sent[event.uid] = event.node
            elif isinstance(event, BindRefused) and self._sent.get(event.uid) == event.node:
                del self._sent[event.uid]

    def check(self, effects: Iterable[Effect]) -> None:
        """Check that the machine may decide this."""
        for effect in effects:
            if isinstance(effect, BindPod):
                assert not self.told.pods[effect.uid].node, f"{effect.name} is bound and is bound again"
                assert effect.uid not in self._confirmed, f"{effect.name} was bound and is bound again"
                assert effect.uid not in self.unanswered, f"{effect.name} is bound while its binding is on its way"
                found = self.decide(effect)
                assert not found, f"{effect.name} is bound to {found}"

    def decide(self, effect: BindPod) -> str:
        """Count the binding. Returns what it exceeds as far as the machine knows; empty if it fits."""
        name = effect.node
        self.unanswered[effect.uid] = name
        self._sent[effect.uid] = name
        self.tried.add(effect.uid)
        node = self.told.nodes.get(name)
        if node is None:
            return f"node {name}, which it did not know"
        there = [pod for pod in self.told.pods.values() if not pod.terminal and self._on(pod) == name]
        over = excess([{**dict(pod.shape.requests), "pods": 1} for pod in there], dict(node.allocatable))
        return f"node {name}, which then has {over}" if over else ""

    def _on(self, pod: Pod) -> str:
        return pod.node or self._sent.get(pod.uid, "")
