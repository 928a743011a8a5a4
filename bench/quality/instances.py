"""Random clusters with random gangs whose demand exceeds the capacity; each is determined by its seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from msgspec.structs import replace

from gangsched.core.objects.declaration import Declaration, GroupKey, Role
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod, PodPhase
from gangsched.core.objects.podgroup import Group, GroupSpec
from gangsched.core.objects.shape import PODS, Amounts, Labels, PodTerm, Requirement, Shape, Spread

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
GPU = "nvidia.com/gpu"
NAMESPACE = "default"
_ZONES = ("a", "b", "c")
_NODES = [((16, 64, 0), 4), ((24, 96, 0), 2), ((16, 128, 4), 2), ((24, 192, 8), 1)]
"""CPUs, memory in GiB and GPUs of a kind of node, and its relative frequency."""
_MEMBERS = [
    ((1, 2, 0), 3),
    ((2, 8, 0), 4),
    ((4, 8, 0), 3),
    ((6, 48, 0), 2),
    ((10, 16, 0), 2),
    ((2, 16, 1), 2),
    ((6, 40, 2), 2),
]
_WANTED = 1.3
"""Demand of the gangs as a multiple of the free CPUs."""


class Rule(StrEnum):
    """A constraint on a gang's members relative to each other or to their nodes."""

    NONE = "none"
    APART = "no two on one node"
    EVEN = "spread evenly over zones"
    TOGETHER = "all in one zone"
    ZONAL = "in a given zone"


@dataclass(frozen=True)
class Kind:
    """Identical members of a gang; the gang's minimum needs `least` of them."""

    role: str
    size: Mapping[str, int]
    count: int
    least: int


@dataclass(frozen=True)
class Gang:
    """One gang; `need` is its minimum. `zone` is set only with Rule.ZONAL."""

    name: str
    priority: int
    created: float
    need: int
    kinds: Sequence[Kind]
    rule: Rule
    zone: str = ""

    @property
    def count(self) -> int:
        """The number of its members."""
        return sum(kind.count for kind in self.kinds)

    @property
    def key(self) -> GroupKey:
        """Its name in the cluster."""
        return GroupKey(NAMESPACE, self.name)

    def group(self) -> Group:
        """Its PodGroup."""
        roles = tuple(Role(kind.role, kind.least) for kind in self.kinds)
        spec = GroupSpec(min_member=self.need, priority=self.priority, roles=roles)
        return Group(self.key, self.name, "1", 1, self.created, spec)

    def pods(self) -> list[Pod]:
        """Its members in their order."""
        labels: Labels = (("gang", self.name),)
        own = (Requirement("gang", "In", (self.name,)),)
        zone, host = (PodTerm(key, own, (NAMESPACE,)) for key in (ZONE, HOST))
        return [
            Pod(
                f"{NAMESPACE}/{self.name}-{kind.role}-{number}",
                NAMESPACE,
                f"{self.name}-{kind.role}-{number}",
                Shape(
                    requests=_requests(kind.size),
                    node_selector=((ZONE, self.zone),) if self.zone else (),
                    affinity=(zone,) if self.rule is Rule.TOGETHER else (),
                    anti_affinity=(host,) if self.rule is Rule.APART else (),
                    spread=(Spread(zone, max_skew=1),) if self.rule is Rule.EVEN else (),
                ),
                self.created,
                "gangsched",
                labels=labels,
                declaration=Declaration(self.name, role=kind.role),
            )
            for kind in self.kinds
            for number in range(kind.count)
        ]


@dataclass(frozen=True)
class Instance:
    """Nodes, the pods that run there, and gangs in their order of admission (contract rule 6)."""

    seed: int
    nodes: Sequence[Node]
    standing: Sequence[Pod]
    gangs: Sequence[Gang]

    def free(self) -> dict[str, dict[str, int]]:
        """The free amounts, by node and resource."""
        left = {node.name: dict(node.allocatable) for node in self.nodes}
        for pod in self.standing:
            for resource, amount in (*pod.shape.requests, (PODS, 1)):
                left[pod.node][resource] -= amount
        return left


def drawn(seed: int) -> Instance:
    """The instance of this seed: 3 to 5 nodes in three zones, some of them in use, and more gangs than fit."""
    dice = Random(seed)  # noqa: S311 - chance that can be repeated
    nodes = [_node(dice, number) for number in range(dice.randint(3, 5))]
    standing = [pod for node in nodes if dice.choice((True, False)) for pod in [_standing(dice, node)]]
    instance = Instance(seed, nodes, standing, ())
    wanted = _WANTED * sum(left["cpu"] for left in instance.free().values())
    gangs: list[Gang] = []
    while wanted > 0:
        gang = _gang(dice, len(gangs))
        wanted -= sum(kind.count * kind.size["cpu"] for kind in gang.kinds)
        gangs.append(gang)
    gangs.sort(key=lambda gang: (-gang.priority, gang.created))
    return Instance(seed, nodes, standing, gangs)


def _gang(dice: Random, number: int) -> Gang:
    kinds = []
    for role in ("worker", "driver")[: dice.choice((1, 1, 2))]:
        count = dice.choice((1, 2, 3, 4, 6, 8)) if role == "worker" else 1
        kinds.append(Kind(role, _size(dice), count, dice.randint((count + 1) // 2, count)))
    rule = dice.choice([Rule.NONE] * 8 + [Rule.APART, Rule.EVEN, Rule.TOGETHER, Rule.ZONAL])
    need = dice.randint(sum(kind.least for kind in kinds), sum(kind.count for kind in kinds))
    zone = dice.choice(_ZONES) if rule is Rule.ZONAL else ""
    return Gang(f"g{number}", dice.choice((0, 0, 0, 1, 2)), float(number), need, kinds, rule, zone)


def _size(dice: Random) -> dict[str, int]:
    return _amounts(*dice.choices([size for size, _ in _MEMBERS], [often for _, often in _MEMBERS])[0])


def _node(dice: Random, number: int) -> Node:
    name = f"n{number}"
    cpu, memory, gpu = dice.choices([size for size, _ in _NODES], [often for _, often in _NODES])[0]
    labels = ((HOST, name), (ZONE, dice.choice(_ZONES)))
    return Node(name, _requests(_amounts(cpu, memory, gpu) | {PODS: 110}), labels=labels)


def _standing(dice: Random, node: Node) -> Pod:
    most = dict(node.allocatable)
    used = {resource: dice.randint(0, most.get(resource, 0) // 2) for resource in ("cpu", GPU)}
    used["memory"] = dice.randint(0, most["memory"] // 2 >> 30) << 30
    name = f"on-{node.name}"
    pod = Pod(f"{NAMESPACE}/{name}", NAMESPACE, name, Shape(requests=_requests(used)), 0.0, "default-scheduler")
    return replace(pod, node=node.name, phase=PodPhase.RUNNING)


def _amounts(cpu: int, memory: int, gpu: int) -> dict[str, int]:
    return {"cpu": cpu * 1000, "memory": memory << 30, GPU: gpu}


def _requests(size: Mapping[str, int]) -> Amounts:
    return tuple(sorted((resource, amount) for resource, amount in size.items() if amount))
