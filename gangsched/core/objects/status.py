"""A PodGroup's status."""

from __future__ import annotations

from msgspec import Struct

from gangsched.core.objects.expected_start import ExpectedStart
from gangsched.core.objects.record import NO_RECORD, Record
from gangsched.core.objects.shape import Amounts


class Place(Struct, frozen=True, gc=False, cache_hash=True):
    """Reservations on one node for one role: `pods` are names, `requests` those of each reservation."""

    node: str
    role: str
    count: int
    pods: tuple[str, ...]
    requests: Amounts


PREEMPTION = "Preemption"
"""The kind of a reservation whose places have to be left by the victims of a preemption."""


TIME = "Time"
"""The kind of a reservation whose places will be free once others have ended by themselves."""


class Reservation(Struct, frozen=True, gc=False, cache_hash=True):
    """Durable reservations, as `status.reservation` holds them.

    `kind` is PREEMPTION if they belong to an open plan of preemption, TIME if others leave by themselves until `start`
    (epoch seconds; 0.0 if nobody knows when), empty for those of an ordinary quorum.
    """

    expires: float
    placements: tuple[Place, ...]
    kind: str = ""
    start: float = 0.0


class Condition(Struct, frozen=True, gc=False, cache_hash=True):
    """A condition of a PodGroup; `since` is its lastTransitionTime."""

    type: str
    status: bool
    reason: str
    message: str
    since: float
    generation: int = 0


MOST_DEMANDS = 64
"""A status lists at most this many demands."""


class Demand(Struct, frozen=True, gc=False, cache_hash=True):
    """`count` members for which new nodes would have to be added, each with these `requests`.

    `domain` is the value of the label spec.placement.topology that those nodes must have, empty if any will do.
    """

    count: int
    requests: Amounts
    domain: str = ""


MOST_FITTING = 8
"""A status lists at most this many groups of nodes on which members fit."""
LONGEST_SHARED = 253
"""The most characters of a value that nodes share."""
MOST_HELPS = 8
"""A status lists at most this many remedies."""
LONGEST_HELP = 512
"""The most characters of one remedy."""

Shared = tuple[tuple[str, str], ...]
"""Common properties of nodes: labels and their values, or `allocatable` and the resources that they offer."""


class Fitting(Struct, frozen=True, gc=False, cache_hash=True):
    """`members` that fit now on `nodes` nodes with these `shared` properties, sorted; empty for several kinds."""

    members: int
    nodes: int
    shared: Shared = ()


class GroupStatus(Struct, frozen=True, gc=False, cache_hash=True):
    """`status` of a PodGroup, as written by the engine and read back after a restart. Times are 0.0 where unset.

    A restart recovers from the `record`, which is None before the status is first written; the rest is for users.
    `scheduler` is the schedulerName of the installation that wrote it; empty for the default name. `finished_at` is
    since when the phase has been one of `FINISHED`. `expected` is when a group that waits will probably start; it names
    only what is in the same namespace.
    """

    record: Record | None = None
    conditions: tuple[Condition, ...] = ()
    members: int = 0
    bound: int = 0
    running: int = 0
    reservation: Reservation | None = None
    attempts: int = 0
    source: str = ""
    demand: tuple[Demand, ...] = ()
    fitting: tuple[Fitting, ...] = ()
    helps: tuple[str, ...] = ()
    expected: ExpectedStart | None = None
    scheduler: str = ""
    finished_at: float = 0.0

    @property
    def telling(self) -> Condition | None:
        """The condition that says why the group is as it is: Degraded where it is true, else Scheduled."""
        degraded = self.condition("Degraded")
        return degraded if degraded is not None and degraded.status else self.condition("Scheduled")

    def condition(self, kind: str) -> Condition | None:
        """The condition of this type, whatever its status."""
        return next((condition for condition in self.conditions if condition.type == kind), None)

    @property
    def is_relied_on(self) -> bool:
        """Whether something waits until it is written: a reservation, or evictions of all members for another group."""
        return self.reservation is not None or (self.record is not None and bool(self.record.preempted_at))

    @property
    def phase(self) -> str:
        """The phase; empty before the status was first written."""
        return self.record.phase if self.record is not None else ""

    @property
    def minimum(self) -> int:
        """The minimum that was last satisfied."""
        return self.record.minimum if self.record is not None else 0

    @property
    def succeeded(self) -> int:
        """Members of this run that have succeeded."""
        return self.record.successes if self.record is not None else 0

    @property
    def failed(self) -> int:
        """Members of this run that have failed."""
        return self.record.failed if self.record is not None else 0

    @property
    def schedule_start_time(self) -> float:
        """When the clock started; while it is paused, the pause's begin minus the time that the clock had run."""
        record = self.record or NO_RECORD
        capped = record.capped
        return capped.paused_at - capped.ran_s if capped is not None and capped.paused_at else record.clock_start

    @property
    def schedule_paused_time(self) -> float:
        """When a cap paused the clock."""
        capped = self.record.capped if self.record is not None else None
        return capped.paused_at if capped is not None else 0.0

    @property
    def scheduled_time(self) -> float:
        """When the minimum was first bound in this run."""
        return self.record.scheduled_at if self.record is not None and not self.record.late else 0.0

    @property
    def running_time(self) -> float:
        """When the minimum was first seen running in this run."""
        return self.record.running_at if self.record is not None else 0.0
