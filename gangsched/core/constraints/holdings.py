"""What constraints may read of the accounts that the cluster keeps: amounts on nodes, volume claims and volumes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Protocol

from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import Attachment
from gangsched.core.objects.volumes import StorageKey, Unready, Volume


class Stock(Protocol):
    """What nodes have of each resource (rows × columns), including the number of pods; `names` of nodes by row."""

    names: list[str]
    columns: dict[str, int]
    free: IntArray
    allocatable: IntArray

    def column(self, resource: str) -> int | None:
        """The resource's column; None where no node has any of it."""


class Storage(Protocol):
    """What is known of volume claims and volumes; see `cluster/volumes.py`."""

    limits: dict[str, Mapping[str, int]]
    contested: set[StorageKey]

    @property
    def matter(self) -> bool:
        """Whether there are any claims."""

    @property
    def limited(self) -> Collection[str]:
        """The drivers of which some node can attach only so many volumes."""

    def unready(self, pod: Pod) -> Unready | None:
        """The first claim with which the pod cannot be placed; None if it can with all of them."""

    def volumes(self, pod: Pod, *, own: bool = True) -> Iterator[Volume]:
        """The volumes of the pod's claims, as far as they exist; with `own` also of its ephemeral volumes."""

    def attachment(self, key: StorageKey) -> Attachment | None:
        """What the claim counts as on a node."""

    def is_shared(self, key: StorageKey, attachment: Attachment) -> bool:
        """Whether another known pod may count as the same attachment."""

    def is_single(self, pod: Pod) -> bool:
        """Whether one of the pod's claims is for a single pod."""
