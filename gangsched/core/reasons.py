"""The words for why: used unchanged in PodGroup status, pod conditions, Events, metrics, the command line and docs."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a group is in its present state; the reason of its `Scheduled` or `Degraded` condition.

    On members' `PodScheduled` condition the same word is used; `NEVER_FITS` appears there as `UNSCHEDULABLE` wherever a
    new node could help, because an autoscaler can add it and acts on that word alone.
    """

    GANG_INCOMPLETE = "GangIncomplete"
    """Fewer members exist than the group's minimum."""
    POD_GROUP_NOT_FOUND = "PodGroupNotFound"
    """The pod names a PodGroup (its own system's, or gangsched's) that does not exist, and no pod says the group's
    minimum itself."""
    POD_GROUP_UNREADABLE = "PodGroupUnreadable"
    """The pod names a PodGroup of another system, which gangsched may not read or has not been able to list."""
    PRIORITY_CLASS_NOT_FOUND = "PriorityClassNotFound"
    """The PodGroup names a PriorityClass that does not exist."""
    ROLE_UNKNOWN = "RoleUnknown"
    """A member names a role that the group does not have."""
    CONTRADICTION = "Contradiction"
    """Two sources of the group's declaration differ: the PodGroup, its pods, two dialects on one pod or on several."""
    INVALID_DECLARATION = "InvalidDeclaration"
    """A declaration (the PodGroup's spec or a pod's annotations) cannot be read."""
    NOT_SUPPORTED = "NotSupported"
    """A member or the PodGroup asks for something that this version refuses by name."""
    STRATEGY_UNKNOWN = "StrategyUnknown"
    """The placement strategy is a plug-in that is not installed."""
    UNSCHEDULABLE = "Unschedulable"
    """Complete, but the quorum does not fit into what is free now."""
    NOT_ITS_TURN = "NotItsTurn"
    """An earlier group of the same instance group waits for room and may not be overtaken."""
    NEVER_FITS = "NeverFits"
    """The quorum would not fit onto the present nodes even if they were empty. On a member's condition: nor could a new
    node help, because the members that lack a place accept nodes by name alone."""
    SURPLUS = "AboveMaxMember"
    """The member is beyond maxMember."""
    TIMED_OUT = "TimedOut"
    """maxScheduleTime passed before the quorum could be bound."""
    GANG_FAILED = "GangFailed"
    """Timed out under timeoutPolicy Fail, or the run ended without as many successes as the minimum."""
    BINDING = "Binding"
    """The quorum's bindings are on their way."""
    BINDING_REFUSED = "BindingRefused"
    """The API server refused a member's binding; it is being retried or placed anew."""
    PLACES_HELD = "PlacesHeld"
    """Places are held for members that do not exist yet; those that exist are bound."""
    TEMPLATE_MISMATCH = "TemplateMismatch"
    """A member does not fit into any place that was held for its role, and is placed elsewhere."""
    SCHEDULED = "Scheduled"
    """The quorum is bound."""
    SUCCEEDED = "Succeeded"
    """The run ended with as many successes as the minimum."""
    BINDING_UNDONE = "BindingUndone"
    """A part of the quorum was bound and the rest could not be in time; the bound members are or were evicted."""
    PARTLY_BOUND = "PartlyBound"
    """Members are bound without the rest of their quorum and cannot be evicted without loss."""
    EVICTION_REFUSED = "EvictionRefused"
    """Members are to be evicted and the API server refuses, most often because of a PodDisruptionBudget."""
    RESTARTING = "Restarting"
    """The group fell below its minimum and onDegraded is Restart: all its members are being evicted."""
    MEMBERS_MISSING = "MembersMissing"
    """Fewer members are bound than the minimum: some were lost, or did not come while their places were held."""
    MINIMUM_RAISED = "MinimumRaised"
    """The minimum was raised after the group was scheduled and the difference is not bound yet."""
    HEALTHY = "Healthy"
    """A scheduled group has at least its minimum bound."""
    NO_MEMBERS = "NoMembers"
    """No pod names the PodGroup yet."""
    SEVERAL_OWNERS = "SeveralOwners"
    """Pods of several owners name the group; by the setting ownerGuard, only those of the first are its members."""
    BINDINGS_REFUSED = "BindingsRefused"
    """The reason of an Event on a Node: pods were refused there that are accepted elsewhere, or pods of several
    namespaces; other nodes are preferred for a while."""
    FOREIGN_MEMBER = "ForeignMember"
    """A pod of another scheduler names the group; it is no member."""


class NodeReason(StrEnum):
    """Why a node does not take a member, in the order in which kube-scheduler's filters are tried."""

    UNSCHEDULABLE = "NodeUnschedulable"
    """The node is cordoned."""
    TAINT = "TaintNotTolerated"
    """The node has a NoSchedule or NoExecute taint that the member does not tolerate."""
    AFFINITY = "NodeAffinityMismatch"
    """The member's nodeSelector or required node affinity does not match the node."""
    HOST_PORT = "HostPortTaken"
    """A host port of the member is in use on the node."""
    INSUFFICIENT = "Insufficient"
    """Too little of a resource is free on the node."""
    TOO_MANY_PODS = "TooManyPods"
    """The node runs as many pods as it allows."""
    DOMAIN = "OutsideTopologyDomain"
    """The group's members must all be in one topology domain, and the node is not in the one that was looked at: where
    some of them are already, else where there is most room."""
    ANTI_AFFINITY = "AntiAffinityOfExistingPod"
    """A pod already there (or in the same topology domain) forbids the member by its required anti-affinity."""
