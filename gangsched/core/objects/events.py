"""Events, the inputs of `Machine.handle`: all are past facts; any may be lost and delivered again."""

from __future__ import annotations

from msgspec import Struct

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.demands import DemandKey, SeenDemand
from gangsched.core.objects.devices import DeviceKind, DeviceObject
from gangsched.core.objects.disruption_budget import DisruptionBudget
from gangsched.core.objects.node import Node
from gangsched.core.objects.offered_devices import ObjectKey
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import ForeignGroup, Group
from gangsched.core.objects.priority_class import PriorityClass
from gangsched.core.objects.shape import Labels
from gangsched.core.objects.volumes import StorageKey, StorageKind, StorageObject


class Event(Struct, frozen=True, gc=False, tag=True):
    """Something that has happened; the API server's results of effects are in `results`."""


class PodSeen(Event, frozen=True):
    """A pod exists in this form."""

    pod: Pod


class PodGone(Event, frozen=True):
    """A pod no longer exists."""

    uid: str


class PodsReplaced(Event, frozen=True):
    """These are all the pods there are (after a list)."""

    pods: tuple[Pod, ...]


class NodeSeen(Event, frozen=True):
    """A node exists in this form."""

    node: Node


class NodeGone(Event, frozen=True):
    """A node no longer exists."""

    name: str


class NodesReplaced(Event, frozen=True):
    """These are all the nodes there are (after a list)."""

    nodes: tuple[Node, ...]


class GroupSeen(Event, frozen=True):
    """A PodGroup exists in this form."""

    group: Group


class GroupGone(Event, frozen=True):
    """A PodGroup no longer exists."""

    key: GroupKey


class GroupExpired(Event, frozen=True):
    """The time to live of a PodGroup with this UID, which is finished in this version of it, is over."""

    key: GroupKey
    uid: str
    resource_version: str


class GroupsReplaced(Event, frozen=True):
    """These are all the PodGroups there are (after a list)."""

    groups: tuple[Group, ...]


class ForeignFact(Event, frozen=True):
    """Something about another system's objects."""


class ForeignGroupSeen(ForeignFact, frozen=True):
    """An object of another system exists and declares this."""

    group: ForeignGroup


class ForeignGroupGone(ForeignFact, frozen=True):
    """An object of another system no longer exists."""

    dialect: str
    key: GroupKey


class ForeignGroupsReplaced(ForeignFact, frozen=True):
    """These are all the groups that objects of the dialect declare (after a list); none if it has no such kind."""

    dialect: str
    groups: tuple[ForeignGroup, ...]


class ForeignGroupsHidden(ForeignFact, frozen=True):
    """The dialect's objects cannot be read until the next `ForeignGroupsReplaced`; `why` is a sentence for users.

    `denied`: the permission to read them is missing. Otherwise they have not been read yet.
    """

    dialect: str
    why: str
    denied: bool = False


class DemandFact(Event, frozen=True):
    """Something about the Demand objects that we create for palantir's autoscaler."""


class DemandSeen(DemandFact, frozen=True):
    """A Demand object of ours exists in this form."""

    demand: SeenDemand


class DemandGone(DemandFact, frozen=True):
    """A Demand object no longer exists, or is no longer ours."""

    key: DemandKey


class DemandsReplaced(DemandFact, frozen=True):
    """These are all the Demand objects of ours (after a list)."""

    demands: tuple[SeenDemand, ...]


class DemandsHidden(DemandFact, frozen=True):
    """Demand objects are not served, or may not be read: none is written until the next `DemandsReplaced`."""


class NamespaceSeen(Event, frozen=True):
    """A namespace exists with these labels; `terminating`: it is being deleted."""

    name: str
    labels: Labels
    terminating: bool = False


class NamespaceGone(Event, frozen=True):
    """A namespace no longer exists."""

    name: str


class NamespacesReplaced(Event, frozen=True):
    """These are all the namespaces there are (after a list)."""

    namespaces: tuple[NamespaceSeen, ...]


class PriorityClassSeen(Event, frozen=True):
    """A PriorityClass exists in this form."""

    name: str
    priority_class: PriorityClass


class PriorityClassGone(Event, frozen=True):
    """A PriorityClass no longer exists."""

    name: str


class PriorityClassesReplaced(Event, frozen=True):
    """These are all the PriorityClasses there are (after a list), by name."""

    classes: tuple[tuple[str, PriorityClass], ...]


class BudgetFact(Event, frozen=True):
    """Something about PodDisruptionBudgets."""


class BudgetSeen(BudgetFact, frozen=True):
    """A PodDisruptionBudget exists in this form."""

    budget: DisruptionBudget


class BudgetGone(BudgetFact, frozen=True):
    """A PodDisruptionBudget no longer exists; `key` is its namespace and name, with a slash between them."""

    key: str


class BudgetsReplaced(BudgetFact, frozen=True):
    """These are all the PodDisruptionBudgets there are (after a list)."""

    budgets: tuple[DisruptionBudget, ...]


class BudgetsHidden(BudgetFact, frozen=True):
    """PodDisruptionBudgets cannot be read until the next `BudgetsReplaced`; `why` is a sentence for users."""

    why: str


class StorageFact(Event, frozen=True):
    """Something about objects of a `StorageKind`."""


class StorageSeen(StorageFact, frozen=True):
    """An object of this kind exists in this form."""

    kind: StorageKind
    storage_object: StorageObject


class StorageGone(StorageFact, frozen=True):
    """An object of this kind no longer exists."""

    kind: StorageKind
    key: StorageKey


class StorageReplaced(StorageFact, frozen=True):
    """These are all the objects of this kind that there are (after a list)."""

    kind: StorageKind
    storage_objects: tuple[StorageObject, ...]


class DeviceFact(Event, frozen=True):
    """Something about ResourceSlices, DeviceClasses or ResourceClaims."""


class DeviceObjectSeen(DeviceFact, frozen=True):
    """An object of this kind exists in this form."""

    kind: DeviceKind
    device_object: DeviceObject


class DeviceObjectGone(DeviceFact, frozen=True):
    """An object of this kind no longer exists."""

    kind: DeviceKind
    key: ObjectKey


class DeviceObjectsReplaced(DeviceFact, frozen=True):
    """These are all the objects of this kind that there are (after a list)."""

    kind: DeviceKind
    device_objects: tuple[DeviceObject, ...]


class Synced(Event, frozen=True):
    """Every kind of object has been listed once: decisions may begin."""


class TimePassed(Event, frozen=True):
    """No event but the passage of time: a deadline that the machine named is due."""
