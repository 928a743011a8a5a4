"""All that may leave for others at one moment, and why other pods may not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from gangsched.core.cluster.claims import Claim
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.planning.removable import Removable


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

    `leaving` are claims of pods that are about to be gone, `obstacles` counts pods that may not leave, by why; some of
    them are protected until `protected_until` at least. It was begun `at` that time; from `until` on, in epoch seconds,
    more may leave, or fewer. `nodes` is the number of changes of nodes before it.
    """

    removable: Removable
    victims: Mapping[str, Victim]
    leaving: Sequence[Claim]
    obstacles: Mapping[Obstacle, int]
    until: float
    protected_until: float
    at: float
    nodes: int
