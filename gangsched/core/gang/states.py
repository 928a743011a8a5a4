"""The life cycle of a group: every phase and every step between two phases, as one table.

Events never set a group's phase directly. After each batch of events the machine derives the group's `Facts` (what is
true of its members, bindings, clock and run) and walks `TABLE` from the present phase: it takes the first row that
starts there and whose fact holds, and repeats that until no row applies. So a lost or repeated event cannot leave a
group in a wrong phase, and a restart arrives at the same phase from the same facts.

Two rules make the walk end at the right phase: no two rows whose facts hold together may lead in a circle, and each
fact is computed from the cluster and the record (`core.objects.record`) alone, never from the phase. The record says
when the group was scheduled, how often it timed out, and whether it failed for good; it changes by the steps of another
table alone (`core.gang.steps`).

If you change a phase or a row: the contract's list of phases, `api`'s enum, the generated diagram in docs/ (run
`make docs`) and the scenario tests change with it.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from gangsched.core.objects.record import Phase


class Facts(Struct, frozen=True, kw_only=True):
    """What is true of a group now; the columns of the life cycle's table."""

    complete: bool = False
    """Enough live members for the minimum and each role's, and nothing that keeps the group from being tried."""
    held: bool = False
    """Nodes are reserved for members whose bindings have not been sent, or were, beside bound members, until a cap
    released them."""
    binding: bool = False
    """A binding that the quorum needs is on its way."""
    quorum_running: bool = False
    """The minimum is running or has succeeded."""
    was_scheduled: bool = False
    """The quorum was bound in this run."""
    degraded: bool = False
    """Below the minimum it was scheduled with, or bound members are to be evicted, for longer than is tolerated."""
    backing_off: bool = False
    """Timed out, and the back-off has not ended."""
    failed_for_good: bool = False
    """Timed out under timeoutPolicy Fail."""
    ended_well: bool = False
    """The last run ended with as many successes as the minimum."""
    ended_badly: bool = False
    """The last run ended otherwise, having been scheduled, and not because its members were deleted."""
    suspended: bool = False
    """No member is left, and the workload that made them is suspended or scaled to 0."""

    @property
    def failed(self) -> bool:
        """Whether the clock or the end of the run says that the group failed."""
        return self.failed_for_good or self.ended_badly


class Row(NamedTuple):
    """One row: from any of `starts` to `then` when `fact` holds (with `unless`, when it does not)."""

    starts: tuple[Phase, ...]
    fact: str
    then: Phase
    unless: bool = False

    def holds(self, facts: Facts) -> bool:
        """Whether the row's fact permits the step."""
        return bool(getattr(facts, self.fact)) is not self.unless


_P = Phase
WAITING = (_P.PENDING, _P.QUEUED, _P.RESERVED, _P.BINDING, _P.TIMED_OUT)
"""Phases of a run whose quorum is not bound."""
PLACED = (_P.SCHEDULED, _P.RUNNING, _P.DEGRADED)
"""Phases of a run whose quorum was bound."""

TABLE: tuple[Row, ...] = (
    # The run ends when no live member is left.
    Row((*WAITING, *PLACED, _P.FAILED, _P.SUSPENDED), "ended_well", _P.SUCCEEDED),
    Row((*WAITING, *PLACED, _P.SUCCEEDED, _P.SUSPENDED), "ended_badly", _P.FAILED),
    # A run under timeoutPolicy Fail ends by its clock, for good.
    Row((*WAITING, _P.SUSPENDED), "failed_for_good", _P.FAILED),
    # No member is left because the workload wants none for now.
    Row((*WAITING, *PLACED), "suspended", _P.SUSPENDED),
    # The quorum is bound, by gangsched or by another.
    Row(WAITING, "was_scheduled", _P.SCHEDULED),
    # A scheduled group runs, falls below its minimum, and recovers. A quorum that cannot be completed is rolled back.
    Row((*WAITING, _P.SCHEDULED, _P.RUNNING), "degraded", _P.DEGRADED),
    Row((_P.DEGRADED,), "degraded", _P.SCHEDULED, unless=True),
    Row((_P.SCHEDULED,), "quorum_running", _P.RUNNING),
    Row((_P.RUNNING,), "quorum_running", _P.SCHEDULED, unless=True),
    # On the way to being scheduled.
    Row((_P.PENDING, _P.QUEUED, _P.RESERVED, _P.TIMED_OUT), "binding", _P.BINDING),
    Row((_P.PENDING, _P.QUEUED, _P.TIMED_OUT), "held", _P.RESERVED),
    Row((_P.PENDING, _P.QUEUED), "backing_off", _P.TIMED_OUT),
    Row((_P.PENDING,), "complete", _P.QUEUED),
    # And back: members left, the back-off ended, reservations were released or bindings withdrawn.
    Row((_P.QUEUED,), "complete", _P.PENDING, unless=True),
    Row((_P.TIMED_OUT,), "backing_off", _P.QUEUED, unless=True),
    Row((_P.BINDING,), "binding", _P.QUEUED, unless=True),
    Row((_P.RESERVED,), "held", _P.QUEUED, unless=True),
    # A new run begins, a failed one is given another chance by a change of its spec, or the workload wants pods again.
    Row((_P.SCHEDULED, _P.RUNNING), "was_scheduled", _P.QUEUED, unless=True),
    Row((_P.SUCCEEDED,), "ended_well", _P.PENDING, unless=True),
    Row((_P.FAILED,), "failed", _P.PENDING, unless=True),
    Row((_P.SUSPENDED,), "suspended", _P.PENDING, unless=True),
)
"""Rows in order of precedence."""


class NoRest(Exception):  # noqa: N818 - names the defect
    """The table led in a circle: two rows contradict each other (a defect of gangsched)."""


def settle(phase: Phase, facts: Facts) -> Phase:
    """The phase that the facts lead to from the present one.

    Raises:
        NoRest: the table has a circle for these facts.
    """
    for _ in range(2 * len(Phase)):
        following = next((row.then for row in TABLE if phase in row.starts and row.holds(facts)), None)
        if following is None:
            return phase
        phase = following
    raise NoRest(f"from {phase} with {facts}")
