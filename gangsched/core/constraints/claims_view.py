"""The interface by which constraints read volume claims and volumes; implemented in `cluster/volume_index.py`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.prebindings import Prebinding, Taken
from gangsched.core.objects.shape import Attachment
from gangsched.core.objects.volumes import (
    StorageCapacity,
    StorageClass,
    StorageKey,
    Unready,
    Volume,
    VolumeClaim,
    Wanted,
)


class Stock(Protocol):
    """The amounts that nodes have of each resource (rows × columns), including pods; `names` of nodes by row."""

    names: list[str]
    columns: dict[str, int]
    free: IntArray
    allocatable: IntArray

    def column(self, resource: str) -> int | None:
        """The resource's column; None if no node has any of it."""

    def free_of(self, row: int, resource: str) -> int:
        """The exact free amount of the resource on the row."""

    def delegated(self) -> frozenset[str]:
        """The resources that no node lists and that devices provide instead."""


class Storage(Protocol):
    """The known volume claims and volumes; see `cluster/volume_index.py`."""

    limits: dict[str, Mapping[str, int]]
    installed: dict[str, Collection[str]]
    demanding: set[str]
    contested: set[StorageKey]

    @property
    def matter(self) -> bool:
        """Whether there are any claims."""

    @property
    def limited(self) -> Collection[str]:
        """The drivers for which some node limits the number of attached volumes."""

    def unready(self, pod: Pod) -> Unready | None:
        """The first claim that keeps the pod from being placed; None if there is none."""

    def volumes(self, pod: Pod, *, own: bool = True) -> Iterator[Volume]:
        """The existing volumes of the pod's claims; with `own`, also those of its ephemeral volumes."""

    def attachment(self, key: StorageKey) -> Attachment | None:
        """The attachment that the claim counts as on a node."""

    def is_shared(self, key: StorageKey, attachment: Attachment) -> bool:
        """Whether another known pod may count as the same attachment."""

    def is_single(self, pod: Pod) -> bool:
        """Whether one of the pod's claims is for a single pod."""

    def wants(self, pod: Pod) -> Sequence[tuple[Wanted, VolumeClaim]]:
        """The pod's claims that wait for its node, with their requirements on volumes, the smallest first."""

    def choices(self, wanted: Wanted) -> Sequence[Volume]:
        """The volumes to which a claim with these requirements may be bound, on whichever nodes; the best first."""

    def capacities(self, storage_class: str) -> Sequence[StorageCapacity] | None:
        """The storage capacity for volumes of the class; None if its driver does not publish it."""

    def promises(
        self, storage_class: str, pending_prebindings: Mapping[Taken, Mapping[str, Prebinding]]
    ) -> Sequence[tuple[str, int]]:
        """The volumes of the class that gangsched has ordered and that do not exist yet: their nodes and sizes."""

    def volume(self, name: str) -> Volume | None:
        """The volume of this name."""

    def storage_class(self, name: str) -> StorageClass | None:
        """The class of this name."""
