"""Capacity is never exceeded by one term of leadership: checked from what its machine was told and from what happened.

`overcommitted` reads a recording with an accounting of its own, far simpler than the product's. At each binding that
the machine decides, everything that it had been told to be on the node by then (by a watch, or as the outcome of a
binding of an earlier term), its own earlier decisions that are not answered with a refusal, and the newcomer must fit
what it had been told of the node. A decision that was refused counts
no longer, though the machine may still hold the place: the check is on the safe side, never stricter than the rule.

`overbound` reads what the API server's watch told, in its order. At each binding of a pod of ours, all that stood on
the node then and of which the term's machine must have known, because it had decided those bindings itself or they were
older than the process and so in its first lists, must fit beside the newcomer. Bindings that two terms decided, and
those that a list had to tell of, are passed over: whose they are or what was beside them is not known.

What neither checks is a pod of another scheduler, or of an earlier term, of this process or another, that landed while
the machine could not know of it: no client of the API can exclude that, and the kubelet then refuses the later one
(`OutOf…`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gangsched.core.objects.effects import BindPod
from gangsched.core.objects.events import Event, NodeGone, NodeSeen, NodesReplaced, PodGone, PodSeen, PodsReplaced
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.results import BindRefused, PodBound
from tests.faults.history import Bound
from tests.faults.objects import Json, allocatable_of, excess
from tests.faults.recording import Recording


def overcommitted(recording: Recording) -> list[str]:
    """Each binding that the machine decided though, by what it knew, there was no room."""
    known = _Known()
    wrong = []
    for turn in recording.turns:
        for event in turn.events:
            known.apply(event)
        for effect in turn.effects or ():
            if isinstance(effect, BindPod):
                found = known.decide(effect)
                wrong += [f"at {turn.now:.3f} it bound {effect.namespace}/{effect.name} to {found}"] if found else []
    return wrong


class _Known:
    """What the process had been told, and what it had decided."""

    def __init__(self) -> None:
        self._pods: dict[str, Pod] = {}
        self._nodes: dict[str, Node] = {}
        self._sent: dict[str, str] = {}

    def apply(self, event: Event) -> None:
        match event:
            case PodSeen(pod):
                self._pod(pod)
            case PodGone(uid):
                self._gone(uid)
            case PodsReplaced(pods):
                for uid in self._pods.keys() - {pod.uid for pod in pods}:
                    self._gone(uid)
                for pod in pods:
                    self._pod(pod)
            case NodeSeen(node):
                self._nodes[node.name] = node
            case NodeGone(name):
                self._nodes.pop(name, None)
            case NodesReplaced(nodes):
                self._nodes = {node.name: node for node in nodes}
            case PodBound(uid, node):
                self._sent[uid] = node
            case BindRefused(uid, node):
                if self._sent.get(uid) == node:
                    del self._sent[uid]
            case _:
                pass

    def decide(self, effect: BindPod) -> str:
        """Count the binding; what it exceeds, empty if it fits."""
        self._sent[effect.uid] = effect.node
        node = self._nodes.get(effect.node)
        if node is None:
            return f"node {effect.node}, which it did not know"
        there = [pod for pod in self._pods.values() if not pod.terminal and self._on(pod) == effect.node]
        over = excess([{**dict(pod.shape.requests), "pods": 1} for pod in there], dict(node.allocatable))
        return f"node {effect.node}, which then has {over}" if over else ""

    def _on(self, pod: Pod) -> str:
        return pod.node or self._sent.get(pod.uid, "")

    def _pod(self, pod: Pod) -> None:
        self._pods[pod.uid] = pod
        if pod.node:
            self._sent.pop(pod.uid, None)

    def _gone(self, uid: str) -> None:
        self._pods.pop(uid, None)
        self._sent.pop(uid, None)


@dataclass(frozen=True, kw_only=True)
class Term:
    """One machine: when its process was started, in epoch seconds, and the pods whose binding it decided, by UID."""

    name: str
    started: float
    sent: frozenset[str]


def sent_by(recording: Recording) -> frozenset[str]:
    """The UIDs of all pods whose binding the machine decided."""
    effects = (effect for turn in recording.turns for effect in turn.effects or ())
    return frozenset(effect.uid for effect in effects if isinstance(effect, BindPod))


def overbound(bindings: Sequence[Bound], allocatables: Mapping[str, Json], terms: Sequence[Term]) -> Iterator[str]:
    """Each binding after which a node carried more than it has, by what its term must have known."""
    by_uid = {bound.uid: bound for bound in bindings}
    for bound in bindings:
        senders = [term for term in terms if bound.uid in term.sent]
        if not bound.ours or bound.gap or len(senders) != 1:
            continue
        (sender,) = senders
        beside = [by_uid[uid] for uid in bound.beside]
        known = [other for other in beside if other.uid in sender.sent or other.at < sender.started]
        allocatable = allocatable_of(allocatables[bound.node])
        if over := excess([each.requests for each in (*known, bound)], allocatable):
            yield f"{sender.name} bound {bound.key} to node {bound.node}, which then had {over}"
