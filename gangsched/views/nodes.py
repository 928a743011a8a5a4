"""What of each node is requested, and by which gangs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gangsched.core.cluster.ledger import BOUND, Claims
from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.node import Node
from gangsched.core.objects.quantity import format_amount
from gangsched.core.objects.shape import PODS, Amounts
from gangsched.core.objects.status import Place

_TAKES_NONE = ("NoSchedule", "NoExecute")
_NOBODY: Claims = {}
_CPU = "cpu"


@dataclass(frozen=True, slots=True)
class Part:
    """What one gang has of a node, or pods without a gang (`gang` is None): `number` pods request these `amounts`.

    `held`: they are places that are reserved for members that have no node yet.
    """

    gang: GroupKey | None
    held: bool
    number: int
    amounts: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """One node: its `allocatable` amounts, and the `parts` of it that gangs have, by name, and then other pods.

    `requested` are the amounts of its pods, without places that are held. `closed` says why it takes no pod without a
    toleration; empty if it does.
    """

    name: str
    allocatable: Mapping[str, int]
    requested: Mapping[str, int]
    parts: Sequence[Part]
    closed: str = ""

    @property
    def pods(self) -> int:
        """How many pods are on it."""
        return sum(part.number for part in self.parts if not part.held)

    @property
    def gangs(self) -> Mapping[GroupKey, int]:
        """How many of them are of each gang."""
        return {part.gang: part.number for part in self.parts if part.gang is not None and not part.held}

    @property
    def scarcest(self) -> str:
        """The resource that decides what else fits: the fullest extended one, such as a GPU, or else the fullest."""
        names = [name for name in self.allocatable if is_special(name)] or [n for n in self.allocatable if n != PODS]
        return max(names, key=lambda name: (self.share(name), name), default=_CPU)

    def share(self, resource: str) -> float:
        """The requested part of the resource, from 0 to 1; 0 if the node has none."""
        return share(self.requested.get(resource, 0), self.allocatable.get(resource, 0))


def is_special(resource: str) -> bool:
    """Whether it is an extended resource, such as a GPU, which decides more than cpu and memory do."""
    return "/" in resource


def share(requested: int, allocatable: int) -> float:
    """The requested part of what there is, 0 if there is nothing."""
    return requested / allocatable if allocatable else 0.0


def usages(machine: Machine) -> Iterator[Usage]:
    """The nodes that there are when it is asked first, by name; each is looked at when it is its turn."""
    gang_of = {uid: key for key, gang in machine.gangs.items() if not gang.plain for uid in gang.pods}
    held = _held(machine)
    for name in sorted(machine.cluster.nodes):
        node = machine.cluster.nodes.get(name)
        if node is not None:
            claims = machine.cluster.on_node.get(name, _NOBODY)
            yield _usage(node, claims, gang_of, held.get(name, ()))


def total(found: Iterable[Usage]) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """What all the nodes have, and what of it is requested."""
    allocatable: Counter[str] = Counter()
    requested: Counter[str] = Counter()
    for usage in found:
        allocatable.update(usage.allocatable)
        requested.update({name: usage.requested.get(name, 0) for name in usage.allocatable})
    return allocatable, requested


def as_object(usage: Usage) -> dict[str, object]:
    """The node for a program."""
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


def _held(machine: Machine) -> Mapping[str, Sequence[tuple[GroupKey, Place]]]:
    """The places that are reserved on each node, as the status of PodGroups says."""
    found: dict[str, list[tuple[GroupKey, Place]]] = {}
    for key, gang in machine.gangs.items():
        reservation = gang.group.status.reservation if gang.group is not None else None
        for place in reservation.placements if reservation is not None else ():
            found.setdefault(place.node, []).append((key, place))
    return found


def _usage(
    node: Node, claims: Claims, gang_of: Mapping[str, GroupKey], held: Sequence[tuple[GroupKey, Place]]
) -> Usage:
    requested: Counter[str] = Counter()
    amounts: dict[GroupKey | None, Counter[str]] = {}
    numbers: Counter[GroupKey | None] = Counter()
    for owner, claim in claims.items():
        if claim.kind is BOUND:
            gang = gang_of.get(owner)
            numbers[gang] += 1
            _add(requested, claim.pod.shape.requests, 1)
            _add(amounts.setdefault(gang, Counter()), claim.pod.shape.requests, 1)
    parts = [Part(gang, False, numbers[gang], taken) for gang, taken in amounts.items()]
    parts += [_part(key, place) for key, place in held]
    parts.sort(key=lambda part: (part.gang is None, part.gang or (), part.held))
    return Usage(
        name=node.name,
        allocatable=dict(node.allocatable),
        requested=requested,
        parts=parts,
        closed=_closed(node),
    )


def _part(key: GroupKey, place: Place) -> Part:
    taken: Counter[str] = Counter()
    _add(taken, place.requests, place.count)
    return Part(key, True, place.count, taken)


def _add(found: Counter[str], amounts: Amounts, times: int) -> None:
    for resource, amount in amounts:
        found[resource] += times * amount


def _closed(node: Node) -> str:
    if node.unschedulable:
        return "cordoned"
    taint = next((each for each in node.taints if each.effect in _TAKES_NONE), None)
    return taint.key.rpartition("/")[2] if taint is not None else ""
