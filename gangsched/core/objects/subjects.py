"""Which object of the API server an event is about. Each may be set aside (`core.quarantine`)."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from gangsched.core.objects import events as seen
from gangsched.core.objects.disruption_budget import DisruptionBudget
from gangsched.core.objects.events import Event
from gangsched.core.objects.node import Node
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import ForeignGroup, Group

POD, NODE, NAMESPACE, GROUP, BUDGET = "Pod", "Node", "Namespace", "PodGroup", "PodDisruptionBudget"
_GONE = (
    seen.PodGone,
    seen.NodeGone,
    seen.NamespaceGone,
    seen.BudgetGone,
    seen.StorageGone,
    seen.DeviceObjectGone,
    seen.GroupGone,
    seen.ForeignGroupGone,
)


class Subject(NamedTuple):
    """An object: its kind, or the dialect of another system's PodGroup, and what names it (of a pod the UID)."""

    kind: str
    key: Hashable


def subject_of(event: Event) -> Subject | None:
    """The object that was seen or has gone; None for lists, and for events about anything else."""
    match event:
        case seen.PodSeen(Pod(uid=uid)) | seen.PodGone(uid):
            return Subject(POD, uid)
        case seen.NodeSeen(Node(name=node)) | seen.NodeGone(node):
            return Subject(NODE, node)
        case seen.NamespaceSeen(name) | seen.NamespaceGone(name):
            return Subject(NAMESPACE, name)
        case seen.BudgetSeen(DisruptionBudget(key=budget)) | seen.BudgetGone(budget):
            return Subject(BUDGET, budget)
        case seen.StorageSeen(kind, stored) | seen.DeviceObjectSeen(kind, stored):
            return Subject(kind.value, stored.key)
        case seen.StorageGone(kind, key) | seen.DeviceObjectGone(kind, key):
            return Subject(kind.value, key)
        case seen.GroupSeen(Group(key=group)) | seen.GroupGone(group):
            return Subject(GROUP, group)
        case seen.ForeignGroupSeen(ForeignGroup(dialect=dialect, key=group)) | seen.ForeignGroupGone(dialect, group):
            return Subject(dialect, group)
    return None


def is_gone(event: Event) -> bool:
    """Whether the event says that its object no longer exists."""
    return isinstance(event, _GONE)


def name_of(event: Event) -> str:
    """The object's kind and name, for people."""
    subject = subject_of(event)
    if isinstance(event, seen.PodSeen):
        return f"{POD} {event.pod.namespace}/{event.pod.name}"
    if subject is None:
        return type(event).__name__
    key = subject.key
    return f"{subject.kind} {'/'.join(filter(None, key)) if isinstance(key, tuple) else key}"


def kind_of(event: Event) -> str:
    """The kind of the objects in a list, as in `Subject`; empty for other events."""
    return _listed(event)[0]


def singles(event: Event) -> Sequence[Event]:
    """An event for each object of a list; none for other events."""
    return _listed(event)[1]


def _listed(event: Event) -> tuple[str, Sequence[Event]]:
    match event:
        case seen.PodsReplaced(pods):
            return POD, [seen.PodSeen(pod) for pod in pods]
        case seen.NodesReplaced(nodes):
            return NODE, [seen.NodeSeen(node) for node in nodes]
        case seen.NamespacesReplaced(namespaces):
            return NAMESPACE, namespaces
        case seen.BudgetsReplaced(budgets):
            return BUDGET, [seen.BudgetSeen(budget) for budget in budgets]
        case seen.GroupsReplaced(groups):
            return GROUP, [seen.GroupSeen(group) for group in groups]
        case seen.ForeignGroupsReplaced(dialect, groups):
            return dialect, [seen.ForeignGroupSeen(group) for group in groups]
        case seen.StorageReplaced(kind, storage_objects):
            return kind.value, [seen.StorageSeen(kind, stored) for stored in storage_objects]
        case seen.DeviceObjectsReplaced(kind, device_objects):
            return kind.value, [seen.DeviceObjectSeen(kind, stored) for stored in device_objects]
    return "", ()


def without(event: Event, subjects: Collection[Subject]) -> Event:
    """The list without these objects; other events as they are."""
    events = singles(event)
    if not any(subject_of(single) in subjects for single in events):
        return event
    field = event.__struct_fields__[-1]
    items = zip(getattr(event, field), events, strict=True)
    return replace(event, **{field: tuple(item for item, single in items if subject_of(single) not in subjects)})
