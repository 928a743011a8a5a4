"""The content of a simulated cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from gangsched.api.times import parse_time
from gangsched.core.objects.devices import DeviceKind, DeviceObject
from gangsched.core.objects.disruption_budget import DisruptionBudget
from gangsched.core.objects.events import NamespaceSeen
from gangsched.core.objects.node import Node
from gangsched.core.objects.offered_devices import ObjectKey
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import ForeignGroup, Group
from gangsched.core.objects.priority_class import PriorityClass
from gangsched.core.objects.volumes import StorageKey, StorageKind, StorageObject

EPOCH = parse_time("2000-01-01T00:00:00Z")
"""When a world starts whose objects name no later time."""

NAME_LABEL = "kubernetes.io/metadata.name"
"""The label that the API server adds to every namespace: its name."""


@dataclass(slots=True, kw_only=True)
class World:
    """The content of the files. All of it exists at `start`, in epoch seconds.

    `budgets` are by namespace and name, with a slash between them; `budgets_hidden` says why they cannot be read, empty
    if they can. `successors` are pods that are created once the pod with that UID runs. Those in `follows`, by UID, get
    the value that this label has on the node of that pod as their node selector. `ignored` counts unsupported objects.
    `unused` are declarations for other operators that nothing here reads.
    `idle` are sentences about workloads that are suspended or have ended.
    `refused` are sentences about pods that the API server does not admit, and `doubts` sentences that say why the
    cluster could decide otherwise.
    """

    start: float = EPOCH
    nodes: list[Node] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    foreign: list[ForeignGroup] = field(default_factory=list)
    namespaces: dict[str, NamespaceSeen] = field(default_factory=dict)
    priority_classes: dict[str, PriorityClass] = field(default_factory=dict)
    budgets: dict[str, DisruptionBudget] = field(default_factory=dict)
    budgets_hidden: str = ""
    storage: dict[StorageKind, dict[StorageKey, StorageObject]] = field(default_factory=dict)
    devices: dict[DeviceKind, dict[ObjectKey, DeviceObject]] = field(default_factory=dict)
    successors: dict[str, list[Pod]] = field(default_factory=dict)
    follows: dict[str, str] = field(default_factory=dict)
    ignored: Counter[str] = field(default_factory=Counter)
    unused: list[str] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)


def namespace(
    name: str, labels: Mapping[str, Any] = MappingProxyType({}), *, terminating: bool = False
) -> NamespaceSeen:
    """The namespace as the API server shows it: with the label that it adds."""
    shown = {**{str(key): str(value) for key, value in labels.items()}, NAME_LABEL: name}
    return NamespaceSeen(name, tuple(sorted(shown.items())), terminating)
