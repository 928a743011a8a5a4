"""A PodGroup's status."""

from __future__ import annotations

from msgspec import Struct

from gangsched.core.objects.shape import Amounts


class Place(Struct, frozen=True, gc=False, cache_hash=True):
    """Places held on one node for one role: `pods` are names, `requests` what each of them takes."""

    node: str
    role: str
    count: int
    pods: tuple[str, ...]
    requests: Amounts


class Reservation(Struct, frozen=True, gc=False, cache_hash=True):
    """Places held durably, as `status.reservation` says them."""

    expires: float
    placements: tuple[Place, ...]


class Condition(Struct, frozen=True, gc=False, cache_hash=True):
    """A condition of a PodGroup; `since` is its lastTransitionTime."""

    type: str
    status: bool
    reason: str
    message: str
    since: float
    generation: int = 0


MOST_DEMANDS = 64
"""A status lists at most so many demands."""


class Demand(Struct, frozen=True, gc=False, cache_hash=True):
    """So many members for which new nodes would have to be added, each asking for `requests`.

    `domain` is the value of the label spec.placement.topology that those nodes must have, empty where any will do.
    """

    count: int
    requests: Amounts
    domain: str = ""


class GroupStatus(Struct, frozen=True, gc=False, cache_hash=True):
    """`status` of a PodGroup, as written by the engine and read back after a restart. Times are 0.0 where unset."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    members: int = 0
    bound: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    minimum: int = 0
    reservation: Reservation | None = None
    schedule_start_time: float = 0.0
    schedule_paused_time: float = 0.0
    scheduled_time: float = 0.0
    attempts: int = 0
    source: str = ""
    demand: tuple[Demand, ...] = ()
