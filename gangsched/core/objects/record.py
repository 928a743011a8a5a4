"""The record of a gang: the state that cannot be observed in the cluster, stored as it is in the PodGroup's status."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.workload import Workload

Counts = tuple[tuple[str, int], ...]
"""Numbers of members by role, sorted by role, each role once."""


class Phase(StrEnum):
    """`status.phase` of a group."""

    PENDING = "Pending"
    """Too few members exist, or something keeps the group from being tried at all."""
    QUEUED = "Queued"
    """Complete; waits for room."""
    RESERVED = "Reserved"
    """Nodes are reserved for the quorum, and no binding is in flight."""
    BINDING = "Binding"
    """The quorum's bindings are in flight."""
    SCHEDULED = "Scheduled"
    """The minimum is bound."""
    RUNNING = "Running"
    """The minimum is running."""
    DEGRADED = "Degraded"
    """Fewer members are bound than the minimum, in a scheduled group or after a quorum that could not be completed."""
    TIMED_OUT = "TimedOut"
    """maxScheduleTime passed; the group waits for the end of a back-off, or for a change that could help."""
    SUCCEEDED = "Succeeded"
    """The run ended, and at least as many members as the minimum succeeded."""
    FAILED = "Failed"
    """The run ended because members failed, or the group timed out under timeoutPolicy Fail."""
    SUSPENDED = "Suspended"
    """No member is left, and the workload that created them is suspended or scaled to 0."""


FINISHED = frozenset({Phase.SUCCEEDED, Phase.FAILED})
"""Phases of a group that has come to its end."""


class Outcome(StrEnum):
    """How a run has ended."""

    NONE = ""
    """The run goes on, or none has begun."""
    SUCCEEDED = "Succeeded"
    """No member is left alive, and as many as the minimum have succeeded."""
    FAILED = "Failed"
    """No member is left alive, too few have succeeded, and some failed without replacement or their workload ended."""
    UNDECIDED = "Undecided"
    """No member is left alive, but the result is open: they were deleted, or their workload will create others."""
    OUT_OF_TIME = "OutOfTime"
    """The clock ran out under timeoutPolicy Fail; members may be alive."""


ENDS = frozenset({Outcome.SUCCEEDED, Outcome.FAILED, Outcome.UNDECIDED})
"""Outcomes of a run that has ended because no member is left alive."""


class Minima(Struct, frozen=True, gc=False, cache_hash=True):
    """How many members are needed: in `total`, of each role, and of each of the `choices`.

    With choices it is a tree, whose leaves are roles. What was chosen has none, so a record never has any. `name` is
    what messages call this part of the group; empty for the whole.
    """

    total: int
    roles: Counts = ()
    choices: tuple[Choice, ...] = ()
    name: str = ""


class Choice(Struct, frozen=True, gc=False, cache_hash=True):
    """At least so many (`least`) of these parts of a group are needed, and each part as a whole or not at all.

    `name` is what messages call what they are parts of.
    """

    least: int
    parts: tuple[Minima, ...]
    name: str = ""


class Capped(Struct, frozen=True, gc=False, cache_hash=True):
    """A cap that forbids placeholders: its reason, and a `note` for users; see `core.gang.caps`.

    No placeholder is reserved before `until` (0.0: there is no back-off). `paused_at` is when the clock was paused,
    after it had run for `ran_s` seconds; 0.0 if it was not running.
    """

    reason: Reason
    note: str
    until: float = 0.0
    paused_at: float = 0.0
    ran_s: float = 0.0


class Record(Struct, frozen=True, gc=False, kw_only=True):
    """The record of a gang and its run. Times are in epoch seconds, 0.0 where unset.

    `run_start` is when the run's first live member was observed; 0.0 if no run has begun. `scheduled_at` is when the
    quorum was bound. With `late` it is when the placeholders expired before the gang was ever complete; the gang then
    counts as scheduled with the members that were bound. `quorum` are the minima of the quorum in progress, None if
    there is none, and `quorum_done` (by role) its members that have already succeeded; `satisfied` are the minima that
    were last bound. `running_at` is when the minimum first ran.
    `timeouts` counts the run's time-outs and rollbacks; `level` is the exponent of the back-off, which a change of the
    spec resets, and `retry_at` its end. `rollback_note` says what happened to the last quorum that was rolled
    back, until the next one is placed.
    `succeeded` (by role) and `failed` count the run's members that have ended. `led`: the member whose success is the
    gang's has succeeded. `damaged`: since the minimum was last bound, a member has failed other than by deletion.
    `workload` is the one object that all live members belong to, or the last ones did, without the declaration of its
    pods; None if there is none. `placeholders_expired`: the placeholders have expired, and no more are reserved before
    the gang is complete. `held_since` is when the first of the present placeholders was reserved. `capped`: a cap has
    released placeholders or forbids them; `caps` counts releases because of the hold time. Members that were bound
    before `settled_at`, or before the PodGroup was created if that is unset, belong to no quorum in progress: they stay
    bound, whatever happens to the next quorum.
    `prebinding_at` is when the quorum began to wait for its pre-bindings, `prebinding_clock` the value of `clock_start`
    at that time.
    `preempted_at` is since when all members are to leave for another group, and `preempted_by` the cause in one word,
    such as Priority, which is kept until a quorum is placed again; unset and empty if they need not. `preemptions`
    counts how often the group was preempted, in all its runs.
    """

    phase: Phase = Phase.PENDING
    run_start: float = 0.0
    outcome: Outcome = Outcome.NONE
    scheduled_at: float = 0.0
    late: bool = False
    running_at: float = 0.0
    clock_start: float = 0.0
    quorum: Minima | None = None
    quorum_done: Counts = ()
    satisfied: Minima = Minima(0)
    timeouts: int = 0
    level: int = 0
    retry_at: float = 0.0
    rollback_note: str = ""
    succeeded: Counts = ()
    failed: int = 0
    led: bool = False
    damaged: bool = False
    workload: Workload | None = None
    placeholders_expired: bool = False
    held_since: float = 0.0
    capped: Capped | None = None
    caps: int = 0
    settled_at: float = 0.0
    prebinding_at: float = 0.0
    prebinding_clock: float = 0.0
    preempted_at: float = 0.0
    preempted_by: str = ""
    preemptions: int = 0

    @property
    def ended(self) -> bool:
        """Whether the run has ended because none of its members is left alive."""
        return self.outcome in ENDS

    @property
    def open(self) -> bool:
        """Whether a run is under way."""
        return bool(self.run_start) and self.outcome not in ENDS

    @property
    def minimum(self) -> int:
        """The minimum that was last satisfied; 0 before the first time."""
        return self.satisfied.total

    @property
    def successes(self) -> int:
        """How many members have succeeded."""
        return sum(number for _, number in self.succeeded)


NO_RECORD = Record()


def counted(counts: Counts, role: str, number: int = 1) -> Counts:
    """These numbers with `number` added to the role's."""
    by_role = dict(counts)
    by_role[role] = by_role.get(role, 0) + number
    return tuple(sorted(by_role.items()))
