"""All that may leave for others at one moment, and why other pods may not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    """Whose pods a unit has: of a gang or, with None, one without a group. `whole`: all members of the gang."""

    gang: GroupKey | None
    uids: frozenset[str]
    whole: bool


class Pool(NamedTuple):
    """Everything that may leave: the units as `removable`, and `victims` by the names of the units.

    `terminating` are claims of pods that leave already, `obstacles` counts pods that may not leave, by why. `nodes` is
    the number of changes of nodes before it.
    """

    removable: Removable
    victims: Mapping[str, Victim]
    terminating: Sequence[Claim]
    obstacles: Mapping[Obstacle, int]
    nodes: int

    def leaving(self, now: float) -> list[Claim]:
        """The claims of pods that are about to be gone; not of those that should be gone for OVERDUE_S."""
        return [claim for claim in self.terminating if now < _overdue_at(claim)]

    def protected_until(self, now: float) -> float:
        """When the first of those that are protected is not any more, in epoch seconds; infinity if none is."""
        return self.removable.next_change(now)

    def until(self, now: float) -> float:
        """From when on more may leave, or fewer, though nothing has happened, in epoch seconds."""
        ends = [end for claim in self.terminating if (end := _overdue_at(claim)) > now]
        return min(self.protected_until(now), *ends) if ends else self.protected_until(now)


def _overdue_at(claim: Claim) -> float:
    """When a terminating pod counts as one that stays, in epoch seconds; infinity if that is unknown."""
    return claim.pod.gone_by + OVERDUE_S if claim.pod.gone_by else float("inf")
