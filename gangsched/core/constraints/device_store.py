"""The interface by which constraints read devices; implemented in `cluster/device_index.py`."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping
from typing import Protocol

from gangsched.core.constraints.device_shares import Shares
from gangsched.core.objects.devices import Consumer, DeviceClass, Making, ResourceClaim, UnreadyClaim
from gangsched.core.objects.offered_devices import DeviceKey, ObjectKey, ResourceSlice
from gangsched.core.objects.pod import Pod


class DeviceStore(Protocol):
    """The known devices, DeviceClasses and ResourceClaims."""

    @property
    def generation(self) -> int:
        """A number that grows with each change of slices and classes."""

    @property
    def in_use(self) -> Mapping[DeviceKey, int]:
        """The number of claims that hold each device as a whole, except for admin access."""

    @property
    def shares(self) -> Shares:
        """What claims take of the capacities of the devices that they share."""

    def is_allocated(self, key: ObjectKey) -> bool:
        """Whether the claim has its devices."""

    @property
    def matter(self) -> bool:
        """Whether there are any claims."""

    def unready(self, pod: Pod) -> UnreadyClaim | None:
        """The first claim that keeps the pod from being placed; None if there is none."""

    def claims(self, pod: Pod) -> list[ResourceClaim]:
        """The existing claims of the pod, each once."""

    def claim(self, key: ObjectKey) -> ResourceClaim | None:
        """The claim of this namespace and name."""

    def users(self, key: ObjectKey) -> Collection[str]:
        """The UIDs of the known pods that use the claim."""

    def consumer(self, pod: Pod, claim: ObjectKey) -> Consumer:
        """What the claim is reserved for so that the pod may use it: its PodGroup if that shares the claim, or it."""

    def is_scarce(self, key: ObjectKey) -> bool:
        """Whether more known pods use the claim than may still reserve it, if each does so for itself."""

    def is_shared(self, key: ObjectKey) -> bool:
        """Whether several known pods use the claim."""

    def device_class(self, name: str) -> DeviceClass | None:
        """The class of this name."""

    @property
    def provided(self) -> Mapping[str, str]:
        """The DeviceClass of each extended resource that devices can provide."""

    def made(self, pod: Pod) -> list[ResourceClaim]:
        """The claim that was created for the pod's extended resources, if there is one."""

    def making(self, pod: Pod, delegated: Container[str]) -> tuple[ResourceClaim, Making] | None:
        """The claim for the pod's `delegated` extended resources, as it exists or would be created."""

    def withdrawn(self) -> frozenset[str]:
        """The nodes whose drivers have withdrawn a pool; "" if it was of no node."""

    def pools(self) -> list[tuple[ResourceSlice, ...]]:
        """The slices of each pool, of all generations; pools and slices by name."""
