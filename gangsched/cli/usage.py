"""What of each node is requested, and by which groups: for `gangsched top`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.events import Event, NodesReplaced, PodsReplaced
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod

_TAKES_NONE = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """One node: its `allocatable` and `requested` amounts, its number of `pods`, and how many are of each gang.

    `closed` says why it takes no pod without a toleration; empty if it does.
    """

    name: str
    allocatable: Mapping[str, int]
    requested: Mapping[str, int]
    pods: int
    gangs: Mapping[GroupKey, int]
    closed: str = ""

    def share(self, resource: str) -> float:
        """The requested part of the resource, from 0 to 1; 0 if the node has none."""
        return share(self.requested.get(resource, 0), self.allocatable.get(resource, 0))


def share(requested: int, allocatable: int) -> float:
    """The requested part of what there is, 0 if there is nothing."""
    return requested / allocatable if allocatable else 0.0


def usages(events: Sequence[Event], machine: Machine) -> list[Usage]:
    """The nodes of what `cli.live.read` has read, by name. `machine` knows which pods are members of which gang.

    Only what the pods of the API server say counts, and nothing that the machine has decided on its copy.
    """
    nodes = [node for event in events if isinstance(event, NodesReplaced) for node in event.nodes]
    gang_of = {uid: key for key, gang in machine.gangs.items() if not gang.plain for uid in gang.pods}
    on: dict[str, list[Pod]] = {node.name: [] for node in nodes}
    for event in events:
        if isinstance(event, PodsReplaced):
            for pod in event.pods:
                if pod.node in on and not pod.terminal:
                    on[pod.node].append(pod)
    return [_usage(node, on[node.name], gang_of) for node in sorted(nodes, key=lambda node: node.name)]


def total(found: Iterable[Usage]) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """What all the nodes have, and what of it is requested."""
    allocatable: Counter[str] = Counter()
    requested: Counter[str] = Counter()
    for usage in found:
        allocatable.update(usage.allocatable)
        requested.update({name: usage.requested.get(name, 0) for name in usage.allocatable})
    return allocatable, requested


def _usage(node: Node, pods: Sequence[Pod], gang_of: Mapping[str, GroupKey]) -> Usage:
    requested: Counter[str] = Counter()
    for pod in pods:
        requested.update(dict(pod.shape.requests))
    return Usage(
        name=node.name,
        allocatable=dict(node.allocatable),
        requested=requested,
        pods=len(pods),
        gangs=Counter(gang_of[pod.uid] for pod in pods if pod.uid in gang_of),
        closed=_closed(node),
    )


def _closed(node: Node) -> str:
    if node.unschedulable:
        return "cordoned"
    taint = next((each for each in node.taints if each.effect in _TAKES_NONE), None)
    return taint.key.rpartition("/")[2] if taint is not None else ""
