"""What the executor needs of the world outside: calls to the API server, and something that wakes it later."""

from __future__ import annotations

from typing import Protocol

from gangsched.core.objects.effects import (
    BindPod,
    DropDemand,
    EmitEvent,
    EvictPod,
    LookUpOwner,
    MakeGroup,
    PatchPodCondition,
    PatchStatus,
    PutDemand,
)
from gangsched.core.objects.events import GroupSeen
from gangsched.core.objects.results import BindRefused, EvictionRefused, GroupNotMade, OwnerSeen, PodBound, PodEvicted
from gangsched.kube.owners import Unanswered
from gangsched.kube.writes import Answer


class Writes(Protocol):
    """One call to the API server each; none raises for anything that the server or the network does."""

    async def bind(self, effect: BindPod) -> PodBound | BindRefused:
        """Bind the pod."""
        ...

    async def evict(self, effect: EvictPod) -> PodEvicted | EvictionRefused:
        """Evict the pod."""
        ...

    async def look_up_owner(self, effect: LookUpOwner) -> OwnerSeen | Unanswered:
        """Read the Job."""
        ...

    async def make_group(self, effect: MakeGroup) -> GroupSeen | GroupNotMade | None:
        """Create the PodGroup; None if one of its name is there already, which a watch will show."""
        ...

    async def patch_status(self, effect: PatchStatus) -> Answer:
        """Write a PodGroup's status."""
        ...

    async def patch_condition(self, effect: PatchPodCondition) -> Answer:
        """Set a pod's `PodScheduled` condition."""
        ...

    async def emit(self, effect: EmitEvent) -> Answer:
        """Create an Event."""
        ...

    async def put_demand(self, effect: PutDemand) -> Answer:
        """Create or change a Demand object."""
        ...

    async def drop_demand(self, effect: DropDemand) -> Answer:
        """Delete a Demand object."""
        ...


class Timer(Protocol):
    """Something that will be done later unless it is cancelled."""

    def cancel(self) -> None:
        """Do not do it."""
        ...
