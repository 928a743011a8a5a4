"""What constraints may ask about devices; `cluster/devices.py` answers."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Protocol

from gangsched.core.objects.devices import (
    DeviceClass,
    DeviceKey,
    Making,
    ObjectKey,
    ResourceClaim,
    ResourceSlice,
    UnreadyClaim,
)
from gangsched.core.objects.pod import Pod


class DeviceStore(Protocol):
    """What constraints may ask about devices; `cluster/devices.py` answers."""

    @property
    def generation(self) -> int:
        """Grows with each change of slices and classes."""

    @property
    def in_use(self) -> Mapping[DeviceKey, int]:
        """How many claims have a device, but for admin access."""

    @property
    def matter(self) -> bool:
        """Whether there are any claims."""

    def unready(self, pod: Pod) -> UnreadyClaim | None:
        """The first claim with which the pod cannot be placed; None if it can with all of them."""

    def claims(self, pod: Pod) -> list[ResourceClaim]:
        """The pod's claims, each once, as far as they exist."""

    def is_shared(self, key: ObjectKey) -> bool:
        """Whether several known pods use the claim."""

    def device_class(self, name: str) -> DeviceClass | None:
        """The class of this name."""

    @property
    def provided(self) -> Mapping[str, str]:
        """The DeviceClass of each extended resource for which devices can stand."""

    def making(self, pod: Pod, delegated: Container[str]) -> tuple[ResourceClaim, Making] | None:
        """The claim for those of its extended resources that are `delegated`, as it exists or would be made."""

    def pools(self) -> list[tuple[tuple[ResourceSlice, ...], bool]]:
        """The slices of the newest generation of each pool, and whether they are all there."""
