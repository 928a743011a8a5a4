"""What has happened: the inputs of `Machine.handle`. All are past facts; any may be lost and delivered again."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from gangsched.core.demand_objects import DemandKey, SeenDemand
from gangsched.core.model import ForeignGroup, Group, GroupKey, Labels, Node, Pod


class PodSeen(Struct, frozen=True, gc=False, tag=True):
    """A pod exists in this form."""

    pod: Pod


class PodGone(Struct, frozen=True, gc=False, tag=True):
    """A pod exists no longer."""

    uid: str


class PodsReplaced(Struct, frozen=True, gc=False, tag=True):
    """These are all the pods there are (after a list)."""

    pods: tuple[Pod, ...]


class NodeSeen(Struct, frozen=True, gc=False, tag=True):
    """A node exists in this form."""

    node: Node


class NodeGone(Struct, frozen=True, gc=False, tag=True):
    """A node exists no longer."""

    name: str


class NodesReplaced(Struct, frozen=True, gc=False, tag=True):
    """These are all the nodes there are (after a list)."""

    nodes: tuple[Node, ...]


class GroupSeen(Struct, frozen=True, gc=False, tag=True):
    """A PodGroup exists in this form."""

    group: Group


class GroupGone(Struct, frozen=True, gc=False, tag=True):
    """A PodGroup exists no longer."""

    key: GroupKey


class GroupsReplaced(Struct, frozen=True, gc=False, tag=True):
    """These are all the PodGroups there are (after a list)."""

    groups: tuple[Group, ...]


class GroupNotMade(Struct, frozen=True, gc=False, tag=True):
    """A PodGroup that was asked for was not created; `message` says why, for a person."""

    key: GroupKey
    message: str


class ForeignFact(Struct, frozen=True, gc=False):
    """Something about another system's objects."""


class ForeignGroupSeen(ForeignFact, frozen=True, gc=False, tag=True):
    """An object of another system exists and declares this."""

    group: ForeignGroup


class ForeignGroupGone(ForeignFact, frozen=True, gc=False, tag=True):
    """An object of another system exists no longer."""

    dialect: str
    key: GroupKey


class ForeignGroupsReplaced(ForeignFact, frozen=True, gc=False, tag=True):
    """These are all the groups that objects of the dialect declare (after a list); none where it has no such kind."""

    dialect: str
    groups: tuple[ForeignGroup, ...]


class ForeignGroupsHidden(ForeignFact, frozen=True, gc=False, tag=True):
    """The dialect's objects cannot be read until they are replaced; `why` says it in a sentence for a person."""

    dialect: str
    why: str


class DemandFact(Struct, frozen=True, gc=False):
    """Something about the Demand objects that we have made for palantir's autoscaler."""


class DemandSeen(DemandFact, frozen=True, gc=False, tag=True):
    """A Demand object of ours exists in this form."""

    demand: SeenDemand


class DemandGone(DemandFact, frozen=True, gc=False, tag=True):
    """A Demand object exists no longer, or is ours no longer."""

    key: DemandKey


class DemandsReplaced(DemandFact, frozen=True, gc=False, tag=True):
    """These are all the Demand objects of ours (after a list)."""

    demands: tuple[SeenDemand, ...]


class DemandsHidden(DemandFact, frozen=True, gc=False, tag=True):
    """Demand objects are not served, or may not be read: none is written until they are replaced."""


class NamespaceSeen(Struct, frozen=True, gc=False, tag=True):
    """A namespace exists with these labels."""

    name: str
    labels: Labels


class NamespaceGone(Struct, frozen=True, gc=False, tag=True):
    """A namespace exists no longer."""

    name: str


class NamespacesReplaced(Struct, frozen=True, gc=False, tag=True):
    """These are all the namespaces there are (after a list), with their labels."""

    namespaces: tuple[tuple[str, Labels], ...]


class PriorityClassSeen(Struct, frozen=True, gc=False, tag=True):
    """A PriorityClass exists with this value."""

    name: str
    value: int


class PriorityClassGone(Struct, frozen=True, gc=False, tag=True):
    """A PriorityClass exists no longer."""

    name: str


class PriorityClassesReplaced(Struct, frozen=True, gc=False, tag=True):
    """These are all the PriorityClasses there are (after a list), with their values."""

    classes: tuple[tuple[str, int], ...]


class Synced(Struct, frozen=True, gc=False, tag=True):
    """Every kind of object has been listed once: decisions may begin."""


class Refused(StrEnum):
    """Why a binding did not happen."""

    GONE = "Gone"
    """The pod no longer exists, is terminating, or another pod has its name."""
    CONFLICT = "Conflict"
    """The pod is bound elsewhere already, or has scheduling gates."""
    UNAVAILABLE = "Unavailable"
    """The server throttled the call, failed, did not answer, or knows no right to it: it may succeed later."""
    FORBIDDEN = "Forbidden"
    """The server will not accept this binding however often it is sent."""
    DENIED = "Denied"
    """Nor any other of the pod, whatever the node: its namespace is being deleted."""
    WITHDRAWN = "Withdrawn"
    """It was not sent, because the machine withdrew it in time."""


class PodBound(Struct, frozen=True, gc=False, tag=True):
    """A binding that was asked for stands."""

    uid: str
    node: str


class BindRefused(Struct, frozen=True, gc=False, tag=True):
    """A binding that was asked for did not happen; `retry_after_s` is what the server asked for, 0 without."""

    uid: str
    node: str
    why: Refused
    message: str
    retry_after_s: float = 0.0


class Spared(StrEnum):
    """Why a pod was not evicted."""

    BUDGET = "Budget"
    """A PodDisruptionBudget forbids it at present."""
    UNAVAILABLE = "Unavailable"
    """The server throttled the call, failed or did not answer: the same call may succeed later."""
    FORBIDDEN = "Forbidden"
    """The server will not accept this eviction however often it is sent."""


class PodEvicted(Struct, frozen=True, gc=False, tag=True):
    """An eviction that was asked for was accepted, or the pod is gone or terminating already."""

    uid: str


class EvictionRefused(Struct, frozen=True, gc=False, tag=True):
    """An eviction that was asked for did not happen; `retry_after_s` is what the server asked for, 0 without."""

    uid: str
    why: Spared
    message: str
    retry_after_s: float = 0.0


class OwnerSeen(Struct, frozen=True, gc=False, tag=True):
    """What is known of a Job (by UID): whether it replaces an evicted pod without counting a failure.

    `why` says in a sentence for a person why not; empty if it does.
    """

    uid: str
    replaces: bool
    why: str = ""


class StatusWritten(Struct, frozen=True, gc=False, tag=True):
    """A status patch of a PodGroup was accepted and gave it this resourceVersion.

    `reserved`: the patch carried a reservation, so the places in it are durable now.
    """

    key: GroupKey
    resource_version: str
    reserved: bool = False


class StatusRefused(Struct, frozen=True, gc=False, tag=True):
    """A status patch was not accepted; `stale` if the resourceVersion it was conditional on is no longer current."""

    key: GroupKey
    stale: bool


class TimePassed(Struct, frozen=True, gc=False, tag=True):
    """Nothing happened but time: a deadline that the machine named is due."""


Answer = (
    PodBound | BindRefused | PodEvicted | EvictionRefused | OwnerSeen | StatusWritten | StatusRefused | GroupNotMade
)
"""What the API server says to effects."""

Event = (
    PodSeen
    | PodGone
    | PodsReplaced
    | NodeSeen
    | NodeGone
    | NodesReplaced
    | GroupSeen
    | GroupGone
    | GroupsReplaced
    | GroupNotMade
    | ForeignGroupSeen
    | ForeignGroupGone
    | ForeignGroupsReplaced
    | ForeignGroupsHidden
    | DemandSeen
    | DemandGone
    | DemandsReplaced
    | DemandsHidden
    | NamespaceSeen
    | NamespaceGone
    | NamespacesReplaced
    | PriorityClassSeen
    | PriorityClassGone
    | PriorityClassesReplaced
    | Synced
    | PodBound
    | BindRefused
    | PodEvicted
    | EvictionRefused
    | OwnerSeen
    | StatusWritten
    | StatusRefused
    | TimePassed
)
