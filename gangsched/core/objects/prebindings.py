"""Pre-bindings: writes to other objects that must have taken effect before a member may be bound to its node.

A plan yields a small tuple of these values for each member. The stage (`core.gang.prebinding`) has them written and
waits for them without knowing their kinds. A new kind needs a class here, a function that judges its progress
(`Prebindings.state_of`), one that writes and undoes it (`kube.prebinding`), and the constraint that plans it.
"""

from __future__ import annotations

from enum import Enum, auto

from msgspec import Struct
from msgspec.structs import replace

from gangsched.core.objects.devices import Allocation, Consumer, Making, ResourceClaim

Taken = tuple[str, str, str]
"""An object that one pre-binding at a time may take: its kind, namespace and name."""


class Prebinding(Struct, frozen=True, gc=False, tag=True, tag_field="prebinding"):
    """One write to another object, for a member's node."""

    @property
    def takes(self) -> tuple[Taken, ...]:
        """The objects that stay reserved for the member while the write is planned, in flight or unconfirmed."""
        raise NotImplementedError

    @property
    def writes(self) -> tuple[str, ...]:
        """The location of the write. Another pre-binding with the same one replaces it; undoing either undoes both."""
        return self.takes[0]

    @property
    def awaited(self) -> str:
        """What is awaited, as a sentence without its full stop."""
        raise NotImplementedError


class OfClaim(Prebinding, frozen=True):
    """A pre-binding that concerns only the PersistentVolumeClaim with this UID."""

    namespace: str
    claim: str
    uid: str

    @property
    def takes(self) -> tuple[Taken, ...]:
        """The claim."""
        return (("PersistentVolumeClaim", self.namespace, self.claim),)


class SelectNode(OfClaim, frozen=True):
    """Has a volume provisioned on the node for the claim.

    `node` is empty if the watch shows a claim whose provisioner has given up.
    """

    node: str

    @property
    def awaited(self) -> str:
        """The volume."""
        return f"a volume for the PersistentVolumeClaim {self.claim} is being provisioned for node {self.node}"


class ClaimVolume(Prebinding, frozen=True):
    """Has the volume bound to the claim with this UID.

    The claim is empty if the watch shows a volume that was unbound again.
    """

    volume: str
    namespace: str
    claim: str
    uid: str

    @property
    def takes(self) -> tuple[Taken, ...]:
        """The volume and the claim."""
        return ("PersistentVolume", "", self.volume), ("PersistentVolumeClaim", self.namespace, self.claim)

    @property
    def awaited(self) -> str:
        """The binding of the two to each other."""
        return f"the PersistentVolumeClaim {self.claim} is being bound to the PersistentVolume {self.volume}"


class ShareVolume(OfClaim, frozen=True):
    """Writes nothing, but waits until the claim, which another member has prepared, is bound."""

    @property
    def awaited(self) -> str:
        """The volume."""
        return f"the PersistentVolumeClaim {self.claim}, which members share, is being bound"


class ClaimConfigured(Struct, frozen=True, gc=False):
    """Parameters, as JSON, for the drivers of these requests; `source` is `FromClass` or `FromClaim`."""

    source: str
    requests: tuple[str, ...]
    config: str


class UseDevices(Prebinding, frozen=True):
    """Allocates these devices to the claim with this UID, and reserves it for the consumer.

    That is the member, or a PodGroup that shares the claim, whose members then have equal pre-bindings. It is `NOBODY`
    if the watch shows a claim with gangsched's mark and no devices. `config` does not matter to whether the claim has
    the devices. With `making`, the claim is created first if it does not exist, and deleted when undone.
    """

    namespace: str
    claim: str
    uid: str
    consumer: Consumer
    allocation: Allocation
    config: tuple[ClaimConfigured, ...] = ()
    making: Making | None = None

    @property
    def takes(self) -> tuple[Taken, ...]:
        """The claim, and the devices that it has as a whole."""
        devices = [device.device for device in self.allocation.devices if device.exclusive]
        return (
            ("ResourceClaim", self.namespace, self.claim),
            *(("Device", f"{driver}/{pool}", name) for driver, pool, name in devices),
        )

    @property
    def writes(self) -> tuple[str, ...]:
        """The reservation for the consumer."""
        return (*self.takes[0], self.consumer.uid)

    @property
    def awaited(self) -> str:
        """The allocation, and what the devices must report before a pod may be bound."""
        kind = "PodGroup" if self.consumer.group else "pod"
        text = f"the ResourceClaim {self.claim} is being allocated and reserved for {kind} {self.consumer.name}"
        names = dict.fromkeys(name for device in self.allocation.devices for name in device.binding)
        return f"{text}, until its devices report {', '.join(names)}" if names else text


def reserved(claim: ResourceClaim, use: UseDevices) -> ResourceClaim:
    """The claim as it is once it is reserved for the consumer."""
    users = tuple(dict.fromkeys((*claim.reserved, use.consumer.uid)))
    groups = dict.fromkeys((*claim.sharing, use.consumer)) if use.consumer.group else claim.sharing
    return replace(claim, reserved=users, sharing=tuple(groups))


class PrebindingState(Enum):
    """The progress of a pre-binding, as the watches show it."""

    OPEN = auto()
    """Nothing is written."""
    MADE = auto()
    """It is written, and a controller has yet to act on it."""
    GIVEN_UP = auto()
    """It was written, and the controller that had to act on it has reverted it."""
    DONE = auto()
    """It is complete: the member may be bound."""
    LOST = auto()
    """It can never be completed: the object is gone, or was taken by another."""
