"""The world of an observed cluster, and the result of applying manifests to it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from gangsched.core.objects.events import (
    BudgetsHidden,
    BudgetsReplaced,
    DeviceObjectsReplaced,
    Event,
    ForeignGroupsReplaced,
    GroupsReplaced,
    NamespacesReplaced,
    NodesReplaced,
    PodsReplaced,
    PriorityClassesReplaced,
    StorageReplaced,
)
from gangsched.core.objects.results import PodBound
from gangsched.whatif.world.contents import World

Named = TypeVar("Named")


def observed(events: Iterable[Event], now: float) -> World:
    """The world that these events describe, as `Machine.facts` and `cli.live.read` return them."""
    world = World(start=now)
    nodes: dict[str, str] = {}
    for event in events:
        if isinstance(event, NamespacesReplaced):
            world.namespaces = {namespace.name: namespace for namespace in event.namespaces}
        elif isinstance(event, PriorityClassesReplaced):
            world.priority_classes = dict(event.classes)
        elif isinstance(event, BudgetsReplaced):
            world.budgets = {budget.key: budget for budget in event.budgets}
        elif isinstance(event, BudgetsHidden):
            world.budgets_hidden = event.why
        elif isinstance(event, NodesReplaced):
            world.nodes = list(event.nodes)
        elif isinstance(event, StorageReplaced):
            world.storage[event.kind] = {stored.key: stored for stored in event.storage_objects}
        elif isinstance(event, DeviceObjectsReplaced):
            world.devices[event.kind] = {stored.key: stored for stored in event.device_objects}
        elif isinstance(event, GroupsReplaced):
            world.groups = list(event.groups)
        elif isinstance(event, ForeignGroupsReplaced):
            world.foreign += event.groups
        elif isinstance(event, PodsReplaced):
            world.pods = list(event.pods)
        elif isinstance(event, PodBound):
            nodes[event.uid] = event.node
    # The API server has confirmed these bindings, but the watch has not shown them yet.
    world.pods = [replace(pod, node=nodes[pod.uid]) if pod.uid in nodes else pod for pod in world.pods]
    return world


def applied(new: World, before: World) -> World:
    """The world after the new objects have been applied: they replace existing objects of the same name."""
    return dataclasses.replace(
        new,
        start=max(new.start, before.start),
        nodes=_joined(before.nodes, new.nodes, lambda node: node.name),
        pods=_joined(before.pods, new.pods, lambda pod: (pod.namespace, pod.name)),
        groups=_joined(before.groups, new.groups, lambda group: group.key),
        foreign=_joined(before.foreign, new.foreign, lambda foreign: (foreign.dialect, foreign.key)),
        # For a namespace that only pods of the manifests name, `new` lacks the labels that the cluster has.
        namespaces={**new.namespaces, **before.namespaces},
        priority_classes={**before.priority_classes, **new.priority_classes},
        budgets={**before.budgets, **new.budgets},
        budgets_hidden=before.budgets_hidden,
        storage={
            kind: {**before.storage.get(kind, {}), **new.storage.get(kind, {})}
            for kind in (before.storage.keys() | new.storage.keys())
        },
        devices={
            kind: {**before.devices.get(kind, {}), **new.devices.get(kind, {})}
            for kind in (before.devices.keys() | new.devices.keys())
        },
    )


def _joined(before: Sequence[Named], new: Sequence[Named], name: Callable[[Named], Hashable]) -> list[Named]:
    replaced = {name(named) for named in new}
    return [*(named for named in before if name(named) not in replaced), *new]
