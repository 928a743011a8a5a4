"""Which object of the API server an event is about. Each may be set aside (`core.quarantine`)."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from gangsched.core.objects import events as seen
from gangsched.core.objects.events import Event

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


def subject_of(event: Event) -> Subject | None:  # noqa: PLR0911 - one line for each kind
    """The object that was seen or has gone; None for lists, and for events about anything else."""
    match event:
        case seen.PodSeen(pod):
            return Subject(POD, pod.uid)
        case seen.PodGone(uid):
            return Subject(POD, uid)
        case seen.NodeSeen(node):
            return Subject(NODE, node.name)
        case seen.NodeGone(name):
            return Subject(NODE, name)
        case seen.NamespaceSeen(name) | seen.NamespaceGone(name):
            return Subject(NAMESPACE, name)
        case seen.BudgetSeen(budget):
            return Subject(BUDGET, budget.key)
        case seen.BudgetGone(key):
            return Subject(BUDGET, key)
        case seen.StorageSeen(kind, found) | seen.DeviceObjectSeen(kind, found):
            return Subject(kind.value, found.key)
        case seen.StorageGone(kind, key) | seen.DeviceObjectGone(kind, key):
            return Subject(kind.value, key)
        case seen.GroupSeen(group):
            return Subject(GROUP, group.key)
        case seen.GroupGone(key):
            return Subject(GROUP, key)
        case seen.ForeignGroupSeen(foreign):
            return Subject(foreign.dialect, foreign.key)
        case seen.ForeignGroupGone(dialect, key):
            return Subject(dialect, key)
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
    match event:
        case seen.PodsReplaced():
            return POD
        case seen.NodesReplaced():
            return NODE
        case seen.NamespacesReplaced():
            return NAMESPACE
        case seen.BudgetsReplaced():
            return BUDGET
        case seen.GroupsReplaced():
            return GROUP
        case seen.ForeignGroupsReplaced(dialect):
            return dialect
        case seen.StorageReplaced(kind) | seen.DeviceObjectsReplaced(kind):
            return kind.value
    return ""


def singles(event: Event) -> Sequence[Event]:
    """An event for each object of a list; none for other events."""
    match event:
        case seen.PodsReplaced(pods):
            return [seen.PodSeen(pod) for pod in pods]
        case seen.NodesReplaced(nodes):
            return [seen.NodeSeen(node) for node in nodes]
        case seen.NamespacesReplaced(namespaces):
            return [seen.NamespaceSeen(name, labels) for name, labels in namespaces]
        case seen.BudgetsReplaced(budgets):
            return [seen.BudgetSeen(budget) for budget in budgets]
        case seen.GroupsReplaced(groups):
            return [seen.GroupSeen(group) for group in groups]
        case seen.ForeignGroupsReplaced(_, groups):
            return [seen.ForeignGroupSeen(group) for group in groups]
        case seen.StorageReplaced(kind, storage):
            return [seen.StorageSeen(kind, each) for each in storage]
        case seen.DeviceObjectsReplaced(kind, devices):
            return [seen.DeviceObjectSeen(kind, each) for each in devices]
    return ()


def without(event: Event, subjects: Collection[Subject]) -> Event:
    """The list without these objects; other events as they are."""
    each = singles(event)
    if not any(subject_of(single) in subjects for single in each):
        return event
    field = event.__struct_fields__[-1]
    items = zip(getattr(event, field), each, strict=True)
    return replace(event, **{field: tuple(item for item, single in items if subject_of(single) not in subjects)})
