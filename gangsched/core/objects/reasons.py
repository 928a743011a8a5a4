"""Reasons, used unchanged in PodGroup status, pod conditions, Events, metrics, the command line and docs."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a group is in its present state; the reason of its `Scheduled` or `Degraded` condition.

    Members' `PodScheduled` conditions use the same words, but `NEVER_FITS` appears there as `UNSCHEDULABLE` if a new
    node could help, because an autoscaler can add one and acts on that word alone.
    """

    GANG_INCOMPLETE = "GangIncomplete"
    """Fewer members exist than the group's minimum."""
    POD_GROUP_NOT_FOUND = "PodGroupNotFound"
    """The pod names a PodGroup (its own system's, or gangsched's) that does not exist, and no pod declares the group's
    minimum itself."""
    POD_GROUP_UNREADABLE = "PodGroupUnreadable"
    """The pod names a PodGroup of another system, which gangsched may not read or has not been able to list."""
    OWNER_UNKNOWN = "OwnerUnknown"
    """The pod names no group. The object of its Job or other workload, which may ask for one, has not been seen yet."""
    PRIORITY_CLASS_NOT_FOUND = "PriorityClassNotFound"
    """The PodGroup names a PriorityClass that does not exist."""
    ROLE_UNKNOWN = "RoleUnknown"
    """A member names a role that the group does not have."""
    CONTRADICTION = "Contradiction"
    """Two sources of the group's declaration differ: its PodGroup and its pods, or two dialects on one or more pods."""
    INVALID_DECLARATION = "InvalidDeclaration"
    """A declaration (the PodGroup's spec or a pod's annotations) cannot be read."""
    NOT_SUPPORTED = "NotSupported"
    """A member or the PodGroup uses a feature that this version does not support; the message names it."""
    PRE_BINDING = "PreBinding"
    """Nodes are reserved for the quorum. Its volumes and devices are prepared there before its members are bound."""
    VOLUME_NOT_READY = "VolumeNotReady"
    """A PersistentVolumeClaim that the quorum needs does not exist, is lost, is being deleted or is not bound."""
    RESOURCE_CLAIM_NOT_READY = "ResourceClaimNotReady"
    """A ResourceClaim that the quorum needs does not exist, is being deleted, is shared by the maximum number of pods,
    or names a DeviceClass that does not exist."""
    STRATEGY_UNKNOWN = "StrategyUnknown"
    """The placement strategy is a plug-in that is not installed."""
    UNSCHEDULABLE = "Unschedulable"
    """Complete, but the quorum does not fit into the capacity that is free now."""
    SEARCH_EXHAUSTED = "SearchExhausted"
    """Complete, but the search for nodes reached its limit before it found enough for the quorum; it may have missed
    some."""
    NOT_ITS_TURN = "NotItsTurn"
    """An earlier group of the same instance group waits for room and may not be overtaken."""
    HOLD_LIMIT = "HoldLimit"
    """Placeholders were kept for as long as the setting maxHoldTime allows, and were released."""
    NAMESPACE_LIMIT = "NamespaceLimit"
    """The namespace has reached a limit of namespaceLimits, on waiting groups or on reservations by placeholders."""
    NEVER_FITS = "NeverFits"
    """It is proven that the quorum would not fit onto the present nodes even if they were empty, ready and uncordoned.
    On a member's condition: a new node could not help either, because the members without a place accept nodes by name
    only."""
    SURPLUS = "AboveMaxMember"
    """The member is beyond maxMember."""
    TIMED_OUT = "TimedOut"
    """maxScheduleTime passed before the quorum could be bound."""
    GANG_FAILED = "GangFailed"
    """The group timed out under timeoutPolicy Fail, or the run ended with fewer successes than the minimum, because
    members or their workload failed."""
    BINDING = "Binding"
    """The quorum's bindings are in flight."""
    BINDING_REFUSED = "BindingRefused"
    """The API server refused a member's binding, or the volumes or devices of a member of a scheduled group were not
    ready in time; it is retried, or the member is placed on another node."""
    PODS_FAIL = "PodsFailAtOnce"
    """Pods like these were rejected by the kubelet, or failed as soon as they ran: none is bound there for a while. The
    message quotes the last one."""
    PLACES_HELD = "PlacesHeld"
    """Nodes are reserved for members that do not exist yet; those that exist are bound."""
    TEMPLATE_MISMATCH = "TemplateMismatch"
    """A member fits none of the placeholders of its role, and is placed elsewhere."""
    SCHEDULED = "Scheduled"
    """The quorum is bound."""
    SUCCEEDED = "Succeeded"
    """The run ended with at least as many successes as the minimum."""
    SUSPENDED = "Suspended"
    """The group has no members, because their workload is suspended or scaled to 0."""
    BINDING_UNDONE = "BindingUndone"
    """Part of the quorum was bound, and the rest could not be bound in time; the bound members are or were evicted."""
    PARTLY_BOUND = "PartlyBound"
    """Members are bound without the rest of their quorum and cannot be evicted without loss."""
    EVICTION_REFUSED = "EvictionRefused"
    """Members have to be evicted, but the API server refuses, most often because of a PodDisruptionBudget."""
    RESTARTING = "Restarting"
    """The group fell below its minimum and onDegraded is Restart: all its members are being evicted."""
    MEMBERS_MISSING = "MembersMissing"
    """Fewer members are bound than the minimum: some were lost, or were not created while their places were held."""
    MINIMUM_RAISED = "MinimumRaised"
    """The minimum was raised after the group was scheduled, and the additional members are not bound yet."""
    HEALTHY = "Healthy"
    """A scheduled group has at least its minimum bound."""
    NO_MEMBERS = "NoMembers"
    """No pod names the PodGroup yet, or all that did were deleted."""
    SEVERAL_OWNERS = "SeveralOwners"
    """Pods of several owners name the group; the setting ownerGuard decides whether only those of the first owner are
    its members."""
    BINDINGS_REFUSED = "BindingsRefused"
    """The reason of an Event on a Node: pods were refused there that another node accepted, or pods of several
    namespaces; other nodes are preferred for a while."""
    INTERNAL_ERROR = "InternalError"
    """gangsched failed on this group because of a bug of its own. The group is parked for a while; others continue."""
    NATIVE_GROUP_IGNORED = "NativeGroupIgnored"
    """The reason of an Event: the pods also name a PodGroup of scheduling.k8s.io, which is ignored because they name
    another group too, or because their controller added it to an automatic gang."""
    FIELDS_IGNORED = "FieldsIgnored"
    """The reason of an Event: the group's object or pods set fields of another system that gangsched does not honour,
    and that may change where or when members run; docs/dialects.md and docs/gangs.md describe each."""
    NO_GANG = "NoGang"
    """The reason of an Event on a pod: the pods of its workload are scheduled one by one; the note says how to change
    that."""
    FOREIGN_MEMBER = "ForeignMember"
    """A pod of another scheduler names the group; it is not a member."""


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
    VOLUME_IN_USE = "VolumeInUse"
    """Another pod uses a volume or disk of the member that only one pod may use, anywhere or on that node."""
    VOLUME_DRIVER = "VolumeDriverMissing"
    """The node lacks the CSI driver of a volume of the member, and the driver's CSIDriver object keeps pods away from
    such nodes (`preventPodSchedulingIfMissing`)."""
    VOLUME_LIMIT = "TooManyVolumes"
    """The node can attach no more volumes of the member's CSI driver."""
    VOLUME_CLAIM = "VolumeClaimNotReady"
    """The member cannot be placed with one of its PersistentVolumeClaims, which does not exist, is lost, being deleted
    or not bound. This does not depend on the node: all nodes refuse."""
    VOLUME_AFFINITY = "VolumeNodeAffinityMismatch"
    """The node affinity of a PersistentVolume of the member does not match the node."""
    VOLUME_SHORTAGE = "NoVolumeToBind"
    """The node has no PersistentVolume left that a claim of the member could be bound to, and none is provisioned
    there."""
    STORAGE_CAPACITY = "InsufficientStorage"
    """The CSIStorageCapacity objects that select the node show too little storage for a volume that a claim of the
    member asks for, after what is promised to members placed before it."""
    DEVICE_CLAIM = "ResourceClaimNotReady"
    """The member cannot be placed with one of its ResourceClaims, which does not exist, is being deleted or cannot be
    allocated. This does not depend on the node: all nodes refuse."""
    DEVICE_SELECTOR = "DeviceSelectorFails"
    """An expression of a ResourceClaim or DeviceClass cannot be evaluated for some device: all nodes refuse."""
    DEVICE_AFFINITY = "DevicesElsewhere"
    """The devices allocated to a ResourceClaim of the member cannot be used on the node."""
    DEVICES = "InsufficientDevices"
    """The node has too few free devices of those that the member's ResourceClaims ask for."""
    DEVICE_RESOURCE = "ResourceOfDeviceClass"
    """The node does not list an extended resource that other nodes list and that a DeviceClass provides: devices
    provide it only if no node lists it."""
    VOLUME_ZONE = "VolumeZoneMismatch"
    """The node is not in the zone or region that the labels of a PersistentVolume of the member name."""
    INSUFFICIENT = "Insufficient"
    """Too little of a resource is free on the node."""
    TOO_MANY_PODS = "TooManyPods"
    """The node runs as many pods as it allows."""
    DOMAIN = "OutsideTopologyDomain"
    """The group's members must all be in one topology domain, and the node is outside the one that was tried: the one
    with members already, otherwise the one with most room."""
    ANTI_AFFINITY = "AntiAffinityOfExistingPod"
    """The required anti-affinity of a pod on the node, or in its topology domain, excludes the member."""
    POD_AFFINITY = "PodAffinityMismatch"
    """The member's required pod affinity matches no pod on the node or in its topology domain."""
    POD_ANTI_AFFINITY = "PodAntiAffinityMismatch"
    """The member's own required anti-affinity matches a pod on the node or in its topology domain."""
    SPREAD = "TopologySpreadExceeded"
    """One more member in the node's topology domain would exceed maxSkew of a topology spread constraint."""
    SPREAD_LABEL = "TopologySpreadLabelMissing"
    """The node does not have the label that a topology spread constraint asks for."""
    FEATURE = "FeatureNotDeclared"
    """The member needs a node feature that the node's kubelet does not declare."""
