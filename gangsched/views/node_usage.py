"""The usage of each node: what is requested there, and by which gangs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gangsched.core.cluster.claims import BOUND, Claim
from gangsched.core.gang.gang import Gang
from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.node import Node
from gangsched.core.objects.quantity import format_amount
from gangsched.core.objects.shape import PODS, Amounts
from gangsched.core.objects.status import Place

_TAKES_NONE = ("NoSchedule", "NoExecute")
_CPU = "cpu"

Held = tuple[GroupKey, Place]
"""A group and its reservation on a node."""


@dataclass(frozen=True, slots=True)
class Occupant:
    """What one gang, or the pods without a gang (`gang` is None), occupy on a node: `number` pods with these `amounts`.

    `held`: it is reserved for members that have no node yet.
    """

    gang: GroupKey | None
    held: bool
    number: int
    amounts: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """One node: its `allocatable` amounts, and its `parts`, those of gangs by name, then that of other pods.

    `requested` are the amounts of its pods, without reservations. `closed` says why it accepts no pod without a
    toleration; empty if it does.
    """

    name: str
    allocatable: Mapping[str, int]
    requested: Mapping[str, int]
    parts: Sequence[Occupant]
    closed: str = ""

    @property
    def pods(self) -> int:
        """The number of pods on the node."""
        return sum(part.number for part in self.parts if not part.held)

    @property
    def gangs(self) -> Mapping[GroupKey, int]:
        """The number of pods of each gang on the node."""
        return {part.gang: part.number for part in self.parts if part.gang is not None and not part.held}

    @property
    def scarcest(self) -> str:
        """The resource that limits what else fits: the fullest extended one, such as a GPU, else the fullest."""
        names = [name for name in self.allocatable if is_special(name)] or [n for n in self.allocatable if n != PODS]
        return max(names, key=lambda name: (self.share(name), name), default=_CPU)

    def share(self, resource: str) -> float:
        """The requested fraction of the resource, from 0 to 1; 0 if the node has none."""
        return share(self.requested.get(resource, 0), self.allocatable.get(resource, 0))


def is_special(resource: str) -> bool:
    """Whether this is an extended resource, such as a GPU, which limits what fits more than CPU and memory do."""
    return "/" in resource


def share(requested: int, allocatable: int) -> float:
    """The requested fraction of the allocatable amount; 0 if that is 0."""
    return requested / allocatable if allocatable else 0.0


def usages(machine: Machine) -> list[Usage]:
    """The usage of all nodes, sorted by name."""
    reserved = places(machine.gangs.values())
    on_node = machine.cluster.on_node
    return [
        usage(node, on_node.get(name, {}).values(), reserved.get(name, ()), machine)
        for name, node in sorted(machine.cluster.nodes.items())
    ]


def places(gangs: Iterable[Gang]) -> Mapping[str, Sequence[Held]]:
    """The reservations on each node for members without a node, from the status of PodGroups."""
    by_node: dict[str, list[Held]] = {}
    for gang in gangs:
        reservation = gang.observed.group.status.reservation if gang.observed.group is not None else None
        for place in reservation.placements if reservation is not None else ():
            by_node.setdefault(place.node, []).append((gang.key, place))
    return by_node


def usage(node: Node, claims: Iterable[Claim], reserved: Sequence[Held], machine: Machine) -> Usage:
    """The usage of one node, with these claims and reservations."""
    requested: Counter[str] = Counter()
    amounts: dict[GroupKey | None, Counter[str]] = {}
    numbers: Counter[GroupKey | None] = Counter()
    for claim in claims:
        if claim.kind is BOUND:
            gang = machine.gang_of(claim.pod.uid)
            key = gang.key if gang is not None and not gang.plain else None
            numbers[key] += 1
            _add(requested, claim.pod.shape.requests, 1)
            _add(amounts.setdefault(key, Counter()), claim.pod.shape.requests, 1)
    parts = [Occupant(key, False, numbers[key], requests) for key, requests in amounts.items()]
    parts += [_part(key, place) for key, place in reserved]
    parts.sort(key=lambda part: (part.gang is None, part.gang or (), part.held))
    return Usage(
        name=node.name,
        allocatable=dict(node.allocatable),
        requested=requested,
        parts=parts,
        closed=_closed(node),
    )


def as_object(usage: Usage) -> dict[str, object]:
    """The usage as a JSON object."""
    scarcest = usage.scarcest
    return {
        "name": usage.name,
        "closed": usage.closed or None,
        "allocatable": {name: format_amount(name, number) for name, number in usage.allocatable.items()},
        "requested": {name: format_amount(name, number) for name, number in usage.requested.items()},
        "shares": {name: round(usage.share(name), 4) for name in usage.allocatable},
        "pods": usage.pods,
        "scarcest": scarcest,
        "parts": [
            {
                "namespace": part.gang.namespace if part.gang is not None else None,
                "name": part.gang.name if part.gang is not None else None,
                "held": part.held,
                "pods": part.number,
                "share": round(share(part.amounts.get(scarcest, 0), usage.allocatable.get(scarcest, 0)), 4),
            }
            for part in usage.parts
        ],
    }


def _part(key: GroupKey, place: Place) -> Occupant:
    amounts: Counter[str] = Counter()
    _add(amounts, place.requests, place.count)
    return Occupant(key, True, place.count, amounts)


def _add(totals: Counter[str], amounts: Amounts, times: int) -> None:
    for resource, amount in amounts:
        totals[resource] += times * amount


def _closed(node: Node) -> str:
    if node.unschedulable:
        return "cordoned"
    taint = next((candidate for candidate in node.taints if candidate.effect in _TAKES_NONE), None)
    return taint.key.rpartition("/")[2] if taint is not None else ""
