"""All that may leave for others at one moment, and why other pods may not."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from gangsched.core.cluster.claims import Claim
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.planning.removable import Removable

OVERDUE_S = 60.0
"""So many seconds after a pod should be gone, it counts as one that stays."""


class Obstacle(StrEnum):
    """Why a pod may not leave: for any group or, the first three, for one that asks."""

    PRIORITY = "Priority"
    """The priority of its group, or its own, is not lower."""
    BUDGET = "Budget"
    """A PodDisruptionBudget does not allow the eviction of all that would leave with it."""
    REFUSED = "Refused"
    """A short time ago the API server has refused its eviction, or it has left for the group in vain."""

    SCHEDULER = "Scheduler"
    """Another scheduler, or another installation, placed it."""
    NODE = "Node"
    """It belongs to its node or to a DaemonSet, or is critical for the system."""
    BUDGETS = "Budgets"
    """More than one PodDisruptionBudget covers it."""
    PROTECTED = "Protected"
    """Its group has not run for long enough."""
    UNCONTROLLED = "Uncontrolled"
    """No controller would create it again, or its Job would count a failure."""
    IN_FLIGHT = "InFlight"
    """Its group is being bound, or leaves already."""


class Victim(NamedTuple):
    """Whose pods a unit has: of a gang or, with None, one without a group. `whole`: all members of the gang.

    The reservations that are `held` for members of the gang, by UID, are given up with them.
    """

    gang: GroupKey | None
    uids: frozenset[str]
    whole: bool
    held: frozenset[str] = frozenset()


class Pool(NamedTuple):
    """Everything that may leave: the units as `removable`, and `victims` by the names of the units.

    `leaving` are the claims, by UID, of pods that leave already; the first of those that terminate should be gone
    `gone_by`, in epoch seconds (infinity if that is not known of any). `obstacles` counts pods that may not leave, by
    why. `nodes` is the number of changes of nodes before it.
    """

    removable: Removable
    victims: Mapping[str, Victim]
    leaving: Mapping[str, Claim]
    gone_by: float
    obstacles: Mapping[Obstacle, int]
    nodes: int

    def about_to_go(self, now: float) -> Mapping[str, Claim]:
        """Those of the pods that leave that have not been overdue for OVERDUE_S."""
        if now < self.gone_by + OVERDUE_S:
            return self.leaving
        return {uid: claim for uid, claim in self.leaving.items() if now < _overdue_at(claim)}

    def protected_until(self, now: float) -> float:
        """When the first of those that are protected is not any more, in epoch seconds; infinity if none is."""
        return self.removable.next_change(now)

    def until(self, now: float) -> float:
        """From when on more may leave, or fewer, though nothing has happened, in epoch seconds."""
        first = self.gone_by + OVERDUE_S
        if first <= now:
            later = (end for end in map(_overdue_at, self.leaving.values()) if end > now)
            first = min(later, default=float("inf"))
        return min(self.protected_until(now), first)


def _overdue_at(claim: Claim) -> float:
    """When a terminating pod counts as one that stays, in epoch seconds; infinity if that is unknown."""
    return claim.pod.gone_by + OVERDUE_S if claim.pod.gone_by else float("inf")
