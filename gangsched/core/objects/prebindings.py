"""Pre-bindings: what must hold of other objects before a member may be bound to its node.

A plan yields for each member a small tuple of these values, and the stage (`core.gang.prebinding`) has them written and
waits for them without knowing their kinds. Another kind is another class here, the function that judges it
(`Prebindings.standing`), the one that writes and undoes it (`kube.prebinding`), and the constraint that plans it.
"""

from __future__ import annotations

from enum import Enum, auto

from msgspec import Struct

from gangsched.core.objects.devices import Allocation, Making

Taken = tuple[str, str, str]
"""Something that one pre-binding at a time may speak for: a kind of objects, a namespace and a name."""


class Prebinding(Struct, frozen=True, gc=False, tag=True, tag_field="prebinding"):
    """One write to another object, for a member's node."""

    @property
    def takes(self) -> tuple[Taken, ...]:
        """What nobody else may take while it is planned, written or awaited."""
        raise NotImplementedError

    @property
    def writes(self) -> tuple[str, ...]:
        """Where it is written: what another one would write there replaces it, and undoing either undoes both."""
        return self.takes[0]

    @property
    def awaited(self) -> str:
        """What is awaited, as a sentence without its end."""
        raise NotImplementedError


class SelectNode(Prebinding, frozen=True):
    """A volume for this very claim (by UID) is to be provisioned for the node.

    `node` is empty in what the watch shows of a claim whose provisioner has given up.
    """

    namespace: str
    claim: str
    uid: str
    node: str

    @property
    def takes(self) -> tuple[Taken, ...]:
        """The claim."""
        return (("PersistentVolumeClaim", self.namespace, self.claim),)

    @property
    def awaited(self) -> str:
        """The volume."""
        return f"a volume for the PersistentVolumeClaim {self.claim} is being provisioned for node {self.node}"


class ClaimVolume(Prebinding, frozen=True):
    """The volume is to be bound to this very claim (by UID).

    The claim is empty in what the watch shows of a volume that was unbound again.
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
        """That both are bound to each other."""
        return f"the PersistentVolumeClaim {self.claim} is being bound to the PersistentVolume {self.volume}"


class ShareVolume(Prebinding, frozen=True):
    """This very claim (by UID), whose volume another member has bound or provisioned, is bound. Nothing is written."""

    namespace: str
    claim: str
    uid: str

    @property
    def takes(self) -> tuple[Taken, ...]:
        """The claim."""
        return (("PersistentVolumeClaim", self.namespace, self.claim),)

    @property
    def awaited(self) -> str:
        """The volume."""
        return f"the PersistentVolumeClaim {self.claim}, which members share, is being bound"


class ClaimConfigured(Struct, frozen=True, gc=False):
    """What the drivers of these requests are told (JSON), and whether that is `FromClass` or `FromClaim`."""

    source: str
    requests: tuple[str, ...]
    config: str


class UseDevices(Prebinding, frozen=True):
    """This very claim (by UID) is to have these devices, and to be reserved for the pod.

    `config` does not matter to whether it has them. The pod is empty in what the watch shows of a claim that has
    gangsched's mark and no devices. With `making` the claim is made first if it does not exist; what is taken back is
    deleted.
    """

    namespace: str
    claim: str
    uid: str
    pod: str
    pod_uid: str
    allocation: Allocation
    config: tuple[ClaimConfigured, ...] = ()
    making: Making | None = None

    @property
    def takes(self) -> tuple[Taken, ...]:
        """The claim, and the devices that nobody else may have."""
        devices = [each.device for each in self.allocation.devices if not each.admin]
        return (
            ("ResourceClaim", self.namespace, self.claim),
            *(("Device", f"{driver}/{pool}", name) for driver, pool, name in devices),
        )

    @property
    def writes(self) -> tuple[str, ...]:
        """The reservation for the pod."""
        return (*self.takes[0], self.pod_uid)

    @property
    def awaited(self) -> str:
        """The allocation."""
        return f"the ResourceClaim {self.claim} is being allocated and reserved for pod {self.pod}"


class Standing(Enum):
    """How far a pre-binding has come, by what the watches show."""

    OPEN = auto()
    """Nothing is written."""
    MADE = auto()
    """It is written, and others do their part."""
    GIVEN_UP = auto()
    """It was written, and whoever was to do the rest has taken it back."""
    DONE = auto()
    """It holds: the member may be bound."""
    LOST = auto()
    """It can never hold: the object is gone, or was taken by another."""
