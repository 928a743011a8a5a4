"""Effects, the outputs of `Machine.handle`: all are imperatives that the shell carries out.

The result of a `BindPod` comes back as `PodBound` or `BindRefused`, that of a `PatchStatus` as `StatusWritten` or
`StatusRefused`, that of an `EvictPod` as `PodEvicted` or `EvictionRefused`, that of a `LookUpOwner` as `OwnerSeen`,
the failure of a `MakeGroup` as `GroupNotMade` (the watch shows its success), that of a `Prebind` as `PrebindRefused`
(likewise). The others report nothing back: they are repeated when a later event shows that they are still due.
"""

from __future__ import annotations

from msgspec import Struct

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.demands import DemandKey, DemandObject
from gangsched.core.objects.podgroup import ForeignPhase, GroupCondition, GroupSpec
from gangsched.core.objects.prebindings import Prebinding
from gangsched.core.objects.status import GroupStatus
from gangsched.core.objects.workload import Reference


class Effect(Struct, frozen=True, gc=False, tag=True, tag_field="effect"):
    """A write or a look-up that the shell is to carry out."""


class BindPod(Effect, frozen=True):
    """Bind the pod with this UID to the node; members `above` their gang's minimum yield to those of quorums."""

    uid: str
    namespace: str
    name: str
    node: str
    above: bool = False


class Prebind(Effect, frozen=True):
    """Write a pre-binding of the pod with this UID, unless another client has written something in its place."""

    uid: str
    prebinding: Prebinding


class UndoPrebinding(Effect, frozen=True):
    """Revert this pre-binding of gangsched, unless it has completed in the meantime."""

    prebinding: Prebinding


class WithdrawBinding(Effect, frozen=True):
    """Drop this binding if it has not been sent yet; its result is then `BindRefused` with `Refused.WITHDRAWN`.

    A binding that has been sent is not affected, and reports its result as usual.
    """

    uid: str
    node: str


class EvictPod(Effect, frozen=True):
    """Evict the pod with this UID through the Eviction API, which respects PodDisruptionBudgets; `cause` says why."""

    uid: str
    namespace: str
    name: str
    cause: str = ""


class LookUpOwner(Effect, frozen=True):
    """Find out whether this Job of batch/v1 replaces evicted members without counting a failure."""

    uid: str
    namespace: str
    name: str


class PatchStatus(Effect, frozen=True):
    """Write a PodGroup's whole status. The newest one wins; at most one write is in flight for a group.

    With `resource_version` set, for a reservation, the write is conditional on it; otherwise it is unconditional.
    """

    key: GroupKey
    uid: str
    status: GroupStatus
    resource_version: str = ""


class MakeGroup(Effect, frozen=True):
    """Create a PodGroup with this spec for a group that has none, owned by the object that declares the group.

    `scheduler` is the schedulerName of the group's pods, which makes the PodGroup ours.
    """

    key: GroupKey
    spec: GroupSpec
    owner: Reference
    scheduler: str = ""


class DeleteGroup(Effect, frozen=True):
    """Delete the PodGroup if it still has this UID and this resourceVersion."""

    key: GroupKey
    uid: str
    resource_version: str


class PatchPodCondition(Effect, frozen=True):
    """Set `PodScheduled=False` with this reason and message on the pod, if it still has this UID.

    `since` is when the condition became False, in epoch seconds; 0.0 if it was False already. `nominated` is the node
    that others leave for it, empty if none does any more; None leaves what the pod says of that.
    """

    uid: str
    namespace: str
    name: str
    reason: str
    message: str
    since: float = 0.0
    nominated: str | None = None


class EmitEvent(Effect, frozen=True):
    """Create a Kubernetes Event on a PodGroup, Pod or Node (without a namespace). `type` is Normal or Warning."""

    kind: str
    namespace: str
    name: str
    uid: str
    type: str
    reason: str
    action: str
    note: str


class PutDemand(Effect, frozen=True):
    """Create this Demand object, or update the one of its name that has this `uid`."""

    demand: DemandObject
    uid: str = ""

    @property
    def key(self) -> DemandKey:
        """The key of the object."""
        return self.demand.key


class DropDemand(Effect, frozen=True):
    """Delete the Demand object with this UID."""

    key: DemandKey
    uid: str


class PutPhase(Effect, frozen=True):
    """Write this phase to another system's PodGroup with this UID, unless another client has written one there."""

    key: GroupKey
    uid: str
    phase: ForeignPhase


class PutCondition(Effect, frozen=True):
    """Set this condition of the native PodGroup with this UID, in this version of the API.

    `since` is the time that it gets, in epoch seconds; 0.0 if it keeps the one that it has.
    """

    key: GroupKey
    uid: str
    condition: GroupCondition
    version: str
    since: float = 0.0
