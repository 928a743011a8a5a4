"""Reasons, used unchanged in PodGroup status, pod conditions, Events, metrics, the command line and docs.

This module is long because each reason has its meaning and its remedy here, from which docs/reasons.md is made.
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a group is in its present state; the reason of its `Scheduled` or `Degraded` condition.

    Members' `PodScheduled` conditions use the same words, but `NEVER_FITS` appears there as `UNSCHEDULABLE` if a new
    node could help, because an autoscaler can add one and acts on that word alone.

    Each has its meaning and, after `Do:`, what to do about it: docs/reasons.md shows both.
    """

    GANG_INCOMPLETE = "GangIncomplete"
    """Fewer members exist than the group's minimum.

    Do: The message says how many more are needed. Check what should create them: quota, a failing Job, `replicas` below
    `minMember`. A StatefulSet creates its second pod only when the first runs: set its `podManagementPolicy: Parallel`.
    """
    POD_GROUP_NOT_FOUND = "PodGroupNotFound"
    """The pod names a PodGroup (its own system's, or gangsched's) that does not exist, and no pod declares the group's
    minimum itself.

    Do: Create it, or give the pods the key that the message names, such as the annotation `gangsched.io/min-member`. If
    `kubectl api-resources` does not list the kind, the API server does not serve it: install its CRD first, which
    gangsched looks for every five seconds (for tenstack's see docs/migrate/tenstack.md).
    """
    POD_GROUP_UNREADABLE = "PodGroupUnreadable"
    """The pod names a PodGroup of another system, which gangsched may not read or has not been able to list.

    Do: Name the system in the chart's value `dialects`, or grant the verbs list and watch; the message names the kind.
    It takes effect within half a minute.
    """
    OWNER_UNKNOWN = "OwnerUnknown"
    """The pod names no group. The object of its Job or other workload, which may ask for one, has not been seen yet.

    Do: The message says why: the object does not exist, the API server has not listed its kind yet, or a right is
    missing. Create the object, or grant the right.
    """
    PRIORITY_CLASS_NOT_FOUND = "PriorityClassNotFound"
    """The PodGroup names a PriorityClass that does not exist.

    Do: Create it, or name another.
    """
    ROLE_UNKNOWN = "RoleUnknown"
    """A member names a role that the group does not have.

    Do: Correct the pod's label `gangsched.io/role`, or add the role to the PodGroup.
    """
    CONTRADICTION = "Contradiction"
    """Two sources of the group's declaration differ: its PodGroup and its pods, or two dialects on one or more pods.

    Do: The message says what differs: make it equal, or remove one of the sources.
    """
    INVALID_DECLARATION = "InvalidDeclaration"
    """A declaration (the PodGroup's spec or a pod's annotations) cannot be read.

    Do: The message says what is wrong and what to write.
    """
    NOT_SUPPORTED = "NotSupported"
    """A member or the PodGroup uses a feature that this version does not support; the message names it.

    Do: Do without what the message names.
    """
    NAMESPACE_TERMINATING = "NamespaceTerminating"
    """The group's namespace is being deleted: the API server refuses new pods and bindings there.

    Do: Nothing, or create the group in another namespace. If the namespace stays for long, the conditions in its status
    say what keeps it, such as a finalizer.
    """
    PRE_BINDING = "PreBinding"
    """Nodes are reserved for the quorum. Its volumes and devices are prepared there before its members are bound.

    Do: Nothing at first; it lasts for up to `preBindTimeout`. If it lasts long, look at the claim or volume that the
    message names, and at the driver that provisions it.
    """
    VOLUME_NOT_READY = "VolumeNotReady"
    """A PersistentVolumeClaim that the quorum needs does not exist, is lost, is being deleted or is not bound.

    Do: The message names pod, claim and what to do. The group is tried as soon as the claim changes.
    """
    RESOURCE_CLAIM_NOT_READY = "ResourceClaimNotReady"
    """A ResourceClaim that the quorum needs does not exist, is being deleted, is shared by the maximum number of pods,
    or names a DeviceClass that does not exist.

    Do: The message names pod, claim and what to do.
    """
    STRATEGY_UNKNOWN = "StrategyUnknown"
    """The placement strategy is a plug-in that is not installed.

    Do: Install the plug-in that provides it, or name one of the strategies in the message.
    """
    UNSCHEDULABLE = "Unschedulable"
    """Complete, but the quorum does not fit into the capacity that is free now.

    Do: Wait, free something, or add nodes. The message names the largest number that fits, the resource, how many nodes
    refuse and why, and which groups hold what is missing.
    """
    SEARCH_EXHAUSTED = "SearchExhausted"
    """Complete, but the search for nodes reached its limit before it found enough for the quorum; it may have missed
    some.

    Do: Give members equal requests where possible, lower `minMember`, or free something: the group is tried again as
    soon as something changes. It concerns many members of different sizes on nodes that they would fill nearly
    completely. Members say `Unschedulable`, so that autoscalers act.
    """
    NOT_ITS_TURN = "NotItsTurn"
    """An earlier group of the same instance group waits for room and may not be overtaken.

    Do: Nothing, or make room for that one; `fifo` in docs/configuration.md says where the order is strict.
    """
    HOLD_LIMIT = "HoldLimit"
    """Placeholders were kept for as long as the setting maxHoldTime allows, and were released.

    Do: Create the members: they are bound as soon as there is room. Bound members stay. docs/templates.md#caps has the
    limits.
    """
    NAMESPACE_LIMIT = "NamespaceLimit"
    """The namespace has reached a limit of namespaceLimits, on waiting groups or on reservations by placeholders.

    Do: The message names the limit and the use. Create members at once, lower minima of roles with templates, delete
    groups that are not needed, or have `namespaceLimits` raised.
    """
    NEVER_FITS = "NeverFits"
    """It is proven that the quorum would not fit onto the present nodes even if they were empty, ready and uncordoned.
    It stays the reason in the phase TimedOut too. On a member's condition: a new node could not help either, because
    the members without a place accept nodes by name only.

    Do: Add nodes, ask for less, or lower `minMember`. `status.demand` says what new nodes must bring. Autoscalers can
    act: the members say `Unschedulable`, except where a new node would not help; then the message says so.
    """
    SURPLUS = "AboveMaxMember"
    """The member is beyond maxMember.

    Do: Nothing, or raise `maxMember`.
    """
    TIMED_OUT = "TimedOut"
    """maxScheduleTime passed before the quorum could be bound.

    Do: Nothing: the group is tried again after a back-off, and at once when something frees what it lacks.
    """
    GANG_FAILED = "GangFailed"
    """The group timed out under timeoutPolicy Fail, or the run ended with fewer successes than the minimum, because
    members or their workload failed.

    Do: Change the PodGroup's spec, or delete its pods.
    """
    BINDING = "Binding"
    """The quorum's bindings are in flight.

    Do: Nothing. If it lasts, the message quotes what the API server refuses.
    """
    BINDING_REFUSED = "BindingRefused"
    """The API server refused a member's binding, or the volumes or devices of a member of a scheduled group were not
    ready in time; it is retried, or the member is placed on another node.

    Do: The message says which. For volumes, see `PreBinding`. Otherwise it quotes the server, most often an admission
    policy, and names a pod that is refused wherever it is tried: have its binding allowed, or delete it. Such a group
    holds nothing and tries that pod first. If nodes refuse, others are used; Events `BindingsRefused` on them say so.
    """
    PODS_FAIL = "PodsFailAtOnce"
    """Pods like these were rejected by the kubelet, or failed as soon as they ran: none is bound there for a while. The
    message quotes the last one.

    Do: Find the cause on the node or in the pod template: the message quotes the kubelet, such as
    `TopologyAffinityError`, or names container and exit code. The group, or the controller of pods without a group,
    leaves that node alone for 10 s, doubling to 32 min, and at most five of its pods fail there in five minutes. If its
    pods fail on several nodes and run on none, it waits everywhere. A change of the template or of the PodGroup's spec
    ends the pause at once, a change of the node as soon as the five failures permit; so do pods that run for more than
    ten seconds. Room on another node is used at any time.
    """
    PLACES_HELD = "PlacesHeld"
    """Nodes are reserved for members that do not exist yet; those that exist are bound.

    Do: Nothing, unless the others are never created: check what should create them, for a Spark driver its log.
    docs/templates.md describes such members.
    """
    TEMPLATE_MISMATCH = "TemplateMismatch"
    """A member fits none of the placeholders of its role, and is placed elsewhere.

    Do: Make the role's template request what its pods request.
    """
    SCHEDULED = "Scheduled"
    """The quorum is bound.

    Do: Nothing.
    """
    SUCCEEDED = "Succeeded"
    """The run ended with at least as many successes as the minimum.

    Do: Nothing.
    """
    SUSPENDED = "Suspended"
    """The group has no members, because their workload is suspended or scaled to 0.

    Do: Resume it or scale it up; the message names it. If Kueue has suspended it, wait for its queue.
    """
    BINDING_UNDONE = "BindingUndone"
    """Part of the quorum was bound, and the rest could not be bound in time; the bound members are or were evicted.

    Do: Nothing: the group is tried again after a back-off.
    """
    PARTLY_BOUND = "PartlyBound"
    """Members are bound without the rest of their quorum and cannot be evicted without loss.

    Do: Delete the members that the message names to free their nodes, or make room so that the rest can be bound. The
    message says why they stay.
    """
    WAITS_FOR_VICTIMS = "WaitsForVictims"
    """Complete, and its places are reserved; pods of lower priority leave them.

    Do: Nothing: it is bound as soon as they have left, which takes at most their grace periods. docs/preemption.md has
    the rules.
    """
    RESERVED_LATER = "ReservedLater"
    """Complete, and its places are reserved from a later time on, when others there will have ended.

    Do: Nothing: it is bound as soon as they have ended, or earlier if there is room elsewhere. If nobody knows the
    time, limit what runs there (`activeDeadlineSeconds`) or declare how long it runs (`expectedRunTime`). Members say
    `Unschedulable`, so that autoscalers act. docs/backfill.md has the rules.
    """
    NOT_BEFORE_RESERVATION = "NotBeforeReservation"
    """Complete, and it would fit, but only on nodes that are reserved for a group that has waited for long.

    Do: Wait, add nodes, or declare that it ends in time: `expectedRunTime` in its PodGroup, or `activeDeadlineSeconds`
    of its pods, up to the time that the message names. docs/backfill.md has the rules.
    """
    RESERVATION_MOVED = "ReservationMoved"
    """The reason of an Event: the group has other places reserved than before, or another start.

    Do: Nothing: the note says why. docs/backfill.md lists the causes.
    """
    BACKFILLED = "Backfilled"
    """The reason of an Event: the group uses nodes that are reserved for another one later, because it ends before.

    Do: Nothing, if its run time is declared well: once it has lasted longer and the other group waits for nothing else,
    all of its members are evicted.
    """
    PREEMPTION_REFUSED = "PreemptionRefused"
    """The reason of an Event: pods were to leave for the group, and the API server refuses to evict one of them.

    Do: The note quotes the API server. Others are looked for; most often a PodDisruptionBudget forbids the eviction.
    """
    ROOM_LOST = "RoomLost"
    """The reason of an Event: pods have left for the group, but another scheduler has taken their room.

    Do: Keep other schedulers off these nodes, for example with a taint; the group is planned again after a pause.
    """
    PREEMPTED = "Preempted"
    """All members leave or have left, because a group of higher priority needs their nodes, or because they have run
    for longer than declared.

    Do: Nothing: members that their controller creates again are bound as a whole as soon as there is room. A
    PriorityClass decides who is before whom.
    """
    EVICTION_REFUSED = "EvictionRefused"
    """Members have to be evicted, but the API server refuses, most often because of a PodDisruptionBudget.

    Do: The message quotes the API server, and the evictions are retried. Change the budget that forbids them, or delete
    the bound members to free their nodes.
    """
    RESTARTING = "Restarting"
    """The group fell below its minimum and onDegraded is Restart: all its members are being evicted.

    Do: Nothing: the whole group starts over.
    """
    MEMBERS_MISSING = "MembersMissing"
    """Fewer members are bound than the minimum: some were lost, or were not created while their places were held.

    Do: Create the missing members: they are bound before everything else.
    """
    MINIMUM_RAISED = "MinimumRaised"
    """The minimum was raised after the group was scheduled, and the additional members are not bound yet.

    Do: Create the additional members if they do not exist, or lower the minimum.
    """
    HEALTHY = "Healthy"
    """A scheduled group has at least its minimum bound.

    Do: Nothing.
    """
    NO_MEMBERS = "NoMembers"
    """No pod names the PodGroup yet, or all that did were deleted.

    Do: Check the label in the pod template, and whether the workload still exists.
    """
    SEVERAL_OWNERS = "SeveralOwners"
    """The reason of an Event on a group whose name pods of several owners use, unless the setting ownerGuard is Off; or
    of a pod whose owner was deleted while another object has its name: it is no member.

    Do: Give the groups different names, or give each owner's pods a role; docs/adr/0014-owners.md says which owners
    count as one.
    """
    TOPOLOGY_BROKEN = "TopologyBroken"
    """The reason of an Event: a group that requires one domain of a node label has members in several and gets another
    one, which goes to the domain with most of them. Others have bound members, the label of a node was changed, or the
    group requires it only since then.

    Do: Correct the label of the node, or delete the members outside one domain: once created again, they are bound in
    the domain that has most members.
    """
    BINDINGS_REFUSED = "BindingsRefused"
    """The reason of an Event on a Node: pods were refused there that another node accepted, or pods of several
    namespaces; other nodes are preferred for a while.

    Do: Fix the cause, which the Event quotes. The first pod that is accepted there ends this.
    """
    INTERNAL_ERROR = "InternalError"
    """gangsched failed on this group because of a bug of its own. The group is parked for a while; others continue.

    Do: Report it: the log has a line with the group's name and a traceback. The group is parked for a minute, doubling
    to an hour, and is tried again immediately after a change of the PodGroup's spec, and soon after a change of its
    members. Members of an incomplete quorum were evicted; a scheduled group keeps its members and is not repaired in
    the meantime.
    """
    NATIVE_GROUP_IGNORED = "NativeGroupIgnored"
    """The reason of an Event: the pods also name a PodGroup of scheduling.k8s.io, which is ignored because they name
    another group too, or because their controller added it to an automatic gang.

    Do: Nothing, if the other group is the one that you mean. Otherwise name only the one that counts.
    """
    FIELDS_IGNORED = "FieldsIgnored"
    """The reason of an Event: the group's object or pods set fields of another system that gangsched does not honour,
    and that may change where or when members run; docs/dialects.md and docs/gangs.md describe each.

    Do: Read there what the fields that the Event names would change.
    """
    NO_GANG = "NoGang"
    """The reason of an Event on a pod: the pods of its workload are scheduled one by one; the note says how to change
    that.

    Do: Nothing, if that is intended. Otherwise do what the note says.
    """
    FOREIGN_MEMBER = "ForeignMember"
    """A pod of another scheduler names the group; it is not a member.

    Do: Set its schedulerName to the one that the Event names, or remove the group's name from the pod.
    """


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
