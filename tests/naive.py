"""What fits where, decided the slow and obvious way: the oracle that placements and the cluster are checked against.

Nothing here uses the scheduler's own predicates, sums or indexes; everything is added up anew for every question.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gangsched.core.objects.node import Node, Taint
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import Labels, Requirement, Toleration

KEEPS_OUT = ("NoSchedule", "NoExecute")


def role_of(pod: Pod) -> str:
    return pod.declaration.role if pod.declaration else ""


def requirement_holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Of well-formed requirements only."""
    there = requirement.key in labels
    value = labels.get(requirement.key, "")
    if requirement.operator in ("Gt", "Lt"):
        if not value.isdigit():
            return False
        greater = int(value) > int(requirement.values[0])
        equal = int(value) == int(requirement.values[0])
        return greater if requirement.operator == "Gt" else not greater and not equal
    return {
        "In": there and value in requirement.values,
        "NotIn": not there or value not in requirement.values,
        "Exists": there,
        "DoesNotExist": not there,
    }[requirement.operator]


def selected(requirements: Iterable[Requirement], labels: Mapping[str, str]) -> bool:
    return all(requirement_holds(requirement, labels) for requirement in requirements)


def tolerated(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


def node_objection(pod: Pod, node: Node) -> str:
    """Why the node would not take the pod even if it were empty and endless; empty if it would."""
    shape = pod.shape
    labels = dict(node.labels)
    taints = [taint for taint in node.taints if taint.effect in KEEPS_OUT]
    if node.unschedulable and not any(
        tolerated(toleration, Taint("node.kubernetes.io/unschedulable", "NoSchedule"))
        for toleration in shape.tolerations
    ):
        return "cordon"
    if any(not any(tolerated(toleration, taint) for toleration in shape.tolerations) for taint in taints):
        return "taint"
    if any(key not in labels or labels[key] != value for key, value in shape.node_selector):
        return "selector"
    if shape.node_affinity is not None and not any(
        (term.expressions or term.fields)
        and selected(term.expressions, labels)
        and selected(term.fields, {"metadata.name": node.name})
        for term in shape.node_affinity
    ):
        return "affinity"
    return ""


@dataclass
class World:
    """Nodes by name, and the pods that stand on one of them."""

    nodes: dict[str, Node] = field(default_factory=dict)
    standing: list[tuple[Pod, str]] = field(default_factory=list)
    namespaces: dict[str, Labels] = field(default_factory=dict)

    def put(self, pod: Pod, node: str) -> None:
        self.standing.append((pod, node))

    def pop(self) -> None:
        self.standing.pop()

    def objection(self, pod: Pod, name: str) -> str:
        """Why the pod cannot be put on the node now; empty if it can."""
        node = self.nodes[name]
        return node_objection(pod, node) or self._port(pod, name) or self._closed(pod, node) or self._room(pod, node)

    def _port(self, pod: Pod, name: str) -> str:
        for other, where in self.standing:
            if where != name:
                continue
            for wanted in pod.shape.host_ports:
                for taken in other.shape.host_ports:
                    if (wanted.port, wanted.protocol) == (taken.port, taken.protocol) and (
                        wanted.ip == taken.ip or "0.0.0.0" in (wanted.ip, taken.ip)
                    ):
                        return "port"
        return ""

    def _closed(self, pod: Pod, node: Node) -> str:
        labels = dict(node.labels)
        for other, where in self.standing:
            there = dict(self.nodes[where].labels) if where in self.nodes else {}
            for term in other.shape.anti_affinity:
                key = term.topology_key
                if term.selector is None or key not in labels or key not in there or labels[key] != there[key]:
                    continue
                by_label = term.namespace_selector is not None and selected(
                    term.namespace_selector, dict(self.namespaces.get(pod.namespace, ()))
                )
                if (pod.namespace in term.namespaces or by_label) and selected(term.selector, dict(pod.labels)):
                    return "anti-affinity"
        return ""

    def _room(self, pod: Pod, node: Node) -> str:
        asked = Counter(dict(pod.shape.requests)) + Counter(pods=1)
        taken: Counter[str] = Counter()
        for other, where in self.standing:
            if where == node.name:
                taken.update(dict(other.shape.requests))
                taken["pods"] += 1
        given = dict(node.allocatable)
        return next((name for name, amount in asked.items() if amount > given.get(name, 0) - taken[name]), "")


def quorum_exists(world: World, members: Sequence[Pod], need: int, role_needs: Mapping[str, int]) -> bool:
    """Whether `need` of the members, with each role's among them, fit together."""
    return most_that_fit(world, members, need, role_needs) == max(need, sum(role_needs.values()))


def most_that_fit(world: World, members: Sequence[Pod], need: int, role_needs: Mapping[str, int]) -> int:
    """How many of the quorum's slots can be filled at once, by trying every number of members on every node.

    Members that nothing here can tell apart are counted, not tried one by one. None has anti-affinity of its own.
    """
    assert not any(member.shape.anti_affinity for member in members)
    labels_matter = any(pod.shape.anti_affinity for pod, _ in world.standing)
    kinds: dict[object, list[Pod]] = {}
    for member in members:
        labels = (member.namespace, member.labels) if labels_matter else ()
        kinds.setdefault((role_of(member), member.shape, labels), []).append(member)
    alike = list(kinds.values())
    reached = {(0,) * len(alike)}
    for name in world.nodes:
        there = list(_together(world, name, alike, (0,) * len(alike), 0))
        reached = {
            tuple(min(one + other, len(kind)) for one, other, kind in zip(before, more, alike, strict=True))
            for before in reached
            for more in there
        }
    free = max(0, need - sum(role_needs.values()))
    return max(_filled(Counter(_roles(alike, numbers)), role_needs, free) for numbers in reached)


def _together(
    world: World, name: str, alike: Sequence[Sequence[Pod]], numbers: tuple[int, ...], first: int
) -> Iterator[tuple[int, ...]]:
    """All numbers of each kind, from the `first` one on, that the node takes beside what stands on it."""
    yield numbers
    for at in range(first, len(alike)):
        if numbers[at] < len(alike[at]) and not world.objection(alike[at][0], name):
            world.put(alike[at][0], name)
            yield from _together(world, name, alike, (*numbers[:at], numbers[at] + 1, *numbers[at + 1 :]), at)
            world.pop()


def _roles(alike: Sequence[Sequence[Pod]], numbers: Sequence[int]) -> Iterator[str]:
    for kind, number in zip(alike, numbers, strict=True):
        yield from [role_of(kind[0])] * number


def _filled(roles: Counter[str], role_needs: Mapping[str, int], free: int) -> int:
    """How many slots so many members of each role fill: first their role's own, then those that are anybody's."""
    own = sum(min(roles[role], number) for role, number in role_needs.items())
    return own + min(free, roles.total() - own)
