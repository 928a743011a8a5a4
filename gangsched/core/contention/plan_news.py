"""What is to be told about plans since it was last asked for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Pod


class PlanNews:
    """`told` are single pods that leave, each with the group for which they do, and whether they are overdue.

    `lost` are groups whose plans came to nothing, each with what the API server said if it refused; `moved` those with
    other places reserved for later, each with how their last plan ended; `lasted_s` for how many seconds plans were
    open that have had their places. `lost_work` only grows: the resource-seconds of those that were told to leave.
    """

    def __init__(self) -> None:
        self.told: list[tuple[Pod, GroupKey, bool]] = []
        self.lost: list[tuple[GroupKey, str]] = []
        self.moved: list[tuple[GroupKey, str]] = []
        self.lasted_s: list[float] = []
        self.lost_work: defaultdict[str, float] = defaultdict(float)

    def note_lost(self, pods: Iterable[Pod], now: float) -> None:
        """Count the work that is lost with these pods."""
        for pod in pods:
            for resource, amount in pod.shape.requests:
                self.lost_work[resource] += amount * (now - (pod.bound_at or now))

    def take_told(self) -> list[tuple[Pod, GroupKey, bool]]:
        """Those since the last call."""
        told, self.told = self.told, []
        return told

    def take_lost(self) -> list[tuple[GroupKey, str]]:
        """Those since the last call."""
        lost, self.lost = self.lost, []
        return lost

    def take_moved(self) -> list[tuple[GroupKey, str]]:
        """Those since the last call."""
        moved, self.moved = self.moved, []
        return moved

    def take_lasted(self) -> list[float]:
        """Those since the last call."""
        lasted_s, self.lasted_s = self.lasted_s, []
        return lasted_s
