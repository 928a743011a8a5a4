"""Which pods fit on which nodes, decided the slow and obvious way: the oracle for placements and the cluster.

Nothing here uses the scheduler's own predicates, sums or indexes; every call adds everything up from scratch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gangsched.core.objects.node import Node, Taint
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import Labels, PodTerm, Requirement, Toleration

KEEPS_OUT = ("NoSchedule", "NoExecute")


def role_of(pod: Pod) -> str:
    return pod.declaration.role if pod.declaration else ""


def requirement_holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Whether the labels meet the requirement, which must be well-formed."""
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
    """Why the node would refuse the pod even with unlimited free resources; empty if it would accept it."""
    shape = pod.shape
    if node.unschedulable and not any(
        tolerated(toleration, Taint("node.kubernetes.io/unschedulable", "NoSchedule"))
        for toleration in shape.tolerations
    ):
        return "cordon"
    return "taint" if untolerated(pod, node) else mismatch(pod, node)


def untolerated(pod: Pod, node: Node) -> bool:
    taints = [taint for taint in node.taints if taint.effect in KEEPS_OUT]
    return any(not any(tolerated(toleration, taint) for toleration in pod.shape.tolerations) for taint in taints)


def mismatch(pod: Pod, node: Node) -> str:
    """Which of the pod's node selector and required node affinity does not match; empty if both do."""
    shape, labels = pod.shape, dict(node.labels)
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
    """Nodes by name, and the pods placed on them."""

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
        return (
            node_objection(pod, node)
            or self._port(pod, name)
            or self._closed(pod, node)
            or self._unwanted(pod, node)
            or self._far(pod, node)
            or self._uneven(pod, node)
            or self._room(pod, node)
        )

    def meant(self, term: PodTerm, pod: Pod) -> bool:
        by_label = term.namespace_selector is not None and selected(
            term.namespace_selector, dict(self.namespaces.get(pod.namespace, ()))
        )
        in_scope = pod.namespace in term.namespaces or by_label
        return term.selector is not None and in_scope and selected(term.selector, dict(pod.labels))

    def _unwanted(self, pod: Pod, node: Node) -> str:
        for term in pod.shape.anti_affinity:
            if any(self.meant(term, other) and self._share(term, node, where) for other, where in self.standing):
                return "own anti-affinity"
        return ""

    def _far(self, pod: Pod, node: Node) -> str:
        terms = pod.shape.affinity
        if any(term.topology_key not in dict(node.labels) for term in terms):
            return "no label"
        wanted = [where for other, where in self.standing if all(self.meant(term, other) for term in terms)]
        if all(any(self._share(term, node, where) for where in wanted) for term in terms):
            return ""
        keys = {term.topology_key for term in terms}
        some = any(keys & dict(self.nodes[where].labels).keys() for where in wanted if where in self.nodes)
        return "affinity" if some or not all(self.meant(term, pod) for term in terms) else ""

    def _share(self, term: PodTerm, node: Node, other: str) -> bool:
        """Whether both nodes have the topology key with the same value."""
        there = dict(self.nodes[other].labels) if other in self.nodes else {}
        key = term.topology_key
        return key in there and dict(node.labels).get(key) == there[key]

    def _uneven(self, pod: Pod, node: Node) -> str:
        keys = {spread.term.topology_key for spread in pod.shape.spread}
        for spread in pod.shape.spread:
            key = spread.term.topology_key
            if key not in dict(node.labels):
                return "no label"
            counts: dict[str, int] = {}
            for each in self.nodes.values():
                left_out = (spread.honors_affinity and mismatch(pod, each)) or (
                    spread.honors_taints and untolerated(pod, each)
                )
                if left_out or not keys <= dict(each.labels).keys():
                    continue
                counts.setdefault(dict(each.labels)[key], 0)
                for other, where in self.standing:
                    counted = where == each.name and not other.terminating and spread.term.selector
                    if counted and self.meant(spread.term, other):
                        counts[dict(each.labels)[key]] += 1
            fewest = min(counts.values()) if len(counts) >= spread.min_domains else 0
            own = int(self.meant(spread.term, pod))
            if counts.get(dict(node.labels)[key], 0) + own - fewest > spread.max_skew:
                return "spread"
        return ""

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
        for other, where in self.standing:
            for term in other.shape.anti_affinity:
                if self._share(term, node, where) and self.meant(term, pod):
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


def one_by_one(world: World, members: Sequence[tuple[Pod, Sequence[str]]], need: int) -> bool:
    """Whether `need` of the members can be placed, one after the other, each on one of its nodes.

    Earlier placements decide whether a node accepts the next member, so all orders are tried.
    """
    failed: set[frozenset[tuple[str, str]]] = set()

    def from_here(placed: frozenset[tuple[str, str]]) -> bool:
        if len(placed) == need:
            return True
        if placed in failed:
            return False
        there = {uid for uid, _ in placed}
        for pod, names in members:
            for name in names if pod.uid not in there else ():
                if world.objection(pod, name):
                    continue
                world.put(pod, name)
                found = from_here(placed | {(pod.uid, name)})
                world.pop()
                if found:
                    return True
        failed.add(placed)
        return False

    return from_here(frozenset())


def quorum_exists(world: World, members: Sequence[Pod], need: int, role_needs: Mapping[str, int]) -> bool:
    """Whether `need` of the members fit together, including the minimum of each role."""
    return most_that_fit(world, members, need, role_needs) == max(need, sum(role_needs.values()))


def most_that_fit(world: World, members: Sequence[Pod], need: int, role_needs: Mapping[str, int]) -> int:
    """How many of the quorum's slots can be filled together, by trying every number of members on every node.

    Interchangeable members are counted, not tried one by one. No member may have anti-affinity of its own.
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
    """All counts by kind, from the kind `first` on, that the node accepts beside the pods placed on it."""
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
    """How many slots these members fill: first those of their own role, then those open to any role."""
    own = sum(min(roles[role], number) for role, number in role_needs.items())
    return own + min(free, roles.total() - own)
