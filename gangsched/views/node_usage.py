"""The usage of each node: what is requested there, and by which gangs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from gangsched.core.cluster.claims import BOUND, Claim
from gangsched.core.gang.gang import Gang
from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.quantity import format_amount
from gangsched.core.objects.shape import PODS, Amounts
from gangsched.core.objects.status import Place
from gangsched.views.member_rows import runs

_TAKES_NONE = ("NoSchedule", "NoExecute")
_CPU = "cpu"
_PLACE = re.compile(
    r"(?:^|[/._-])(?:zone|region|rack|row|block|room|superpod|pod-?set|switch|spine|leaf|clique|cell|cube|"
    r"node-?pool|node-?group|agent-?pool|pool|instance-type|island|slice)(?:$|[._-])"
)
"""Words in the label keys of cloud providers, of GPU operators, and of people who label their racks themselves."""
_FORMER = "beta.kubernetes.io/"
MOST_LABELS = 12
"""Maximum number of labels of one node that name a place or kind."""


class State(StrEnum):
    """What pods on a node do, or what its places are kept for."""

    RUNNING = "running"
    STARTING = "starting"
    """They are bound, and a container of theirs has yet to start, perhaps again."""
    LEAVING = "leaving"
    """They terminate."""
    HELD = "held"
    """Free places, held for members that have no node yet."""
    RESERVED = "reserved"
    """Places that an open plan reserves, which other pods may still occupy."""


_KEPT = (State.HELD, State.RESERVED)
_ORDER = list(State)


class Held(NamedTuple):
    """A group and its places on a node; `planned`: an open plan reserves them, so others may have to leave first."""

    group: GroupKey
    place: Place
    planned: bool


@dataclass(frozen=True, slots=True)
class Occupant:
    """What one gang, or the pods without a gang (`gang` is None), occupy on a node: `number` pods with these `amounts`.

    If they are in another state, that is another part.
    """

    gang: GroupKey | None
    state: State
    number: int
    amounts: Mapping[str, int]

    @property
    def held(self) -> bool:
        """Whether these are places for members that have no node yet."""
        return self.state in _KEPT


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """One node: its `allocatable` amounts, and its `parts`, those of gangs by name, then that of other pods.

    `requested` are the amounts of its pods, without reservations. `closed` says why it accepts no pod without a
    toleration; empty if it does. `topology` are its labels that name a place or kind, such as its rack.
    """

    name: str
    allocatable: Mapping[str, int]
    requested: Mapping[str, int]
    parts: Sequence[Occupant]
    closed: str = ""
    topology: Mapping[str, str] = field(default_factory=dict)

    @property
    def pods(self) -> int:
        """The number of pods on the node."""
        return sum(part.number for part in self.parts if not part.held)

    @property
    def gangs(self) -> Mapping[GroupKey, int]:
        """The number of pods of each gang on the node."""
        numbers: Counter[GroupKey] = Counter()
        for part in self.parts:
            if part.gang is not None and not part.held:
                numbers[part.gang] += part.number
        return numbers

    def kept(self, state: State) -> Mapping[str, int]:
        """The amounts of all parts in this state."""
        amounts: Counter[str] = Counter()
        for part in self.parts:
            if part.state is state:
                amounts.update(part.amounts)
        return amounts

    @property
    def scarcest(self) -> str:
        """The resource that limits what else fits: the fullest extended one, such as a GPU, else the fullest."""
        names = {name for name in self.allocatable if is_special(name)} or self.allocatable.keys() - {PODS}
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
            planned = reservation is not None and bool(reservation.kind)
            by_node.setdefault(place.node, []).append(Held(gang.key, place, planned))
    return by_node


def usage(node: Node, claims: Iterable[Claim], reserved: Sequence[Held], machine: Machine) -> Usage:
    """The usage of one node, with these claims and reservations."""
    requested: Counter[str] = Counter()
    amounts: dict[tuple[GroupKey | None, State], Counter[str]] = {}
    numbers: Counter[tuple[GroupKey | None, State]] = Counter()
    for claim in claims:
        if claim.kind is BOUND:
            gang = machine.gang_of(claim.pod.uid)
            key = gang.key if gang is not None and not gang.plain else None
            of = key, _state(claim.pod)
            numbers[of] += 1
            _add(requested, claim.pod.shape.requests, 1)
            _add(amounts.setdefault(of, Counter()), claim.pod.shape.requests, 1)
    parts = [Occupant(*of, numbers[of], requests) for of, requests in amounts.items()]
    parts += map(_part, reserved)
    parts.sort(key=lambda part: (part.gang is None, part.gang or (), _ORDER.index(part.state)))
    return Usage(
        name=node.name,
        allocatable=dict(node.allocatable),
        requested=requested,
        parts=parts,
        closed=_closed(node),
        topology=topology(node),
    )


def topology(node: Node) -> Mapping[str, str]:
    """The labels that say where the node is or of which kind, by key; deprecated ones are left out."""
    labels = ((key, value) for key, value in node.labels if _FORMER not in key and _PLACE.search(key))
    return dict(list(labels)[:MOST_LABELS])


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
        "topology": dict(usage.topology),
        "parts": [
            {
                "namespace": part.gang.namespace if part.gang is not None else None,
                "name": part.gang.name if part.gang is not None else None,
                "held": part.held,
                "state": part.state.value,
                "pods": part.number,
                "share": round(share(part.amounts.get(scarcest, 0), usage.allocatable.get(scarcest, 0)), 4),
            }
            for part in usage.parts
        ],
    }


def _state(pod: Pod) -> State:
    if pod.terminating:
        return State.LEAVING
    return State.RUNNING if runs(pod) else State.STARTING


def _part(held: Held) -> Occupant:
    amounts: Counter[str] = Counter()
    _add(amounts, held.place.requests, held.place.count)
    return Occupant(held.group, State.RESERVED if held.planned else State.HELD, held.place.count, amounts)


def _add(totals: Counter[str], amounts: Amounts, times: int) -> None:
    for resource, amount in amounts:
        totals[resource] += times * amount


def _closed(node: Node) -> str:
    if node.unschedulable:
        return "cordoned"
    taint = next((candidate for candidate in node.taints if candidate.effect in _TAKES_NONE), None)
    return taint.key.rpartition("/")[2] if taint is not None else ""
